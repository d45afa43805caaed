// The place for everything in space: canvas, light, camera and what turns it, drawn when something has changed.
import { AmbientLight, Color, DirectionalLight, PerspectiveCamera, Scene as Space, WebGLRenderer } from "three";
import { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
import { el } from "./dom.js";

export class Stage {
  constructor(viewer, words) {
    this.viewer = viewer;
    this.canvas = el("canvas", { role: "img", tabindex: 0, "aria-label": words });
  }

  colours() {
    const style = getComputedStyle(this.viewer.root);
    const read = (name) => new Color(style.getPropertyValue(name).trim());
    return { paper: read("--paper"), rule: read("--rule"), lines: [0, 1, 2, 3, 4, 5].map((k) => read(`--c${k}`)) };
  }

  build() {
    this.renderer = new WebGLRenderer({ canvas: this.canvas, antialias: true, preserveDrawingBuffer: true });
    this.space = new Space();
    this.space.background = this.colours().paper;
    this.space.add(new AmbientLight(0xffffff, 1.6));
    const light = new DirectionalLight(0xffffff, 1.8);
    light.position.set(1, -2, 3);
    this.space.add(light);
  }

  /** A camera for something of that size around `centre`, which looks at it `from` there. */
  look(centre, size, from, up) {
    this.camera = new PerspectiveCamera(40, 1, size / 100, size * 100);
    this.camera.up.copy(up);
    this.camera.position.copy(centre).add(from);
    this.orbit = new OrbitControls(this.camera, this.canvas);
    this.orbit.target.copy(centre);
    this.orbit.addEventListener("change", () => this.draw());
    this.orbit.update();
  }

  open() {
    this.sizes = new ResizeObserver(() => this.draw());
    this.sizes.observe(this.canvas);
  }

  close() {
    this.sizes?.disconnect();
  }

  /** The colours of the page have changed. */
  colour() {
    if (!this.space) return;
    this.space.background = this.colours().paper;
    requestAnimationFrame(() => this.draw()); // JupyterLab hides everything while it changes its own
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height || !this.camera) return;
    const ratio = Math.min(devicePixelRatio, 2);
    if (this.canvas.width !== Math.floor(width * ratio) || this.canvas.height !== Math.floor(height * ratio)) {
      this.renderer.setPixelRatio(ratio);
      this.renderer.setSize(width, height, false);
      this.camera.aspect = width / height;
      this.camera.updateProjectionMatrix();
    }
    this.renderer.render(this.space, this.camera);
  }
}
