// SPDX-License-Identifier: Apache-2.0
/** Leases that recur, between the form, the rule of the API (RFC 5545) and words. Pure. */
import type { Json, Occurrence, Series, SeriesStatus } from "../api/types.ts";
import { daysBetween, formatted, plural, spoken } from "../time/format.ts";
import { fromWall, toWall } from "../time/zone.ts";
import type { Mark } from "./lease.ts";
import { money } from "./money.ts";

export type Every = "day" | "workday" | "week" | "fortnight" | "month";

/** How often something recurs, and until which day, such as "2026-12-31". */
export interface Repeat {
  every: Every;
  until: string;
}

const DAYS = ["SU", "MO", "TU", "WE", "TH", "FR", "SA"] as const;
const NAMES: Record<string, string> = {
  MO: "Monday",
  TU: "Tuesday",
  WE: "Wednesday",
  TH: "Thursday",
  FR: "Friday",
  SA: "Saturday",
  SU: "Sunday",
};

/** Returns what each lease may cost, as a sentence; "" if that is any price. */
export function mostInWords({ max_price = null, occurrences = [] }: Series): string {
  if (max_price === null) return "";
  const currency = occurrences.find(({ price }) => price)?.price?.currency ?? "";
  return `Each may cost at most ${money(max_price, currency).trim()}`;
}

/** Returns the day of the week of a wall clock such as "2026-11-25T09:00". */
function dayOf(wall: string): (typeof DAYS)[number] {
  return DAYS[new Date(`${wall.slice(0, 10)}T00:00:00Z`).getUTCDay()]!;
}

/** Returns the rule of what recurs from a start on, a wall clock. */
export function ruleOf({ every, until }: Repeat, start: string): string {
  const end = `UNTIL=${until.replaceAll("-", "")}`;
  switch (every) {
    case "day":
      return `FREQ=DAILY;${end}`;
    case "workday":
      return `FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;${end}`;
    case "fortnight":
      return `FREQ=WEEKLY;INTERVAL=2;BYDAY=${dayOf(start)};${end}`;
    case "month":
      return `FREQ=MONTHLY;BYMONTHDAY=${Number(start.slice(8, 10))};${end}`;
    default:
      return `FREQ=WEEKLY;BYDAY=${dayOf(start)};${end}`;
  }
}

/** The choices of how often, for a start: "each Monday". */
export function repeats(start: string): { value: Every; text: string }[] {
  const code = dayOf(start);
  const day = NAMES[code]!;
  const work = code !== "SA" && code !== "SU";
  return [
    { value: "week", text: `each ${day}` },
    { value: "fortnight", text: `every other ${day}` },
    // The first start is one of the rule.
    ...(work ? [{ value: "workday" as const, text: "from Monday to Friday" }] : []),
    { value: "day", text: "each day" },
    { value: "month", text: `on day ${Number(start.slice(8, 10))} of each month` },
  ];
}

/** Returns the end of each by the wall clock, such as "17:00" or "06:00+1d". */
export function untilLocal(start: number, end: number, zone: string): string {
  const days = daysBetween(start, end, zone);
  return `${toWall(end, zone).slice(11, 16)}${days > 0 ? `+${days}d` : ""}`;
}

/** Returns what is sent of when a series recurs. */
export function whenOf(repeat: Repeat, start: number, end: number, zone: string): Record<string, string> {
  const wall = toWall(start, zone);
  return { rule: ruleOf(repeat, wall), start: wall, time_zone: zone, until_local: untilLocal(start, end, zone) };
}

function partsOf(rule: string): Map<string, string> {
  return new Map(rule.split(";").map((part) => part.split("=") as [string, string]));
}

const ORDINALS: Record<string, string> = { "1": "first", "2": "second", "3": "third", "4": "fourth", "-1": "last" };

/** Returns "Monday" for MO, "first Monday" for 1MO. */
function dayInWords(text: string): string {
  const found = /^([+-]?\d+)?([A-Z]{2})$/.exec(text);
  if (!found) return text;
  const which = found[1] ? `${ORDINALS[found[1].replace("+", "")] ?? `${found[1]}.`} ` : "";
  return which + (NAMES[found[2]!] ?? found[2]!);
}

function listed(items: string[]): string {
  const last = items.pop() ?? "";
  return items.length > 0 ? `${items.join(", ")} and ${last}` : last;
}

const UNITS: Record<string, string> = { DAILY: "day", WEEKLY: "week", MONTHLY: "month", YEARLY: "year" };

/** Returns a rule in words: "each Monday and Wednesday, until 31 Dec 2026"; what has no words is shown as it is. */
export function ruleInWords(rule: string): string {
  const parts = partsOf(rule);
  const unit = UNITS[parts.get("FREQ") ?? ""];
  if (!unit || ["BYSETPOS", "BYMONTH"].some((name) => parts.has(name))) return rule;
  const interval = Number(parts.get("INTERVAL") ?? 1);
  const often = interval === 1 ? `each ${unit}` : `every ${interval} ${unit}s`;
  const byday = parts.get("BYDAY")?.split(",").map(dayInWords) ?? [];
  const days = parts.get("BYDAY") === "MO,TU,WE,TH,FR" ? ["Monday to Friday"] : byday;
  const bymonthday = parts.get("BYMONTHDAY")?.split(",") ?? [];
  const on = days.length > 0 ? listed([...days]) : bymonthday.length > 0 ? `day ${listed(bymonthday)}` : "";
  const weekly = unit === "week" && interval === 1 && on !== "";
  const first = weekly
    ? days[0] === "Monday to Friday"
      ? on
      : `each ${on}`
    : [often, on].filter(Boolean).join(" on ");
  return [first, endOf(parts)].filter(Boolean).join(", ");
}

