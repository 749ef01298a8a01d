// The turns of a session as a list, with the columns of the terminal report.

import { el, put } from "./dom.js";
import { clock, money, plural, predicted, seconds, tokens } from "./figures.js";
import { markBadge } from "./marks.js";
import { virtualList } from "./virtual.js";

/** Returns {element, draw(view)}. hrefOf(turn) -> where a line leads. */
export function turnsTable(hrefOf) {
  let view = null;
  let shownTurns = [];
  let onlyTold = false;
  const count = el("span", { class: "dim" });
  const all = choice("All", false);
  const told = choice("With something to say", true);
  const holder = el("div");
  let list = null;
  let columns = "";

  function choice(word, value) {
    return el("button", { type: "button", class: "plain", "aria-pressed": String(value === onlyTold), onclick: () => {
      onlyTold = value;
      all.setAttribute("aria-pressed", String(!onlyTold));
      told.setAttribute("aria-pressed", String(onlyTold));
      draw(view);
    } }, word);
  }

  function cells() {
    const turns = view.turns;
    return [
      ["turn", "turn", true],
      ...(view.entry.threads > 1 ? [["thread", "thread", true]] : []),
      ["time", "time", true],
      ["shape", "shape", false],
      ["prompt", "prompt", true],
      ["predicted", "predicted", true],
      ["cached", "cached", true],
      ["rebilled", "re-billed", true],
      ...(turns.some((turn) => turn.cost !== null) ? [["cost", "cost", true]] : []),
      ...(turns.some((turn) => turn.first_token_ms !== null) ? [["seconds", "first token", true]] : []),
      ["what", "what happened", false],
    ];
  }

  function valueOf(name, turn) {
    switch (name) {
      case "turn": return el("a", { href: hrefOf(turn), "aria-label": `Turn ${turn.index}` }, turn.index);
      case "thread": return turn.thread;
      case "time": return clock(turn.t);
      case "shape": return turn.shape;
      case "prompt": return tokens(turn.prompt, turn.estimated);
      case "predicted": return turn.predicted ? predicted(turn.predicted).replace(" to ", "-") : "?";
      case "cached": return tokens(turn.read);
      case "rebilled": return turn.rebilled ? tokens(turn.rebilled, turn.roughly) : "-";
      case "cost": return money(turn.cost, view.entry.cost);
      case "seconds": return seconds(turn.first_token_ms);
      default: return what(turn);
    }
  }

  function what(turn) {
    if (!turn.mark) return turn.brief ? el("span", { title: turn.what }, turn.brief) : "";
    const word = turn.brief.split(": ")[0];
    const rest = turn.brief.slice(word.length + 2) || (turn.mark === "miss" ? turn.what.slice(6) : "");
    return el("span", { title: turn.what }, markBadge(turn.mark, rest ? word : turn.brief || undefined), " ", rest);
  }

  function made(i) {
    const turn = shownTurns[i];
    const row = el("div", { role: "row", class: `row ${turn.brief ? "" : "row-quiet"} ${turn.mark ? `row-${turn.mark}` : ""}` });
    for (const [name, word, right] of cells()) {
      row.append(el("div", { role: "cell", class: `cell cell-${name} ${right ? "number" : ""}`, "data-name": word },
        valueOf(name, turn)));
    }
    row.addEventListener("click", (event) => {
      if (!event.target.closest("a") && !String(getSelection())) location.hash = hrefOf(turn);
    });
    return row;
  }

  function draw(newView) {
    view = newView;
    shownTurns = onlyTold ? view.turns.filter((turn) => turn.what) : view.turns;
    const now = cells().map(([name]) => name).join(" ");
    if (!list || now !== columns) {
      columns = now;
      const head = el("div", { role: "row", class: "row row-head" }, cells().map(([name, word, right]) =>
        el("div", { role: "columnheader", class: `cell cell-${name} ${right ? "number" : ""}` }, word)));
      list = virtualList({ label: "Turns; arrow keys move", roving: true, head, row: made, rowHeight: "--turn-row", className: "turns" });
      list.element.style.setProperty("--columns", cells().map(([name]) => WIDTHS[name]).join(" "));
      put(holder, list.element);
    }
    const quiet = view.turns.length - view.turns.filter((turn) => turn.what).length;
    put(count, `${plural(view.turns.length, "turn")}, ${quiet} of them quiet`);
    list.draw(shownTurns.length);
  }

  const element = el("section", { class: "block" },
    el("div", { class: "block-head" }, el("h2", null, "Turns"), count, el("span", { class: "grow" }), all, told), holder);
  return { element, draw };
}

const WIDTHS = {
  turn: "36px", thread: "44px", time: "50px", shape: "62px", prompt: "54px", predicted: "86px", cached: "50px",
  rebilled: "62px", cost: "72px", seconds: "72px", what: "minmax(130px, 1fr)",
};
