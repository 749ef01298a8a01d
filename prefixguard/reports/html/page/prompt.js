// A prompt as its segments in rendered order: a map of all of it, the list, and the text of the chosen one.

import { el, freshId, put, spoken, svg } from "./dom.js";
import { exactTokens, plural, tokens } from "./figures.js";
import { STATES, stateSign } from "./marks.js";
import { charactersOf, oneLine, part, safe } from "./safe.js";
import { virtualList } from "./virtual.js";

const GROUP_WORDS = { tools: "tools", head: "system", history: "history" };

/** The block of a prompt. */
export function promptBlock(context, turn) {
  const { prompt } = turn;
  const { segments } = prompt;
  const states = prompt.states.flatMap(([state, count]) => Array(count).fill(state));
  const ends = endsOf(prompt);
  let chosen = -1;
  const reading = reader(context, turn, states, ends);
  const list = virtualList({ label: "Segments, in rendered order; arrow keys move", role: "list", roving: true, row, rowHeight: "--segment-row", className: "segments" });
  const map = mapOf(turn, states, ends, (i) => choose(i, true));
  const jumps = el("div", { class: "jumps" });
  const element = el("section", { class: "block prompt" },
    el("div", { class: "block-head" }, el("h2", null, "Prompt, in rendered order"),
      el("span", { class: "dim" }, `${plural(segments.length, "segment")}, ${exactTokens(prompt.total, prompt.estimated)} tokens`),
      el("span", { class: "grow" }), jumps),
    sumsLine(prompt, states, ends), map.element,
    el("div", { class: "prompt-columns" }, list.element, reading.element),
    parameters(prompt.parameters));

  const start = prompt.parted ? prompt.parted[0] : Math.max(0, states.findIndex((state) => state !== "cached"));
  for (const [word, i] of [["divergence", prompt.parted ? prompt.parted[0] : -1], ["first lost", states.indexOf("lost")], ["first new", states.indexOf("new")]]) {
    if (i >= 0) jumps.append(el("button", { type: "button", class: "plain", onclick: () => choose(i, true) }, `Go to ${word}`));
  }

  function row(i) {
    const segment = segments[i];
    const state = states[i];
    const parted = prompt.parted?.[0] === i;
    const size = tokens(ends[i + 1] - ends[i], prompt.estimated);
    return el("div", { role: "listitem", class: `segment segment-${state} ${parted ? "segment-parted" : ""}` },
      el("button", { type: "button", class: "segment-button", "aria-current": i === chosen ? "true" : null, onclick: () => choose(i, false) },
        stateSign(state), spoken(`${STATES[state].word}${parted ? ", here the prompt parts" : ""}. `),
        el("span", { class: "segment-what" }, nameOf(segment)),
        el("span", { class: "segment-excerpt", "aria-hidden": "true" }, oneLine(segment.excerpt)),
        segment.breakpoint === null ? null : el("span", { class: "tag", title: "the client set a breakpoint here" },
          segment.breakpoint ? `breakpoint ${segment.breakpoint}` : "breakpoint"),
        parted ? el("span", { class: "tag tag-parted" }, "parts here") : null,
        el("span", { class: "segment-size" }, size, spoken(" tokens"))));
  }

  function choose(i, scroll) {
    chosen = i;
    for (const button of list.element.querySelectorAll("[aria-current]")) button.removeAttribute("aria-current");
    if (scroll) list.show(i, "middle");
    list.element.querySelector(`[data-row="${i}"] button`)?.setAttribute("aria-current", "true");
    list.stopAt(i);
    map.choose(i);
    reading.open(i);
  }

  list.draw(segments.length);
  // The list has its height only once it stands in the page.
  requestAnimationFrame(() => {
    if (segments.length) choose(Math.min(start, segments.length - 1), true);
  });
  return element;
}

function endsOf({ segments, scale }) {
  const ends = [0];
  let sum = 0;
  for (const segment of segments) {
    sum += segment.count;
    ends.push(Math.floor(sum * scale + 0.5));
  }
  return ends;
}

