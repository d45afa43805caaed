// The tab with signals over time: what to draw on the left, charts on the right.
import { Chart } from "./chart.js";
import { el, memory } from "./dom.js";

const GROUPS = { outputs: "Outputs", coupling: "Coupling variables", inputs: "Inputs" };
const MOST_ELEMENTS = 200;
const MOST_CHARTS = 24;

export class Signals {
  constructor(viewer) {
    this.viewer = viewer;
    this.charts = [];
    this.layout = memory.get("layout") ?? "each";
    this.chosen = new Map(); // name of a signal -> label
    this.names = new Map(); // name -> [id in result 0, id in result 1, ...]
    this.list = el("div", { class: "list" });
    this.filter = el("input", {
      type: "search",
      placeholder: "filter (/)",
      "aria-label": "Filter signals by name",
      oninput: () => this.filtered(),
    });
    this.area = el("div", { class: "charts" });
    const layouts = { each: "one chart each", unit: "together by unit", one: "all in one chart" };
    this.select = el(
      "select",
      { "aria-label": "How signals share charts", onchange: () => this.arranged() },
      Object.entries(layouts).map(([value, text]) => el("option", { value, selected: value === this.layout }, text)),
    );
    const tools = [this.select];
    if (viewer.about.results.length > 1 && viewer.source.difference) {
      this.differ = el("input", { type: "checkbox", onchange: () => this.build() });
      tools.push(el("label", { class: "tick" }, this.differ, " difference to the first"));
    }
    this.side = el(
      "details",
      { class: "side", open: !viewer.narrow },
      el("summary", {}, "Signals"),
      el("div", { class: "tools" }, this.filter, tools),
      this.list,
    );
    this.element = el("div", { class: "columns" }, this.side, this.area);
    this.fill();
  }

  fill() {
    const results = this.viewer.about.results;
    this.names.clear();
    this.units = new Map();
    this.list.replaceChildren();
    const groups = new Map();
    results.forEach((result, r) => {
      for (const signal of result.signals) {
        if (!(signal.group in GROUPS)) continue;
        if (!groups.has(signal.group)) groups.set(signal.group, new Map());
        const known = groups.get(signal.group);
        if (!known.has(signal.name)) known.set(signal.name, signal);
        for (let k = 0; k < Math.min(signal.size, MOST_ELEMENTS); k++) {
          const name = signal.scalar ? signal.name : `${signal.name}[${k}]`;
          if (!this.names.has(name)) this.names.set(name, new Array(results.length).fill(null));
          this.names.get(name)[r] = signal.id + k;
          this.units.set(name, signal.unit);
        }
      }
    });
    if (!this.chosen.size) {
      const first = [...(groups.get("outputs") ?? groups.get("coupling") ?? new Map()).values()].slice(0, 4);
      for (const signal of first) this.chosen.set(signal.scalar ? signal.name : `${signal.name}[0]`, true);
    }
    for (const [group, title] of Object.entries(GROUPS)) {
      if (groups.has(group)) this.list.append(this.group(title, [...groups.get(group).values()]));
    }
  }

  group(title, signals) {
    const rows = signals.map((signal) => (signal.scalar ? this.row(signal.name, signal.unit) : this.vector(signal)));
    return el("fieldset", {}, el("legend", {}, title), rows);
  }

  row(name, unit) {
    const box = el("input", {
      type: "checkbox",
      checked: this.chosen.has(name),
      onchange: () => {
        if (box.checked) this.chosen.set(name, true);
        else this.chosen.delete(name);
        this.build();
      },
    });
    const row = el("label", { class: "signal" }, box, el("span", {}, name), unit && el("small", {}, unit));
    row.dataset.name = name.toLowerCase();
    return row;
  }

  vector(signal) {
    const holder = el("details", { class: "vector" }, el("summary", {}, `${signal.name} (${signal.size})`));
    holder.dataset.name = signal.name.toLowerCase();
    const open = () => {
      if (holder.childElementCount > 1) return;
      const most = Math.min(signal.size, MOST_ELEMENTS);
      for (let k = 0; k < most; k++) holder.append(this.row(`${signal.name}[${k}]`, signal.unit));
      if (most < signal.size) holder.append(el("p", { class: "muted" }, `and ${signal.size - most} more`));
    };
    holder.addEventListener("toggle", open);
    return holder;
  }

  filtered() {
    const wanted = this.filter.value.toLowerCase();
    for (const row of this.list.querySelectorAll(".signal, .vector")) {
      row.hidden = Boolean(wanted) && !row.dataset.name.includes(wanted);
    }
  }

  arranged() {
    this.layout = this.select.value;
    memory.set("layout", this.layout);
    this.build();
  }

  /** Draw what is chosen; a signal of several results has one line for each. */
  build() {
    for (const chart of this.charts) chart.remove();
    this.charts = [];
    const names = [...this.chosen.keys()].filter((name) => this.names.has(name));
    if (!names.length) {
      this.area.replaceChildren(el("p", { class: "muted" }, "Choose signals on the left to see them here."));
      return;
    }
    this.area.replaceChildren();
    const groups = new Map();
    for (const name of names) {
      const key = this.layout === "each" ? name : this.layout === "unit" ? this.units.get(name) || "no unit" : "signals";
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(name);
    }
    for (const [key, inside] of [...groups].slice(0, MOST_CHARTS)) {
      const alone = inside.length === 1;
      const title = alone ? inside[0] : this.layout === "unit" ? "signals" : key;
      const unit = alone || this.layout === "unit" ? this.units.get(inside[0]) : "";
      this.add(this.lines(inside, alone), { title, unit, height: groups.size === 1 ? 340 : undefined });
      if (this.differ?.checked) {
        const first = this.viewer.about.results[0].label;
        const lines = this.lines(inside, alone).filter((line) => line.result > 0 && this.names.get(line.name)[0] !== null);
        if (lines.length) this.add(lines.map((line) => ({ ...line, minus: 0 })), { title: `${title} minus ${first}`, unit });
      }
    }
    if (groups.size > MOST_CHARTS) this.area.append(el("p", { class: "muted" }, `${groups.size - MOST_CHARTS} more are chosen.`));
  }

  lines(names, alone) {
    const several = this.viewer.about.results.length > 1;
    return names.flatMap((name, k) =>
      this.names.get(name).flatMap((id, result) => {
        if (id === null) return [];
        const label = several ? (alone ? "" : `${name} · `) + this.viewer.about.results[result].label : alone ? "" : name;
        return [{ name, result, id, label, colour: alone ? result : k, dash: !alone && result > 0 }];
      }),
    );
  }

  add(lines, options) {
    const chart = new Chart(this.viewer.root, this.viewer.source, this.viewer.span, lines, { keep: true, ...options });
    this.charts.push(chart);
    this.area.append(chart.element);
  }

  show() {
    if (!this.charts.length) this.build();
  }

  hide() {
    for (const chart of this.charts) chart.remove();
    this.charts = [];
  }
}
