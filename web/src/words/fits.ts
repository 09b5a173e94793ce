// SPDX-License-Identifier: Apache-2.0
/** What would be granted instead of what is too dear or beyond a limit, as alternatives of a question. Pure. */
import { Refused } from "../api/errors.ts";
import type { Alternative, Json, Lease } from "../api/types.ts";
import { spoken } from "../time/format.ts";
import { countOf } from "./question.ts";

/** Something that would be granted. */
export type Fit = Alternative;

type Data = { [key: string]: Json } | undefined;

/** Returns what a refusal for the price says that costs no more than was allowed. */
export function cheaperOf(data: Data): Fit[] {
  const fits = data?.fits;
  return Array.isArray(fits) ? (fits as unknown as Fit[]) : [];
}

/** Returns what is free and within all limits in place of what one denies; else what the limit alone would grant. */
export function grantedOf(data: Data, window: { start: number; end: number }, single: boolean): Fit[] {
  return Array.isArray(data?.alternatives) ? alternativesOf(data) : withinLimit(data, window, single);
}

function alternativesOf(data: Data): Fit[] {
  const found = data?.alternatives;
  return Array.isArray(found) ? (found as unknown as Fit[]) : [];
}

/** Returns what a refusal of a change offers in its place, for lack of resources or a limit; `window`: as asked for. */
export function offersOf(error: unknown, window: { start: number; end: number }): Fit[] {
  if (!(error instanceof Refused)) return [];
  const found = error.has("limit_exceeded")
    ? grantedOf(error.data("limit_exceeded"), window, false)
    : alternativesOf(error.data("not_enough_resources"));
  return found.filter(({ change }) => change !== "requirement");
}

/** Returns an offer in words: "until Thu 4 Apr 12:00", "3 hosts", "Thu 2 May 08:00 until Fri 3 May 08:00". */
export function offerInWords(offer: Fit, lease: Lease, zone: string, now: number): string {
  const at = (date: string) => spoken(Date.parse(date), zone, now);
  if (offer.change === "time") return `${at(offer.start_date)} until ${at(offer.end_date)}`;
  if (offer.change === "duration") return `until ${at(offer.end_date)}`;
  const counts = (offer.reservations ?? []).map(({ id, max, amount }) => {
    const type = lease.reservations.find((one) => one.id === id)?.resource_type ?? "";
    return countOf(max ?? amount ?? 1, type);
  });
  return counts.join(" and ");
}

/** Returns the latest end of a lease, in milliseconds, that a refusal for a limit says would be granted; null: none. */
export function latestEndOf(data: Data, lease: { start: number; end: number }): number | null {
  const found = grantedOf(data, lease, false).find(({ change }) => change === "duration");
  const end = found === undefined ? 0 : Math.floor(Date.parse(found.end_date) / 60_000) * 60_000;
  return end > lease.end ? end : null;
}

/** Returns what a refusal for a limit says that would be granted in place of a window; `single`: of one reservation. */
function withinLimit(data: Data, window: { start: number; end: number }, single: boolean): Fit[] {
  const fits = (data?.fits ?? {}) as { [key: string]: Json };
  const { start_date: start, end_date: end, duration_seconds: seconds, amount } = fits;
  const wire = (at: number) => `${new Date(at).toISOString().slice(0, 19)}Z`;
  const dates = { start_date: wire(window.start), end_date: wire(window.end) };
  const found: Fit[] = [];
  if (typeof seconds === "number" && seconds >= 60) {
    found.push({ ...dates, change: "duration", end_date: wire(window.start + seconds * 1000) });
  } else if (typeof end === "string" && start === undefined) {
    found.push({ ...dates, change: "duration", end_date: end });
  }
  // An amount of vCPUs or of hours is no count of what is asked for.
  if (typeof amount === "number" && amount > 0 && single && COUNTED.test(String(data?.measure))) {
    found.push({ ...dates, change: "count", reservations: [{ min: amount, max: amount }] });
  }
  if (typeof start === "string") {
    const moved = Date.parse(start) + window.end - window.start;
    found.push({ change: "time", start_date: start, end_date: typeof end === "string" ? end : wire(moved) });
  }
  return found;
}

/** Returns a shorter time by a minute: what begins now ends at a whole minute, up to one later than asked for. */
export function shortened(fit: Fit): Fit {
  if (fit.change !== "duration") return fit;
  return { ...fit, end_date: `${new Date(Date.parse(fit.end_date) - 60_000).toISOString().slice(0, 19)}Z` };
}

/** Measures of which a reservation has as many as it asks for; a currency, too, as its amount is that of the only one. */
const COUNTED = /^(host|floatingip|network|device|instance|[A-Z][A-Z0-9]{1,7})$/;
