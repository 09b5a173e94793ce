// SPDX-License-Identifier: Apache-2.0
/** In what it is counted how much of a type is free. Pure. */
import { HAS_SERVERS } from "./lease.ts";
import type { Want } from "./question.ts";
import type { ResourceType } from "../api/types.ts";

export interface Measure {
  /** The type whose resources are counted. */
  type: ResourceType;
  /** Units of them: of which resource class, and in a word; null: whole resources. */
  units: { of: string; noun: string; on: string } | null;
  /** How many are asked for. */
  asked: number;
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
    return { type, units: { of: "GIGABYTES", noun: "GiB", on: "in" }, asked: count * numberIn(values.size, 0) };
  }
  if (type === "generic" && "amount" in values) {
    return { type, units: { of: "UNIT", noun: "units", on: "of" }, asked: count };
  }
  return { type, units: null, asked: count };
}

function numberIn(value: unknown, otherwise: number): number {
  return typeof value === "number" ? value : otherwise;
}
