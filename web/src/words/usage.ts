// SPDX-License-Identifier: Apache-2.0
/** Reports of usage: the periods that are asked for, and rows as bars, shares and words. Pure. */
import type { Measures, UsageReport, UsageRow } from "../api/reports.ts";
import type { ResourceType } from "../api/types.ts";
import type { Params } from "../router.ts";
import { formatted } from "../time/format.ts";
import { nounOf } from "./lease.ts";

const HOUR = 3600;

/** Periods to choose from. */
export const PERIODS = [
  { value: "", text: "This month" },
  { value: "last-month", text: "Last month" },
  { value: "quarter", text: "Quarter" },
  { value: "days", text: "Other days" },
] as const;
export type PeriodName = (typeof PERIODS)[number]["value"];

export const STEPS = [
  { value: "day", text: "Day" },
  { value: "week", text: "Week" },
  { value: "month", text: "Month" },
] as const;
export type Step = (typeof STEPS)[number]["value"];

/** What rows can be told apart by; `key` is where a row has it. */
export const GROUPS = [
  { value: "project", text: "project", key: "project_id" },
  { value: "user", text: "user", key: "user_id" },
  { value: "lease_kind", text: "kind of lease", key: "lease_kind" },
  { value: "region", text: "region", key: "region" },
  { value: "property", text: "a property", key: "property" },
] as const;
export type Group = (typeof GROUPS)[number]["value"];

/** Days, as 2026-11-01; `last` is the last one of them. */
export interface Period {
  name: PeriodName;
  first: string;
  last: string;
}

/** Returns the period of an address, by today's date in a zone; other days that are none are this month. */
export function periodOf(params: URLSearchParams, now: number, zone: string): Period {
  const today = Temporal.Instant.fromEpochMilliseconds(Math.floor(now)).toZonedDateTimeISO(zone).toPlainDate();
  const name = PERIODS.find(({ value }) => value === params.get("period"))?.value ?? "";
  const months = (first: Temporal.PlainDate, count: number) => ({
    name,
    first: first.toString(),
    last: first.add({ months: count }).subtract({ days: 1 }).toString(),
  });
  const month = today.with({ day: 1 });
  if (name === "last-month") return months(month.subtract({ months: 1 }), 1);
  if (name === "quarter") return months(month.with({ month: today.month - ((today.month - 1) % 3) }), 3);
  const [first, last] = [dayOf(params.get("from")), dayOf(params.get("to"))];
  if (name === "days" && first && last && first <= last) return { name, first, last };
  return months(month, 1);
}

function dayOf(text: string | null): string | null {
  if (text === null || !/^\d{4}-\d\d-\d\d$/.test(text)) return null;
  try {
    return Temporal.PlainDate.from(text, { overflow: "reject" }).toString();
  } catch {
    return null;
  }
}

/** Returns what is asked of the service for a period, which ends before a day. */
export function spanOf({ first, last }: Period): { from: string; to: string } {
  return { from: first, to: Temporal.PlainDate.from(last).add({ days: 1 }).toString() };
}

/** The service sums no more days at once. */
const MOST_DAYS = 31;
/** More is not asked for. */
export const MOST_MONTHS = 12;

/** Returns the parts of a period that the service sums: all of it, or one for each month; none of what is too long. */
export function spansOf(period: Period): { from: string; to: string }[] {
  const { from, to } = spanOf(period);
  const end = Temporal.PlainDate.from(to);
  let begin = Temporal.PlainDate.from(from);
  if (begin.until(end).days <= MOST_DAYS) return [{ from, to }];
  if (Temporal.PlainDate.compare(begin.add({ months: MOST_MONTHS }), end) < 0) return [];
  const spans: { from: string; to: string }[] = [];
  while (Temporal.PlainDate.compare(begin, end) < 0) {
    const month = begin.with({ day: 1 }).add({ months: 1 });
    const next = Temporal.PlainDate.compare(month, end) < 0 ? month : end;
    spans.push({ from: begin.toString(), to: next.toString() });
    begin = next;
  }
  return spans;
}

/** Returns the report of all parts of a period. A lease may be in several parts, so how many there are is not known. */
export function joined(reports: readonly UsageReport[]): UsageReport {
  const [first, last] = [reports[0]!, reports[reports.length - 1]!];
  if (reports.length === 1) return first;
  // Of a part that is to come nothing is computed.
  const through = reports.map((report) => report.computed_through).sort();
  const begun = reports.filter((report) => report.computed_through > report.from);
  const rows = reports.flatMap((report) => report.rows.map(({ leases: _, ...row }) => row));
  const computed_through = begun.length > 0 ? begun[begun.length - 1]!.computed_through : through[0]!;
  const lent_seconds = reports.reduce((sum, report) => sum + (report.lent_seconds ?? 0), 0);
  return { ...first, to: last.to, computed_through, lent_seconds, rows };
}

