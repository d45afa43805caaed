// The coupling graph: boxes and wires where cosolve has placed them, coloured by effort, to be clicked.
import { el, number, seconds, svg } from "./dom.js";

const DECADES = 6; // of residuals that colours tell apart

/** `chosen(what)` is called with { box } or { wire } (their numbers). `shade` gives 0 ... 1 for a box, or null. */
export class Graph {
  constructor(coupling, chosen) {
    this.coupling = coupling;
    this.chosen = chosen;
    this.element = el("div", { class: "graph" });
    if (coupling.drawing) this.draw(coupling.drawing);
    else this.list();
  }

  list() {
    const { subsystems, edges } = this.coupling;
    this.element.append(
      el("p", { class: "muted" }, `${subsystems.length} subsystems are too many for a drawing; their couplings:`),
      el(
        "ul",
        { class: "edges" },
        edges.slice(0, 500).map((edge, k) =>
          el("li", {}, el("button", { class: "link", onclick: () => this.chosen({ edges: [k] }) }, edge.text)),
        ),
      ),
    );
  }

  draw({ boxes, wires, extent }) {
    const picture = svg("svg", {
      viewBox: extent.join(" "),
      role: "group",
      "aria-label": `Coupling of ${this.coupling.subsystems.length} subsystems`,
      style: { maxWidth: `${1.25 * extent[2]}px` },
    });
    this.wires = wires.map((wire, k) => {
      const path = "M" + wire.points.map((point) => point.join(" ")).join("L");
      const parts = [
        svg("title", {}, wire.title),
        svg("path", { class: "hit", d: path }),
        svg("path", { class: "wire", d: path }),
      ];
      const { points, heads } = wire;
      if (heads[1]) parts.push(head(points.at(-1), points.at(-2)));
      if (heads[0]) parts.push(head(points[0], points[1]));
      if (wire.label && wire.at) {
        const width = Math.max(30, 14 + 6.4 * wire.label.length);
        const [x, y] = wire.at;
        const shape = { x: x - width / 2, y: y - 10, width, height: 20, rx: wire.pill ? 10 : 2 };
        parts.push(svg("rect", { class: wire.pill ? "pill" : "blank", ...shape }));
        parts.push(svg("text", { x, y: y + 4, class: wire.pill ? "pilltext" : "tag" }, wire.label));
      }
      return svg("g", { class: "edge", ...button(wire.title, () => this.chosen({ wire: k })) }, parts);
    });
    this.boxes = boxes.map((box, k) => {
      const { x, y, width, height } = box;
      const parts = [
        svg("title", {}, box.hub ? box.kind : `${box.name} (${box.kind})`),
        svg("rect", { class: box.hub ? "pill" : "box", x: x - width / 2, y: y - height / 2, width, height, rx: box.hub ? 10 : 6 }),
        svg("text", { x, y: box.hub ? y + 4 : y - 2, class: box.hub ? "pilltext" : "name" }, short(box.name, 16)),
      ];
      if (!box.hub) parts.push(svg("text", { x, y: y + 14, class: "kind" }, short(box.kind, 18)));
      const what = () => this.chosen(box.hub ? { edges: this.edgesOf(k) } : { box: k });
      return svg("g", { class: "node", ...button(`${box.name}, ${box.kind}`, what) }, parts);
    });
    picture.append(...this.wires, ...this.boxes);
    this.element.append(picture);
  }

  /** Laws between several subsystems are boxes of their own; their wires know their edges. */
  edgesOf(hub) {
    const { boxes, wires } = this.coupling.drawing;
    const { x, y } = boxes[hub];
    const ends = wires.filter((wire) => Math.hypot(wire.points.at(-1)[0] - x, wire.points.at(-1)[1] - y) < 60);
    return [...new Set(ends.flatMap((wire) => wire.edges))].slice(0, 4);
  }

