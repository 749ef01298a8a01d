// A session as bars, one per turn: what was read, written, uncached and re-billed; below it money and seconds.
//
// Only the bars in view are in the document. The whole is one list box: arrows move, Enter opens.

import { el, freshId, put, svg } from "./dom.js";
import { clock, exactTokens, money, plural, predicted, seconds, tokens } from "./figures.js";
import { BREAKS, MARK_WORDS, markPath, markSign } from "./marks.js";

const LEAST_STEP = 5; // pixels from bar to bar
const MOST_STEP = 44;
const GUTTER = 52; // pixels for what stands left of the bars
const PARTS = [
  ["read", "read", "read from the cache"],
  ["rebilled", "re-billed", "sent and paid again, though it had been cached"],
  ["written", "written", "written to the cache"],
  ["uncached", "uncached", "computed, not cached"],
  ["untold", "not reported", "the server does not say what it read"],
];

/** The parts of a turn's prompt in tokens, from the bottom of its bar. */
export function partsOf(turn) {
  const parts = { read: 0, rebilled: 0, written: 0, uncached: 0, untold: 0 };
  if (turn.read === null) {
    parts.untold = turn.prompt;
    return parts;
  }
  parts.read = turn.read;
  parts.written = turn.written ?? 0;
  parts.uncached = turn.uncached ?? 0;
  // Re-billed tokens are among those that were written or left uncached.
  let again = Math.min(turn.rebilled, parts.written + parts.uncached);
  parts.rebilled = again;
  const fromWritten = Math.min(again, parts.written);
  parts.written -= fromWritten;
  again -= fromWritten;
  parts.uncached -= again;
  return parts;
}

/** Whether the server read less or more than predicted, so that a bar should show it. */
function isSurprise({ predicted: interval, verdict }) {
  return Boolean(interval) && (verdict === "less" || verdict === "more");
}

/** One turn in a sentence, for the line under the bars and for those who hear it. */
export function turnSentence(turn, cost) {
  const said = [`turn ${turn.index}`, clock(turn.t), turn.shape];
  said.push(`${tokens(turn.prompt, turn.estimated)} tokens`);
  if (turn.predicted) said.push(`read ${tokens(turn.read)} of ${predicted(turn.predicted)} predicted`);
  else said.push(`read ${tokens(turn.read)}`);
  if (turn.cost !== null) said.push(money(turn.cost, cost));
  if (turn.first_token_ms !== null) said.push(`${seconds(turn.first_token_ms)} to the first token`);
  if (turn.what) said.push(turn.what);
  return said.join(" · ");
}

/**
 * The timeline.
 *
 * options: open(position) is called for the chosen turn.
 * Returns {element, draw(turns, cost), choose(position), compact(yes)}; compact is without money and seconds.
 */
