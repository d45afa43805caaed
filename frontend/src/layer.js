// One file of fields in the picture: what is chosen of it, its colours, and its snapshots as they come.
import {
  BufferAttribute,
  BufferGeometry,
  DataTexture,
  DoubleSide,
  LinearFilter,
  Mesh,
  MeshBasicMaterial,
  MeshLambertMaterial,
  SRGBColorSpace,
} from "three";
import { el, number } from "./dom.js";
import { SCALES, shade } from "./shades.js";

const KEPT = 96e6; // bytes of snapshots that stay here
const WIDE = 256; // colours

export class Layer {
  constructor(k, about, source, changed) {
    Object.assign(this, { k, scale: k % SCALES.length, about, source, changed, kept: new Map(), size: 0, limits: new Map(), chosen: new Map() });
    const option = (text, value) => el("option", { value }, text);
    this.what = el("select", { "aria-label": "Field", onchange: () => this.choose() }, about.fields.map((one, i) => option(one.name, i)), option("(mesh only)", -1), option("(hidden)", -2));
    this.part = el("select", { "aria-label": "Component", onchange: () => this.changed() });
    this.range = el("select", { "aria-label": "Range of the colours", onchange: () => this.changed() }, option("fixed range", "fixed"), option("range of each snapshot", "each"));
    const end = (words) => el("input", { type: "number", step: "any", "aria-label": words, onchange: () => this.typed() });
    this.ends = [end("Value of the darkest colour"), end("Value of the brightest colour")];
    const bar = el("span", { class: "colourbar", style: { background: `linear-gradient(to right, ${SCALES[this.scale].join(", ")})` } });
    this.here = el("output", { class: "muted" });
    this.coloured = el("span", { class: "ends" }, this.ends[0], bar, this.ends[1]);
    this.tools = el("div", { class: "tools" }, el("strong", { title: about.of }, about.label), this.what, this.part, this.range, this.coloured, this.here);
    this.fill();
  }

  get field() {
    return this.about.fields[Number(this.what.value)];
  }

  /** Component of the field that is shown; 0 is the magnitude, or the one number that there is. */
  get place() {
    return this.field?.components > 1 ? Number(this.part.value) : 0;
  }

  fill() {
    const count = this.field?.components ?? 1;
    const names = count <= 3 ? ["x", "y", "z"] : Array.from({ length: count }, (_, i) => `[${i}]`);
    const options = ["magnitude", ...names.slice(0, count)].map((text, i) => el("option", { value: i }, text));
    this.part.replaceChildren(...options);
    this.part.hidden = count < 2;
    for (const node of [this.range, this.coloured]) node.hidden = !this.field;
  }

  choose() {
    this.fill();
    this.changed();
  }

  /** Ends of the colours by hand. */
  typed() {
    const given = this.ends.map((one) => one.valueAsNumber);
    if (given.every(Number.isFinite)) this.chosen.set(this.key, given);
    this.range.value = "fixed";
    this.changed();
  }

  get key() {
    return `${this.what.value} ${this.place}`;
  }

  async load() {
    const { t, corners, owners, origin, points } = await this.source.mesh(this.k);
    Object.assign(this, { t, corners, owners, origin, points });
  }

  /** Fetches the snapshot nearest to a time, and where the colours of its field end. */
  async to(t) {
    const step = nearest(this.t, t);
    const field = Math.max(-1, Number(this.what.value));
    const key = `${step} ${field}`;
    if (!this.kept.has(key)) {
      const found = await this.source.field(this.k, step, field, this.last?.at ?? -1);
      found.points ??= this.last.points;
      this.last = found;
      this.size += found.bytes;
      this.kept.set(key, found);
      for (const [old, one] of this.kept) {
        if (this.size <= KEPT || old === key) break;
        this.kept.delete(old);
        this.size -= one.bytes;
      }
    }
    this.frame = { ...this.kept.get(key), field: this.about.fields[field], which: field };
    if (field >= 0 && !this.limits.has(field)) this.limits.set(field, await this.source.limits(this.k, field));
  }

  build(flat) {
    const look = { map: colours(this.scale), side: DoubleSide, toneMapped: false };
    // plane layers lie in each other: the later one is in front
    this.material = flat ? new MeshBasicMaterial({ ...look, depthTest: false }) : new MeshLambertMaterial({ ...look, flatShading: true });
    this.mesh = new Mesh(new BufferGeometry(), this.material);
    this.mesh.frustumCulled = false;
    this.mesh.renderOrder = this.k;
    this.paint();
  }

