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

/** Returns the size and the unit of an amount: "4 GiB" of "memory"; GiB of volumes are of nothing else. */
function amountOf(name: string, amount: number): { size: string; unit: string } {
  if (name === "MEMORY_MB") return { size: valueInWords("memory_mb", amount), unit: "memory" };
  if (name === "GIGABYTES") return { size: `${amount.toLocaleString("en")} GiB`, unit: "" };
  if (name.endsWith("_GB")) {
    const unit = CAPACITY[name] ?? name.replace(/_GB$/, "").replaceAll("_", " ").toLowerCase();
    return { size: `${amount} GiB`, unit };
  }
  const unit = CAPACITY[name] ?? nameInWords(name.replace(/^CUSTOM_/, "").toLowerCase()).toLowerCase();
  return { size: String(amount), unit };
}

/** Returns the amounts of a capacity in words: "16 vCPUs", "3 units"; a resource that is reserved whole has none. */
export function capacityInWords(capacity: Readonly<Record<string, number>>): string[] {
  return (
    Object.entries(capacity)
      .filter(([name, amount]) => !(name === "UNIT" && amount === 1))
      // A pool without a bound of its own has as many volumes as GiB: that says nothing.
      .filter(([name, amount]) => !(name === "VOLUMES" && amount === capacity.GIGABYTES))
      .map(([name, amount]) => {
        const { size, unit } = amountOf(name, amount);
        return `${size} ${unit}`.trim();
      })
  );
}

/** Returns how much is left of an amount: "10 of 20 units free". */
export function freeInWords(name: string, left: number, all: number): string {
  const { size, unit } = amountOf(name, all);
  return `${amountOf(name, left).size} of ${size} ${unit} free`.replace("  ", " ");
}

/** Says that hypervisors of the cloud are not registered, and so counted nowhere. */
export function leftOutInWords(count: number): string {
  return count === 1
    ? "1 hypervisor of the cloud is not registered: it is not listed, and no number counts it."
    : `${count} hypervisors of the cloud are not registered: they are not listed, and no number counts them.`;
}