/** Returns a change of the address to other days, at first those that are looked at. */
export function toDays(period: Period): Params {
  return { period: "days", from: period.first, to: period.last };
}

/** Returns "November 2026", or "1 Nov – 14 Nov 2026". */
export function periodInWords({ first, last }: Period): string {
  const [from, to] = [first, last].map((day) => Date.parse(`${day}T00:00:00Z`)) as [number, number];
  const whole = first.endsWith("-01") && first.slice(0, 7) === last.slice(0, 7) && isLastOfMonth(last);
  if (whole) return formatted(from, "UTC", "month");
  const year = last.slice(0, 4);
  const begin = first.slice(0, 4) === year ? shortDay(from, "UTC") : `${shortDay(from, "UTC")} ${first.slice(0, 4)}`;
  return first === last ? `${begin} ${year}` : `${begin} – ${shortDay(to, "UTC")} ${year}`;
}

function isLastOfMonth(day: string): boolean {
  return Temporal.PlainDate.from(day).add({ days: 1 }).day === 1;
}

/** "2 Nov". */
function shortDay(at: number, zone: string): string {
  return formatted(at, zone, "day").replace(/^\S+ /, "");
}

/** Sums of rows, in seconds; `unseen` is all that nobody has looked at. */
export interface Sums {
  reserved: number;
  used: number;
  idle: number;
  unseen: number;
  lost: number;
  overrun: number;
  returned: number;
  /** Null: not known. */
  leases: number | null;
  /** Watt-hours; null: not known. */
  energy: number | null;
  /** Grams of CO2e; null: not known. */
  carbon: number | null;
}

/** Adds up rows. What is neither used nor idle was not looked at, whether the service says so or not. */
export function sumsOf(rows: readonly Measures[]): Sums {
  const sum = (name: keyof Measures) => rows.reduce((total, row) => total + (row[name] ?? 0), 0);
  const [reserved, used, idle] = [sum("reserved"), sum("used"), sum("idle")];
  return {
    reserved,
    used,
    idle,
    unseen: Math.max(0, reserved - used - idle),
    lost: sum("lost"),
    overrun: sum("overrun"),
    returned: sum("returned"),
    leases: rows.some((row) => row.leases === undefined) ? null : sum("leases"),
    // Of what is not rated nothing is known: the sum is of the rest.
    energy: knownSumOf(rows.map((row) => row.energy_wh)),
    carbon: knownSumOf(rows.map((row) => row.gco2)),
  };
}

function knownSumOf(values: readonly (number | null | undefined)[]): number | null {
  const known = values.filter((value) => typeof value === "number");
  return known.length > 0 ? known.reduce((total, value) => total + value, 0) : null;
}

/** Returns watt-hours in kilowatt-hours, or grams in kilograms, such as "12.5". */
export function thousandsOf(wattHours: number): string {
  const digits = { maximumFractionDigits: 1, minimumFractionDigits: 1 };
  return (wattHours / 1000).toLocaleString("en", digits);
}

/** Tells whether anybody has looked at whether it was used. */
export function isLookedAt({ used, idle }: Sums): boolean {
  return used + idle > 0;
}

/** Returns the types that rows are of, the one with most reserved time first. */
export function typesOf(rows: readonly UsageRow[]): ResourceType[] {
  const found = new Map<string, number>();
  for (const { resource_type: type = "", reserved } of rows) found.set(type, (found.get(type) ?? 0) + reserved);
  return [...found].sort(([one, a], [other, b]) => b - a || one.localeCompare(other)).map(([type]) => type);
}

/** A part of a period, and what was reserved in it. */
export interface Bar {
  from: number;
  to: number;
  sums: Sums;
}

/** Returns the bars of a report, also those of parts in which there was nothing. */
export function barsOf(report: UsageReport, step: Step, rows: readonly UsageRow[] = report.rows): Bar[] {
  const [from, to] = [Date.parse(report.from), Date.parse(report.to)];
  const starts = startsOf(from, to, step, report.time_zone);
  const of = new Map<number, UsageRow[]>(starts.map((at) => [at, []]));
  for (const row of rows) {
    const at = row.from === undefined ? from : Date.parse(row.from);
    // A part of whose begin the service and the browser do not agree is in the one in which it lies.
    of.get(starts.findLast((start) => start <= at) ?? from)?.push(row);
  }
  return starts.map((at, index) => ({ from: at, to: starts[index + 1] ?? to, sums: sumsOf(of.get(at)!) }));
}

