// SPDX-License-Identifier: Apache-2.0
/** Dates and times as people type them, between text and instants. Pure. */
import { formatted } from "./format.ts";
import { type Meant, addDays, fromWall, toWall } from "./zone.ts";

/** What a text means; or what is wrong with it, as a sentence. */
export type Read<T> = { value: T; problem?: undefined } | { value?: undefined; problem: string };

const MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const FIRST_YEAR = 2000;
const LAST_YEAR = 2199;

const two = (number: number) => String(number).padStart(2, "0");

/** Returns "1 Dec 2026 09:00" for an instant. */
export function shownMoment(at: number, zone: string): string {
  return `${shownDay(toWall(at, zone).slice(0, 10))} ${toWall(at, zone).slice(11, 16)}`;
}

/** Returns "1 Dec 2026" for "2026-12-01". */
export function shownDay(day: string): string {
  const [year, month, date] = day.split("-").map(Number);
  return `${date} ${capital(MONTHS[month! - 1]!)} ${year}`;
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Reads a date and a time: "1 Dec 2026 09:00", "Tue 1 Dec, 9:00", "1.12.2026 9:00", "2026-12-01T09:00", "tomorrow 9:00". */
export function readMoment(text: string, zone: string, now: number): Read<Meant> {
  const typed = text.trim().replace(/\s+/g, " ");
  if (typed === "") return { problem: `Write a date and a time, such as ${shownMoment(nextDay(now, zone), zone)}.` };
  // An instant that says its own zone, as programs write it.
  const zoned = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d(?::\d\d)?) ?(Z|UTC|[+-]\d\d:?\d\d)$/i.exec(typed);
  if (zoned) {
    const at = Date.parse(`${zoned[1]}T${zoned[2]}${zoned[3]!.replace(/^UTC$/i, "Z")}`);
    if (!Number.isNaN(at)) return { value: { at, later: null, gap: false } };
  }
  const parted = /^(.*?)(?:, ?|[T ]|^)(\d{1,2}):(\d{2})(?::00)? ?([ap]m)?$/i.exec(typed);
  if (!parted) return { problem: withoutTime(typed, zone, now) };
  const day = readDay(parted[1] || "today", zone, now);
  if (day.problem !== undefined) return day;
  const clock = readClock(parted.slice(2, 4).join(":") + (parted[4] ?? ""));
  if (clock.problem !== undefined) return clock;
  const meant = fromWall(`${day.value}T${clock.value}`, zone);
  return meant ? { value: meant } : { problem: NO_DATE };
}

/** What is wrong with a text without a time: with the day that stands there as the example, if it is one. */
function withoutTime(typed: string, zone: string, now: number): string {
  const days = [typed, typed.replace(/[, T]+\d{0,2}:?\d?$/, "")].map((text) => readDay(text, zone, now));
  const day = days.find((one) => one.value !== undefined)?.value;
  if (day) return `Write the time too, such as ${shownDay(day)} 09:00.`;
  return `Write a date and a time, such as ${shownMoment(nextDay(now, zone), zone)}.`;
}

const NO_DATE = "There is no such date.";

/** Reads a day as "2026-12-01": "1 Dec 2026", "1 Dec", "1.12.", "2026-12-01", "tomorrow", "Friday". */
export function readDay(text: string, zone: string, now: number): Read<string> {
  const typed = text.trim().toLowerCase().replace(/,/g, " ").replace(/\s+/g, " ").trim();
  const today = toWall(now, zone).slice(0, 10);
  const after = (days: number) => toWall(addDays(now, zone, days), zone).slice(0, 10);
  if (typed === "today") return { value: today };
  if (typed === "tomorrow") return { value: after(1) };
  const weekday = DAYS.indexOf(typed.slice(0, 3));
  if (weekday >= 0 && LONG_DAYS.some((one) => one === typed || one.slice(0, 3) === typed)) {
    return { value: after(((weekday - weekdayOf(today) + 6) % 7) + 1) };
  }
  const plain = typed.replace(/^(sun|mon|tue|wed|thu|fri|sat)[a-z]*\.? /, "");
  const iso = /^(\d{4})-(\d{1,2})-(\d{1,2})$/.exec(plain);
  const words = /^(\d{1,2})\.? ([a-z]{3,9})\.?(?: (\d+))?$/.exec(plain);
  const english = /^([a-z]{3,9})\.? (\d{1,2})(?: (\d+))?$/.exec(plain);
  const dots = /^(\d{1,2})\. ?(\d{1,2})\.(?: ?(\d+))?$/.exec(plain);
  if (iso) return existing(Number(iso[1]), Number(iso[2]), Number(iso[3]));
  if (words) return dated(words[3], monthOf(words[2]!), Number(words[1]), today);
  if (english) return dated(english[3], monthOf(english[1]!), Number(english[2]), today);
  if (dots) return dated(dots[3], Number(dots[2]), Number(dots[1]), today);
  if (/^\d{1,4}\/\d{1,2}(\/\d*)?$/.test(plain)) {
    return { problem: `Write the month as a word, such as ${shownDay(today)}: 1/12 is read in two ways.` };
  }
  return { problem: `Write the date as in ${shownDay(today)}.` };
}

