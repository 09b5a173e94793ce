// SPDX-License-Identifier: Apache-2.0
/** Rows that were marked in the calendar, as a requirement: exactly these where names can be asked for, else what they share. Pure. */
import type { CalendarResource, Json, Property, Requirement } from "../api/types.ts";

/** What of a row the requirement is made of. */
export type MarkedResource = Pick<CalendarResource, "name" | "capacity" | "properties">;

/** What is asked for. */
export interface Wish {
  /** Exactly the rows that were marked; else some that are like them. */
  exact: boolean;
  requirement: Requirement;
}

/** The property by which operators ask for a host by its name. */
export const BY_NAME = "hypervisor_hostname";

/** Sizes are no properties of a row, but can be asked for. */
const SIZES: readonly (readonly [string, string])[] = [
  ["vcpus", "VCPU"],
  ["memory_mb", "MEMORY_MB"],
  ["local_gb", "DISK_GB"],
];

/** Where a resource stands, which is not what it is. */
const PLACES: readonly string[] = ["availability_zone", "zone", "site", "building", "room", "row", "rack", "chassis"];

/** Among what one asks. */
export interface Among {
  /** The properties that tell something. */
  known: readonly Property[];
  /** All resources that the filter leaves; null if they are not known. */
  all: readonly MarkedResource[] | null;
  /** How many are asked for. */
  count: number;
}

/** Returns what is asked for by rows of hosts; `named`: names may be asked for. */
export function wishOfRows(rows: readonly MarkedResource[], among: Among, filter: Requirement, named: boolean): Wish {
  const names = rows.map(({ name }) => name);
  if (named && names.every((name) => name !== null)) {
    const parts = names.map((name): Requirement => ["==", `$${BY_NAME}`, name]);
    return { exact: true, requirement: parts.length > 1 ? ["or", ...parts] : (parts[0] ?? []) };
  }
  const parts = [...(filter.length > 0 ? conjuncts(filter) : []), ...sharedBy(rows, among)];
  const unique = [...new Map(parts.map((part) => [JSON.stringify(part), part])).values()];
  return { exact: false, requirement: unique.length > 1 ? ["and", ...unique] : (unique[0] ?? []) };
}

function conjuncts(requirement: Requirement): Requirement[] {
  return requirement[0] === "and" ? (requirement.slice(1) as Requirement[]) : [requirement];
}

/**
 * Returns what makes of rows one kind: what all have in common, but not where they stand, and nothing that fewer have
 * than are asked for. That a row lacks a property is no wish of anybody.
 */
export function sharedBy(rows: readonly MarkedResource[], { known, all, count }: Among): Requirement[] {
  const most = Math.max(0, ...known.map(countOf));
  const shared = known.flatMap((property): Part[] => {
    // What all resources have alike tells nothing.
    if (property.values.length === 1 && !property.truncated && countOf(property) === most) return [];
    if (PLACES.includes(property.name)) return [];
    const values = new Set(rows.map((row) => JSON.stringify(valueIn(row, property.name) ?? null)));
    if (values.size !== 1) return [];
    const value = JSON.parse([...values][0]!) as Json;
    if (!isPlain(value)) return [];
    const having = property.values.find((one) => one.value === value)?.count ?? (property.truncated ? rows.length : 0);
    // What only one has is its name.
    return having < Math.max(2, count) ? [] : [{ name: property.name, value, having }];
  });
  const meets = (one: MarkedResource) => shared.every(({ name, value }) => valueIn(one, name) === value);
  while (all !== null && all.length >= count && shared.length > 0 && all.filter(meets).length < count) {
    const rarest = Math.min(...shared.map(({ having }) => having));
    shared.splice(
      shared.findIndex(({ having }) => having === rarest),
      1,
    );
  }
  return shared.map(({ name, value }) => ["==", `$${name}`, value]);
}

/** One property of a kind, and how many have this value. */
interface Part {
  name: string;
  value: string | number;
  having: number;
}

function countOf({ values }: Property): number {
  return values.reduce((sum, { count }) => sum + count, 0);
}

function isPlain(value: Json): value is string | number {
  return (typeof value === "string" && value !== "") || typeof value === "number";
}

function valueIn({ capacity, properties }: MarkedResource, name: string): Json | undefined {
  const size = SIZES.find(([property]) => property === name);
  return properties[name] ?? (size ? capacity[size[1]] : undefined);
}

/** Returns how what was given differs from what was marked, as a sentence; null if it does not. */
export function otherThanMarked(marked: readonly string[], given: readonly string[]): string | null {
  const missing = marked.filter((name) => !given.includes(name));
  if (marked.length === 0 || given.length === 0 || missing.length === 0) return null;
  return `You marked ${listed(marked)}; it has ${listed(given)}, which ${given.length === 1 ? "is" : "are"} like what you marked.`;
}

function listed(names: readonly string[]): string {
  return names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : (names[0] ?? "");
}
