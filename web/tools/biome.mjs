// SPDX-License-Identifier: Apache-2.0
// Runs Biome, the linter and formatter: `node tools/biome.mjs lint .`. Its program is a package of the platform.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";

const program = join("node_modules", "@biomejs", `cli-${process.platform}-${process.arch}`, "biome");
if (existsSync(program)) {
  process.exitCode = spawnSync(program, process.argv.slice(2), { stdio: "inherit" }).status ?? 1;
} else {
  process.stderr.write(`Biome is installed on Linux only, so '${process.argv[2]}' was left out here; CI runs it.\n`);
}
