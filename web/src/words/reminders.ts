// SPDX-License-Identifier: Apache-2.0
/** Reminders of a lease: as a form has them, and in words. Pure. */
import type { Lease, Reminder } from "../api/types.ts";
import { moment } from "../time/format.ts";
import { lengthInWords } from "./length.ts";

/** What is asked for: a time as the API takes it, and a text. */
export type Wish = Pick<Reminder, "at" | "from" | "text">;

export const MOST_REMINDERS = 10;
export const LONGEST_TEXT = 255;

/** On which side of which date of the lease a reminder is. */
export type Side = "before its end" | "before its start" | "after its start";
export const SIDES: readonly Side[] = ["before its end", "before its start", "after its start"];

/** Returns the reminder that a form begins with. */
export function newWish(): Wish {
  return { at: "-PT2H", from: "end", text: "" };
}

/** Returns on which side a reminder is; null: it has a date of its own. */
export function sideOf({ at, from }: Wish): Side | null {
  if (from === null) return null;
  if (!at.startsWith("-")) return "after its start";
  return from === "end" ? "before its end" : "before its start";
}

/** Returns how long before or after that it is, as a duration. */
export function distanceOf({ at }: Wish): string {
  return at.replace(/^[+-]/, "");
}

/** Returns a reminder at another time. */
export function placed(wish: Wish, side: Side, distance: string): Wish {
  const sign = side === "after its start" ? "+" : "-";
  return { ...wish, at: `${sign}${distance}`, from: side === "before its end" ? "end" : "start" };
}

/** Returns what is asked for of the reminders that a lease has. */
export function wishesOf(lease: Pick<Lease, "reminders">): readonly Wish[] {
  return (lease.reminders ?? []).map(({ at, from, text }) => ({ at, from, text }));
}

/** Returns what is sent: one whose text is empty was begun, and not meant. */
export function sentOf(wishes: readonly Wish[]): Wish[] {
  return wishes.filter(({ text }) => text.trim() !== "").map((wish) => ({ ...wish, text: wish.text.trim() }));
}

/** True if two lists say the same. */
export function sameWishes(one: readonly Wish[], other: readonly Wish[]): boolean {
  const plain = (wishes: readonly Wish[]) => JSON.stringify(wishes.map(({ at, from, text }) => [at, from, text]));
  return plain(one) === plain(other);
}

/** Returns when it is, as a form says it of one that cannot be edited there. */
export function timeInWords(wish: Wish, zone: string, now: number): string {
  const side = sideOf(wish);
  return side === null ? moment(Date.parse(wish.at), zone, now) : `${lengthInWords(distanceOf(wish))} ${side}`;
}