function nameOf(segment) {
  const kind = segment.kind === "text" ? segment.role : segment.kind.replace("-", " ");
  return segment.name ? `${kind} ${oneLine(segment.name)}` : kind;
}

function sumsLine(prompt, states, ends) {
  const sums = { cached: [0, 0], lost: [0, 0], new: [0, 0] };
  states.forEach((state, i) => {
    sums[state][0] += 1;
    sums[state][1] += ends[i + 1] - ends[i];
  });
  const basis = { reported: "as the server reported", predicted: "as predicted: the server did not report it", shared: "by what is shared with the turn before" };
  return el("p", { class: "legend" }, Object.entries(sums).filter(([, [count]]) => count).map(([state, [count, size]]) =>
    el("span", { class: "legend-entry", title: STATES[state].means }, stateSign(state), ` ${STATES[state].word} `,
      el("b", null, exactTokens(size, prompt.estimated)), ` in ${plural(count, "segment")}`)),
  el("span", { class: "dim" }, `cached ${basis[prompt.basis]}`));
}

/** The whole prompt as one bar. */
function mapOf(turn, states, ends, open) {
  const { prompt } = turn;
  const [width, height] = [1000, 34];
  const total = Math.max(1, ends.at(-1));
  const x = (count) => (Math.min(count, total) / total) * width;
  const id = freshId("map");
  const hatch = svg("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" },
    svg("rect", { width: 6, height: 6, class: "fill-lost" }), svg("rect", { width: 1.6, height: 6, class: "hatch-line" }));
  const found = [svg("defs", null, hatch)];
  let from = 0;
  for (let i = 1; i <= states.length; i += 1) {
    if (i < states.length && states[i] === states[from]) continue;
    const place = { x: x(ends[from]), y: 8, width: Math.max(0.5, x(ends[i]) - x(ends[from])), height: 18 };
    const lost = states[from] === "lost";
    found.push(svg("rect", { ...place, ...(lost ? { fill: `url(#${id})` } : { class: `fill-${states[from]}` }) }));
    from = i;
  }
  let group = prompt.segments[0]?.group;
  prompt.segments.forEach((segment, i) => {
    if (segment.group === group) return;
    group = segment.group;
    found.push(svg("line", { x1: x(ends[i]), x2: x(ends[i]), y1: 4, y2: 30, class: "map-group" }));
  });
  if (prompt.parted) {
    const [i, chars] = prompt.parted;
    const inside = (ends[i + 1] - ends[i]) * Math.min(1, chars / Math.max(1, prompt.segments[i].chars));
    const at = x(ends[i] + inside);
    found.push(svg("path", { d: `M${at - 5} 0 L${at + 5} 0 L${at} 7 Z M${at - 0.75} 6 h1.5 V34 h-1.5 Z`, class: "map-parted" }));
  }
  const here = svg("rect", { y: 30, height: 4, x: 0, width: 4, class: "map-here" });
  found.push(here);
  const words = ["cached", "lost", "new"].map((state) => {
    const sum = states.reduce((all, one, i) => (one === state ? all + ends[i + 1] - ends[i] : all), 0);
    return sum ? `${exactTokens(sum)} tokens ${STATES[state].word}` : "";
  }).filter(Boolean);
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img",
    "aria-label": `The prompt as a bar: ${words.join(", ")}`, class: "map" }, found);
  picture.addEventListener("click", (event) => {
    const box = picture.getBoundingClientRect();
    const token = ((event.clientX - box.left) / box.width) * total;
    const i = ends.findIndex((end) => end > token) - 1;
    if (i >= 0 && i < states.length) open(i);
  });
  return {
    element: el("div", { class: "map-holder" }, picture, groupWords(prompt, ends, total)),
    choose(i) {
      here.setAttribute("x", x(ends[i]));
      here.setAttribute("width", Math.max(4, x(ends[i + 1]) - x(ends[i])));
    },
  };
}

