// Motion in space: frames of bodies and fields, with a slider for the time. Loaded only where something moves.
import {
  AxesHelper,
  BoxGeometry,
  BufferAttribute,
  BufferGeometry,
  CylinderGeometry,
  GridHelper,
  Group,
  Line,
  LineBasicMaterial,
  Mesh,
  MeshLambertMaterial,
  Quaternion,
  Vector3,
} from "three";
import { el } from "./dom.js";
import { Player } from "./player.js";
import { Stage } from "./stage.js";

export { Fields } from "./fields.js";

const PICTURES = 600; // positions that are fetched of a run
const UP = new Vector3(0, 1, 0); // along a cylinder
const SECONDS = 8; // that a run takes when it is played

export class Scene {
  constructor(viewer, result) {
    Object.assign(this, { viewer, result, charts: [] });
    this.about = viewer.about.results[result];
    this.stage = new Stage(viewer, "Motion in space; drag to turn it");
    this.player = new Player((at) => this.to(at), SECONDS);
    this.caption = el("p", { class: "muted" });
    this.element = el("div", { class: "scene" }, this.stage.canvas, this.player.element, this.caption);
    this.player.hear(this.element);
  }

  async show() {
    try {
      if (!this.frame) await this.load();
      if (!this.stage.renderer) this.build();
    } catch (error) {
      this.caption.textContent = `The motion cannot be drawn here: ${error.message}`;
      return;
    }
    this.stage.open();
    this.player.to(this.player.at);
  }

  hide() {
    this.player.stop();
    this.stage.close();
  }

  colour() {
    this.stage.colour();
  }

  pressed(event) {
    return this.player.pressed(event);
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
    this.player.over(this.frame.t);
    const names = [...this.frames, ...this.fields].map((one) => one.name).join(", ");
    this.caption.textContent = `Drag to turn, wheel to come closer. Shown: ${names}.`;
  }

  value(place, at) {
    return this.frame.low[place][at];
  }

  build() {
    const look = this.stage.colours();
    this.stage.build();
    const { space } = this.stage;
    const low = new Vector3(Infinity, Infinity, Infinity);
    const high = low.clone().negate();
    const turn = new Quaternion();
    const point = new Vector3();
    for (const one of this.frames) {
      const shape = one.shape && one.q >= 0 ? [one.shape.centre, ...one.shape.points] : [];
      for (let at = 0; at < this.frame.t.length; at++) {
        const place = this.placed(one, at, turn);
        if (!Number.isFinite(place.x + place.y + place.z)) continue;
        for (const inside of [[0, 0, 0], ...shape]) {
          point.set(...inside).applyQuaternion(turn).add(place);
          if (!Number.isFinite(point.x)) continue;
          low.min(point);
          high.max(point);
        }
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
      this.body(one, size, colour);
      if (one.q >= 0) one.group.add(new AxesHelper(0.12 * size));
      one.trail = line(this.frame.t.length, colour, 0.45);
      const trail = one.trail.geometry.attributes.position;
      for (let at = 0; at < this.frame.t.length; at++) trail.setXYZ(at, this.value(one.p, at), this.value(one.p + 1, at), this.value(one.p + 2, at));
      space.add(one.group, one.trail);
    }
    this.rods = owners.flatMap((owner, k) => {
      const inside = this.frames.filter((one) => one.owner === owner && !one.shape);
      return inside.slice(1).map((end, at) => {
        const shape = new CylinderGeometry(0.011 * size, 0.011 * size, 1, 12);
        const rod = new Mesh(shape, new MeshLambertMaterial({ color: look.lines[k % look.lines.length] }));
        space.add(rod);
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
      space.add(field.line);
    });
    const grid = new GridHelper(1.6 * size, 12, look.rule, look.rule);
    grid.rotation.x = Math.PI / 2;
    grid.position.set(centre.x, centre.y, Math.min(low.z, centre.z - 0.3 * size) - 0.05 * size);
    space.add(grid);
    this.stage.look(centre, size, new Vector3(0.6 * size, -1.4 * size, 0.55 * size), new Vector3(0, 0, 1));
  }

  /** Where a frame is, and into `turn` how it is turned. */
  placed(one, at, turn) {
    if (one.q >= 0) {
      const [w, x, y, z] = [0, 1, 2, 3].map((k) => this.value(one.q + k, at)); // Euler parameters begin with the cosine
      turn.set(x, y, z, w).normalize();
    } else turn.identity();
    return new Vector3(this.value(one.p, at), this.value(one.p + 1, at), this.value(one.p + 2, at));
  }

  /** A box at the centre of a body with rods to its markers, once per body; a box alone where no shape is known. */
  body(one, size, colour) {
    const same = this.frames.find((other) => other.owner === one.owner && other.shape && other.shape.body === one.shape?.body);
    if (one.shape && same !== one) return;
    const material = new MeshLambertMaterial({ color: colour });
    const box = new Mesh(new BoxGeometry(0.05 * size, 0.05 * size, 0.05 * size), material);
    const centre = new Vector3(...(one.shape?.centre ?? [0, 0, 0]));
    box.position.copy(centre);
    one.group.add(box);
    for (const point of one.q >= 0 ? one.shape?.points ?? [] : []) {
      const rod = new Mesh(new CylinderGeometry(0.011 * size, 0.011 * size, 1, 12), material);
      if (between(rod, centre, new Vector3(...point))) one.group.add(rod);
    }
  }

  to(at) {
    for (const one of this.frames) {
      one.group.position.copy(this.placed(one, at, one.group.quaternion));
    }
    for (const { rod, ends } of this.rods) rod.visible = between(rod, ...ends);
    for (const field of this.fields) {
      const places = field.line.geometry.attributes.position;
      for (let k = 0; k < field.size; k++) places.setXYZ(k, (k / (field.size - 1)) * field.wide, 0, field.scale(this.value(field.first + k, at)));
      places.needsUpdate = true;
    }
    this.stage.draw();
  }
}

/** Lays a rod of length 1 between two points; false where they are the same. */
function between(rod, first, second) {
  const along = new Vector3().subVectors(second, first);
  const length = along.length();
  if (!(length > 0)) return false;
  rod.position.copy(first).addScaledVector(along, 0.5);
  rod.scale.set(1, length, 1);
  rod.quaternion.setFromUnitVectors(UP, along.divideScalar(length));
  return true;
}

function line(count, colour, opacity) {
  const geometry = new BufferGeometry();
  geometry.setAttribute("position", new BufferAttribute(new Float32Array(3 * count), 3));
  const found = new Line(geometry, new LineBasicMaterial({ color: colour, transparent: opacity < 1, opacity }));
  found.frustumCulled = false;
  return found;
}
