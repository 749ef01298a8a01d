// Where a prompt parts from the one before, side by side, by words or by tokens.

import { el, put, spoken } from "./dom.js";
import { exactTokens } from "./figures.js";
import { charactersOf, oneLine, safe, shown, shownToken } from "./safe.js";

/** The block of a divergence; hrefOf(index) leads to the turn that it is held against. */
export function differenceBlock(difference, hrefOf) {
  const { before, after } = difference;
  let by = "words";
  const sides = el("div", { class: "sides" });
  const buttons = ["words", "tokens"].map((name) =>
    el("button", { type: "button", class: "plain", onclick: () => {
      by = name;
      draw();
    } }, `By ${name}`));
  const hasTokens = Boolean(before?.tokens.length || after?.tokens.length);
  const tokenNote = el("p", { class: "dim small" });

  function draw() {
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String((i ? "tokens" : "words") === by)));
    put(sides, side("before", before, "gone"), side("after", after, "new"));
    put(tokenNote, by === "tokens"
      ? `Tokens of ${difference.tokenizer}${difference.tokens_exact ? "" : ", an estimate: the server's own are not known"}. `
        + "From the first token that differs on, nothing can be read from the cache."
      : "");
  }

  function side(name, value, kind) {
    const label = name === "before" ? ["before, ", el("a", { href: hrefOf(difference.against) }, `turn ${difference.against}`)] : ["after, this turn"];
    if (value === null) {
      return el("figure", { class: "side" }, el("figcaption", null, label), el("p", { class: "dim nothing" }, "(nothing)"));
    }
    const content = by === "words" ? words(value, kind) : pieces(value, kind);
    const whole = by === "words" && value.words.every(([op]) => op === "differs") ? `whole whole-${kind}` : "";
    return el("figure", { class: "side" }, el("figcaption", null, label),
      el("pre", { class: `${by} ${whole}`, tabindex: "0", role: "group", "aria-label": `${name}, by ${by}` }, content));
  }

  draw();
  return el("section", { class: "block difference" },
    el("div", { class: "block-head" }, el("h2", null, "Where it parts"), el("span", { class: "grow" }), hasTokens ? buttons : null),
    el("p", null, el("code", { class: "place" }, safe(difference.where)), `: ${difference.what}`,
      difference.detail.length ? el("span", { class: "dim" }, ` · ${difference.detail.join(", ")}`) : null),
    difference.order ? [order(difference.order), el("p", { class: "small dim gap" }, "The first of them:")] : null,
    sides, tokenNote);
}

const MARKS = { gone: ["del", "gone: "], new: ["ins", "new: "] };

function words(side, kind) {
  const length = side.words.reduce((sum, [, text]) => sum + charactersOf(text).length, 0);
  const behind = side.chars - side.start - length;
  return [
    side.start > 0 ? el("span", { class: "cut" }, `… ${exactTokens(side.start)} characters before\n`) : null,
    side.words.map(([op, text]) => (op === "same" ? el("span", { class: "same" }, safe(text)) : marked(kind, shown(text)))),
    behind > 0 ? el("span", { class: "cut" }, `\n… ${exactTokens(behind)} more characters`) : null,
  ];
}

function marked(kind, text) {
  const [tag, word] = MARKS[kind];
  return el(tag, null, spoken(word), text);
}

function pieces(side, kind) {
  const found = [];
  side.tokens.forEach(([op, text], i) => {
    const token = shownToken(text);
    found.push(op === "same" ? el("span", { class: `token ${i % 2 ? "odd" : ""}` }, token)
      : el(MARKS[kind][0], { class: "token" }, spoken(MARKS[kind][1]), token));
    if (text.includes("\n")) found.push("\n");
  });
  return found;
}

function order(names) {
  if (!names) return null;
  const [before, after] = names;
  const list = (own, other) => el("ol", { class: "order" }, own.map((name, i) =>
    el("li", { class: name === other[i] ? "same" : "differs" }, oneLine(name))));
  return el("details", { class: "orders", open: before.length <= 12 },
    el("summary", null, `The tools in their order: ${before.length} before, ${after.length} after`),
    el("div", { class: "sides" },
      el("div", null, el("p", { class: "dim small" }, "before"), list(before, after)),
      el("div", null, el("p", { class: "dim small" }, "after"), list(after, before))));
}
