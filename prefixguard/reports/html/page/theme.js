// Dark or light: as the system says, until the reader says otherwise.

import { el, put } from "./dom.js";

const NAMES = { auto: "as the system", light: "light", dark: "dark" };
const ORDER = ["auto", "light", "dark"];

/** What this browser remembers under a name; null where it remembers nothing (a file may not). */
export function remembered(name) {
  try {
    return localStorage.getItem(`prefixguard-${name}`);
  } catch {
    return null;
  }
}

/** Remembers a word, if this browser lets us. */
export function remember(name, value) {
  try {
    localStorage.setItem(`prefixguard-${name}`, value);
  } catch {
    // Then it holds until the page is closed.
  }
}

/** The switch, set to what was chosen last. */
export function themeSwitch() {
  const known = remembered("theme");
  let theme = ORDER.includes(known) ? known : "auto";
  const button = el("button", {
    type: "button",
    class: "plain",
    onclick: () => {
      theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
      remember("theme", theme);
      apply();
    },
  });

  function apply() {
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    put(button, el("span", { class: "word" }, "Theme: "), theme);
    button.setAttribute("aria-label", `Colours: ${NAMES[theme]}. Change`);
  }

  apply();
  return button;
}
