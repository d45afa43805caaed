// The viewer: one component for the browser, for notebooks and for reports.
import { forgetColours } from "./chart.js";
import { Before } from "./before.js";
import { Controls } from "./controls.js";
import { Coupling } from "./coupling.js";
import { el, memory } from "./dom.js";
import { Facts, verdict } from "./facts.js";
import { Signals } from "./signals.js";
import { Steps } from "./steps.js";
import { Sweep } from "./sweep.js";
import { TimeSpan } from "./timespan.js";

const HELP = [
  ["drag", "zoom in"],
  ["wheel, + and −", "zoom around the pointer, or the middle"],
  ["shift + drag, ← →", "move in time"],
  ["double click, 0", "show everything"],
  ["tab, then ← →", "move the cursor of one chart"],
  ["1, 2, 3 …", "change the tab"],
  ["/", "filter signals"],
  ["space, .", "pause or go on; one step (while it runs)"],
  ["space, ← →", "play; go from moment to moment (Motion, Fields)"],
  ["d", "dark or light"],
];
const REFRESH = 350; // milliseconds between two looks at a run that goes on

export class Viewer {
  constructor(root, source, options = {}) {
    Object.assign(this, { root, source, options });
    root.classList.add("cosolve");
    this.tabs = new Map();
  }

  async start() {
    this.paint();
    try {
      this.about = await this.source.about();
    } catch (error) {
      this.root.replaceChildren(el("p", { class: "verdict bad" }, `Nothing can be shown: ${error.message}`));
      return this;
    }
    this.narrow = this.root.clientWidth < 720;
    const spans = this.about.results.map((result) => result.span);
    this.span = new TimeSpan(spans.length ? [Math.min(...spans.map((s) => s[0])), Math.max(...spans.map((s) => s[1]))] : [0, 1]);
    this.frame();
    if (this.about.live) {
      this.controls = new Controls(this);
      this.bar.parentElement.before(this.controls.element);
    }
    this.fill();
    if (this.options.keys !== false) addEventListener("keydown", (event) => this.pressed(event));
    return this;
  }

  frame() {
    const { about, options } = this;
    this.bar = el("div", { class: "tabs", role: "tablist" });
    this.panel = el("main", { class: "panel", role: "tabpanel", tabindex: -1 });
    this.verdicts = el("div", { class: "verdicts" });
    const times = [
      el("button", { title: "Show all of the time (0)", onclick: () => this.span.all() }, "All"),
      el("button", { title: "Zoom in (+)", "aria-label": "Zoom in", onclick: () => this.span.zoom(0.5) }, "+"),
      el("button", { title: "Zoom out (−)", "aria-label": "Zoom out", onclick: () => this.span.zoom(2) }, "−"),
    ];
    this.tool = el(
      "div",
      { class: "look" },
      about.results.length ? times : null,
      el("button", { title: "Dark or light (d)", "aria-label": "Dark or light", onclick: () => this.turn() }, "◐"),
      el("button", { title: "Keys", "aria-label": "Keys", onclick: () => this.help() }, "?"),
    );
    this.title = el("h1", {}, options.title ?? this.heading());
    this.head = el("header", {}, this.title, this.verdicts);
    const parts = [this.head, el("nav", {}, this.bar, this.tool), this.panel];
    if (options.embedded) parts.shift();
    this.root.replaceChildren(...parts);
    if (about.problem) this.panel.append(el("pre", { class: "verdict bad problem" }, about.problem));
  }

  heading() {
    const { results, title, system } = this.about;
    if (!results.length) return system?.title ?? this.about.sweep?.title ?? title;
    return results.map((result) => result.label).join("  ·  ");
  }

  /** Tabs for what there is. */
  fill() {
    const { about } = this;
    this.verdicts.replaceChildren(...about.results.map((result) => verdict(result.verdict)).filter(Boolean));
    if (!this.options.embedded && document.title !== undefined) document.title = `${this.heading()} – cosolve`;
    const some = about.results.some((result) => result.signals?.length);
    const add = (name, make) => {
      if (!this.tabs.has(name)) this.tabs.set(name, { make, view: null });
    };
    if (about.system) {
      add("System", () => new Coupling(this, about.system.coupling, -1));
      add("Advice and stability", () => new Before(about.system));
    }
    if (about.sweep) {
      add("Map", () => new Sweep(this, about.sweep));
      add("About", () => new Facts(this));
    }
    if (some) {
      add("Signals", () => new Signals(this));
      add("Steps", () => new Steps(this));
      const first = about.results.findIndex((result) => result.coupling);
      if (first >= 0) add("Coupling", () => new Coupling(this, about.results[first].coupling, first));
      const moving = about.results.findIndex((result) => result.scene);
      if (moving >= 0 && this.source.sample) add("Motion", () => this.inSpace("Motion", ({ Scene }) => new Scene(this, moving)));
      if (about.fields.length) this.fields(add);
      if (!this.options.embedded || about.live) add("Facts", () => new Facts(this));
    }
    if (!some && about.fields.length) this.fields(add);
    this.bar.replaceChildren(
      ...[...this.tabs.keys()].map((name) =>
        el("button", { role: "tab", "aria-selected": String(name === this.open), onclick: () => this.show(name) }, name),
      ),
    );
    if (!this.open && this.tabs.size) this.show(this.tabs.keys().next().value);
  }

