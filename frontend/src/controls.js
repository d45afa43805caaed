// The bar of a run that goes on: where it stands, and what one may do to it.
import { el, number, whole } from "./dom.js";

export class Controls {
  constructor(viewer) {
    this.viewer = viewer;
    const button = (text, label, order) =>
      el("button", { title: label, "aria-label": label, onclick: () => this.order(order) }, text);
    this.pause = button("Pause", "Pause the run, or let it go on (space)", "toggle");
    this.step = button("Step", "Take one macro step (.)", "step");
    this.stop = button("Stop", "End the run and keep its result", "stop");
    this.save = button("Save state", "Save the state, to resume from it later", "save");
    this.bar = el("progress", { max: 1, value: 0, "aria-label": "How far the run is" });
    this.text = el("span", { class: "where" });
    this.news = el("div", { class: "news", role: "status" });
    this.dials = el("div", { class: "dials" });
    this.tuned = "";
    this.element = el(
      "section",
      { class: "controls", "aria-label": "The run" },
      el("div", { class: "buttons" }, this.pause, this.step, this.stop, this.save),
      this.bar,
      this.text,
      this.dials,
      this.news,
    );
    this.rate = [];
    this.send = viewer.source.live(
      (state) => this.heard(state),
      () => this.lost(),
    );
  }

  order(what) {
    if (what === "toggle") what = this.state?.paused ? "go" : "pause";
    if (this.state?.running) this.send({ do: what });
  }

  heard(state) {
    const before = this.state;
    this.state = state;
    const { running, paused } = state;
    this.pause.textContent = paused ? "Go on" : "Pause";
    for (const button of [this.pause, this.step, this.stop, this.save]) button.disabled = !running;
    const [first] = this.viewer.span.full;
    const share = state.t_end ? (state.t - first) / (state.t_end - first) : running ? 0 : 1;
    this.bar.value = running ? share : 1;
    this.rate.push([performance.now(), state.steps]);
    while (this.rate.length > 8) this.rate.shift();
    const [[a, n], [b, m]] = [this.rate[0], this.rate.at(-1)];
    const speed = b > a && !paused ? (1000 * (m - n)) / (b - a) : 0;
    const parts = [`t = ${number(state.t)}`];
    if (state.t_end) parts.push(`of ${number(state.t_end)}`);
    const facts = [`${whole(state.steps)} steps`];
    if (running) facts.push(paused ? "paused" : `${whole(speed)} steps/s`);
    else facts.push(state.ended || "waiting");
    if (running && state.iterations) facts.push(`${state.iterations} correction${state.iterations > 1 ? "s" : ""}`);
    if (running && state.residual !== null) facts.push(`residual ${number(state.residual, 3)}`);
    if (state.watchers > 1) facts.push(`${state.watchers} watch`);
    this.text.textContent = `${parts.join(" ")} · ${facts.join(" · ")}`;
    const news = state.news.at(-1) ?? "";
    if (this.news.textContent !== news) this.news.textContent = news;
    this.tune(state.tunable ?? []);
    this.viewer.heard(state, before);
  }

  tune(tunable) {
    const text = JSON.stringify(tunable);
    if (text === this.tuned || this.dials.contains(document.activeElement)) return;
    this.tuned = text;
    this.dials.replaceChildren(
      ...tunable.map(({ name, value, low, high }) => {
        const input = el("input", { type: "number", step: "any", value, min: low ?? undefined, max: high ?? undefined });
        const set = () => {
          const wanted = input.valueAsNumber;
          if (Number.isFinite(wanted)) this.send({ do: "set", name, value: wanted });
        };
        input.addEventListener("change", set);
        return el("label", { class: "dial" }, name, " ", input);
      }),
    );
  }

  lost() {
    this.text.textContent += " · the program behind this page has ended";
    for (const button of [this.pause, this.step, this.stop, this.save]) button.disabled = true;
    if (this.state) this.state.running = false;
  }
}
