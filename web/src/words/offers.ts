// SPDX-License-Identifier: Apache-2.0
/** Starts that people ask for, on the strip of time and among openings. Pure. */
import type { Opening } from "../api/types.ts";
import { addDays, fromWall, startOfDay, toWall, toWire } from "../time/zone.ts";
import { whatOf } from "./lease.ts";
import { lengthOf } from "./length.ts";
import { type Want, bySchema, countOf, wishOf } from "./question.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Returns the full hour of the zone that an instant lies in, or the nearest one. */
export function fullHour(at: number, zone: string, nearest = false): number {
  const moved = nearest ? at + 30 * MINUTE : at;
  const minutes = Number(toWall(moved, zone).slice(14, 16));
  return Math.floor(moved / MINUTE) * MINUTE - minutes * MINUTE;
}

/** Returns the window that is drawn from one instant to another: full hours, at least one. */
export function drawnWindow(from: number, to: number, zone: string, now: number): { start: number; end: number } {
  const [first, last] = from <= to ? [from, to] : [to, from];
  const start = fullHour(first, zone, true);
  const begin = start < now ? fullHour(now, zone) + HOUR : start;
  return { start: begin, end: Math.max(fullHour(last, zone, true), begin + HOUR) };
}

/** Returns nine o'clock, some days after the one of an instant. */
function morning(now: number, zone: string, days: number): number {
  const day = toWall(startOfDay(now, zone, days), zone).slice(0, 10);
  return fromWall(`${day}T09:00`, zone)!.at;
}

export interface UsualStart {
  text: string;
  at: number;
}

/** Returns starts to choose from: tomorrow, Monday, and in a week, at nine. */
export function usualStarts(now: number, zone: string): UsualStart[] {
  const weekday = new Date(`${toWall(now, zone).slice(0, 10)}T00:00:00Z`).getUTCDay();
  const untilMonday = (8 - weekday) % 7 || 7;
  const starts = [{ text: "tomorrow 09:00", at: morning(now, zone, 1) }];
  // On a Sunday that is tomorrow, on a Monday it is in a week.
  if (untilMonday > 1 && untilMonday < 7) starts.push({ text: "Monday 09:00", at: morning(now, zone, untilMonday) });
  starts.push({ text: "in a week", at: morning(now, zone, 7) });
  return starts;
}

/** Returns the end of a lease of a length: days are those of the calendar, whose clocks may be set in between. */
export function endAfter(start: number, length: string, zone: string): number {
  const { count, unit, seconds } = lengthOf(length) ?? { count: 1, unit: "days", seconds: 86_400 };
  if (unit === "days") return addDays(start, zone, count);
  if (unit === "weeks") return addDays(start, zone, 7 * count);
  return start + seconds * 1000;
}

/** Returns the openings with later starts of the first one, which may start at any time up to its last start. */
export function withUsualStarts(openings: readonly Opening[], length: string, zone: string, now: number): Opening[] {
  const [first, ...rest] = openings;
  if (!first || first.refusals.length > 0 || openings.length > 3) return [...openings];
  const begin = Date.parse(first.start_date);
  const last = Date.parse(first.last_start_date);
  const later = usualStarts(Math.max(begin, now), zone)
    .filter(({ at }) => at > begin + HOUR && at <= last)
    // What begins then is among those that were found: it is one opening.
    .filter(({ at }) => rest.every((one) => Math.abs(Date.parse(one.start_date) - at) >= MINUTE))
    .map(({ at }): Opening => {
      return { ...first, start_date: toWire(at), end_date: toWire(endAfter(at, length, zone)), price: null };
    });
  return [first, ...[...later, ...rest].sort((a, b) => Date.parse(a.start_date) - Date.parse(b.start_date))];
}

/**
 * Returns what a reservation gets: "2 hosts"; types that have names for what they are say that: "1 microscope", "network
 * lab". `counted`: how many was found out for just this start; else it is the least that was asked for.
 */
export function foundInWords(want: Want | undefined, count: number, counted: boolean): string {
  if (!want) return countOf(count, "");
  const most = bySchema(want.type) ? want.values.max : want.most;
  if (!counted && typeof most === "number" && most > want.count) return `at least ${countOf(want.count, want.type)}`;
  if (!bySchema(want.type)) return countOf(count, want.type);
  return count === want.count || want.type === "virtual:stack" ? whatOf(wishOf(want)) : countOf(count, want.type);
}

/** Returns all the time that an opening is about: from its first start to the end of a lease that begins at its last. */
export function openOf(opening: Pick<Opening, "start_date" | "end_date" | "last_start_date">): {
  start: number;
  end: number;
} {
  const [start, end] = [Date.parse(opening.start_date), Date.parse(opening.end_date)];
  return { start, end: end + Math.max(0, Date.parse(opening.last_start_date) - start) };
}
