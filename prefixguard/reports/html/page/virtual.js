// A list of many rows of one height, of which only those in view are in the document.

import { el } from "./dom.js";

const MARGIN = 8; // rows drawn beyond either edge
const WHOLE = 60; // rows up to which nothing is left out and nothing scrolls inside the page

/**
 * A scrolling list.
 *
 * options: label (for those who cannot see it), role and rowRole, head (an element above the rows, or
 * null), row(i) -> element, rowHeight: CSS property that says it, in pixels, roving: the Tab key stops
 * at one row only, arrow keys move on.
 * Returns {element, draw(count), show(i, align), stopAt(i)}.
 */
export function virtualList({ label, role = "table", head = null, row, rowHeight, className = "", roving = false }) {
  let count = 0;
  let height = 32;
  let first = -1;
  let last = -1;
  let stop = 0; // the row at which the Tab key stops
  const body = el("div", { class: "rows", role: role === "table" ? "rowgroup" : null });
  const above = head ? el("div", { class: "list-head", role: "rowgroup" }, head) : null;
  const scroller = el("div", { class: "scroller" }, above, body);
  const element = el("div", { class: `list ${className}`, role, "aria-label": label }, scroller);

  function window_() {
    if (count <= WHOLE) return [0, count];
    const from = Math.max(0, Math.floor(scroller.scrollTop / height) - MARGIN);
    const seen = Math.ceil((scroller.clientHeight || 600) / height);
    return [from, Math.min(count, from + seen + 2 * MARGIN)];
  }

  function fillIn(always) {
    const [from, to] = window_();
    if (!always && from === first && to === last) return;
    const kept = document.activeElement?.closest?.("[data-row]");
    const focused = kept && body.contains(kept) ? Number(kept.dataset.row) : -1;
    const rows = new Map();
    if (!always) for (const node of body.children) rows.set(Number(node.dataset.row), node);
    [first, last] = [from, to];
    const nodes = [];
    for (let i = from; i < to; i += 1) nodes.push(rows.get(i) ?? made(i));
    // A row with the focus stays in the document until the focus leaves it, so that keys go on working.
    if (!always && focused >= 0 && (focused < from || focused >= to)) nodes.push(rows.get(focused));
    body.replaceChildren(...nodes);
    if (roving) setStop(stop >= from && stop < to ? stop : from);
    if (focused >= 0 && (always || !body.contains(document.activeElement))) focusRow(focused);
  }

  function made(i) {
    const node = row(i);
    node.dataset.row = i;
    if (role === "table") node.setAttribute("aria-rowindex", i + (head ? 2 : 1));
    if (count > WHOLE) node.style.top = `${i * height}px`;
    return node;
  }

  function measure() {
    height = Number.parseFloat(getComputedStyle(element).getPropertyValue(rowHeight)) || 32;
  }

  function targetOf(node) {
    return node?.querySelector("a, button");
  }

  function setStop(i) {
    stop = i;
    for (const node of body.children) {
      const target = targetOf(node);
      if (target) target.tabIndex = Number(node.dataset.row) === i ? 0 : -1;
    }
  }

  function focusRow(i) {
    if (roving) setStop(i);
    targetOf(body.querySelector(`[data-row="${i}"]`))?.focus({ preventScroll: true });
  }

  function redraw() {
    measure();
    element.classList.toggle("virtual", count > WHOLE);
    body.style.height = count > WHOLE ? `${count * height}px` : "";
    if (role === "table") element.setAttribute("aria-rowcount", count + (head ? 1 : 0));
    fillIn(true);
  }

  function draw(newCount) {
    count = newCount;
    redraw();
  }

  function show(i, align = "nearest") {
    if (i < 0 || i >= count) return;
    const top = count > WHOLE ? i * height : (body.querySelector(`[data-row="${i}"]`)?.offsetTop ?? 0);
    // The head stays in place above the rows.
    const seen = (scroller.clientHeight || 600) - (above?.offsetHeight ?? 0);
    if (align === "middle") scroller.scrollTop = top - seen / 2 + height / 2;
    else if (top < scroller.scrollTop) scroller.scrollTop = top;
    else if (top + height > scroller.scrollTop + seen) scroller.scrollTop = top + height - seen;
    if (count > WHOLE) fillIn(false);
  }

  scroller.addEventListener("scroll", () => fillIn(false), { passive: true });
  element.addEventListener("keydown", (event) => {
    const at = event.target.closest?.("[data-row]");
    if (!at || event.altKey || event.ctrlKey || event.metaKey) return;
    const page = Math.max(1, Math.floor((scroller.clientHeight || 600) / height) - 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -count, End: count };
    const step = steps[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = Math.min(count - 1, Math.max(0, Number(at.dataset.row) + step));
    show(next);
    focusRow(next);
  });
  new ResizeObserver(() => {
    const before = height;
    measure();
    if (height === before) fillIn(false);
    else redraw();
  }).observe(element);

  return { element, draw, show, stopAt: (i) => roving && setStop(i) };
}
