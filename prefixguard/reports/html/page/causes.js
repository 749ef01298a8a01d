// What to mend first: the codes that cost most, each with a place, what it cost, and the advice.

import { el } from "./dom.js";
import { money, plural, tokens } from "./figures.js";
import { oneLine } from "./safe.js";

const MOST = 6; // causes that have an entry; the others are named
const NAMED = 8; // of those, how many before anybody asks
const OPEN = 1; // causes that are told in full before anybody asks

/** A text of the catalogue, its `code` in backticks as code. */
export function prose(text) {
  return text.split("`").map((part, i) => (i % 2 ? el("code", null, part) : part));
}

/**
 * The block of causes; null when there are none. hrefOf(cause) -> the turn where it cost most.
 * several: over more than one session, where each is told in a line until it is asked for.
 */
export function causesBlock(causes, hrefOf, several = false) {
  const loud = causes.filter((cause) => cause.severity !== "info");
  const rest = [...loud.slice(MOST), ...causes.filter((cause) => cause.severity === "info")];
  if (!causes.length) return null;
  return el("section", { class: "block causes" },
    loud.length ? el("div", { class: "block-head" }, el("h2", null, "What to mend first")) : null,
    loud.length ? el("ol", { class: "cause-list" }, loud.slice(0, MOST).map((cause, i) => el("li", null, card(cause, !several && i < OPEN)))) : null,
    rest.length ? el("p", { class: "also" }, el("b", null, "Also: "), named(rest.slice(0, NAMED))) : null,
    rest.length > NAMED ? el("details", { class: "also-more", "data-keep": "more" }, el("summary", null, `${rest.length - NAMED} more`),
      el("p", { class: "also" }, named(rest.slice(NAMED)))) : null);

  function named(some) {
    return some.map((cause, i) => [i ? ", " : "", el("a", { href: hrefOf(cause) }, `${cause.code} ${cause.name}`),
      ` (${plural(cause.turns, "turn")})`]);
  }

  function card(cause, open) {
    const sums = [plural(cause.turns, "turn")];
    if (several && cause.sessions > 1) sums[0] += ` in ${plural(cause.sessions, "session")}`;
    if (cause.tokens) sums.push(`${tokens(cause.tokens, cause.estimated)} tokens re-billed`);
    if (cause.cost !== null) sums.push(`${money(cause.cost, { currency: cause.currency })} avoidable`);
    if (cause.deliberate) sums.push("looks like a decision");
    return el("details", { class: `cause severity-${cause.severity}`, open, "data-keep": cause.code },
      el("summary", null,
        el("span", { class: "code" }, cause.code), " ", el("b", null, cause.name),
        el("span", { class: "cause-title" }, cause.title),
        el("span", { class: "dim cause-sums" }, sums.join(", "))),
      el("div", { class: "cause-body" },
        el("p", null, el("a", { href: hrefOf(cause) }, `turn ${cause.turn}`),
          cause.pointer ? [" at ", el("code", null, oneLine(cause.pointer))] : null,
          cause.source ? [" from ", el("code", null, oneLine(cause.source))] : null,
          cause.message ? `: ${oneLine(cause.message)}` : null),
        cause.mend ? el("p", null, el("b", null, "To do: "), prose(cause.mend)) : null,
        cause.mend_here ? el("p", null, prose(cause.mend_here)) : null,
        cause.why ? el("p", { class: "dim" }, prose(cause.why)) : null));
  }
}
