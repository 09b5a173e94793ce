// SPDX-License-Identifier: Apache-2.0
/** Values of any kind as readable lines: nobody has to read JSON. Pure. */
import type { Json } from "../api/types.ts";

/** Returns a value in one line: "yes", "a, b", "name: value; other: value". */
export function lineOf(value: Json): string {
  if (value === null) return "nothing";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value)) return value.map(lineOf).join(", ");
  if (typeof value === "object") {
    return Object.entries(value)
      .map(([name, one]) => `${name}: ${lineOf(one)}`)
      .join("; ");
  }
  return String(value);
}

/** Returns one line for each part of a value; objects in objects are indented by their names, as in "a / b: 1". */
export function linesOf(value: Json): string[] {
  if (Array.isArray(value)) return value.flatMap((one) => (isLeaf(one) ? [lineOf(one)] : linesOf(one)));
  if (isLeaf(value)) return [lineOf(value)];
  const entries = Object.entries(value as { [key: string]: Json });
  // What has a name is known by it.
  const named = entries.some(([name]) => name === "name");
  return entries
    .filter(([name, one]) => !(named && name === "id") && one !== null)
    .flatMap(([name, one]) =>
      isLeaf(one) || isFlat(one) ? [`${name}: ${lineOf(one)}`] : linesOf(one).map((line) => `${name} / ${line}`),
    );
}

function isLeaf(value: Json): boolean {
  return value === null || typeof value !== "object";
}

function isFlat(value: Json): boolean {
  return Array.isArray(value) && value.every(isLeaf);
}
