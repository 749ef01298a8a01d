// Two sessions side by side, before and after a fix, say: their figures, their findings, their turns as bars.

import { put } from "/page/dom.js";
import { moment } from "/page/figures.js";
import { oneLine } from "/page/safe.js";
import { timeline } from "/page/timeline.js";

const BETTER = new Map([[true, ["better", "good"]], [false, ["worse", "bad"]], [null, ["", ""]]]);

/** Opens the comparison. before, after: keys; "-" or nothing where one is still to be chosen. */
export async function openComparison(context, before, after) {
  const { el, source, go } = context;
  const overview = await source.overview();
  const sides = [side("before", before), side("after", after)];
  const result = el("div", { class: "compared" });
  const element = el("div", null,
    el("div", { class: "page-head" }, el("h1", null, "Compare two sessions"),
      el("p", { class: "dim" }, "The same work before and after a change, say.")),
    el("div", { class: "compare-choice" }, sides.map((one) => one.choice),
      el("button", { type: "button", class: "plain", onclick: swap }, "Swap")),
    result);

  function swap() {
    const keys = sides.map((one) => one.key());
    sides.forEach((one, i) => one.choose(keys[1 - i]));
    chosen();
  }

  function side(word, key) {
    const select = el("select", { id: `compare-${word}`, onchange: chosen });
    const bars = timeline({ open: (position) => go(`#/s/${select.value}/t/${mine.turns[position].index}`), compact: true });
    const mine = {
      word, bars, turns: [],
      key: () => select.value,
      choose: (value) => { select.value = value; },
      choice: el("div", { class: "compare-side" }, el("label", { for: `compare-${word}` }, word), select),
      fill(sessions) {
        const chosen = select.value || key;
        put(select, el("option", { value: "" }, "choose a session"), sessions.map((entry) =>
          el("option", { value: entry.key, selected: entry.key === chosen }, named(entry))));
      },
    };
    mine.fill(overview.sessions);
    return mine;
  }

  function named(entry) {
    const words = [oneLine(entry.id)];
    if (entry.source && entry.source !== entry.id) words.unshift(oneLine(entry.source));
    if (entry.started !== null) words.push(moment(entry.started));
    words.push(`${entry.turns} turns`, `${entry.breaks ?? "?"} breaks`);
    return words.join(" · ");
  }

  /** The address says what is compared, so that it can be kept and passed on. */
  function chosen() {
    const keys = sides.map((one) => one.key());
    const hash = keys.some(Boolean) ? `#/compare/${keys.map((key) => key || "-").join("/")}` : "#/compare";
    history.replaceState(null, "", hash);
    draw();
  }

  let drawing = 0;
  async function draw() {
    drawing += 1;
    const mine = drawing;
    const keys = sides.map((one) => one.key());
    if (keys.includes("")) {
      put(result, el("p", { class: "note" }, "Choose two sessions."));
      return;
    }
    if (keys[0] === keys[1]) {
      put(result, el("p", { class: "note" }, "These are one and the same session."));
      return;
    }
    const [comparison, ...views] = await Promise.all([source.compare(...keys), ...keys.map((key) => source.session(key))]);
    if (mine !== drawing) return;
    if (result.firstChild?.className !== "compare-tables") {
      put(result, el("div", { class: "compare-tables" }), sides.map((one) =>
        el("section", { class: "block", "aria-label": `Turns ${one.word}` }, el("h2", null, `Turns ${one.word}`), one.bars.element)));
    }
    put(result.firstChild, measures(comparison), findings(comparison));
    views.forEach((view, i) => {
      sides[i].turns = view.turns;
      sides[i].bars.draw(view.turns, view.entry.cost);
    });
  }

  function table(caption, heads, rows) {
    return el("section", { class: "block" }, el("h2", null, caption), el("table", { class: "figures" },
      el("thead", null, el("tr", null, heads.map((word, i) => el("th", { scope: "col", class: i ? "number" : null }, word)))),
      el("tbody", null, rows)));
  }

  function measures(comparison) {
    return table("Figures", ["figure", "before", "after", "after is"], comparison.measures.map((measure) => {
      const [word, mark] = BETTER.get(measure.better);
      return el("tr", null, el("th", { scope: "row" }, measure.label), el("td", { class: "number" }, measure.before),
        el("td", { class: "number" }, measure.after), el("td", { class: `number ${mark}` }, word));
    }));
  }

  function findings(comparison) {
    if (!comparison.codes.length) return null;
    return table("Findings", ["finding", "turns before", "turns after", "after is"], comparison.codes.map((one) => {
      const [word, mark] = BETTER.get(one.before === one.after ? null : one.after < one.before);
      return el("tr", null, el("th", { scope: "row" }, `${one.code} ${one.name}`), el("td", { class: "number" }, one.before),
        el("td", { class: "number" }, one.after), el("td", { class: `number ${mark}` }, word));
    }));
  }

  await draw();
  return {
    element,
    title: "Compare",
    async update(event) {
      if (event.type === "overview") {
        const { sessions } = await source.overview();
        // A list that somebody has open must not change under the hand.
        sides.filter((one) => !one.choice.contains(document.activeElement)).forEach((one) => one.fill(sessions));
      } else if (sides.some((one) => one.key() === event.key)) {
        await draw();
      }
    },
  };
}