function groupWords(prompt, ends, total) {
  const spans = [];
  prompt.segments.forEach((segment, i) => {
    const last = spans.at(-1);
    if (last?.group === segment.group) last.end = ends[i + 1];
    else spans.push({ group: segment.group, start: ends[i], end: ends[i + 1] });
  });
  return el("div", { class: "map-words", "aria-hidden": "true" }, spans.map(({ group, start, end }) => {
    const word = el("span", null, `${GROUP_WORDS[group]} ${tokens(end - start, prompt.estimated)}`);
    word.style.flexGrow = String(Math.max(0.001, (end - start) / total));
    return word;
  }));
}

function parameters(found) {
  if (!found.length) return null;
  return el("details", { class: "parameters" }, el("summary", null, `Parameters that can enter the cache key: ${found.length}`),
    el("dl", null, found.map(([name, value]) => [el("dt", null, el("code", null, oneLine(name))), el("dd", null, el("code", null, oneLine(value.slice(0, 2000))))])));
}

/** The text of one segment, a window at a time. */
function reader(context, turn, states, ends) {
  const { prompt } = turn;
  const size = 16384;
  let at = -1;
  let opened = 0;
  const title = el("h3", null);
  const about = el("p", { class: "dim small" });
  const pager = el("div", { class: "pager" });
  const text = el("pre", { class: "reader-text", tabindex: "0", role: "group", "aria-label": "Text of the segment" });
  const element = el("div", { class: "reader" }, el("div", { class: "reader-head" }, title, about, pager), text);

  async function show(start) {
    opened += 1;
    const mine = opened;
    const segment = prompt.segments[at];
    let window_;
    try {
      window_ = await context.source.text(turn.key, turn.index, at, start, segment);
    } catch (error) {
      if (mine === opened) put(text, el("span", { class: "cut" }, error.message));
      return;
    }
    if (mine !== opened) return;
    draw(segment, window_);
  }

  function draw(segment, window_) {
    const length = charactersOf(window_.text).length;
    const end = window_.start + length;
    const char = prompt.parted?.[0] === at ? prompt.parted[1] : -1;
    const go = (word, start, on, label) => el("button", { type: "button", class: "plain", disabled: !on, "aria-label": label, onclick: () => show(start) }, word);
    put(pager,
      window_.chars > length || window_.omitted ? [
        go("‹", Math.max(0, window_.start - size), window_.start > 0, "Earlier text"),
        el("span", { class: "dim small" }, `characters ${exactTokens(window_.chars ? window_.start + 1 : 0)} to ${exactTokens(end)} of ${exactTokens(window_.chars)}`),
        go("›", end, end < window_.chars && length > 0, "Later text"),
        char >= 0 ? go("to the divergence", Math.max(0, char - 2000), true, "To the divergence") : null,
      ] : null,
      window_.omitted ? el("span", { class: "note small" }, window_.omitted) : null);
    if (char >= window_.start && char <= end && prompt.parted) {
      const cut = char - window_.start;
      put(text, safe(part(window_.text, 0, cut)), el("mark", { class: "parting" }, spoken("here the prompt parts: ")), safe(part(window_.text, cut)));
      const mark = text.querySelector("mark");
      text.scrollTop = Math.max(0, mark.offsetTop - text.offsetTop - 60);
    } else {
      put(text, safe(window_.text));
      text.scrollTop = 0;
    }
  }

  return {
    element,
    open(i) {
      at = i;
      const segment = prompt.segments[i];
      put(title, stateSign(states[i]), ` ${nameOf(segment)} `, el("span", { class: "dim" }, STATES[states[i]].word));
      put(about, el("code", null, oneLine(segment.pointer)),
        ` · ${exactTokens(ends[i + 1] - ends[i], prompt.estimated)} tokens, ${exactTokens(segment.chars)} characters · ${GROUP_WORDS[segment.group]}`);
      const char = prompt.parted?.[0] === i ? prompt.parted[1] : 0;
      show(Math.max(0, char > size - 2000 ? char - 2000 : 0));
    },
  };
}
