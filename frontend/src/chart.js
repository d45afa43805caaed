// One chart over time: lines of one or several results, with the cursor's values in words beside it.
import uPlot from "uplot";
import { el, number } from "./dom.js";

const COLOURS = 8;
const HEIGHT = 170;
/** A line ends where its values exceed this: beyond, the arithmetic of the axis overflows. */
const LARGEST = 1e150;
/** Distances of ticks, also of an axis that goes beyond the 32 decades of uPlot's own list. */
const TICKS = [];
for (let k = -32; k < 160; k++) for (const m of [1, 2, 2.5, 5]) TICKS.push(Number(`${m}e${k}`));

let palette = null;

/** The colours of the style sheet as it is now. */
export function colours(root) {
  if (palette === null) {
    const style = getComputedStyle(root);
    const read = (name) => style.getPropertyValue(name).trim();
    palette = { ink: read("--ink"), muted: read("--muted"), rule: read("--rule"), lines: [] };
    for (let k = 0; k < COLOURS; k++) palette.lines.push(read(`--c${k}`));
  }
  return palette;
}

export function forgetColours() {
  palette = null;
}

/**
 * `lines`: [{ result, id, label, colour, dash, minus }]; `options`: { title, unit, log, stepped, height, sync }.
 * `span` is the stretch of time that is shown, `source` where numbers come from.
 */
export class Chart {
  constructor(root, source, span, lines, options) {
    Object.assign(this, { root, source, span, lines, options });
    this.have = null;
    this.asking = false;
    this.values = el("div", { class: "values", "aria-live": "off" });
    this.note = el("span", { class: "muted note" });
    this.holder = el("div", {
      class: "plot",
      tabindex: 0,
      role: "img",
      "aria-label": options.title,
      onkeydown: (event) => this.pressed(event),
    });
    this.ending = el("span", { class: "muted note" });
    const title = options.unit ? `${options.title} [${options.unit}]` : options.title;
    this.element = el("section", { class: "chart" }, el("h3", {}, title, this.ending, this.note), this.values, this.holder);
    this.chips = lines.map((line) => {
      const value = el("output", {});
      const swatch = el("span", { class: line.label ? "swatch" : "swatch alone" });
      this.values.append(el("span", { class: "chip" }, swatch, line.label, line.label && " ", value));
      return { swatch, value };
    });
    this.listener = () => this.follow();
    span.listeners.add(this.listener);
    this.sizes = new ResizeObserver(() => this.resize());
    this.sizes.observe(this.holder);
  }

  remove() {
    this.span.listeners.delete(this.listener);
    this.sizes.disconnect();
    this.plot?.destroy();
    this.plot = null;
    this.gone = true;
    this.element.remove();
  }

  resize() {
    const width = Math.floor(this.holder.clientWidth);
    if (width < 40 || this.gone) return;
    if (this.plot) {
      if (width !== this.plot.width) this.plot.setSize({ width, height: this.plot.height });
    } else this.make(width);
    this.follow();
  }

  make(width) {
    const { options, span } = this;
    const look = () => colours(this.root);
    const tenth = (u, splits) => splits.map((v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9 ? v : null));
    const grid = { stroke: () => look().rule, width: 1 };
    const axis = { stroke: () => look().muted, grid, ticks: { show: false } };
    const lines = options.log ? { ...grid, filter: (u, splits) => (splits.length > 12 ? tenth(u, splits) : splits) } : grid;
    const font = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
    this.plot = new uPlot(
      {
        width,
        height: options.height ?? HEIGHT,
        legend: { show: false },
        scales: {
          x: { time: false, range: () => [span.t0, span.t1] },
          y: options.log ? { distr: 3 } : { range: (u, low, high) => comfortable(low, high) },
        },
        axes: [
          { ...axis, font, size: 26, values: (u, ticks) => ticks.map((t) => number(t)) },
          { ...axis, grid: lines, incrs: options.log ? undefined : TICKS, font, size: 62, values: (u, ticks) => ticks.map((v) => (v === null ? "" : number(v, 4))) },
        ],
        series: [
          {},
          ...this.lines.map((line) => ({
            stroke: () => look().lines[line.colour % COLOURS],
            width: 1.4,
            dash: line.dash ? [6, 4] : undefined,
            points: { show: (u, k) => this.sparse(k) },
            paths: options.stepped ? uPlot.paths.stepped({ align: -1 }) : uPlot.paths.linear(),
          })),
        ],
        cursor: {
          sync: { key: options.sync ?? "cosolve" },
          drag: { x: true, y: false, setScale: false },
          points: { show: false },
        },
        hooks: {
          setCursor: [(u) => this.read(u)],
          setSelect: [(u) => this.selected(u)],
        },
      },
      [[], ...this.lines.map(() => [])],
      this.holder,
    );
    this.wheel();
    this.colour();
  }

