// SPDX-License-Identifier: Apache-2.0
// Builds the pages: `node tools/build.mjs [folder]`. The same sources and package-lock.json give the same bytes in every folder.
import { createHash } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

const WEB = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const OUT = resolve(process.argv[2] ?? join(WEB, "../blazar/api/web"));
const ALLOWED = new Set(["MIT", "ISC", "BSD-2-Clause", "BSD-3-Clause", "Apache-2.0"]);

const dist = join(OUT, "dist");
const licences = join(OUT, "LICENSES");
for (const folder of [dist, licences]) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
}

const built = await build({
  absWorkingDir: WEB,
  entryPoints: { main: "src/main.tsx" },
  bundle: true,
  splitting: true,
  minify: true,
  format: "esm",
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  outdir: dist,
  entryNames: "[name]-[hash]",
  chunkNames: "part-[hash]",
  metafile: true,
  logLevel: "warning",
});

const outputs = Object.entries(built.metafile.outputs);
const entry = outputs.find(([, output]) => output.entryPoint === "src/main.tsx");
const script = basename(entry[0]);
const style = basename(entry[1].cssBundle);
// What the first page imports statically: fetched at once instead of one after the other.
const preloads = entry[1].imports.filter((one) => one.kind === "import-statement").map((one) => basename(one.path));
const icon = readFileSync(join(WEB, "src/icon.svg"));
const iconName = `icon-${createHash("sha256").update(icon).digest("hex").slice(0, 8).toUpperCase()}.svg`;
writeFileSync(join(dist, iconName), icon);
const page = readFileSync(join(WEB, "src/index.html"), "utf8")
  .replaceAll("@script@", script)
  .replaceAll("@style@", style)
  .replaceAll("@icon@", iconName)
  .replace("@preloads@", preloads.map((name) => `<link rel="modulepreload" href="./${name}">`).join("\n"));
writeFileSync(join(dist, "index.html"), page);

copyLicences();
const files = {};
for (const name of readdirSync(dist).sort()) {
  const content = readFileSync(join(dist, name));
  files[name] = createHash("sha256").update(content).digest("hex");
  if (!name.endsWith(".gz")) writeFileSync(join(dist, `${name}.gz`), gzipSync(content, { level: 9 }));
}
writeFileSync(join(dist, "manifest.json"), `${JSON.stringify({ files }, null, 1)}\n`);
report();

/** Copies the licence of each package that is in the bundle; fails if one has none or none of those allowed. */
function copyLicences() {
  const found = new Set();
  for (const input of Object.keys(built.metafile.inputs)) {
    const match = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input);
    if (match) found.add(match[1]);
  }
  for (const name of [...found].sort()) {
    const folder = join(WEB, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    if (!ALLOWED.has(license)) throw new Error(`${name} has the licence ${license}, which is not on the list`);
    const text = ["LICENSE", "LICENSE.md", "LICENSE.txt", "LICENCE"].map((file) => join(folder, file)).find(existsSync);
    if (!text) throw new Error(`${name} comes without the text of its licence`);
    copyFileSync(text, join(licences, `${name.replace("/", "-").replace("@", "")}-${version}.txt`));
  }
}

function report() {
  const rows = Object.keys(files).map((name) => {
    const content = readFileSync(join(dist, name));
    return `${name.padEnd(32)} ${String(content.length).padStart(8)} bytes, ${gzipSync(content).length} gzipped`;
  });
  process.stdout.write(`${rows.join("\n")}\n`);
}
