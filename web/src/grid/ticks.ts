// SPDX-License-Identifier: Apache-2.0
/** The header's ticks and the weekends of a window, by the calendar of a zone: days have 23, 24 or 25 hours. */
import { formatted } from "../time/format.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** The room for "M 30", and for "30", in pixels. */
const LETTER_AND_DAY = 36;
const ONLY_DAY = 24;

export interface Tick {
  at: number;
  label: string;
}

export interface Ticks {
  /** From one to the next is a cell of the upper line; the first may lie before the window. */
  major: Tick[];
  minor: Tick[];
  /** Where a weekend lies. */
  weekends: { start: number; end: number }[];
}

type Unit = { ms: number; days?: number; months?: number };

const UNITS: readonly Unit[] = [
  { ms: 15 * MINUTE },
  { ms: HOUR },
  { ms: 3 * HOUR },
  { ms: 6 * HOUR },
  { ms: 12 * HOUR },
  { ms: DAY, days: 1 },
  { ms: 7 * DAY, days: 7 },
  { ms: 30 * DAY, months: 1 },
];

/** Returns the ticks of a window; minor ones are at least `least` pixels apart. */
export function ticksOf(from: number, to: number, pixelsPerMs: number, zone: string, least = 44): Ticks {
  // A number of a day needs less room than a time.
  const unit =
    UNITS.find((one) => one.ms * pixelsPerMs >= (one.days === 1 ? ONLY_DAY : least)) ?? UNITS[UNITS.length - 1]!;
  const room = unit.ms * pixelsPerMs;
  const letters = room < LETTER_AND_DAY ? 0 : room < least ? 1 : 2;
  const days = daysOf(from, to, zone);
  const minor = instantsOf(unit, days, from, to, zone).map((at) => ({
    at,
    label: minorLabel(at, unit, zone, letters),
  }));
  const major =
    unit.ms < DAY ? days.map((day) => ({ at: day.at, label: formatted(day.at, zone, "day") })) : months(days, zone);
  return { major, minor, weekends: weekendsOf(days) };
}

interface Day {
  at: number;
  end: number;
  /** 1 is Monday, 7 Sunday. */
  weekday: number;
  date: Temporal.PlainDate;
}

function daysOf(from: number, to: number, zone: string): Day[] {
  let date = Temporal.Instant.fromEpochMilliseconds(Math.floor(from)).toZonedDateTimeISO(zone).toPlainDate();
  const days: Day[] = [];
  let at = date.toZonedDateTime({ timeZone: zone }).epochMilliseconds;
  while (at < to) {
    const next = date.add({ days: 1 });
    const end = next.toZonedDateTime({ timeZone: zone }).epochMilliseconds;
    days.push({ at, end, weekday: date.dayOfWeek, date });
    date = next;
    at = end;
  }
  return days;
}

function instantsOf(unit: Unit, days: readonly Day[], from: number, to: number, zone: string): number[] {
  if (unit.months) return days.filter((day) => day.date.day === 1).map((day) => day.at);
  if (unit.days === 7) return days.filter((day) => day.weekday === 1).map((day) => day.at);
  if (unit.days) return days.map((day) => day.at);
  const found = days.flatMap((day) => (unit.ms <= HOUR ? elapsed(day, unit.ms) : byWallClock(day, unit.ms, zone)));
  return found.filter((at) => at + unit.ms > from && at < to);
}

/** Hours as they pass: on the days on which clocks change, one label is left out or comes twice. */
function elapsed(day: Day, step: number): number[] {
  const found: number[] = [];
  for (let at = day.at; at < day.end; at += step) found.push(at);
  return found;
}

/** 06:00, 12:00 and so on by the wall clock, also on the days on which clocks change. */
function byWallClock(day: Day, step: number, zone: string): number[] {
  const found: number[] = [];
  for (let hour = 0; hour < 24; hour += step / HOUR) {
    const wall = day.date.toPlainDateTime({ hour });
    found.push(hour === 0 ? day.at : wall.toZonedDateTime(zone).epochMilliseconds);
  }
  return found;
}

function minorLabel(at: number, unit: Unit, zone: string, letters: number): string {
  if (unit.months) return formatted(at, zone, "month").slice(0, 3);
  if (unit.days === 7) return formatted(at, zone, "day").replace(/^\S+ /, "");
  if (unit.days) {
    const weekday = formatted(at, zone, "weekday-short").slice(0, letters);
    return `${weekday} ${formatted(at, zone, "day-number")}`.trim();
  }
  return formatted(at, zone, "clock");
}

function months(days: readonly Day[], zone: string): Tick[] {
  return days
    .filter((day, index) => index === 0 || day.date.day === 1)
    .map((day) => ({ at: day.at, label: formatted(day.at, zone, "month") }));
}

function weekendsOf(days: readonly Day[]): { start: number; end: number }[] {
  const found: { start: number; end: number }[] = [];
  for (const day of days) {
    if (day.weekday < 6) continue;
    const last = found[found.length - 1];
    if (last && last.end === day.at) last.end = day.end;
    else found.push({ start: day.at, end: day.end });
  }
  return found;
}
