// SPDX-License-Identifier: Apache-2.0
// Runs the tests of the pure parts with node:test: `node tools/test.mjs [test/grid.test.ts …]`.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const WEB = resolve(dirname(fileURLToPath(import.meta.url)), "..");
const named = process.argv.slice(2);
const tests = named.length > 0 ? named : readdirSync(join(WEB, "test")).map((name) => join("test", name));
const out = mkdtempSync(join(tmpdir(), "blazar-web-"));
try {
  await build({
    absWorkingDir: WEB,
    entryPoints: tests.filter((name) => name.endsWith(".test.ts")),
    bundle: true,
    platform: "node",
    format: "esm",
    target: "node20",
    outdir: out,
    outExtension: { ".js": ".mjs" },
    sourcemap: "inline",
    jsx: "automatic",
    jsxImportSource: "preact",
    logLevel: "warning",
  });
  const files = readdirSync(out).map((name) => join(out, basename(name)));
  const done = spawnSync(process.execPath, ["--test", "--enable-source-maps", ...files], { stdio: "inherit" });
  process.exitCode = done.status ?? 1;
} finally {
  rmSync(out, { recursive: true, force: true });
}
