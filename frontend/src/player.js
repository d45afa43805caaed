// The time of what moves: a slider, a button that plays it, and the same by keys.
import { el } from "./dom.js";

export class Player {
  /** `show(at)` draws a moment; where it gives a promise, the next one waits for it. A run is played in `seconds`. */
  constructor(show, seconds) {
    Object.assign(this, { show, seconds, t: [], at: 0, playing: false });
    this.button = el("button", { title: "Play or pause (space)", onclick: () => this.toggle() }, "Play");
    this.slider = el("input", { type: "range", min: 0, max: 0, value: 0, "aria-label": "Time", oninput: () => this.to(Number(this.slider.value)) });
    this.clock = el("output");
    this.element = el("div", { class: "player" }, this.button, this.slider, this.clock);
  }

  /** The moments that there are. */
  over(t) {
    this.t = t;
    this.slider.max = t.length - 1;
  }

  to(at) {
    this.at = Math.min(Math.max(at, 0), this.t.length - 1);
    this.slider.value = this.at;
    this.clock.textContent = `t = ${Number(this.t[this.at].toPrecision(5))}`;
    this.slider.setAttribute("aria-valuetext", this.clock.textContent);
    return this.show(this.at);
  }

  stop() {
    this.playing = false;
    this.button.textContent = "Play";
  }

  toggle() {
    if (this.playing) return this.stop();
    const count = this.t.length;
    const begin = this.at >= count - 1 ? 0 : this.at;
    const since = performance.now();
    const run = (this.playing = {});
    this.button.textContent = "Pause";
    const next = async (now) => {
      if (this.playing !== run) return;
      const at = begin + Math.floor(((now - since) / 1000 / this.seconds) * count);
      await this.to(at);
      if (this.playing !== run) return;
      if (at < count - 1) requestAnimationFrame(next);
      else this.stop();
    };
    requestAnimationFrame(next);
  }

  /** Keys inside an element, which may be a widget on a foreign page. */
  hear(element) {
    element.addEventListener("keydown", (event) => {
      if (!this.pressed(event)) return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  /** Whether a key was one for this: space, arrows, Home, End. */
  pressed(event) {
    const taken = event.key === " " ? "input, select, button" : "input, select"; // these know the key themselves
    if (!this.t.length || event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.(taken)) return false;
    const actions = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.to(this.at - 1),
      ArrowRight: () => this.to(this.at + 1),
      Home: () => this.to(0),
      End: () => this.to(this.t.length - 1),
    };
    actions[event.key]?.();
    return event.key in actions;
  }
}