  /** Values per cell need corners of their own for every triangle. */
  shape(apart) {
    if (this.apart === apart) return;
    this.apart = apart;
    const count = apart ? this.corners.length : this.points;
    const geometry = new BufferGeometry();
    geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3));
    geometry.setAttribute("uv", new BufferAttribute(new Float32Array(2 * count), 2));
    if (!apart) geometry.setIndex(new BufferAttribute(this.corners, 1));
    this.mesh.geometry.dispose();
    this.mesh.geometry = geometry;
    this.drawn = null;
  }

  /** The snapshot that was fetched last, in its colours. */
  paint() {
    const { points, values, field } = this.frame;
    this.mesh.visible = this.what.value !== "-2";
    this.material.wireframe = !field;
    this.shape(Boolean(field?.per_cell));
    const { position, uv } = this.mesh.geometry.attributes;
    if (this.drawn !== points) {
      if (this.apart) this.corners.forEach((corner, k) => position.array.set(points.subarray(3 * corner, 3 * corner + 3), 3 * k));
      else position.array.set(points);
      position.needsUpdate = true;
      this.drawn = points;
    }
    const shown = field ? scalars(values, field.components, this.place) : null;
    const [low, high] = this.colourEnds(shown);
    const grain = high > low ? (WIDE - 1) / WIDE / (high - low) : 0;
    for (let k = 0; k < uv.count; k++) {
      const value = shown ? shown[this.apart ? this.owners[Math.floor(k / 3)] : k] : NaN;
      const known = Number.isFinite(value);
      uv.array[2 * k] = known && grain ? Math.min(Math.max((value - low) * grain, 0), 1) + 0.5 / WIDE : 0.5;
      uv.array[2 * k + 1] = known ? 0.25 : 0.75;
    }
    uv.needsUpdate = true;
  }

  colourEnds(shown) {
    this.here.textContent = "";
    this.found = null;
    if (!shown) return [0, 0];
    let [least, most] = [Infinity, -Infinity];
    for (const value of shown) {
      if (!Number.isFinite(value)) continue;
      if (value < least) least = value;
      if (value > most) most = value;
    }
    this.found = least <= most ? [least, most] : null;
    this.here.textContent = this.found ? `here ${number(least, 4)} … ${number(most, 4)}` : "no numbers here";
    let ends = this.found ?? [0, 0];
    if (this.range.value === "fixed") {
      const { low, high } = this.limits.get(this.frame.which); // something else may have been chosen in the meantime
      ends = this.chosen.get(this.key) ?? [low[this.place] ?? 0, high[this.place] ?? 0];
    }
    this.ends.forEach((one, k) => {
      if (document.activeElement !== one) one.value = Number(ends[k].toPrecision(5));
    });
    return ends;
  }

  /** For readers who do not see it. */
  words() {
    const name = this.about.label;
    if (!this.field) return name;
    const part = this.field.components > 1 ? ` (${this.part.selectedOptions[0].textContent})` : "";
    return `${name}, ${this.field.name}${part} ${this.found ? `between ${number(this.found[0], 4)} and ${number(this.found[1], 4)}` : "without numbers"}`;
  }
}

/** Where in rising times the one nearest to a moment stands. */
function nearest(times, t) {
  let [low, high] = [0, times.length - 1];
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (times[middle] <= t) low = middle;
    else high = middle;
  }
  return t - times[low] < times[high] - t ? low : high;
}

/** One number per place: a component, or the length of the vector. */
function scalars(values, components, place) {
  if (components === 1) return values;
  const found = new Float32Array(values.length / components);
  for (let k = 0; k < found.length; k++) {
    if (place) found[k] = values[k * components + place - 1];
    else {
      let sum = 0;
      for (let i = 0; i < components; i++) sum += values[k * components + i] ** 2;
      found[k] = Math.sqrt(sum);
    }
  }
  return found;
}

/** The colours as a texture, so that what lies between two points has the colour of its value; grey where there is none. */
function colours(scale) {
  const pixels = new Uint8Array(2 * WIDE * 4).fill(255);
  for (let k = 0; k < WIDE; k++) {
    pixels.set(shade(k / (WIDE - 1), scale), 4 * k);
    pixels.set([140, 140, 140], 4 * (WIDE + k));
  }
  const found = new DataTexture(pixels, WIDE, 2);
  Object.assign(found, { colorSpace: SRGBColorSpace, magFilter: LinearFilter, minFilter: LinearFilter, needsUpdate: true });
  return found;
}