  fields(add) {
    add("Fields", () => this.inSpace("Fields", ({ Fields }) => new Fields(this)));
  }

  /** A tab that is drawn by the part of the bundle for things in space, which is loaded now. */
  inSpace(name, made) {
    const holder = { element: el("div", { class: "scene" }), charts: [], show() {}, hide() {} };
    (this.source.scene?.() ?? import("./scene.js")).then(
      (module) => {
        const view = made(module);
        holder.element.replaceWith(view.element);
        Object.assign(this.tabs.get(name), { view });
        if (this.open === name) view.show();
      },
      (error) => holder.element.append(`${name} cannot be drawn here: ${error.message}`),
    );
    return holder;
  }

  show(name) {
    const now = this.tabs.get(this.open)?.view;
    now?.hide();
    this.open = name;
    const tab = this.tabs.get(name);
    tab.view ??= tab.make();
    this.panel.replaceChildren(tab.view.element);
    tab.view.show();
    for (const button of this.bar.children) button.setAttribute("aria-selected", String(button.textContent === name));
  }

  /** News of a run that goes on. */
  heard(state, before) {
    if (state.span) this.span.grow(state.span);
    const begun = this.about.results[0].waiting && state.rows;
    const over = before?.running && !state.running;
    if (begun || over || (this.about.results[0].live && !state.running && state.ended && !this.told)) {
      this.told = !state.running;
      this.source.about().then((about) => {
        this.about = about;
        if (about.results[0].span && over) this.span.grow(about.results[0].span);
        this.verdicts.replaceChildren();
        this.fill();
        if (begun || over) this.refresh(true);
      });
    }
    const now = performance.now();
    if (state.rows !== this.rows && now - (this.looked ?? 0) > REFRESH && !document.hidden) {
      this.looked = now;
      this.rows = state.rows;
      this.refresh(false);
    }
  }

  refresh(everything) {
    const view = this.tabs.get(this.open)?.view;
    if (!view) return;
    if (everything && this.open !== "Signals") {
      for (const tab of this.tabs.values()) if (tab.view !== view) tab.view = null;
      view.hide();
      this.tabs.get(this.open).view = null;
      this.show(this.open);
      return;
    }
    if (everything) {
      view.fill();
      for (const [name, tab] of this.tabs) if (name !== this.open) tab.view = null;
    }
    for (const chart of view.charts) chart.stale();
  }

  /** Light or dark: what the reader has chosen, or else what is around (a notebook), or else what the system says. */
  paint() {
    const name = memory.get("theme") ?? this.options.around?.();
    if (name === this.painted) return;
    this.painted = name;
    if (name === "dark" || name === "light") this.root.dataset.theme = name;
    else delete this.root.dataset.theme;
    forgetColours();
    for (const tab of this.tabs.values()) {
      for (const chart of tab.view?.charts ?? []) chart.colour();
      tab.view?.colour?.();
    }
  }

  turn() {
    const dark = this.root.dataset.theme
      ? this.root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    memory.set("theme", dark ? "light" : "dark");
    this.paint();
  }

  help() {
    const rows = HELP.map(([keys, what]) => el("tr", {}, el("th", { scope: "row" }, keys), el("td", {}, what)));
    const box = el("dialog", { class: "help" }, el("h2", {}, "Keys and pointer"), el("table", {}, el("tbody", {}, rows)), el("form", { method: "dialog" }, el("button", {}, "Close")));
    box.addEventListener("close", () => box.remove());
    this.root.append(box);
    box.showModal();
  }

  pressed(event) {
    const typing = event.target.closest?.("input, select, textarea");
    if (typing && !(typing.type === "checkbox")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (!(event.key === " " && this.controls) && this.tabs.get(this.open)?.view?.pressed?.(event)) {
      event.preventDefault();
      return;
    }
    const onButton = event.target.closest?.("button, summary, [role=button], input");
    const actions = {
      "+": () => this.span.zoom(0.5),
      "=": () => this.span.zoom(0.5),
      "-": () => this.span.zoom(2),
      0: () => this.span.all(),
      Home: () => this.span.all(),
      ArrowLeft: () => this.span.move(-0.15),
      ArrowRight: () => this.span.move(0.15),
      d: () => this.turn(),
      "?": () => this.help(),
      "/": () => this.tabs.get("Signals")?.view?.filter.focus(),
      " ": () => !onButton && this.controls?.order("toggle"),
      ".": () => this.controls?.order("step"),
    };
    const tab = [...this.tabs.keys()][Number(event.key) - 1];
    if (tab && event.key !== "0") this.show(tab);
    else if (actions[event.key]) {
      if (event.key === " " && (onButton || !this.controls)) return;
      actions[event.key]();
    } else return;
    event.preventDefault();
  }
}
