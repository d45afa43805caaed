// Where the viewer begins: in a page of its own, inside a report, or as a widget of a notebook.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Embedded, Server, decode } from "./sources.js";
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
      else if (answer.found) asked.resolve(answer.found);
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

export default {
  render({ model, el }) {
    const root = document.createElement("div");
    el.append(root);
    new Viewer(root, new Kernel(model), { embedded: true, keys: false }).start();
  },
};

const page = document.getElementById("cosolve");
if (page) new Viewer(page, new Server()).start();

for (const held of document.querySelectorAll("script.cosolve-data")) {
  const root = document.createElement("div");
  held.after(root);
  new Viewer(root, new Embedded(JSON.parse(held.textContent)), { embedded: true, keys: false }).start();
}