/** Returns where the days, weeks (from Monday) or months of a range begin, the first cut at its begin. */
function startsOf(from: number, to: number, step: Step, zone: string): number[] {
  let date = Temporal.Instant.fromEpochMilliseconds(from).toZonedDateTimeISO(zone).toPlainDate();
  if (step === "week") date = date.subtract({ days: date.dayOfWeek - 1 });
  if (step === "month") date = date.with({ day: 1 });
  const starts = [from];
  for (;;) {
    date = date.add(step === "day" ? { days: 1 } : step === "week" ? { days: 7 } : { months: 1 });
    const at = date.toZonedDateTime({ timeZone: zone }).epochMilliseconds;
    if (at >= to) return starts;
    if (at > starts[starts.length - 1]!) starts.push(at);
  }
}

/** Returns the label of a bar at an axis, which is short: "2", "2 Nov", "Nov". */
export function labelOf({ from }: Bar, step: Step, zone: string): string {
  if (step === "month") return formatted(from, zone, "month").slice(0, 3);
  return step === "day" ? formatted(from, zone, "day-number") : shortDay(from, zone);
}

/** Returns which part a bar is: "Mon 2 Nov", "2 Nov – 8 Nov", "November 2026". */
export function partInWords({ from, to }: Bar, step: Step, zone: string): string {
  if (step === "month") return formatted(from, zone, "month");
  if (step === "day") return formatted(from, zone, "day");
  // One second before the end is in the last day.
  const [first, last] = [shortDay(from, zone), shortDay(to - 1000, zone)];
  return first === last ? first : `${first} – ${last}`;
}

/** What is one row of a table: all of a project, of a user, and so on. */
export interface Share {
  /** Null: the service does not tell, as of users who are others. */
  value: string | null;
  sums: Sums;
}

/** Returns the shares of rows by what they are grouped by, the largest first. */
export function sharesOf(rows: readonly UsageRow[], group: Group): Share[] {
  const { key } = GROUPS.find(({ value }) => value === group)!;
  const of = new Map<string | null, UsageRow[]>();
  for (const row of rows) {
    const value = row[key] ?? null;
    of.set(value, [...(of.get(value) ?? []), row]);
  }
  return [...of]
    .map(([value, found]) => ({ value, sums: sumsOf(found) }))
    .sort((a, b) => b.sums.reserved - a.sums.reserved || `${a.value}`.localeCompare(`${b.value}`));
}

/** Returns hours of seconds: "1,234", "12.5", "< 0.1", "0". */
export function hoursOf(seconds: number): string {
  const hours = seconds / HOUR;
  if (hours > 0 && hours < 0.05) return "< 0.1";
  return hours.toLocaleString("en", { maximumFractionDigits: hours < 100 ? 1 : 0 });
}

/** Returns "66 %" of a whole; "< 1 %" of what is there and less. */
export function percentOf(part: number, whole: number): string {
  if (whole <= 0 || part <= 0) return "0 %";
  const percent = Math.round((100 * part) / whole);
  if (percent === 0) return "< 1 %";
  return percent === 100 && part < whole ? "> 99 %" : `${percent} %`;
}

/** Returns "1,234 host hours": so much of a type, which is counted in that. */
export function amountOf(seconds: number, type: ResourceType): string {
  const hours = hoursOf(seconds);
  return `${hours} ${nounOf(type, 1)} ${hours === "1" ? "hour" : "hours"}`;
}

/** Says what a report comes to: "1,234 host hours reserved: 66 % used, 25 % idle, 9 % not looked at". */
export function usageInWords(sums: Sums, type: ResourceType): string {
  const { reserved, used, idle, unseen } = sums;
  const all = `${amountOf(reserved, type)} reserved`;
  if (reserved === 0) return all;
  if (!isLookedAt(sums)) return `${all}; whether it was used was not looked at`;
  const parts = [
    `${percentOf(used, reserved)} used`,
    `${percentOf(idle, reserved)} idle`,
    ...(unseen > 0 ? [`${percentOf(unseen, reserved)} not looked at`] : []),
  ];
  return `${all}: ${parts.join(", ")}`;
}

/** Returns the highest mark of an axis for a number: the next of 1, 2, 4, 5 and 10 times a power of ten. */
export function highestMark(most: number): number {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return ([1, 2, 4, 5, 10].find((factor) => factor * power >= most) ?? 10) * power;
}
