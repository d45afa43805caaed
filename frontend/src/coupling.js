// The tab with the coupling graph: colour by effort, click a wire or a box and see its signals.
import { Chart } from "./chart.js";
import { el } from "./dom.js";
import { Graph, efforts } from "./graph.js";

export class Coupling {
  constructor(viewer, coupling, result) {
    Object.assign(this, { viewer, coupling, result, charts: [] });
    this.graph = new Graph(coupling, (what) => this.chosen(what));
    this.details = el("div", { class: "details", "aria-live": "polite" });
    this.details.append(...[this.hint()].flat());
    const ways = { effort: "calls per macro step", time: "time spent", none: "no colour" };
    this.select = el(
      "select",
      { onchange: () => this.shade() },
      Object.entries(ways).map(([value, text]) => el("option", { value }, text)),
    );
    this.tools = el("label", { class: "tools" }, "Coloured by ", this.select);
    const whole = el("div", { class: "columns wide" }, el("div", {}, this.tools, this.graph.element), this.details);
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
    if (!totals || way === "none") this.graph.shade(null, null);
    else {
      const { shares, say } = efforts(about, totals)[way];
      this.graph.shade(shares, say);
    }
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
      this.draw(edge.signals);
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

  draw(ids) {
    const about = this.viewer.about.results[this.result];
    if (!about) return;
    ids.slice(0, 6).forEach((id) => {
      const signal = about.signals.find((one) => one.id === id);
      const { root, source, span } = this.viewer;
      const line = { result: this.result, id, label: "", colour: this.charts.length };
      const title = signal.scalar ? signal.name : `${signal.name}[0]`;
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