  select(what) {
    this.wires?.forEach((wire, k) => wire.classList.toggle("selected", what.wire === k));
    this.boxes?.forEach((box, k) => box.classList.toggle("selected", what.box === k));
  }

  /** Colour wires by numbers of their edges, which may go over powers of ten: the largest is the warmest. */
  tint(shares) {
    const known = (shares ?? []).filter((share) => share > 0).map((share) => Math.log10(share));
    const most = Math.max(...known);
    const least = Math.max(Math.min(...known), most - DECADES);
    this.wires?.forEach((wire, k) => {
      const inside = this.coupling.drawing.wires[k].edges.map((edge) => shares?.[edge] ?? null).filter((share) => share !== null);
      const share = inside.length ? Math.max(...inside) : null;
      const heat = share === null ? null : share > 0 && most > least ? Math.max(0, (Math.log10(share) - least) / (most - least)) : share > 0 ? 1 : 0;
      const colour = heat === null ? "" : `color-mix(in oklab, var(--hot) ${Math.round(100 * heat)}%, var(--cold))`;
      const line = wire.querySelector(".wire");
      line.style.stroke = colour;
      line.style.strokeWidth = heat === null ? "" : String(1.8 + 3 * heat);
      for (const tip of wire.querySelectorAll(".head")) tip.style.fill = colour;
      const title = this.coupling.drawing.wires[k].title;
      const said = share === null ? title : `${title}: residual ${percent(share)} of its range`;
      wire.querySelector("title").textContent = said;
      wire.setAttribute("aria-label", said);
    });
  }

  /** Colour boxes by a share of effort; `say(k)` is shown when the pointer rests on one. */
  shade(shares, say) {
    this.boxes?.forEach((box, k) => {
      const rect = box.querySelector("rect");
      if (this.coupling.drawing.boxes[k].hub) return;
      const share = shares?.[k] ?? null;
      rect.style.fill = share === null ? "" : `color-mix(in oklab, var(--heat) ${Math.round(8 + 72 * share)}%, var(--panel))`;
      box.querySelector("title").textContent = say ? say(k) : this.coupling.subsystems[k].name;
      const kind = box.querySelector(".kind");
      kind.textContent = share === null || !say ? short(this.coupling.subsystems[k].kind, 18) : say(k).split(": ").at(-1);
    });
  }
}

function button(label, action) {
  return {
    role: "button",
    tabindex: 0,
    "aria-label": label,
    onclick: action,
    onkeydown: (event) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        event.stopPropagation();
        action();
      }
    },
  };
}

function head(tip, before) {
  const [dx, dy] = [tip[0] - before[0], tip[1] - before[1]];
  const size = Math.hypot(dx, dy) || 1;
  const [ax, ay] = [dx / size, dy / size];
  const corner = (side) => `${tip[0] - 9 * ax + side * 4 * -ay} ${tip[1] - 9 * ay + side * 4 * ax}`;
  return svg("path", { class: "head", d: `M${tip[0]} ${tip[1]}L${corner(1)}L${corner(-1)}z` });
}

function short(text, most) {
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

/** A share for people. */
export function percent(share) {
  return `${number(100 * share, 2)} %`;
}

/** What the boxes can be coloured by: { name, shares, say } for the totals of a run. */
export function efforts(about, totals) {
  const names = about.coupling.subsystems.map((one) => one.name);
  const of = (what) => names.map((name) => totals[what]?.[name] ?? 0);
  const relative = (values) => {
    const most = Math.max(...values);
    return most > 0 ? values.map((value) => value / most) : values.map(() => 0);
  };
  const time = of("seconds");
  const calls = of("calls");
  const steps = Math.max(1, totals.steps ?? 1);
  return {
    time: { shares: relative(time), say: (k) => `${names[k]}: ${seconds(time[k])}` },
    effort: { shares: relative(calls), say: (k) => `${names[k]}: ${number(calls[k] / steps, 3)} call${calls[k] === steps ? "" : "s"} per step` },
  };
}
