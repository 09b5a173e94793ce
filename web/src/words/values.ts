// SPDX-License-Identifier: Apache-2.0
/** Values of any kind as readable lines: nobody has to read JSON. Pure. */
import type { Json } from "../api/types.ts";
import { nameInWords } from "./parameters.ts";
import { propertyLabel, valueInWords } from "./property.ts";

const CAPACITY: Record<string, string> = { VCPU: "vCPUs", MEMORY_MB: "memory", DISK_GB: "disk", UNIT: "units" };

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
  return Object.entries(value as { [key: string]: Json }).flatMap(([name, one]) =>
    isLeaf(one) || isFlat(one) ? [`${name}: ${lineOf(one)}`] : linesOf(one).map((line) => `${name} / ${line}`),
  );
}

function isLeaf(value: Json): boolean {
  return value === null || typeof value !== "object";
}

function isFlat(value: Json): boolean {
  return Array.isArray(value) && value.every(isLeaf);
}

/** Returns the name and the value of an attribute, with its unit; null for one that says nothing. */
export function attributeInWords(name: string, value: Json): { name: string; text: string } | null {
  if (value === null || value === "") return null;
  if (typeof value === "object") return { name: nameInWords(name), text: lineOf(value) };
  const said = typeof value === "boolean" ? lineOf(value) : valueInWords(name, value);
  const words = nameInWords(propertyLabel(name));
  return { name: words, text: name === "gigabytes" ? `${said} GiB` : said };
}

/** Returns the amounts of a capacity in words: "16 vCPUs", "3 units"; a resource that is reserved whole has none. */
export function capacityInWords(capacity: Readonly<Record<string, number>>): string[] {
  return Object.entries(capacity)
    .filter(([name, amount]) => !(name === "UNIT" && amount === 1))
    .map(([name, amount]) => {
      const [unit, size] =
        name === "MEMORY_MB"
          ? ["memory", valueInWords("memory_mb", amount)]
          : name === "DISK_GB" || name.endsWith("_GB")
            ? [CAPACITY[name] ?? name.replace(/_GB$/, "").replaceAll("_", " ").toLowerCase(), `${amount} GiB`]
            : [CAPACITY[name] ?? nameInWords(name.replace(/^CUSTOM_/, "").toLowerCase()).toLowerCase(), String(amount)];
      return `${size} ${unit}`;
    });
}