  colour() {
    const { lines } = colours(this.root);
    this.chips.forEach((chip, k) => {
      chip.swatch.style.borderTopColor = lines[this.lines[k].colour % COLOURS];
      chip.swatch.style.borderTopStyle = this.lines[k].dash ? "dashed" : "solid";
    });
    this.plot?.redraw(false, true);
  }

  sparse(k) {
    const frame = this.have?.frames[k - 1];
    if (!frame?.raw) return false;
    return (frame.t.length * this.span.width) / (this.have.b - this.have.a || 1) < this.holder.clientWidth / 12;
  }

  wheel() {
    const over = this.plot.over;
    over.addEventListener(
      "wheel",
      (event) => {
        event.preventDefault();
        const box = over.getBoundingClientRect();
        if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
          this.span.move((event.deltaX || event.deltaY) / box.width);
        } else {
          const share = (event.clientX - box.left) / box.width;
          this.span.zoom(Math.exp(event.deltaY * 0.0015), this.span.t0 + share * this.span.width);
        }
      },
      { passive: false },
    );
    over.addEventListener("dblclick", () => this.span.all());
    over.addEventListener("pointerdown", (event) => {
      if (!(event.shiftKey || event.button === 1)) return;
      event.preventDefault();
      event.stopImmediatePropagation();
      over.setPointerCapture(event.pointerId);
      const { t0, t1 } = this.span;
      const begin = event.clientX;
      const width = over.clientWidth;
      const move = (next) => {
        const by = ((begin - next.clientX) / width) * (t1 - t0);
        this.span.show(t0 + by, t1 + by);
      };
      over.addEventListener("pointermove", move);
      over.addEventListener("pointerup", () => over.removeEventListener("pointermove", move), { once: true });
    }, true);
    over.addEventListener("mousedown", (event) => {
      if (event.shiftKey || event.button === 1) event.stopImmediatePropagation();
    }, true);
  }

  selected(u) {
    if (u.select.width < 4) return;
    const a = u.posToVal(u.select.left, "x");
    const b = u.posToVal(u.select.left + u.select.width, "x");
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
    this.span.show(a, b);
  }

  /** Arrows move the cursor of a chart that has the focus; its values are then read out. */
  pressed(event) {
    if (!this.plot || event.shiftKey || event.ctrlKey || event.metaKey) return;
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    this.values.setAttribute("aria-live", "polite");
    const width = this.plot.over.clientWidth;
    const left = this.plot.cursor.left >= 0 ? this.plot.cursor.left : width / 2;
    this.plot.setCursor({ left: Math.min(width - 1, Math.max(0, left + by * 4)), top: 10 });
  }

  /** The values at the cursor; of a slot that holds many rows, the lowest and the highest. */
  read(u) {
    const t = u.cursor.left >= 0 ? u.posToVal(u.cursor.left, "x") : null;
    this.chips.forEach((chip, k) => {
      const frame = this.have?.frames[k];
      const at = t === null || !frame ? -1 : nearest(frame.t, t, frame.raw);
      if (at < 0) chip.value.textContent = "";
      else if (frame.raw || frame.low[0][at] === frame.high[0][at]) chip.value.textContent = number(frame.low[0][at]);
      else chip.value.textContent = `${number(frame.low[0][at])} … ${number(frame.high[0][at])}`;
    });
    this.note.textContent = t === null ? "" : ` at t = ${number(t)}`;
  }

  follow() {
    if (!this.plot) return;
    if (this.have) {
      this.plot.setScale("x", { min: this.span.t0, max: this.span.t1 });
      clearTimeout(this.saying);
      this.saying = setTimeout(() => this.describe(), 150);
    }
    if (!this.suffices()) this.ask();
  }

  suffices() {
    const { have, span } = this;
    if (!have || have.stale) return false;
    if (have.whole) return true;
    const close = 1e-9 * (have.b - have.a);
    const [first, last] = span.full;
    const inside = have.a <= Math.max(span.t0, first) + close && have.b >= Math.min(span.t1, last) - close;
    return inside && (have.raw || (span.width > 0.45 * have.width && span.width < 2.2 * have.width));
  }

  stale() {
    if (this.have) this.have.stale = true;
    this.follow();
  }

  async ask() {
    if (this.asking || this.gone) return;
    this.asking = true;
    const { span, source, lines } = this;
    const width = span.width;
    const margin = span.follows ? 0 : width;
    const a = Math.max(span.t0 - margin, span.full[0]);
    const b = Math.min(span.t1 + margin, span.full[1]);
    const n = Math.ceil(((b - a) / (width || 1)) * Math.min(2400, 1.3 * this.holder.clientWidth));
    try {
      const frames = await Promise.all(
        lines.map((line) =>
          line.minus === undefined
            ? source.series(line.result, [line.id], a, b, n)
            : source.difference(line.result, line.minus, line.id, a, b, n),
        ),
      );
      if (this.gone) return;
      this.have = { a, b, width, frames, raw: frames.every((f) => f.raw), whole: frames.every((f) => f.whole) };
      this.draw();
    } catch (error) {
      this.holder.setAttribute("aria-label", error.message);
      this.note.textContent = ` ${error.message}`;
      this.have = { a, b, width, frames: [], raw: true, whole: true };
    } finally {
      this.asking = false;
    }
    if (!this.suffices()) this.ask();
  }

  draw() {
    const tables = [];
    const { log } = this.options;
    const groups = new Map();
    this.have.frames.forEach((frame, k) => {
      const key = this.lines[k].minus === undefined ? this.lines[k].result : `d${k}`;
      if (!groups.has(key)) groups.set(key, []);
      groups.get(key).push(k);
    });
    const order = [];
    for (const places of groups.values()) {
      const frames = places.map((k) => this.have.frames[k]);
      tables.push([times(frames[0]), ...frames.map((frame) => ended(ordinates(frame, log)))]);
      order.push(...places);
    }
    const joined = tables.length === 1 ? tables[0] : uPlot.join(tables);
    const data = [joined[0]];
    order.forEach((k, at) => (data[k + 1] = joined[at + 1]));
    this.have.frames.forEach((frame, k) => (this.plot.series[k + 1].width = isDense(frame) ? 1 / devicePixelRatio : 1.4));
    this.plot.batch(() => {
      this.plot.setData(data, false);
      this.plot.setScale("x", { min: this.span.t0, max: this.span.t1 });
    });
    const nothing = (value) => value === null || value === undefined || (this.options.counts && value === 0);
    this.empty = data.slice(1).every((part) => part.every(nothing));
    this.element.classList.toggle("empty", this.empty && !this.options.keep);
    const ends = this.have.frames.map(ending).filter((t) => t !== null);
    this.ending.textContent = ends.length ? ` (values exceed 1e150 from t = ${number(Math.min(...ends))} on)` : "";
    this.describe();
  }

  /** What the picture shows, for readers who do not see it. */
  describe() {
    if (this.plot) this.holder.setAttribute("aria-label", this.described(this.plot.data));
  }

  described(data) {
    const { t0, t1 } = this.span;
    const said = this.lines.map((line, k) => {
      const values = data[k + 1].filter(
        (value, at) => value !== null && value !== undefined && data[0][at] >= t0 && data[0][at] <= t1,
      );
      const name = line.label || "the value";
      if (!values.length) return `${name}: there are no values`;
      const low = values.reduce((a, b) => Math.min(a, b));
      const high = values.reduce((a, b) => Math.max(a, b));
      return `${name} is between ${number(low, 4)} and ${number(high, 4)}`;
    });
    return `Chart of ${this.options.title} from t = ${number(t0, 4)} to ${number(t1, 4)}: ${said.join("; ")}`;
  }
}

