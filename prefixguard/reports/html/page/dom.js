// Makes elements. Text out of prompts reaches the page through text nodes only: there is no way to pass HTML here.

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  add(node, children);
  return node;
}

function add(node, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false || child === "") continue;
    if (Array.isArray(child)) add(node, child);
    else node.append(child instanceof Node ? child : String(child));
  }
}

/** An HTML element. attributes: `onclick` and the like take functions; null and false leave one out. */
export function el(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** An SVG element. */
export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Words for those who cannot see a sign or a colour. */
export function spoken(text) {
  return el("span", { class: "spoken" }, text);
}

/** Puts children in the place of those that a node has. */
export function put(node, ...children) {
  node.textContent = "";
  add(node, children);
  return node;
}

/**
 * Puts children in the place of those that a node has, as newer ones of the same: what is open stays open, and what
 * has the focus keeps it. Things are known again by their `data-keep`, links in them by where they lead.
 */
export function renew(node, ...children) {
  const open = new Map([...node.querySelectorAll("details[data-keep]")].map((one) => [one.dataset.keep, one.open]));
  const focused = node.contains(document.activeElement) ? document.activeElement : null;
  const kept = focused?.closest("[data-keep]")?.dataset.keep;
  const href = focused?.getAttribute("href");
  put(node, ...children);
  for (const one of node.querySelectorAll("details[data-keep]")) {
    if (open.has(one.dataset.keep)) one.open = open.get(one.dataset.keep);
  }
  if (!focused) return;
  const home = kept === undefined ? node : [...node.querySelectorAll("[data-keep]")].find((one) => one.dataset.keep === kept);
  const again = href === null ? home?.querySelector("summary") : [...home?.querySelectorAll("a") ?? []].find((one) => one.getAttribute("href") === href);
  again?.focus({ preventScroll: true });
}

/** A number that no other element of the page has in its id. */
let lastId = 0;
export function freshId(prefix) {
  lastId += 1;
  return `${prefix}-${lastId}`;
}