export function timeline({ open }) {
  let compact = false;
  const id = freshId("turns");
  let turns = [];
  let cost = { currency: "USD" };
  let chosen = -1;
  let active = 0;
  let step = LEAST_STEP;
  const drawing = svg("svg", { role: "presentation" });
  const space = el("div", { class: "timeline-space", role: "presentation" }, drawing);
  const box = el(
    "div",
    { class: "timeline-box", role: "listbox", tabindex: "0", "aria-label": "Turns as bars" },
    space,
  );
  const gutter = svg("svg", { class: "timeline-gutter", "aria-hidden": "true", width: GUTTER });
  const saying = el("p", { class: "timeline-saying", "aria-hidden": "true" });
  const legend = el("div", { class: "legend" });
  const element = el(
    "div",
    { class: "timeline" },
    legend,
    el("div", { class: "timeline-body" }, gutter, box),
    saying,
  );

  function lanes() {
    const priced = !compact && turns.some((turn) => turn.cost !== null);
    const timed = !compact && turns.some((turn) => turn.first_token_ms !== null);
    const threads = new Set(turns.map((turn) => turn.thread)).size > 1;
    let y = 16;
    const found = { marks: 8, bars: [y, compact ? 56 : 132] };
    y += found.bars[1];
    if (threads) [found.threads, y] = [[y + 7, 10], y + 18];
    if (priced) [found.cost, y] = [[y + 14, 30], y + 46];
    if (timed) [found.seconds, y] = [[y + 14, 30], y + 46];
    found.axis = y + 13;
    found.height = y + 18;
    return found;
  }

  function most(value) {
    return turns.reduce((top, turn) => Math.max(top, value(turn) ?? 0), 0) || 1;
  }

  function redraw() {
    const width = box.clientWidth || 600;
    step = Math.min(MOST_STEP, Math.max(LEAST_STEP, width / Math.max(1, turns.length)));
    const lane = lanes();
    space.style.width = `${Math.max(width, Math.ceil(turns.length * step))}px`;
    space.style.height = `${lane.height}px`;
    drawGutter(lane);
    drawBars(lane, width);
  }

  function drawGutter(lane) {
    gutter.setAttribute("height", lane.height);
    const label = (y, text, name = "") => svg("text", { x: GUTTER - 6, y, class: `axis ${name}` }, text);
    const [top, height] = lane.bars;
    const found = [label(top + 8, tokens(most((turn) => turn.prompt))), label(top + height, "0")];
    if (!compact) found.push(label(top + height / 2 + 3, "tokens", "axis-name"));
    if (lane.threads) found.push(label(lane.threads[0] + 9, "thread", "axis-name"));
    for (const [name, y] of [["cost", lane.cost], ["seconds", lane.seconds]]) {
      if (!y) continue;
      const top_ = name === "cost" ? money(most((turn) => turn.cost), { ...cost, estimated: false })
        : seconds(most((turn) => turn.first_token_ms));
      found.push(label(y[0] + 4, top_), label(y[0] + y[1], name === "cost" ? "money" : "first t.", "axis-name"));
    }
    put(gutter, found);
  }

  function drawBars(lane, width) {
    const from = Math.max(0, Math.floor(box.scrollLeft / step) - 20);
    const to = Math.min(turns.length, Math.ceil((box.scrollLeft + width) / step) + 20);
    const scale = { tokens: most((turn) => turn.prompt), cost: most((turn) => turn.cost) };
    scale.seconds = most((turn) => turn.first_token_ms);
    drawing.setAttribute("width", Math.max(width, Math.ceil(turns.length * step)));
    drawing.setAttribute("height", lane.height);
    const found = [hatch(), ...guides(lane, width)];
    for (let i = from; i < to; i += 1) found.push(bar(i, lane, scale));
    put(drawing, found);
    box.setAttribute("aria-activedescendant", turns.length ? `${id}-${active}` : "");
    if (!turns.length) box.removeAttribute("aria-activedescendant");
  }

  function hatch() {
    const pattern = { id: `${id}-hatch`, width: 5, height: 5, patternUnits: "userSpaceOnUse" };
    return svg("defs", null, svg("pattern", { ...pattern, patternTransform: "rotate(45)" },
      svg("rect", { width: 5, height: 5, class: "part-rebilled" }),
      svg("rect", { width: 1.6, height: 5, class: "hatch-line" })));
  }

  function guides(lane, width) {
    const all = Math.max(width, turns.length * step);
    const line = (y) => svg("line", { x1: 0, x2: all, y1: y, y2: y, class: "guide" });
    const [top, height] = lane.bars;
    const found = [line(top), line(top + height / 2), line(top + height)];
    if (lane.cost) found.push(line(lane.cost[0] + lane.cost[1]));
    if (lane.seconds) found.push(line(lane.seconds[0] + lane.seconds[1]));
    return found;
  }

  function bar(i, lane, scale) {
    const turn = turns[i];
    const x = i * step;
    const wide = Math.max(2, Math.min(28, step * 0.68 + 0.4));
    const left = x + (step - wide) / 2;
    const [top, height] = lane.bars;
    const found = [svg("rect", { x, y: 0, width: step, height: lane.height, class: "column" })];
    const parts = partsOf(turn);
    let y = top + height;
    for (const [name] of PARTS) {
      const tall = (parts[name] / scale.tokens) * height;
      if (tall <= 0) continue;
      y -= tall;
      const look = name === "rebilled" ? { class: "part", fill: `url(#${id}-hatch)` } : { class: `part part-${name}` };
      found.push(svg("rect", { x: left, y, width: wide, height: Math.max(tall, 0.5), ...look }));
    }
    if (isSurprise(turn)) {
      const at = top + height - (Math.min(turn.predicted[0], turn.prompt) / scale.tokens) * height;
      found.push(svg("line", { x1: left - 1, x2: left + wide + 1, y1: at, y2: at, class: "forecast" }));
    }
    if (turn.mark) found.push(markPath(turn.mark, x + step / 2, lane.marks));
    if (lane.threads) {
      const row = lane.threads[0] + (turn.thread % 4) * 2.6;
      found.push(svg("rect", { x, y: row, width: step, height: 2, class: `thread thread-${turn.thread % 4}` }));
    }
    if (lane.cost && turn.cost !== null) found.push(small(left, wide, lane.cost, turn.cost / scale.cost, "cost"));
    if (lane.seconds && turn.first_token_ms !== null) {
      found.push(small(left, wide, lane.seconds, turn.first_token_ms / scale.seconds, "seconds"));
    }
    if (i % every() === 0) {
      found.push(svg("text", { x: Math.min(x + step / 2, turns.length * step - 9), y: lane.axis, class: "axis axis-turn" }, turn.index));
    }
    return svg("g", {
      role: "option",
      id: `${id}-${i}`,
      "aria-selected": String(i === chosen),
      "aria-label": turnSentence(turn, cost),
      "aria-setsize": turns.length,
      "aria-posinset": i + 1,
      class: `turn ${i === chosen ? "chosen" : ""} ${i === active ? "active" : ""}`,
      "data-turn": i,
    }, found);
  }

  function small(x, width, [top, height], share, name) {
    const tall = Math.max(1, share * height);
    return svg("rect", { x, y: top + height - tall, width, height: tall, class: `small small-${name}` });
  }

  function every() {
    for (const n of [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]) if (n * step >= 30) return n;
    return 2000;
  }

  function say(i) {
    put(saying, turns[i] ? [markSign(turns[i].mark), turnSentence(turns[i], cost)] : "");
  }

  function activate(i, scroll = true) {
    active = Math.min(turns.length - 1, Math.max(0, i));
    if (scroll) intoView(active);
    drawBars(lanes(), box.clientWidth || 600);
    say(active);
  }

  function intoView(i) {
    const [left, right] = [i * step, (i + 1) * step];
    if (left < box.scrollLeft) box.scrollLeft = left - 2 * step;
    else if (right > box.scrollLeft + box.clientWidth) box.scrollLeft = right - box.clientWidth + 2 * step;
  }

  function next(direction) {
    for (let i = active + direction; i >= 0 && i < turns.length; i += direction) {
      if (BREAKS.has(turns[i].mark)) return i;
    }
    return active;
  }

  const KEYS = {
    ArrowRight: () => active + 1,
    ArrowLeft: () => active - 1,
    ArrowDown: () => next(1),
    ArrowUp: () => next(-1),
    PageDown: () => active + 20,
    PageUp: () => active - 20,
    Home: () => 0,
    End: () => turns.length - 1,
  };
  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || !turns.length) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      open(active);
    } else if (KEYS[event.key]) {
      event.preventDefault();
      activate(KEYS[event.key]());
    }
  });
  box.addEventListener("click", (event) => {
    const at = event.target.closest?.("[data-turn]");
    if (!at) return;
    activate(Number(at.dataset.turn), false);
    open(active);
  });
  box.addEventListener("pointermove", (event) => {
    const at = event.target.closest?.("[data-turn]");
    if (at) say(Number(at.dataset.turn));
  });
  box.addEventListener("pointerleave", () => say(active));
  box.addEventListener("scroll", () => drawBars(lanes(), box.clientWidth || 600), { passive: true });
  new ResizeObserver(() => {
    redraw();
    intoView(active);
  }).observe(box);

  function draw(newTurns, newCost) {
    const atEnd = box.scrollLeft + box.clientWidth >= box.scrollWidth - 2 * step;
    const grew = turns.length > 0 && newTurns.length > turns.length;
    [turns, cost] = [newTurns, newCost];
    active = Math.min(active, Math.max(0, turns.length - 1));
    box.setAttribute("aria-label", `Turns as bars: ${plural(turns.length, "turn")}. Arrow keys move, Enter opens.`);
    put(legend, legendOf(turns));
    redraw();
    if (grew && atEnd) box.scrollLeft = box.scrollWidth;
    say(active);
  }

  function choose(position) {
    chosen = position;
    if (position >= 0) activate(position);
  }

  function setCompact(yes) {
    if (yes === compact) return;
    compact = yes;
    redraw();
  }

  return { element, draw, choose, compact: setCompact };
}