const LONG_DAYS = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];

function weekdayOf(day: string): number {
  return new Date(`${day}T00:00:00Z`).getUTCDay();
}

/** A part of the name will do; 0 if it is none. */
function monthOf(name: string): number {
  const index = MONTHS.indexOf(name.slice(0, 3));
  return index >= 0 && LONG_MONTHS[index]!.startsWith(name.replace(/^sept$/, "sep")) ? index + 1 : 0;
}

const LONG_MONTHS = [
  "january",
  "february",
  "march",
  "april",
  "may",
  "june",
  "july",
  "august",
  "september",
  "october",
  "november",
  "december",
];

/** Without a year the next such day is meant. */
function dated(year: string | undefined, month: number, date: number, today: string): Read<string> {
  if (year !== undefined) return existing(Number(year), month, date);
  const own = Number(today.slice(0, 4));
  const here = existing(own, month, date);
  if (here.problem === undefined && here.value >= today) return here;
  const next = existing(own + 1, month, date);
  return next.problem === undefined || here.problem !== undefined ? next : here;
}

function existing(year: number, month: number, date: number): Read<string> {
  if (month === 0) return { problem: "There is no such month." };
  if (year < FIRST_YEAR || year > LAST_YEAR) {
    return { problem: `The year has to be from ${FIRST_YEAR} to ${LAST_YEAR}, and has four digits.` };
  }
  const at = new Date(Date.UTC(year, month - 1, date));
  if (at.getUTCMonth() !== month - 1 || at.getUTCDate() !== date) return { problem: NO_DATE };
  return { value: `${year}-${two(month)}-${two(date)}` };
}

/** Reads a time of day as "09:00": "9:00", "21:30", "6:15 pm". */
export function readClock(text: string): Read<string> {
  const found = /^(\d{1,2}):(\d{2}) ?([ap]m)?$/i.exec(text.trim());
  const half = found?.[3]?.toLowerCase();
  const typed = Number(found?.[1]);
  const minute = Number(found?.[2]);
  const fits = half ? typed >= 1 && typed <= 12 : typed <= 23;
  if (!found || !fits || minute > 59) return { problem: "Write the time as in 09:00." };
  const hour = half ? (typed % 12) + (half === "pm" ? 12 : 0) : typed;
  return { value: `${two(hour)}:${two(minute)}` };
}

/** Returns the weekday of an instant, which stands beside its field. */
export function weekdayAt(at: number, zone: string): string {
  return formatted(at, zone, "weekday");
}

function nextDay(now: number, zone: string): number {
  const wall = `${toWall(addDays(now, zone, 1), zone).slice(0, 10)}T09:00`;
  return fromWall(wall, zone)?.at ?? now;
}

/** Returns the instant that an arrow key leads to: by an hour or a quarter where the caret is in the clock, else by a day. */
export function stepped(at: number, text: string, caret: number, up: boolean, zone: string): number {
  const colon = text.lastIndexOf(":");
  const sign = up ? 1 : -1;
  if (colon >= 0 && caret > colon) return at + sign * 15 * 60_000;
  if (colon >= 0 && caret >= colon - 2) return at + sign * 3_600_000;
  return addDays(at, zone, sign);
}
