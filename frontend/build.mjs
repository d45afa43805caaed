// Builds the bundle that is part of the Python package: `make bundle`, or `npm ci && npm run build` here.
// The first line of each file names the digest of everything it was made from; tools/bundle.py checks it.
import { createHash } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { build } from "esbuild";

const digest = createHash("sha256");
const sources = readdirSync("src").sort().map((name) => `src/${name}`);
for (const name of ["build.mjs", "package-lock.json", "package.json", ...sources]) {
  digest.update(`${name}\n`).update(readFileSync(name, "utf8").replaceAll("\r\n", "\n"));
}
const banner = `/* cosolve viewer; made from frontend/ by make bundle; sources sha256:${digest.digest("hex")} */`;

await build({
  entryPoints: { viewer: "src/page.js", scene: "src/scene.js" },
  outdir: "../src/cosolve/viewer/bundle",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "inline",
  external: ["./scene.js"],
  banner: { js: banner, css: banner },
  logLevel: "warning",
});