function endOf(parts: Map<string, string>): string {
  const count = parts.get("COUNT");
  if (count) return plural(Number(count), "time");
  const until = /^(\d{4})(\d\d)(\d\d)/.exec(parts.get("UNTIL") ?? "");
  if (!until) return "";
  const at = Date.UTC(Number(until[1]), Number(until[2]) - 1, Number(until[3]));
  return `until ${formatted(at, "UTC", "day-year")}`;
}

type Begun = Pick<Series, "status" | "start" | "time_zone" | "occurrences">;

/** Returns when a series begins: with the first that is kept, or by its rule where they are not known. */
function beginOf({ start, time_zone, occurrences = [] }: Begun): number | null {
  const first = occurrences.find(({ state }) => state !== "cancelled" && state !== "unfit");
  return first ? Date.parse(first.start_date) : (fromWall(start.slice(0, 16), time_zone)?.at ?? null);
}

/** Returns the mark and the word of a series, and when it begins if nothing of it has begun. */
export function seriesPhase(series: Begun, zone: string, now: number): { mark: Mark; word: string; next?: string } {
  const begin = series.status === "ACTIVE" ? beginOf(series) : null;
  if (begin !== null && begin > now)
    return { mark: "booked", word: "booked", next: `begins ${spoken(begin, zone, now)}` };
  return phaseOf(series.status);
}

function phaseOf(status: SeriesStatus): { mark: Mark; word: string } {
  switch (status) {
    case "CREATING":
      return { mark: "changing", word: "being booked" };
    case "ACTIVE":
      return { mark: "active", word: "going on" };
    case "FAILED":
      return { mark: "failed", word: "not booked" };
    case "DELETING":
      return { mark: "changing", word: "being deleted" };
    case "DELETED":
      return { mark: "past", word: "deleted" };
    default:
      return { mark: "past", word: "ended" };
  }
}

/** Returns the mark and the word of one of a series. */
export function occurrencePhase({ state }: Pick<Occurrence, "state">): { mark: Mark; word: string } {
  switch (state) {
    case "planned":
      return { mark: "changing", word: "to be booked" };
    case "booked":
      return { mark: "booked", word: "booked" };
    case "unfit":
      return { mark: "failed", word: "does not fit" };
    case "cancelled":
      return { mark: "past", word: "cancelled" };
    default:
      return { mark: "past", word: "over" };
  }
}

/** Returns what fits of a series, in words: "All 12 fit.", "10 of 12 fit.". */
export function fitInWords(occurrences: readonly Pick<Occurrence, "state">[]): string {
  const unfit = occurrences.filter((one) => one.state === "unfit").length;
  const fit = occurrences.length - unfit;
  if (occurrences.length === 1) return unfit === 0 ? "It fits." : "It does not fit.";
  if (unfit === 0) return `All ${fit} fit.`;
  return `${fit} of ${occurrences.length} fit.`;
}

/** The occurrences at the beginning of a series: how many of how many, 0 if unknown, and the day of the last of them. */
export interface FirstPart {
  count: number;
  of: number;
  until: string;
}

/** Returns those before the first one that does not fit; null: all fit, or none before it. */
export function firstFitting(occurrences: readonly Pick<Occurrence, "state" | "recurrence_id">[]): FirstPart | null {
  const count = occurrences.findIndex((one) => one.state === "unfit");
  if (count < 1) return null;
  return { count, of: occurrences.length, until: occurrences[count - 1]!.recurrence_id.slice(0, 10) };
}

/** Returns what a refusal for a limit says that would be granted of a series; null: nothing. */
export function firstGranted(data: { [key: string]: Json } | undefined): FirstPart | null {
  const { occurrences: count, until } = (data?.fits ?? {}) as { [key: string]: Json };
  return typeof count === "number" && typeof until === "string" ? { count, of: 0, until: until.slice(0, 10) } : null;
}

/** Returns "The first 6 of 12, until Mon 12 May 2030", or "The first 6, until …". */
export function firstInWords({ count, of, until }: FirstPart): string {
  const day = formatted(Date.parse(`${until}T00:00:00Z`), "UTC", "day-year");
  return `The first ${count}${of > 0 ? ` of ${of}` : ""}, until ${day}`;
}

/** Returns the times of day of a series: "09:00 until 12:30", "22:00 for PT8H". */
export function clockOf(series: Pick<Series, "start" | "until_local" | "duration">): string {
  const start = series.start.slice(11, 16);
  if (series.until_local === null) return `${start} for ${series.duration?.replace(/^PT?/, "").toLowerCase() ?? ""}`;
  const [clock = "", days] = series.until_local.split("+");
  const later = days ? ` ${plural(Number.parseInt(days, 10), "day")} later` : "";
  return `${start} until ${clock.slice(0, 5)}${later}`;
}