function legendOf(turns) {
  const sums = { read: 0, rebilled: 0, written: 0, uncached: 0, untold: 0 };
  const estimated = turns.some((turn) => turn.rebilled && turn.roughly);
  for (const turn of turns) for (const [name, count] of Object.entries(partsOf(turn))) sums[name] += count;
  // Bars end at what the server counted; the sum that is named is that of the report.
  sums.rebilled = turns.reduce((sum, turn) => sum + turn.rebilled, 0);
  const found = PARTS.filter(([name]) => sums[name] > 0).map(([name, word, means]) =>
    el("span", { class: "legend-entry", title: means }, el("i", { class: `swatch swatch-${name}` }),
      `${word} `, el("b", null, exactTokens(sums[name], name === "rebilled" && estimated))));
  if (turns.some(isSurprise)) {
    found.push(el("span", { class: "legend-entry", title: "the least that the cache should have given" },
      el("i", { class: "swatch swatch-forecast" }), "predicted"));
  }
  for (const mark of ["break", "decided", "miss", "remark", "failed", "unread"]) {
    const count = turns.filter((turn) => turn.mark === mark).length;
    if (count) found.push(el("span", { class: "legend-entry" }, markSign(mark), `${MARK_WORDS[mark]} `, el("b", null, count)));
  }
  return found;
}
