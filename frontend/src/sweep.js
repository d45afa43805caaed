// The result of a sweep: one quantity over two parameters as a map, and what is known of the run that was clicked.
import { el, number, svg, whole } from "./dom.js";
import { shade } from "./shades.js";

const WIDTH = 640;
const MOST_CROSSES = 600;

const shown = (label) => (typeof label === "number" ? number(label, 4) : String(label));

export class Sweep {
  constructor(viewer, about) {
    Object.assign(this, { viewer, about, charts: [], at: {}, cell: null });
    for (const { name } of about.dimensions) this.at[name] = 0;
    const named = (values) => values.map((value) => el("option", { value }, value || "(nothing)"));
    this.quantity = el("select", { onchange: () => this.axes() }, named(about.quantities.map((one) => one.name)));
    this.x = el("select", { onchange: () => this.draw() });
    this.y = el("select", { onchange: () => this.draw() });
    this.log = el("input", { type: "checkbox", onchange: () => this.picture() });
    this.others = el("div", { class: "tools" });
    this.holder = el("div", { class: "sweep" });
    this.details = el("div", { class: "details", "aria-live": "polite" });
    const label = (text, ...inside) => el("label", {}, `${text} `, ...inside);
    const tools = el("div", { class: "tools" }, label("Show", this.quantity), label("over", this.x), label("and", this.y), el("label", { class: "tick" }, this.log, " logarithmic"));
    const failed = about.failed ? `${whole(about.runs)} runs, ${whole(about.failed)} failed (crosses)` : `${whole(about.runs)} runs`;
    this.hint = el("p", { class: "muted" }, `${failed}. Click a cell, or move with the arrow keys, to see its run.`);
    this.element = el("div", { class: "columns wide" }, el("div", {}, tools, this.others, this.holder), this.details);
    this.details.append(this.hint);
    this.axes();
  }

  /** What may be an axis of the quantity; columns of variants given row by row, too. */
  axes() {
    const { dimensions } = this.about.quantities.find((one) => one.name === this.quantity.value);
    const rows = dimensions.includes("variant");
    const able = [...(rows ? this.about.columns : []), ...dimensions.filter((name) => name !== "variant" || !this.about.columns.length)];
    const long = able.filter((name) => rows || this.labels(name).length > 1);
    const best = long.length ? long : able;
    const fill = (select, names, first) => {
      const now = names.includes(select.value) && select.options.length ? select.value : first;
      select.replaceChildren(...names.map((name) => el("option", { value: name, selected: name === now }, name || "(nothing)")));
    };
    fill(this.x, able, best[0]);
    fill(this.y, [...able, ""], best.find((name) => name !== this.x.value) ?? "");
    this.draw();
  }

  labels(name) {
    return this.about.dimensions.find((one) => one.name === name)?.labels ?? [];
  }

  async draw() {
    if (this.x.value === this.y.value) this.y.value = "";
    const { dimensions } = this.about.quantities.find((one) => one.name === this.quantity.value);
    const rowwise = this.about.columns.includes(this.x.value);
    const free = dimensions.filter((name) => name !== this.x.value && name !== this.y.value && !(rowwise && name === "variant"));
    this.others.replaceChildren(
      ...free.filter((name) => this.labels(name).length > 1).map((name) => {
        const labels = this.labels(name);
        const read = el("output", {}, shown(labels[this.at[name]]));
        const slider = el("input", { type: "range", min: 0, max: labels.length - 1, value: this.at[name], "aria-label": name, "aria-valuetext": shown(labels[this.at[name]]) });
        slider.addEventListener("input", () => {
          this.at[name] = Number(slider.value);
          read.textContent = shown(labels[this.at[name]]);
          slider.setAttribute("aria-valuetext", read.textContent);
          this.load();
        });
        return el("label", { class: "pick" }, `${name} = `, read, slider);
      }),
    );
    this.cell = null;
    await this.load();
  }

  async load() {
    const asked = (this.asked = (this.asked ?? 0) + 1);
    try {
      const found = await this.viewer.source.map(this.quantity.value, this.x.value, this.y.value, this.at);
      if (asked !== this.asked) return;
      this.found = found;
    } catch (error) {
      this.holder.replaceChildren(el("p", { class: "verdict bad" }, error.message));
      return;
    }
    this.picture();
    if (this.cell) this.look(...this.cell);
  }

