// The tab with facts: how each run went, what was run.
import { el, number, seconds, whole } from "./dom.js";

export class Facts {
  constructor(viewer) {
    this.viewer = viewer;
    this.charts = [];
    this.element = el("div", {});
  }

  show() {
    const { results, sweep } = this.viewer.about;
    const cards = sweep ? [this.card({ label: sweep.title, meta: sweep.facts })] : results.map((result) => this.card(result));
    this.element.replaceChildren(...cards);
  }

  hide() {}

  card(result) {
    const { stats, meta } = result;
    const facts = stats && {
      "macro steps": whole(stats.steps),
      rejected: whole(stats.rejected),
      corrections: whole(stats.iterations),
      "largest residual": number(stats.max_residual, 3),
      "not converged": whole(stats.unconverged),
      "wall time": seconds(stats.wall_seconds),
      "recorded points": whole(result.rows),
    };
    const rows = Object.entries(meta ?? {})
      .filter(([, value]) => value !== null)
      .map(([key, value]) => el("tr", {}, el("th", { scope: "row" }, key), el("td", {}, String(value))));
    return el(
      "section",
      { class: "card" },
      el("h3", {}, result.label),
      verdict(result.verdict, true),
      result.error_bar && el("p", {}, result.error_bar),
      facts && el("dl", { class: "facts" }, Object.entries(facts).map(([k, v]) => el("div", {}, el("dt", {}, k), el("dd", {}, v)))),
      result.changed?.length
        ? [el("h4", {}, "Changed by hand"), el("ul", {}, result.changed.map(([t, name, value]) => el("li", {}, `t = ${number(t)}: ${name} = ${number(value)}`)))]
        : null,
      el("div", { class: "scroll" }, el("table", { class: "settings" }, el("tbody", {}, rows))),
      result.system && el("details", {}, el("summary", {}, "The system as text"), el("pre", {}, result.system)),
    );
  }
}

export function verdict(found, whole = false) {
  if (!found) return null;
  return el(
    "div",
    { class: `verdict ${found.level}` },
    el("strong", {}, found.headline),
    whole ? found.details.map((text) => el("p", {}, text)) : null,
  );
}
