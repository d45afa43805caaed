// Motion in space: frames of bodies and fields, with a slider for the time. Loaded only where something moves.
import {
  AmbientLight,
  AxesHelper,
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  Color,
  CylinderGeometry,
  DirectionalLight,
  GridHelper,
  Group,
  Line,
  LineBasicMaterial,
  Mesh,
  MeshLambertMaterial,
  PerspectiveCamera,
  Scene as Space,
  Vector3,
  WebGLRenderer,
} from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";

const PICTURES = 600; // positions that are fetched of a run
const UP = new Vector3(0, 1, 0); // along a cylinder
const SECONDS = 8; // that a run takes when it is played

const make = (tag, given = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(given)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value);
  }
  node.append(...children);
  return node;
};

export class Scene {
  constructor(viewer, result) {
    Object.assign(this, { viewer, result, charts: [], at: 0 });
    this.about = viewer.about.results[result];
    this.canvas = make("canvas", { role: "img", tabindex: 0, "aria-label": "Motion in space; drag to turn it" });
    this.play = make("button", { onclick: () => this.toggle() }, "Play");
    this.slider = make("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Time", oninput: () => this.to(Number(this.slider.value)) });
    this.clock = make("output");
    this.caption = make("p", { class: "muted" });
    const player = make("div", { class: "player" }, this.play, this.slider, this.clock);
    this.element = make("div", { class: "scene" }, this.canvas, player, this.caption);
  }

  colours() {
    const style = getComputedStyle(this.viewer.root);
    const read = (name) => new Color(style.getPropertyValue(name).trim());
    return { paper: read("--paper"), rule: read("--rule"), ink: read("--ink"), lines: [0, 1, 2, 3, 4, 5].map((k) => read(`--c${k}`)) };
  }

  async show() {
    try {
      if (!this.frame) await this.load();
      if (!this.renderer) this.build();
    } catch (error) {
      this.caption.textContent = `The motion cannot be drawn here: ${error.message}`;
      return;
    }
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.canvas);
    this.to(this.at);
  }

  hide() {
    this.playing = false;
    this.play.textContent = "Play";
    this.sizes?.disconnect();
  }

  async load() {
    const { frames, fields } = this.about.scene;
    const ids = [];
    const take = (first, count) => {
      const place = ids.length;
      for (let k = 0; k < count; k++) ids.push(first + k);
      return place;
    };
    this.frames = frames.map((one) => ({ ...one, p: take(one.position, 3), q: one.orientation === null ? -1 : take(one.orientation, 4) }));
    this.fields = fields.map((one) => ({ ...one, first: take(one.id, one.size) }));
    this.frame = await this.viewer.source.sample(this.result, ids, PICTURES);
    this.slider.max = this.frame.t.length - 1;
    const names = [...this.frames, ...this.fields].map((one) => one.name).join(", ");
    this.caption.textContent = `Drag to turn, wheel to come closer. Shown: ${names}.`;
  }

  value(place, at) {
    return this.frame.low[place][at];
  }

  build() {
    const look = this.colours();
    this.renderer = new WebGLRenderer({ canvas: this.canvas, antialias: true, preserveDrawingBuffer: true });
    this.space = new Space();
    this.space.background = look.paper;
    this.space.add(new AmbientLight(0xffffff, 1.6));
    const light = new DirectionalLight(0xffffff, 1.8);
    light.position.set(1, -2, 3);
    this.space.add(light);
    const low = new Vector3(Infinity, Infinity, Infinity);
    const high = low.clone().negate();
    for (const one of this.frames) {
      for (let at = 0; at < this.frame.t.length; at++) {
        const point = new Vector3(this.value(one.p, at), this.value(one.p + 1, at), this.value(one.p + 2, at));
        if (!Number.isFinite(point.x + point.y + point.z)) continue;
        low.min(point);
        high.max(point);
      }
    }
    if (!Number.isFinite(low.x)) {
      low.set(-0.5, -0.5, -0.5);
      high.set(0.5, 0.5, 0.5);
    }
    const size = Math.max(high.distanceTo(low), 1e-9);
    const centre = low.clone().add(high).multiplyScalar(0.5);
    const owners = [...new Set(this.frames.map((one) => one.owner))];
    for (const one of this.frames) {
      const colour = look.lines[owners.indexOf(one.owner) % look.lines.length];
      one.group = new Group();
      one.group.add(new Mesh(new BoxGeometry(0.05 * size, 0.05 * size, 0.05 * size), new MeshLambertMaterial({ color: colour })));
      if (one.q >= 0) one.group.add(new AxesHelper(0.12 * size));
      one.trail = line(this.frame.t.length, colour, 0.45);
      const trail = one.trail.geometry.attributes.position;
      for (let at = 0; at < this.frame.t.length; at++) trail.setXYZ(at, this.value(one.p, at), this.value(one.p + 1, at), this.value(one.p + 2, at));
      this.space.add(one.group, one.trail);
    }
    this.rods = owners.flatMap((owner, k) => {
      const inside = this.frames.filter((one) => one.owner === owner);
      return inside.slice(1).map((end, at) => {
        const shape = new CylinderGeometry(0.011 * size, 0.011 * size, 1, 12);
        const rod = new Mesh(shape, new MeshLambertMaterial({ color: look.lines[k % look.lines.length] }));
        this.space.add(rod);
        return { rod, ends: [inside[at].group.position, end.group.position] };
      });
    });
    this.fields.forEach((field, k) => {
      const values = this.frame.low.slice(field.first, field.first + field.size);
      let [least, most] = [Infinity, -Infinity];
      for (const part of values) for (const v of part) if (Number.isFinite(v)) [least, most] = [Math.min(least, v), Math.max(most, v)];
      field.scale = (v) => (most > least ? (v - least) / (most - least) - 0.5 : 0) * 0.5 * size;
      field.line = line(field.size, look.lines[(owners.length + k) % look.lines.length], 1);
      field.line.position.copy(centre).add(new Vector3(-0.5 * size, this.frames.length ? size * (0.4 + 0.3 * k) : 0.3 * k * size, 0));
      field.wide = size;
      this.space.add(field.line);
    });
    const grid = new GridHelper(1.6 * size, 12, look.rule, look.rule);
    grid.rotation.x = Math.PI / 2;
    grid.position.set(centre.x, centre.y, Math.min(low.z, centre.z - 0.3 * size) - 0.05 * size);
    this.space.add(grid);
    this.camera = new PerspectiveCamera(40, 1, size / 100, size * 100);
    this.camera.up.set(0, 0, 1);
    this.camera.position.copy(centre).add(new Vector3(0.6 * size, -1.4 * size, 0.55 * size));
    this.orbit = new OrbitControls(this.camera, this.canvas);
    this.orbit.target.copy(centre);
    this.orbit.addEventListener("change", () => this.draw());
    this.orbit.update();
  }

  colour() {
    if (!this.space) return;
    this.space.background = this.colours().paper;
    this.draw();
  }

  to(at) {
    this.at = Math.min(Math.max(at, 0), this.frame.t.length - 1);
    this.slider.value = this.at;
    this.clock.textContent = `t = ${Number(this.frame.t[this.at].toPrecision(5))}`;
    for (const one of this.frames) {
      one.group.position.set(this.value(one.p, this.at), this.value(one.p + 1, this.at), this.value(one.p + 2, this.at));
      if (one.q >= 0) {
        const [w, x, y, z] = [0, 1, 2, 3].map((k) => this.value(one.q + k, this.at)); // Euler parameters begin with the cosine
        one.group.quaternion.set(x, y, z, w).normalize();
      }
    }
    for (const { rod, ends } of this.rods) {
      const along = new Vector3().subVectors(ends[1], ends[0]);
      const length = along.length();
      rod.visible = length > 0;
      rod.position.copy(ends[0]).addScaledVector(along, 0.5);
      rod.scale.set(1, length || 1, 1);
      if (length > 0) rod.quaternion.setFromUnitVectors(UP, along.divideScalar(length));
    }
    for (const field of this.fields) {
      const places = field.line.geometry.attributes.position;
      for (let k = 0; k < field.size; k++) places.setXYZ(k, (k / (field.size - 1)) * field.wide, 0, field.scale(this.value(field.first + k, this.at)));
      places.needsUpdate = true;
    }
    this.draw();
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const ratio = Math.min(devicePixelRatio, 2);
    if (this.canvas.width !== Math.floor(width * ratio) || this.canvas.height !== Math.floor(height * ratio)) {
      this.renderer.setPixelRatio(ratio);
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / height;
      this.camera.updateProjectionMatrix();
    }
    this.renderer.render(this.space, this.camera);
  }

  toggle() {
    this.playing = !this.playing;
    this.play.textContent = this.playing ? "Pause" : "Play";
    if (!this.playing) return;
    const count = this.frame.t.length;
    const begin = this.at >= count - 1 ? 0 : this.at;
    const since = performance.now();
    const next = (now) => {
      if (!this.playing) return;
      const at = begin + Math.floor(((now - since) / 1000 / SECONDS) * count);
      this.to(at);
      if (at < count - 1) requestAnimationFrame(next);
      else this.toggle();
    };
    requestAnimationFrame(next);
  }
}

function line(count, colour, opacity) {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3));
  const found = new Line(geometry, new LineBasicMaterial({ color: colour, transparent: opacity < 1, opacity }));
  found.frustumCulled = false;
  return found;
}