  /** Colours from the lowest to the highest value; logarithmic ones of magnitudes, over nine powers of ten at most. */
  scale() {
    const values = this.found.values.flat().filter((value) => value !== null);
    const log = this.log.checked;
    const used = (log ? values.map(Math.abs).filter((value) => value > 0) : values).sort((a, b) => a - b);
    const low = used[0] ?? 0;
    const high = log ? Math.min(used.at(-1) ?? 1, low * 1e9) : used.at(-1) ?? 1;
    const share = (value) => {
      if (!(high > low)) return 0.5;
      return log ? Math.log(Math.max(Math.abs(value), low) / low) / Math.log(high / low) : (value - low) / (high - low);
    };
    const tick = (part) => (log && low > 0 ? low * (high / low) ** part : low + part * (high - low));
    return { low, high, share, tick };
  }

  picture() {
    if (this.found.points) this.scatter();
    else this.grid();
  }

  grid() {
    const { values } = this.found;
    const [rows, columns] = [values.length, values[0].length];
    const [left, bottom, top] = [74, 44, 8];
    const height = rows === 1 ? 60 : Math.min(420, Math.max(160, (WIDTH * rows) / columns));
    const scale = this.scale();
    const canvas = el("canvas", { width: columns, height: rows });
    const context = canvas.getContext("2d");
    const image = context.createImageData(columns, rows);
    values.forEach((row, j) =>
      row.forEach((value, i) => {
        const at = 4 * ((rows - 1 - j) * columns + i);
        if (value === null) return; // nothing is drawn where there is no number
        image.data.set([...shade(scale.share(value)), 255], at);
      }),
    );
    context.putImageData(image, 0, 0);
    const [wide, tall] = [WIDTH / columns, height / rows];
    const node = this.frame(left, top, height, bottom);
    node.append(svg("rect", { class: "nothing", x: left, y: top, width: WIDTH, height }));
    node.append(svg("image", { href: canvas.toDataURL(), x: left, y: top, width: WIDTH, height, preserveAspectRatio: "none", style: { imageRendering: "pixelated" } }));
    for (const [j, i] of (this.found.error ?? []).map((one) => (one.length === 3 ? one : [0, ...one])).slice(0, MOST_CROSSES)) {
      const [x, y] = [left + (i + 0.5) * wide, top + (rows - j - 0.5) * tall];
      const r = Math.min(5, wide / 3, tall / 3);
      node.append(svg("path", { class: "cross", d: `M${x - r} ${y - r}L${x + r} ${y + r}M${x - r} ${y + r}L${x + r} ${y - r}` }));
    }
    this.ticks(node, this.labels(this.x.value), (k) => left + (k + 0.5) * wide, top + height, "x");
    if (this.y.value) this.ticks(node, this.labels(this.y.value), (k) => top + (rows - k - 0.5) * tall, left, "y");
    this.titles(node, left, top, height);
    this.bar(node, left + WIDTH + 24, top, height, scale);
    this.mark = svg("rect", { class: "mark", width: Math.max(wide, 4), height: Math.max(tall, 4), visibility: "hidden" });
    node.append(this.mark);
    this.place = (i, j) => {
      this.mark.setAttribute("x", left + i * wide);
      this.mark.setAttribute("y", top + (rows - 1 - j) * tall);
      this.mark.setAttribute("visibility", "visible");
    };
    node.addEventListener("click", (event) => {
      const box = node.getBoundingClientRect();
      const [, , w, h] = node.getAttribute("viewBox").split(" ").map(Number);
      const x = ((event.clientX - box.left) / box.width) * w - left;
      const y = ((event.clientY - box.top) / box.height) * h - top;
      if (x >= 0 && x < WIDTH && y >= 0 && y < height) this.look(Math.floor(x / wide), rows - 1 - Math.floor(y / tall));
    });
    node.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const [i, j] = this.cell ?? [0, 0];
      this.look(Math.min(Math.max(i + by[0], 0), columns - 1), Math.min(Math.max(j + by[1], 0), rows - 1));
    });
    this.holder.replaceChildren(node);
    if (this.cell) this.place(...this.cell);
  }

  /** Variants that were given row by row: a point each. */
  scatter() {
    const { points, values } = this.found;
    const [left, bottom, top, height] = [74, 44, 8, 380];
    const scale = this.scale();
    const node = this.frame(left, top, height, bottom);
    node.append(svg("rect", { class: "nothing", x: left, y: top, width: WIDTH, height }));
    const spread = (numbers) => {
      const finite = numbers.filter((value) => value !== null);
      const [low, high] = [Math.min(...finite), Math.max(...finite)];
      const pad = 0.04 * (high - low || 1);
      return [low - pad, high + pad];
    };
    const xs = points[0];
    const ys = points[1] ?? values;
    const [x0, x1] = spread(xs);
    const [y0, y1] = spread(ys);
    const px = (value) => left + (WIDTH * (value - x0)) / (x1 - x0);
    const py = (value) => top + height - (height * (value - y0)) / (y1 - y0);
    const dots = values.map((value, k) => {
      if (xs[k] === null || ys[k] === null) return null;
      const dot = svg("circle", { class: value === null ? "dot failed" : "dot", cx: px(xs[k]), cy: py(ys[k]), r: 5, onclick: () => this.look(k, 0) });
      if (value !== null) dot.style.fill = `rgb(${shade(scale.share(value)).join(" ")})`;
      return dot;
    });
    node.append(...dots.filter(Boolean));
    const marks = (low, high) => [0, 0.25, 0.5, 0.75, 1].map((part) => low + part * (high - low));
    marks(x0, x1).forEach((value) => node.append(svg("text", { class: "tick", x: px(value), y: top + height + 16 }, number(value, 3))));
    marks(y0, y1).forEach((value) => node.append(svg("text", { class: "row", x: left - 6, y: py(value) + 4 }, number(value, 3))));
    this.titles(node, left, top, height);
    this.bar(node, left + WIDTH + 24, top, height, scale);
    this.place = (k) => dots.forEach((dot, at) => dot?.classList.toggle("chosen", at === k));
    node.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      this.look(Math.min(Math.max((this.cell?.[0] ?? 0) + by, 0), values.length - 1), 0);
    });
    this.holder.replaceChildren(node);
    if (this.cell) this.place(...this.cell);
  }

  frame(left, top, height, bottom) {
    const all = this.found.values.flat().filter((value) => value !== null);
    const [low, high] = [Math.min(...all), Math.max(...all)];
    const over = this.y.value ? `${this.x.value} and ${this.y.value}` : this.x.value;
    const words = all.length ? `between ${number(low, 4)} and ${number(high, 4)}` : "without numbers";
    return svg("svg", {
      viewBox: `0 0 ${left + WIDTH + 110} ${top + height + bottom}`,
      role: "img",
      tabindex: 0,
      "aria-label": `Map of ${this.quantity.value} over ${over}: ${whole(all.length)} runs, ${words}`,
    });
  }

  ticks(node, labels, place, edge, axis) {
    const every = Math.max(1, Math.ceil(labels.length / (axis === "x" ? 9 : 10)));
    labels.forEach((label, k) => {
      if (k % every) return;
      const text = shown(label).slice(0, axis === "x" ? 14 : 11);
      node.append(axis === "x" ? svg("text", { class: "tick", x: place(k), y: edge + 16 }, text) : svg("text", { class: "row", x: edge - 6, y: place(k) + 4 }, text));
    });
  }

  titles(node, left, top, height) {
    node.append(svg("text", { class: "axis", x: left + WIDTH / 2, y: top + height + 36 }, this.x.value));
    const y = top + height / 2;
    const side = this.y.value || (this.found.points ? this.quantity.value : "");
    node.append(svg("text", { class: "axis", x: 14, y, transform: `rotate(-90 14 ${y})` }, side));
  }

  bar(node, x, y, height, { share, tick }) {
    const steps = 64;
    for (let k = 0; k < steps; k++) {
      node.append(svg("rect", { x, y: y + height - ((k + 1) * height) / steps, width: 14, height: height / steps + 0.6, fill: `rgb(${shade((k + 0.5) / steps).join(" ")})` }));
    }
    for (const part of height > 100 ? [0, 0.25, 0.5, 0.75, 1] : [0, 1]) {
      node.append(svg("text", { class: "end", x: x + 20, y: y + height - part * (height - 8) }, number(tick(part), 3)));
    }
    const unit = this.about.quantities.find((one) => one.name === this.quantity.value)?.unit;
    if (unit) node.append(svg("text", { class: "end", x, y: y + height + 16 }, `[${unit}]`));
  }

  /** Everything about the run of a cell. */
  async look(i, j) {
    this.cell = [i, j];
    this.place(i, j);
    const at = { ...this.at };
    if (this.found.points) at.variant = i;
    else {
      at[this.x.value] = i;
      if (this.y.value) at[this.y.value] = j;
    }
    const asked = (this.looked = (this.looked ?? 0) + 1);
    let found;
    try {
      found = await this.viewer.source.cell(at);
    } catch (error) {
      this.details.replaceChildren(el("p", { class: "muted" }, error.message));
      return;
    }
    if (asked !== this.looked) return;
    const table = (rows) => el("table", {}, el("tbody", {}, Object.entries(rows).map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, typeof value === "number" ? number(value, 9) : value === null ? "–" : String(value))))));
    this.details.replaceChildren(
      this.hint,
      el("h3", {}, "This run"),
      ...(found.error ? [el("p", { class: "verdict bad" }, found.error)] : []),
      ...(found.note ? [el("p", { class: "verdict doubtful" }, found.note)] : []),
      table(found.at),
      el("h3", {}, "Quantities"),
      table(found.values),
    );
  }

  show() {}

  hide() {}
}
