// Where the viewer begins: in a page of its own, inside a report, or as a widget of a notebook.
import "uplot/dist/uPlot.min.css";
import "./style.css";
import { Embedded, Server } from "./sources.js";
import { Viewer } from "./viewer.js";

const page = document.getElementById("cosolve");
if (page) new Viewer(page, new Server()).start();

for (const held of document.querySelectorAll("script.cosolve-data")) {
  const root = document.createElement("div");
  held.after(root);
  new Viewer(root, new Embedded(JSON.parse(held.textContent)), { embedded: true, keys: false }).start();
}
