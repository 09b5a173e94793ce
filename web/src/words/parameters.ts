// SPDX-License-Identifier: Apache-2.0
/** What a reservation of any type asks for and has got, for types that have no words of their own. Pure. */
import type { Json, Reservation } from "../api/types.ts";
import type { Schema } from "../api/kinds.ts";
import { IN_SENTENCES, inWords } from "./lease.ts";
import { lineOf, linesOf } from "./lines.ts";

/** What every reservation has, and what is shown elsewhere or for the machine. */
export const SHOWN_ELSEWHERE: readonly string[] = [
  "id",
  "resource_type",
  "region",
  "status",
  "missing_resources",
  "resources_changed",
  "before_end",
  "allocations",
  "children",
  "takes",
  "use",
  "cloud_ids",
  "made",
  "created_at",
  "updated_at",
];

/** What the title of a reservation says, as in "2 volumes of 100 GiB". */
const SAID: Readonly<Record<string, readonly string[]>> = {
  network: ["network_name"],
  "virtual:stack": ["stack_name"],
  "virtual:volume": ["size"],
};

/** One field: its name in words, and its values. A value with `to` is another reservation of the lease. */
export interface Shown {
  name: string;
  /** A text of many lines, which is shown as it is when it is asked for. */
  document?: string;
  values: readonly { text: string; to?: string }[];
}

/** Returns the fields of a reservation, by the titles of its schema; none for types that are shown in sentences. */
export function fieldsOf(reservation: Reservation, schema?: Schema): Shown[] {
  const type = reservation.resource_type;
  if (IN_SENTENCES.includes(type)) return [];
  const said = ["min", "max", "amount", ...(SAID[type] ?? [])];
  return Object.entries(reservation as unknown as Record<string, Json>)
    .filter(([name, value]) => !SHOWN_ELSEWHERE.includes(name) && !said.includes(name) && !isEmpty(value))
    .map(([name, value]) => {
      const described = schema?.properties?.[name];
      const label = described?.title ?? nameInWords(name);
      const document = typeof value === "string" && value.includes("\n") ? { document: value } : {};
      return { name: label, values: valuesOf(name, value, described), ...document };
    });
}

function valuesOf(name: string, value: Json, schema?: Schema): Shown["values"] {
  if (isRequirement(name)) return [{ text: Array.isArray(value) ? inWords([value]) : lineOf(value) }];
  const parts = schema?.properties;
  if (parts && typeof value === "object" && value !== null && !Array.isArray(value) && Object.keys(parts).length > 1) {
    return Object.entries(value)
      .filter(([, one]) => !isEmpty(one))
      .map(([key, one]) => ({ text: `${parts[key]?.title ?? nameInWords(key)}: ${lineOf(one)}` }));
  }
  return (Array.isArray(value) ? value : [value]).flatMap(shownOf);
}

/** Returns "Network name" for "network_name". */
export function nameInWords(name: string): string {
  const words = name
    .replaceAll("_", " ")
    .replace(/\burl\b/g, "URL")
    .replace(/\bip\b/g, "IP");
  // "vCPUs" is written so everywhere.
  return words.startsWith("vCPU") ? words : words.charAt(0).toUpperCase() + words.slice(1);
}

function shownOf(value: Json): { text: string; to?: string }[] {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    const entries = Object.entries(value);
    const [key, only] = entries[0] ?? [];
    if (entries.length === 1 && typeof only === "string")
      return key === "reservation" ? [{ text: only, to: only }] : [{ text: only }];
  }
  return linesOf(value).map((text) => ({ text }));
}

function isRequirement(name: string): boolean {
  return name.endsWith("_properties");
}

function isEmpty(value: Json): boolean {
  if (Array.isArray(value)) return value.length === 0;
  return value === null || value === "" || (typeof value === "object" && Object.keys(value).length === 0);
}
