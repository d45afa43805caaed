// The tab about macro steps: their lengths, corrections, residuals, errors, rejections, and where the time went.
import { Chart } from "./chart.js";
import { el, seconds, whole } from "./dom.js";

const LOOKS = {
  "macro step H": { stepped: true },
  corrections: { stepped: true, counts: true },
  "residual left": { log: true },
  "error estimate / tolerance": { log: true },
  "rejected attempts": { stepped: true, counts: true },
};

export class Steps {
  constructor(viewer) {
    this.viewer = viewer;
    this.charts = [];
    this.area = el("div", { class: "charts two" });
    this.cost = el("div", {});
    this.element = el("div", {}, this.area, this.cost);
  }

  show() {
    const { root, source, span, about } = this.viewer;
    this.hide();
    const several = about.results.length > 1;
    const found = new Map();
    about.results.forEach((result, r) => {
      for (const signal of result.signals.filter((one) => one.group === "steps")) {
        if (!found.has(signal.name)) found.set(signal.name, []);
        found.get(signal.name).push({ result: r, id: signal.id, label: several ? result.label : "", colour: r });
      }
    });
    for (const [title, lines] of found) {
      const chart = new Chart(root, source, span, lines, { title, ...LOOKS[title] });
      this.charts.push(chart);
      this.area.append(chart.element);
    }
    about.results.forEach((result, r) => {
      const lines = result.signals
        .filter((signal) => signal.group === "seconds")
        .slice(0, 8)
        .map((signal, k) => ({ result: r, id: signal.id, label: signal.name, colour: k }));
      if (!lines.length) return;
      const title = `time per step inside${several ? ` · ${result.label}` : ""}`;
      const chart = new Chart(root, source, span, lines, { title, unit: "s" });
      this.charts.push(chart);
      this.area.append(chart.element);
    });
    this.costs();
  }

  costs() {
    this.cost.replaceChildren(
      ...this.viewer.about.results.filter((result) => result.stats).map((result) => {
        const { stats } = result;
        const spent = stats.seconds ?? {}; // null: compiled steps are not timed by subsystem
        const names = Object.keys(stats.calls).sort((a, b) => (spent[b] ?? 0) - (spent[a] ?? 0)).slice(0, 50);
        const most = Math.max(...Object.values(spent).map((value) => value ?? 0), 1e-300);
        const rows = names.map((name) =>
          el(
            "tr",
            {},
            el("th", { scope: "row" }, name),
            el("td", {}, whole(stats.calls[name])),
            el("td", {}, whole(stats.jacobians[name] ?? 0)),
            el("td", {}, stats.seconds ? seconds(spent[name]) : "not measured (compiled)"),
            el("td", { class: "bar" }, el("span", { style: { width: `${(100 * (spent[name] ?? 0)) / most}%` } })),
          ),
        );
        const head = ["subsystem", "calls", "Jacobians", "time", ""].map((text) => el("th", { scope: "col" }, text));
        return el(
          "section",
          {},
          el("h3", {}, `Cost · ${result.label}`),
          el("div", { class: "scroll" }, el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, rows))),
        );
      }),
    );
  }

  hide() {
    for (const chart of this.charts) chart.remove();
    this.charts = [];
  }
}