function comfortable(low, high) {
  if (low === null || high === null || !Number.isFinite(low) || !Number.isFinite(high)) return [0, 1];
  if (high - low <= 1e-12 * Math.max(Math.abs(low), Math.abs(high))) {
    const room = Math.max(Math.abs(low) * 0.1, low === 0 ? 1 : 0);
    return [low - room, high + room];
  }
  return [low - 0.06 * (high - low), high + 0.06 * (high - low)];
}

/** Abscissae: of slots, two each. */
function times(frame) {
  if (frame.raw) return Array.from(frame.t);
  const n = frame.t.length;
  const found = new Array(2 * n);
  for (let k = 0; k < n; k++) {
    found[2 * k] = frame.t[k];
    const end = k + 1 < n ? frame.t[k + 1] : frame.t[k] + 1e-6 * (frame.t[k] - frame.t[0]);
    found[2 * k + 1] = end - 1e-3 * (end - frame.t[k]); // a line that rises through a slot is lowest at its begin
  }
  return found;
}

/** Ordinates: of slots lowest and highest, first the one that is closer to where the line comes from. */
function ordinates(frame, log) {
  const [low, high] = [frame.low[0], frame.high[0]];
  const fit = (value) => (Number.isFinite(value) && !(log && value <= 0) ? value : null);
  if (frame.raw) return Array.from(low, fit);
  const found = new Array(2 * low.length);
  let before = low[0];
  for (let k = 0; k < low.length; k++) {
    const up = Math.abs(before - low[k]) <= Math.abs(before - high[k]);
    found[2 * k] = fit(up ? low[k] : high[k]);
    found[2 * k + 1] = fit(up ? high[k] : low[k]);
    before = up ? high[k] : low[k];
  }
  return found;
}

