// The tab with the coupling graph: colour by effort, click a wire or a box and see its signals.
import { Chart } from "./chart.js";
import { el } from "./dom.js";
import { Graph, efforts, percent } from "./graph.js";

const MOST_ELEMENTS = 20; // of a vector that is coupled

export class Coupling {
  constructor(viewer, coupling, result) {
    Object.assign(this, { viewer, coupling, result, charts: [] });
    this.graph = new Graph(coupling, (what) => this.chosen(what));
    this.details = el("div", { class: "details", "aria-live": "polite" });
    this.details.append(...[this.hint()].flat());
    const ways = { effort: "calls per macro step", time: "time spent", residual: "residual before correction", none: "no colour" };
    if (!this.residuals().length) delete ways.residual;
    const stats = viewer.about.results[result]?.stats;
    if (stats && !stats.seconds) delete ways.time; // compiled steps are not timed by subsystem
    this.select = el(
      "select",
      { onchange: () => this.shade() },
      Object.entries(ways).map(([value, text]) => el("option", { value }, text)),
    );
    this.tools = el("label", { class: "tools" }, "Coloured by ", this.select);
    this.legend = el("p", { class: "muted", hidden: true }, "What every macro step had to correct: how far a coupling variable was from its extrapolation, at most, compared with how much it changes in the run. Red: most; blue: least.");
    const whole = el("div", { class: "columns wide" }, el("div", {}, this.tools, this.graph.element, this.legend), this.details);
    this.element = whole;
    this.shade();
  }

  /** Before anything is clicked: of a system that has not run, all its ports. */
  hint() {
    if (this.result >= 0) return el("p", { class: "muted" }, "Click a connection or a subsystem to see its signals.");
    return this.coupling.subsystems.slice(0, 40).flatMap((box) => [el("h3", {}, box.name), this.ports(box)]);
  }

  /** Totals of the run; while it goes on, those of the part that was seen. */
  shade() {
    const about = this.viewer.about.results[this.result];
    const totals = about?.stats;
    this.tools.hidden = !totals;
    const way = this.select.value;
    this.graph.tint(null);
    this.legend.hidden = way !== "residual";
    if (way === "residual") this.shadeResiduals();
    if (!totals || way === "none" || way === "residual") this.graph.shade(null, null);
    else {
      const { shares, say } = efforts(about, totals)[way];
      this.graph.shade(shares, say);
    }
  }

  /** Edges of which it is known what every step had to correct in them: { edge, value, residual } for each number. */
  residuals() {
    const known = new Set((this.viewer.about.results[this.result]?.signals ?? []).map((one) => one.id));
    return this.coupling.edges.flatMap((edge, k) =>
      (edge.residuals ?? [])
        .filter((one) => known.has(one.residual))
        .flatMap(({ value, residual, size }) =>
          Array.from({ length: Math.min(size, MOST_ELEMENTS) }, (_, i) => ({ edge: k, value: value + i, residual: residual + i })),
        ),
    );
  }

  /** The largest residual of every edge, as a share of how much its coupling variables change in the run. */
  async shadeResiduals() {
    const parts = this.residuals();
    const { source, span } = this.viewer;
    const ids = [...new Set(parts.flatMap((one) => [one.value, one.residual]))];
    let frame;
    try {
      frame = await source.series(this.result, ids, ...span.full, 1000);
    } catch (error) {
      this.details.replaceChildren(el("p", { class: "muted" }, error.message));
      return;
    }
    if (this.select.value !== "residual") return;
    const range = (id) => {
      const k = ids.indexOf(id);
      const finite = (values) => values.filter((v) => Number.isFinite(v));
      return [finite(frame.low[k]).reduce((a, b) => Math.min(a, b), Infinity), finite(frame.high[k]).reduce((a, b) => Math.max(a, b), -Infinity)];
    };
    this.shares = this.coupling.edges.map(() => null);
    for (const one of parts) {
      const [low, high] = range(one.value);
      const [below, above] = range(one.residual);
      if (!(high > low) || !(above >= below)) continue;
      const share = Math.max(-below, above) / (high - low);
      this.shares[one.edge] = Math.max(this.shares[one.edge] ?? 0, share);
    }
    this.graph.tint(this.shares);
  }

  chosen(what) {
    this.graph.select(what);
    this.hide();
    const { subsystems, edges, drawing } = this.coupling;
    this.details.replaceChildren();
    if (what.box !== undefined) {
      const box = subsystems[what.box];
      this.details.append(el("h3", {}, box.name), el("p", { class: "muted" }, box.kind), this.ports(box));
      this.draw(this.ofBox(box.name));
      return;
    }
    for (const k of what.edges ?? drawing.wires[what.wire].edges) {
      const edge = edges[k];
      this.details.append(el("p", { class: "edge-text" }, edge.text));
      const share = this.shares?.[k];
      if (share !== undefined && share !== null) this.details.append(el("p", { class: "muted" }, `Largest residual before correction: ${percent(share)} of how much it changes.`));
      this.draw(edge.signals.slice(0, 1));
      this.draw((edge.residuals ?? []).map((one) => one.residual), "residual before correction · ");
      this.draw(edge.signals.slice(1));
    }
  }

  ports(box) {
    const list = (title, names, kinds) =>
      names.length
        ? [el("dt", {}, title), el("dd", {}, names.map((name, k) => (kinds?.[k] ? `${name} [${kinds[k]}]` : name)).join(", "))]
        : [];
    return el(
      "dl",
      { class: "ports" },
      list("inputs", box.inputs, box.input_units),
      list("outputs", box.outputs, box.output_units),
    );
  }

  ofBox(name) {
    const signals = this.viewer.about.results[this.result]?.signals ?? [];
    return signals.filter((one) => one.name.startsWith(`${name}.`) && one.group === "outputs").slice(0, 4).map((one) => one.id);
  }

  draw(ids, prefix = "") {
    const about = this.viewer.about.results[this.result];
    if (!about) return;
    ids.slice(0, 6).forEach((id) => {
      const signal = about.signals.find((one) => one.id === id);
      if (!signal) return;
      const { root, source, span } = this.viewer;
      const line = { result: this.result, id, label: "", colour: this.charts.length };
      const title = prefix + (signal.scalar ? signal.name : `${signal.name}[0]`);
      const chart = new Chart(root, source, span, [line], { title, unit: signal.unit, height: 130, keep: true });
      this.charts.push(chart);
      this.details.append(chart.element);
    });
  }

  show() {}

  hide() {
    for (const chart of this.charts) chart.remove();
    this.charts = [];
  }
}
