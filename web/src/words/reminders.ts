// SPDX-License-Identifier: Apache-2.0
/** Reminders of a lease: as a form has them, and in words. Pure. */
import type { Reminder } from "../api/types.ts";
import { moment } from "../time/format.ts";
import { lengthInWords, lengthOf } from "./length.ts";

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

/** Returns what is asked for of the reminders that a lease has, or a series. */
export function wishesOf(of: { reminders?: readonly Wish[] | undefined }): readonly Wish[] {
  return (of.reminders ?? []).map(({ at, from, text }) => ({ at, from, text }));
}

/** Returns the reminders for the address of a form that books the same again; those with dates of their own are over. */
export function inAddress(wishes: readonly Wish[]): string | null {
  const again = wishes.filter(({ from }) => from !== null).map(({ at, from, text }) => [at, from, text]);
  return again.length > 0 ? JSON.stringify(again) : null;
}

/** Returns those that an address has; what is none is left out. */
export function fromAddress(param: string | null): readonly Wish[] {
  let found: unknown;
  try {
    found = JSON.parse(param ?? "[]");
  } catch {
    return [];
  }
  if (!Array.isArray(found)) return [];
  return found.slice(0, MOST_REMINDERS).flatMap((one: unknown) => {
    const [at, from, text] = Array.isArray(one) ? (one as unknown[]) : [];
    if (typeof at !== "string" || typeof text !== "string" || (from !== "start" && from !== "end")) return [];
    return /^[+-]/.test(at) && lengthOf(at.slice(1)) ? [{ at, from, text: text.slice(0, LONGEST_TEXT) } as Wish] : [];
  });
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

/** The dates of what is reminded of, null as long as they are not known; of a series those of its first lease. */
export interface Dates {
  start: number | null;
  end: number | null;
  recurs?: boolean;
}

/** Returns when a reminder is told, or why it never is; null: its time is not known. Of those `known` none is wrong. */
export function noteOf(
  wish: Wish,
  { start, end, recurs = false }: Dates,
  known: readonly Wish[],
  zone: string,
  now: number,
): { text: string; wrong: boolean } | null {
  const sign = wish.at.startsWith("-") ? -1 : 1;
  const date = wish.from === "end" ? end : start;
  const distance = sign * (lengthOf(distanceOf(wish))?.seconds ?? 0) * 1000;
  const at = wish.from === null ? Date.parse(wish.at) : date === null ? null : date + distance;
  if (at === null || end === null) return null;
  const when = moment(at, zone, now);
  const isNew = !known.some((one) => sameWishes([one], [wish]));
  if (at >= end) return { text: `${when} is not before the end.`, wrong: isNew };
  if (at > now) return { text: `${recurs ? "First told" : "Told"} ${when}`, wrong: false };
  return { text: `${when} is over${recurs ? "; it comes with the later leases" : ""}.`, wrong: isNew && !recurs };
}
