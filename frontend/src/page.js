// Where the viewer begins: in a page of its own, inside a report, or as a widget of a notebook.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Embedded, Server, decode, moduleOf } from "./sources.js";
import { Viewer } from "./viewer.js";

/** A widget asks its kernel: messages out, answers with numbers back. */
class Kernel {
  constructor(model) {
    this.model = model;
    this.waiting = new Map();
    this.last = 0;
    model.on("msg:custom", (answer, buffers) => {
      const asked = this.waiting.get(answer.id);
      this.waiting.delete(answer.id);
      if (!asked) return;
      if (answer.problem) asked.reject(new Error(answer.problem));
      else if ("found" in answer) asked.resolve(answer.found);
      else {
        const { buffer, byteOffset, byteLength } = buffers[0];
        asked.resolve(decode(buffer.slice(byteOffset, byteOffset + byteLength)));
      }
    });
  }

  ask(question) {
    return new Promise((resolve, reject) => {
      this.last += 1;
      this.waiting.set(this.last, { resolve, reject });
      this.model.send({ id: this.last, ...question });
    });
  }

  about() {
    return this.ask({ ask: "about" });
  }

  map(quantity, x, y, at) {
    return this.ask({ ask: "map", quantity, x, y, at });
  }

  cell(at) {
    return this.ask({ ask: "cell", at });
  }

  mesh(f) {
    return this.ask({ ask: "mesh", f });
  }

  field(f, step, field, have) {
    return this.ask({ ask: "field", f, step, field, have });
  }

  limits(f, field) {
    return this.ask({ ask: "limits", f, field });
  }

  async scene() {
    return moduleOf(await this.ask({ ask: "scene" }));
  }

  /** A run that goes on in another thread of the kernel: asked for its state, again and again. */
  live(heard, lost) {
    const again = async () => {
      try {
        const state = await this.ask({ ask: "state" });
        if (!this.gone) heard(state);
        if (!this.gone && (state.running || !state.ended)) setTimeout(again, 300);
      } catch {
        lost();
      }
    };
    again();
    return (order) => this.ask({ ask: "order", order });
  }

  sample(result, ids, n) {
    return this.ask({ ask: "sample", result, ids, n });
  }

  series(result, ids, t0, t1, n) {
    return this.ask({ ask: "series", result, ids, t0, t1, n });
  }

  difference(result, minus, id, t0, t1, n) {
    return this.ask({ ask: "difference", result, minus, ids: [id], t0, t1, n });
  }
}

/** Whether the notebook around a widget is dark, as JupyterLab, marimo and VS Code say it; undefined where none does. */
function around() {
  const { dataset, classList } = document.body;
  if (dataset.jpThemeLight) return dataset.jpThemeLight === "false" ? "dark" : "light";
  if (["dark", "dark-theme", "vscode-dark"].some((name) => classList.contains(name))) return "dark";
  return ["light", "light-theme", "vscode-light"].some((name) => classList.contains(name)) ? "light" : undefined;
}

export default {
  render({ model, el }) {
    const root = document.createElement("div");
    el.append(root);
    const kernel = new Kernel(model);
    const viewer = new Viewer(root, kernel, { embedded: true, keys: false, around });
    viewer.start();
    const changes = new MutationObserver(() => viewer.paint());
    changes.observe(document.body, { attributes: true, attributeFilter: ["class", "data-jp-theme-light"] });
    return () => {
      kernel.gone = true;
      changes.disconnect();
    };
  },
};

const page = document.getElementById("cosolve");
if (page) new Viewer(page, new Server()).start();

for (const held of document.querySelectorAll("script.cosolve-data")) {
  const root = document.createElement("div");
  held.after(root);
  new Viewer(root, new Embedded(JSON.parse(held.textContent)), { embedded: true, keys: false }).start();
}
