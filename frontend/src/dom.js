// Small helpers for building the page. Texts are always set as text, never as markup: names come from files.

const SVG = "http://www.w3.org/2000/svg";

/** An element: `el("p", { class: "muted", onclick: f }, "text", child)`. */
export function el(tag, given = {}, ...children) {
  return filled(document.createElement(tag), given, children);
}

/** The same for drawings. */
export function svg(tag, given = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), given, children);
}

function filled(node, given, children) {
  for (const [key, value] of Object.entries(given)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key === "style") Object.assign(node.style, value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

/** A number for people: short, and never wrong by more than its last digit. */
export function number(value, digits = 6) {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-4) return value.toExponential(Math.min(3, digits - 1)).replace(/\.?0*e\+?/, "e");
  return String(Number(value.toPrecision(digits)));
}

export function whole(value) {
  return value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en").replaceAll(",", " ");
}

export function seconds(value) {
  if (value === null || value === undefined) return "–";
  if (value >= 60) return `${number(value / 60, 3)} min`;
  if (value >= 1) return `${number(value, 3)} s`;
  return value >= 1e-3 ? `${number(value * 1e3, 3)} ms` : `${number(value * 1e6, 3)} µs`;
}

const chosen = new Map();

/** Remembers small choices of the reader: for the next page, too, where the browser lets it. */
export const memory = {
  get(key) {
    try {
      return localStorage.getItem(`cosolve ${key}`) ?? chosen.get(key);
    } catch {
      return chosen.get(key);
    }
  },
  set(key, value) {
    chosen.set(key, value);
    try {
      localStorage.setItem(`cosolve ${key}`, value);
    } catch {
      // a page without storage forgets
    }
  },
};
