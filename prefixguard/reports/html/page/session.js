// One session: its verdict and sums, the timeline, the causes, the turns; with a turn chosen, that turn.

import { el, put, renew } from "./dom.js";
import { bill, exactTokens, money, moment, percent } from "./figures.js";
import { causesBlock } from "./causes.js";
import { turnMoves } from "./moves.js";
import { oneLine } from "./safe.js";
import { timeline } from "./timeline.js";
import { openTurn } from "./turn.js";
import { turnsTable } from "./turns.js";

/** Opens a session, or one turn of it. Returns {element, title, crumbs(), update(event), turnTo(index), pressed(key)}. */
export async function openSession(context, key, index = null) {
  let view = await context.source.session(key);
  let at = null; // index of the turn that is shown, null for the session itself
  let moving = 0;
  const hrefOf = (turn) => `#/s/${key}/t/${turn.index ?? turn}`;
  const positionOf = (i) => view.turns.findIndex((turn) => turn.index === i);
  const head = el("div", { class: "page-head" });
  const sums = el("dl", { class: "sums" });
  const causes = el("div");
  const bars = timeline({ open: (i) => context.go(hrefOf(view.turns[i])) });
  const barsBlock = el("section", { class: "block timeline-block", "aria-label": "Timeline" }, bars.element);
  const table = turnsTable(hrefOf);
  const moves = turnMoves(() => view.turns, hrefOf);
  const below = el("div", { class: "below" });
  const element = el("div", { class: "session" }, head, barsBlock, below);

  function draw() {
    const entry = view.entry;
    const about = [...entry.facts];
    if (entry.agent) about.unshift(entry.agent);
    if (entry.started !== null) about.unshift(moment(entry.started));
    if (entry.source && entry.source !== entry.id) about.push(entry.source);
    const name = oneLine(entry.id);
    put(head, at === null
      ? [el("h1", { class: "mono" }, name), el("p", { class: "dim" }, oneLine(about.join(" · "))),
        el("p", { class: "lead" }, entry.verdict), limitNote(entry.recording)]
      : null);
    head.hidden = at !== null;
    bars.compact(at !== null);
    bars.draw(view.turns, entry.cost);
    put(sums, sumsOf(entry).map(([name_, value, note]) =>
      el("div", null, el("dt", null, name_), el("dd", null, el("b", null, value), note ? el("span", { class: "dim" }, note) : null))));
    renew(causes, causesBlock(view.causes, (cause) => `#/s/${key}/t/${cause.turn}`));
    if (at === null) table.draw(view);
  }

  async function turnTo(i) {
    if (i !== null && positionOf(i) < 0) throw new Error(`This session has no turn ${i}.`);
    moving += 1;
    const mine = moving;
    const next = i === null ? null : await openTurn({ ...context, key, index: i, hrefOf, moves: moves.element });
    if (mine !== moving) return; // the reader has gone on meanwhile
    at = i;
    draw();
    moves.draw(i);
    put(below, ...(next ? [next] : [sums, causes, table.element]));
    bars.choose(i === null ? -1 : positionOf(i));
  }

  await turnTo(index);
  return {
    element,
    key,
    get title() {
      return at === null ? oneLine(view.entry.id) : `Turn ${at} of ${oneLine(view.entry.id)}`;
    },
    crumbs: () => [[oneLine(view.entry.id), `#/s/${key}`], ...(at === null ? [] : [[`turn ${at}`, hrefOf(at)]])],
    turnTo,
    pressed(name) {
      // Where the reader is going counts, not what has been drawn: keys may come faster than turns.
      const going = /\/t\/(\d+)$/.exec(location.hash);
      const to = going ? moves.targetOf(name, Number(going[1])) : undefined;
      if (to) context.go(hrefOf(to));
      return Boolean(to);
    },
    async update(event) {
      if (event && (event.type !== "session" || event.key !== key)) return;
      view = await context.source.session(key);
      draw();
      if (at !== null) moves.draw(at);
    },
  };
}

/** What cannot be seen because of how a session was recorded. */
export function limitNote(recording) {
  if (recording === "full") return null;
  const said = recording === "hashes"
    ? "Recorded as digests only: where prompts part can be seen, what they say cannot."
    : "Recorded with secrets taken out: [redacted:...] stands for each of them.";
  return el("p", { class: "note" }, said);
}

function sumsOf(entry) {
  const cost = entry.cost;
  const found = [
    ["sent", `${exactTokens(entry.prompt_tokens, false)}`, "prompt tokens"],
    ["read from the cache", percent(entry.hit_rate), "of them"],
    ["re-billed", entry.breaks === null ? "?" : exactTokens(entry.rebilled_tokens, entry.estimated), "tokens"],
  ];
  if (entry.rewrite_factor !== null) {
    found.push(["computed", `${entry.rewrite_factor.toFixed(1)} times`, "the largest prompt; 1.0 is the least"]);
  }
  if (cost.actual !== null) {
    found.push(["cost", bill(cost), `${money(cost.uncached, cost)} without a cache, ${money(cost.ideal, cost)} at best`]);
    found.push(["avoidable", money(cost.avoidable, cost), ""]);
  }
  return found;
}
