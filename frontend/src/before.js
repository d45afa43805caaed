// A system before it is run: what cosolve says about it, which methods fit, and the map of stability.
import { el, number, svg } from "./dom.js";

const MARKS = { good: "✓", note: "i", warning: "!", error: "✗" };

export class Before {
  constructor(system) {
    this.charts = [];
    const { findings, methods, loops } = system;
    const list = findings.map((one) =>
      el("li", { class: one.level }, el("span", { class: "mark", "aria-label": one.level }, MARKS[one.level]), " ", one.text),
    );
    const rows = methods.map((one) =>
      el(
        "tr",
        { class: one.chosen ? "chosen" : "" },
        el("th", { scope: "row" }, one.name, one.chosen ? " (chosen)" : ""),
        el("td", {}, one.fits ? "fits" : "does not fit"),
        el("td", {}, one.critical === null ? "–" : one.critical),
        el("td", {}, one.why),
      ),
    );
    const head = ["method", "", "stable up to H", "why"].map((text) => el("th", { scope: "col" }, text));
    this.element = el(
      "div",
      {},
      el("section", {}, el("h3", {}, system.method ? `Advice for ${system.method}` : "Advice"), el("ul", { class: "findings" }, list)),
      el(
        "section",
        {},
        el("h3", {}, "Algebraic loops"),
        loops.length
          ? el("ul", {}, loops.map((loop) => el("li", {}, [...loop, loop[0]].join(" → "))))
          : el("p", { class: "muted" }, "None: no output reacts at once to itself."),
      ),
      el(
        "section",
        {},
        el("h3", {}, "Which method fits"),
        el("div", { class: "scroll" }, el("table", { class: "methods" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows))),
      ),
      system.map ? stability(system.map) : el("p", { class: "muted" }, system.no_map),
    );
  }

  show() {}

  hide() {}
}

/** Spectral radius over step and method: a row of cells for each method, the chosen point marked. */
function stability(map) {
  const { steps, methods, points, chosen } = map;
  const [left, cell, tall] = [150, 22, 26];
  const width = left + steps.length * cell + 10;
  const height = methods.length * tall + 46;
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": said(map), style: { maxWidth: `${1.3 * width}px` } });
  methods.forEach((name, i) => {
    picture.append(svg("text", { x: left - 8, y: i * tall + 17, class: "row" }, name));
    steps.forEach((step, j) => {
      const [radius, stable] = points[i][j] ?? [null, null];
      const kind = radius === null ? "unknown" : stable ? "stable" : "unstable";
      const box = svg("rect", { class: `cell ${kind}`, x: left + j * cell, y: i * tall, width: cell - 2, height: tall - 4, rx: 3 });
      if (radius !== null) box.style.opacity = String(stable ? 0.85 : Math.min(1, 0.45 + 0.4 * Math.log10(Math.max(radius, 1))));
      box.append(svg("title", {}, `${name}, H = ${number(step, 3)}: ${radius === null ? "not known" : `spectral radius ${number(radius, 5)}`}`));
      picture.append(box);
      if (chosen && chosen[0] === i && chosen[1] === j) {
        picture.append(svg("circle", { class: "point", cx: left + j * cell + cell / 2 - 1, cy: i * tall + tall / 2 - 2, r: 5 }));
      }
    });
  });
  const bottom = methods.length * tall + 14;
  steps.forEach((step, j) => {
    if (j % 4 === 0) picture.append(svg("text", { x: left + j * cell + cell / 2 - 1, y: bottom, class: "tick" }, number(step, 2)));
  });
  picture.append(svg("text", { x: left + (steps.length * cell) / 2, y: bottom + 18, class: "tick" }, "macro step H"));
  return el(
    "section",
    { class: "map" },
    el("h3", {}, "Stability over step and method"),
    picture,
    el("p", { class: "muted" }, "Green: errors do not grow from macro step to macro step; red: they do, the darker the faster. The dot is what was chosen."),
  );
}

function said({ methods, points, steps }) {
  return methods
    .map((name, i) => {
      const bad = points[i].findIndex((point) => point && !point[1]);
      return bad < 0 ? `${name}: stable in the whole map` : `${name}: unstable from H = ${number(steps[bad], 3)} on`;
    })
    .join("; ");
}
