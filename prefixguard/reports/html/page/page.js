// The entry: see start().
export function start(root, source, options = {}) {
  root.textContent = "";
}
