// SPDX-License-Identifier: Apache-2.0
/** Attributes and amounts of resources in words. Pure. */
import type { Json } from "../api/types.ts";
import { lineOf } from "./lines.ts";
import { nameInWords } from "./parameters.ts";
import { propertyLabel, valueInWords } from "./property.ts";

const CAPACITY: Record<string, string> = { VCPU: "vCPUs", MEMORY_MB: "memory", DISK_GB: "disk", UNIT: "units" };

/** Returns the name and the value of an attribute, with its unit; null for one that says nothing. */
export function attributeInWords(name: string, value: Json): { name: string; text: string } | null {
  if (value === null || value === "") return null;
  const parts = partsOf(value);
  if (parts !== null) return { name: nameInWords(name), text: parts };
  if (typeof value === "object") return { name: nameInWords(name), text: lineOf(value) };
  const said = typeof value === "boolean" ? lineOf(value) : valueInWords(name, value);
  const words = nameInWords(propertyLabel(name));
  return { name: words, text: name === "gigabytes" ? `${said} GiB` : said };
}

/** Returns what of a text in JSON people read, such as Nova's of a processor: its plain parts. Null for another value. */
function partsOf(value: Json): string | null {
  if (typeof value !== "string" || !value.startsWith("{")) return null;
  let parsed: unknown;
  try {
    parsed = JSON.parse(value);
  } catch {
    return null;
  }
  const parts = Object.entries(parsed as Record<string, Json>).filter(([, part]) =>
    ["string", "number"].includes(typeof part),
  );
  return parts.map(([name, part]) => `${nameInWords(name).toLowerCase()} ${part}`).join(", ");
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

/** Says that hypervisors of the cloud are not registered, and so counted nowhere. */
export function leftOutInWords(count: number): string {
  return count === 1
    ? "1 hypervisor of the cloud is not registered: it is not listed, and no number counts it."
    : `${count} hypervisors of the cloud are not registered: they are not listed, and no number counts them.`;
}