/** Ordinates up to the first that is too large to be drawn. */
function ended(values) {
  const end = values.findIndex((value) => value !== null && Math.abs(value) > LARGEST);
  return end < 0 ? values : values.fill(null, end);
}

/** When the values of a frame become too large to be drawn, or null. */
function ending(frame) {
  const [low, high] = [frame.low[0], frame.high[0]];
  for (let k = 0; k < low.length; k++) if (Math.max(Math.abs(low[k]), Math.abs(high[k])) > LARGEST) return frame.t[k];
  return null;
}

/** Whether a line fills a surface: browsers draw those many times faster as lines of a single pixel. */
function isDense(frame) {
  if (frame.raw) return false;
  const [low, high] = [frame.low[0], frame.high[0]];
  let [least, most, tall] = [Infinity, -Infinity, 0];
  for (let k = 0; k < low.length; k++) {
    if (low[k] < least) least = low[k];
    if (high[k] > most) most = high[k];
    tall += high[k] - low[k] || 0;
  }
  return tall / low.length > 0.05 * (most - least);
}

function nearest(t, at, raw) {
  let low = 0;
  let high = t.length - 1;
  if (high < 0) return -1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (t[middle] <= at) low = middle;
    else high = middle - 1;
  }
  if (raw && low + 1 < t.length && t[low + 1] - at < at - t[low]) return low + 1;
  return low;
}
