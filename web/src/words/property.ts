// SPDX-License-Identifier: Apache-2.0
/** Properties of resources in words. */
import type { Property } from "../api/types.ts";
import { gib } from "./lease.ts";
import type { Condition, Sign } from "./question.ts";

const LABELS: Record<string, string> = {
  vcpus: "vCPUs",
  memory_mb: "memory",
  local_gb: "disk",
  availability_zone: "zone",
  hypervisor_type: "hypervisor",
  cpu_info: "processor",
};

/** Returns the name of a property as people say it. */
export function propertyLabel(name: string): string {
  return LABELS[name] ?? name.replaceAll("_", " ");
}

/** What every resource has of its own, or what the cloud notes of it: nobody chooses by it, but programs may. */
const TECHNICAL: readonly string[] = [
  "cpu_info",
  "created_at",
  "updated_at",
  "hook_url",
  "hypervisor_version",
  "id",
  "service_name",
  "status",
  "trust_id",
];

/** Tells whether a property is one that people do not choose by. */
export function isTechnical(name: string): boolean {
  return TECHNICAL.includes(name);
}

/** Divides properties into those that people choose by and the others, each in their order. */
export function divided<T extends Pick<Property, "name">>(properties: readonly T[]): { usual: T[]; technical: T[] } {
  // Only what takes new leases is found at all.
  const last = ({ name }: T) => isTechnical(name) || name === "reservable";
  return { usual: properties.filter((one) => !last(one)), technical: properties.filter(last) };
}

/** Returns a value with its unit. */
export function valueInWords(name: string, value: string | number): string {
  const number = Number(value);
  if (name === "memory_mb" && Number.isFinite(number)) return gib(number);
  if (name === "local_gb" && Number.isFinite(number)) return `${number} GiB`;
  return String(value);
}

const SIGNS: Record<Sign, string> = {
  "==": "is",
  "!=": "is not",
  ">=": "at least",
  "<=": "at most",
  ">": "more than",
  "<": "less than",
};

/** Returns a sign as a word. */
export function signInWords(sign: Sign): string {
  return SIGNS[sign];
}

/** Returns the signs that make sense for a property; the one that is set is always among them. */
export function signsOf(property: Property | undefined, set: Sign): Sign[] {
  const usual: Sign[] = property?.type === "number" ? [">=", "<=", "=="] : ["==", "!="];
  return usual.includes(set) ? usual : [...usual, set];
}

/** Returns the condition that a newly chosen property starts with: its commonest value, or the smallest number. */
export function firstCondition(property: Property): Condition {
  if (property.type === "number") {
    const least = property.minimum ?? property.values[0]?.value ?? 0;
    return { name: property.name, sign: ">=", value: least };
  }
  const commonest = [...property.values].sort((a, b) => b.count - a.count)[0];
  return { name: property.name, sign: "==", value: commonest?.value ?? "" };
}

/** Returns a condition in words: "gpu A100", "at least 32 vCPUs". */
export function conditionInWords({ name, sign, value }: Condition): string {
  return `${propertyLabel(name)} ${signInWords(sign)} ${valueInWords(name, value)}`;
}
