// Fields on meshes over time: triangles in the colours of a field, fetched snapshot by snapshot.
import { Box3, MOUSE, TOUCH, Vector3 } from "three";
import { el, number } from "./dom.js";
import { Layer } from "./layer.js";
import { Player } from "./player.js";
import { Stage } from "./stage.js";

const PER_SECOND = 15; // snapshots, of a series that is short enough
const LONGEST = 20; // seconds that a series takes when it is played

export class Fields {
  constructor(viewer) {
    Object.assign(this, { viewer, charts: [], asked: 0 });
    this.stage = new Stage(viewer, "Fields");
    this.player = new Player((at) => this.to(at), LONGEST);
    this.layers = viewer.about.fields.map((about, k) => new Layer(k, about, viewer.source, () => this.to(this.player.at)));
    this.caption = el("p", { class: "muted" });
    const tools = this.layers.map((layer) => layer.tools);
    this.element = el("div", { class: "scene" }, tools, this.stage.canvas, this.player.element, this.caption);
    this.player.hear(this.element);
  }

  async show() {
    try {
      await (this.loading ??= this.load());
    } catch (error) {
      this.caption.textContent = `The fields cannot be drawn here: ${error.message}`;
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
    await Promise.all(this.layers.map((layer) => layer.load()));
    const longest = this.layers.reduce((one, other) => (other.t.length > one.t.length ? other : one));
    this.player.over(longest.t);
    this.player.seconds = Math.min(LONGEST, Math.max(1, longest.t.length / PER_SECOND));
    this.stage.build();
    const flat = this.layers.every((layer) => layer.about.plane);
    const origin = new Vector3(...this.layers[0].origin);
    await Promise.all(this.layers.map((layer) => layer.to(longest.t[0])));
    const box = new Box3();
    for (const layer of this.layers) {
      layer.build(flat);
      layer.mesh.position.set(...layer.origin).sub(origin);
      this.stage.space.add(layer.mesh);
      layer.mesh.geometry.computeBoundingBox();
      box.union(layer.mesh.geometry.boundingBox.clone().translate(layer.mesh.position));
    }
    this.fit(box, flat);
    const turn = flat ? "Drag to move, wheel to come closer, right button to turn." : "Drag to turn, wheel to come closer.";
    this.caption.textContent = `${turn} Keys: space plays, ← → go from snapshot to snapshot.`;
  }

  /** The camera sees everything; a plane from above, in a canvas of about its shape. */
  fit(box, flat) {
    const { canvas } = this.stage;
    const [centre, extent] = [box.getCenter(new Vector3()), box.getSize(new Vector3())];
    const size = Math.max(extent.length(), 1e-30);
    if (flat) {
      const tall = (canvas.clientWidth || 800) * (extent.y / Math.max(extent.x, 1e-30)) * 1.12;
      canvas.style.height = `${Math.round(Math.max(200, Math.min(0.6 * innerHeight, tall)))}px`;
    }
    const aspect = canvas.clientWidth / canvas.clientHeight || 2;
    const half = Math.tan((20 * Math.PI) / 180);
    const away = flat ? (1.05 * Math.max(extent.y, extent.x / aspect)) / 2 / half : 1.6 * size;
    const from = flat ? new Vector3(0, 0, away) : new Vector3(0.45, -0.75, 0.45).multiplyScalar(away);
    this.stage.look(centre, size, from, flat ? new Vector3(0, 1, 0) : new Vector3(0, 0, 1));
    if (!flat) return;
    Object.assign(this.stage.orbit, {
      zoomToCursor: true,
      mouseButtons: { LEFT: MOUSE.PAN, MIDDLE: MOUSE.DOLLY, RIGHT: MOUSE.ROTATE },
      touches: { ONE: TOUCH.PAN, TWO: TOUCH.DOLLY_ROTATE },
    });
  }

  /** Draws a moment; of those that are asked for while numbers travel, the last. */
  to(at) {
    this.asked += 1;
    this.wanted = at;
    this.busy ??= this.follow().finally(() => (this.busy = null));
    return this.busy;
  }

  async follow() {
    let done = 0;
    while (done !== this.asked) {
      done = this.asked;
      const t = this.player.t[this.wanted];
      try {
        await Promise.all(this.layers.map((layer) => layer.to(t)));
      } catch (error) {
        this.player.stop();
        this.caption.textContent = `This snapshot cannot be shown: ${error.message}`;
        return;
      }
      for (const layer of this.layers) layer.paint();
      this.stage.draw();
      const words = this.layers.map((layer) => layer.words()).join("; ");
      this.stage.canvas.setAttribute("aria-label", `Fields at t = ${number(t)}: ${words}`);
    }
  }
}
