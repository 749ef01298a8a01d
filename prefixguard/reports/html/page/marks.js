// Signs and words for what marks a turn, and for what became of a segment: never a colour alone.

import { el, svg } from "./dom.js";

/** The words of the terminal report. */
export const MARK_WORDS = {
  "": "no break",
  break: "break",
  decided: "decided",
  miss: "miss",
  remark: "remark",
  failed: "failed",
  unread: "not understood",
};

/** Marks that the keys for the next break stop at. */
export const BREAKS = new Set(["break", "decided", "miss"]);

const SHAPES = {
  break: "M0 -5 L5 4 L-5 4 Z",
  decided: "M0 -5 L5 0 L0 5 L-5 0 Z",
  miss: "M-4 0 a4 4 0 1 0 8 0 a4 4 0 1 0 -8 0 Z",
  remark: "M-2.5 0 a2.5 2.5 0 1 0 5 0 a2.5 2.5 0 1 0 -5 0 Z",
  failed: "M-4 -4 L4 4 M4 -4 L-4 4",
  unread: "M-4 0 L4 0",
};

/** The sign of a mark as a path around (x, y). */
export function markPath(mark, x, y) {
  return svg("path", { d: SHAPES[mark], transform: `translate(${x} ${y})`, class: `mark mark-${mark}` });
}

/** The sign of a mark as a small picture of its own. */
export function markSign(mark) {
  if (!SHAPES[mark]) return null;
  return svg("svg", { class: "mark-sign", viewBox: "-7 -7 14 14", "aria-hidden": "true" }, markPath(mark, 0, 0));
}

/** A mark with its word. */
export function markBadge(mark, word = MARK_WORDS[mark]) {
  return el("span", { class: `badge badge-${mark || "none"}` }, markSign(mark), word);
}

/** What a state is called, its sign, and what it means. */
export const STATES = {
  cached: { word: "cached", sign: "=", means: "read from the cache" },
  lost: { word: "lost", sign: "!", means: "sent again, though it cannot be read from the cache" },
  new: { word: "new", sign: "+", means: "not sent before, computed now" },
};

/** The sign of a state in its colour. */
export function stateSign(state) {
  return el("span", { class: `state state-${state}`, "aria-hidden": "true" }, STATES[state].sign);
}
