// SPDX-License-Identifier: Apache-2.0
/** What a reservation of any type asks for and has got, for types that have no words of their own. Pure. */
import type { Json, Reservation } from "../api/types.ts";

/** Types whose pages say it in sentences. */
const IN_SENTENCES: readonly string[] = ["physical:host", "virtual:instance", "flavor:instance", "virtual:floatingip"];
/** What every reservation has, and what is shown elsewhere or for the machine. */
const SHOWN_ELSEWHERE: readonly string[] = [
  "id",
  "resource_type",
  "status",
  "missing_resources",
  "resources_changed",
  "before_end",
  "allocations",
  "use",
  "cloud_ids",
  "created_at",
  "updated_at",
];

/** One field: its name in words, and its values. A value with `to` is another reservation of the lease. */
export interface Shown {
  name: string;
  values: readonly { text: string; to?: string }[];
}

/** Returns the fields of a reservation; none for types that are shown in sentences. */
export function fieldsOf(reservation: Reservation): Shown[] {
  if (IN_SENTENCES.includes(reservation.resource_type)) return [];
  return Object.entries(reservation as unknown as Record<string, Json>)
    .filter(([name, value]) => !SHOWN_ELSEWHERE.includes(name) && !isEmpty(value))
    .map(([name, value]) => ({
      name: nameInWords(name),
      values: (Array.isArray(value) && !isRequirement(name) ? value : [value]).map(shownOf),
    }));
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

function shownOf(value: Json): { text: string; to?: string } {
  if (value !== null && typeof value === "object" && !Array.isArray(value)) {
    const { reservation } = value;
    if (typeof reservation === "string" && Object.keys(value).length === 1)
      return { text: reservation, to: reservation };
  }
  return { text: typeof value === "string" ? value : JSON.stringify(value) };
}

function isRequirement(name: string): boolean {
  return name.endsWith("_properties");
}

function isEmpty(value: Json): boolean {
  return value === null || value === "" || (Array.isArray(value) && value.length === 0);
}
