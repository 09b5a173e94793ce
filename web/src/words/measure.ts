// SPDX-License-Identifier: Apache-2.0
/** In what it is counted how much of a type is free. Pure. */
import { HAS_SERVERS } from "./lease.ts";
import type { Want } from "./question.ts";
import type { ResourceType } from "../api/types.ts";

/** Of which resource class they are, and in a word. */
export interface Units {
  of: string;
  noun: string;
  on: string;
}

export interface Measure {
  /** The type whose resources are counted. */
  type: ResourceType;
  /** Units of them; null: whole resources. */
  units: Units | null;
  /** How many are asked for. */
  asked: number;
}

/** Returns in what resources are counted that several leases share; null: each is promised whole, or counts so. */
export function sharedUnits(type: ResourceType): Units | null {
  if (type === "virtual:volume") return { of: "GIGABYTES", noun: "GiB", on: "in" };
  return type === "generic" ? { of: "UNIT", noun: "units", on: "of" } : null;
}

/** Returns the word for what a capacity counts by a measure; undefined: it counts resources. */
export function nounOfMeasure(measure: string): string | undefined {
  if (measure === "GIGABYTES") return "GiB";
  return measure === "UNIT" ? "units" : undefined;
}

/** Returns the measure of a reservation; null if it has none, as a stack, which is made of reservations of several types. */
export function measureOf(want: Want): Measure | null {
  const { type, count, values } = want;
  if (type === "virtual:stack") return null;
  if (HAS_SERVERS.includes(type) && type !== "physical:host") {
    const each = type === "virtual:instance" ? want.vcpus : numberIn(values.vcpus, 0);
    return { type: "physical:host", units: { of: "VCPU", noun: "vCPUs", on: "on" }, asked: count * each };
  }
  if (type === "virtual:volume") {
    return { type, units: sharedUnits(type), asked: count * numberIn(values.size, 0) };
  }
  if (type === "generic" && "amount" in values) {
    return { type, units: sharedUnits(type), asked: count };
  }
  return { type, units: null, asked: count };
}

function numberIn(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
