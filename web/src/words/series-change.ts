// SPDX-License-Identifier: Apache-2.0
/** Changes of what recurs, between the form, the API and words. Pure. */
import type { Occurrence, Series, Wish } from "../api/types.ts";
import { plural } from "../time/format.ts";
import { type Wish as Reminding, sameWishes, sentOf, wishesOf } from "./reminders.ts";
import { type Every, ruleOf } from "./series.ts";

/** What a form asks of a change. */
export interface SeriesForm {
  name: string;
  /** The first day that changes, such as "2026-12-31". */
  day: string;
  /** The clock at the start, and at the end if there is one: "09:00". */
  start: string;
  end: string | null;
  /** Instead of an end by the clock: a duration. */
  duration: string | null;
  /** Null: as it is. */
  every: Every | null;
  /** The last day; "": it has no end, or as it is. */
  until: string;
  reservations: readonly Wish[];
  reminders: readonly Reminding[];
  /** Each keeps its hosts until it starts. */
  keeps: boolean;
  /** The most that each may cost; "": any price. */
  most: string;
}

/** Returns the occurrences that a change is about: those to come, from one of them on. */
export function scopeOf(series: Series, since: string | null, now: number): Occurrence[] {
  return (series.occurrences ?? []).filter(
    (one) =>
      Date.parse(one.start_date) > now &&
      (one.state === "booked" || one.state === "unfit" || one.state === "planned") &&
      (since === null || one.recurrence_id >= since),
  );
}

/** Returns the form of a series as it is. */
export function formOf(series: Series, since: string | null, now: number): SeriesForm {
  const scope = scopeOf(series, since, now);
  const first = since ?? scope[0]?.recurrence_id ?? series.start;
  const last = (series.occurrences ?? []).at(-1)?.recurrence_id ?? "";
  return {
    name: series.name,
    day: first.slice(0, 10),
    start: first.slice(11, 16),
    end: series.until_local === null ? null : series.until_local.slice(0, 5),
    duration: series.duration,
    every: null,
    until: hasEnd(series.rule) ? (untilOf(series.rule) ?? last.slice(0, 10)) : "",
    reservations: series.reservations,
    reminders: wishesOf(series),
    keeps: series.keep_hosts === true,
    most: series.max_price ?? "",
  };
}

function hasEnd(rule: string): boolean {
  return /(^|;)(UNTIL|COUNT)=/.test(rule);
}

function untilOf(rule: string): string | null {
  const found = /(?:^|;)UNTIL=(\d{4})(\d\d)(\d\d)/.exec(rule);
  return found ? found.slice(1).join("-") : null;
}

/** Returns the rule with another last day; "" takes its end away. */
function endedOn(rule: string, until: string): string {
  const kept = rule.split(";").filter((part) => !/^(UNTIL|COUNT)=/.test(part));
  return [...kept, ...(until ? [`UNTIL=${until.replaceAll("-", "")}`] : [])].join(";");
}

/** Returns the end by the clock with its days; what is shorter than a day ends at the first such time. */
function untilLocal(series: Series, start: string, end: string): string {
  const days = Number(/\+(\d+)d/.exec(series.until_local ?? "")?.[1] ?? 0);
  const was = { start: series.start.slice(11, 16), end: (series.until_local ?? "").slice(0, 5) };
  const long = days > 1 || (days === 1 && was.end > was.start);
  const later = long ? days : end > start ? 0 : 1;
  return `${end}${later > 0 ? `+${later}d` : ""}`;
}

/** Returns what is sent of a change; {} if nothing differs. `shown`: the form as it was opened. */
export function changeOf(
  series: Series,
  since: string | null,
  shown: SeriesForm,
  form: SeriesForm,
): Record<string, unknown> {
  const change: Record<string, unknown> = {};
  if (form.name.trim() !== shown.name) change.name = form.name.trim();
  const wall = `${form.day}T${form.start}`;
  if (form.day !== shown.day || form.start !== shown.start) change.start = wall;
  if (form.every !== null) {
    change.rule = ruleOf({ every: form.every, until: form.until }, wall).replace(/;UNTIL=$/, "");
    change.start = wall;
  } else if (form.until !== shown.until) change.rule = endedOn(series.rule, form.until);
  if (form.end !== null) {
    const end = untilLocal(series, form.start, form.end);
    if (end !== untilLocal(series, shown.start, shown.end ?? "")) change.until_local = end;
  } else if (form.duration !== shown.duration) change.duration = form.duration;
  if (JSON.stringify(form.reservations) !== JSON.stringify(shown.reservations)) change.reservations = form.reservations;
  const reminders = sentOf(form.reminders);
  if (!sameWishes(reminders, shown.reminders)) change.reminders = reminders;
  if (form.keeps !== shown.keeps) change.keep_hosts = form.keeps;
  if (form.most.trim() !== shown.most) change.max_price = form.most.trim() || null;
  if (Object.keys(change).length > 0 && since !== null) change.from = since;
  return change;
}

/** Returns what a change does, in sentences; `before` is what it is about, `after` what the service says. */
export function changeInWords(before: readonly Occurrence[], after: readonly Occurrence[]): string {
  const kept = new Map(after.flatMap((one) => (one.lease_id ? [[one.lease_id, one]] : [])) as [string, Occurrence][]);
  const booked = before.filter((one) => one.lease_id !== null);
  const gone = booked.filter((one) => !kept.has(one.lease_id!)).length;
  const moved = booked.filter((one) => {
    const next = kept.get(one.lease_id!);
    return next && (next.start_date !== one.start_date || next.end_date !== one.end_date);
  }).length;
  const made = after.filter((one) => one.lease_id === null && one.state !== "unfit").length;
  const unfit = after.filter((one) => one.state === "unfit").length;
  const parts = [
    moved > 0 ? `${moved} ${moved === 1 ? "gets" : "get"} other times` : "",
    kept.size - moved > 0 ? `${kept.size - moved} ${kept.size - moved === 1 ? "keeps its" : "keep their"} times` : "",
    made > 0 ? `${made} ${made === 1 ? "is" : "are"} newly booked` : "",
    gone > 0 ? `${gone} ${gone === 1 ? "is" : "are"} given up` : "",
    unfit > 0 ? `${unfit} ${unfit === 1 ? "does" : "do"} not fit` : "",
  ].filter(Boolean);
  return `Of ${plural(booked.length, "lease")} to come: ${parts.join(", ") || "none remains"}.`;
}
