// SPDX-License-Identifier: Apache-2.0
/** References between the reservations of a question, counted from 0. Pure. */
import type { Json, ResourceType } from "../api/types.ts";
import type { Values } from "../forms/schema.ts";
import { whatOf } from "./lease.ts";
import { type Question, wishOf } from "./question.ts";

/** Another reservation of the lease, which a field can refer to. */
export interface Referable {
  /** As it is sent: its number in a new lease, its id in one that exists. */
  value: number | string;
  type: ResourceType;
  /** "reservation 1: network lab". */
  text: string;
}

/** Returns what one of the reservations could refer to: the others, as "network lab (reservation 2)". */
export function referables(question: Question, which: number): Referable[] {
  return question.wants
    .map((want, index) => ({
      value: index,
      type: want.type,
      text: `${whatOf(wishOf(want))} (reservation ${index + 1})`,
    }))
    .filter((one) => one.value !== which);
}

/** Returns the question without one of its reservations; what referred to it refers to nothing. */
export function withoutWant(question: Question, which: number): Question {
  const left = question.wants.filter((_, index) => index !== which);
  return { ...question, wants: left.map((want) => ({ ...want, values: referringOn(want.values, which) })) };
}

function referringOn(values: Values, gone: number): Values {
  const kept = Object.entries(values).map(([name, value]) => [name, renumbered(value, gone)] as const);
  return Object.fromEntries(kept.filter((one): one is [string, Json] => one[1] !== undefined));
}

/** Returns a value whose references are counted on after one was taken away; undefined if it referred to that one. */
function renumbered(value: Json, gone: number): Json | undefined {
  if (Array.isArray(value)) {
    return value.map((one) => renumbered(one, gone)).filter((one): one is Json => one !== undefined);
  }
  const number = referenceIn(value);
  if (number === null) return value;
  return number === gone ? undefined : { reservation: number > gone ? number - 1 : number };
}

function referenceIn(value: Json): number | null {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return null;
  const { reservation } = value;
  return typeof reservation === "number" && Object.keys(value).length === 1 ? reservation : null;
}
