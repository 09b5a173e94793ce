// SPDX-License-Identifier: Apache-2.0
/** Openings and alternatives in words, in the zone of the page. */
import type { Alternative, Opening } from "../../api/types.ts";
import { duration, spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { inWords } from "../../words/lease.ts";
import { type Question, countOf, lengthInWords, partAt } from "../../words/question.ts";

const MINUTE = 60_000;

/** Returns the instant in words, to the next whole minute; "now" if it has come. */
export function nowOr(at: number): string {
  return at <= present.value + MINUTE ? "now" : spoken(Math.ceil(at / MINUTE) * MINUTE, zone.value, present.value);
}

/** The window that an opening stands for, in whole minutes where these fit, too: so it is shown and booked. */
export function windowOf(opening: Opening): { start: number; end: number; now: boolean } {
  const start = Date.parse(opening.start_date);
  const end = Date.parse(opening.end_date);
  const now = start <= present.value + MINUTE;
  if (!now) {
    const late = Math.ceil(start / MINUTE) * MINUTE - start;
    const fits = start + late <= Date.parse(opening.last_start_date);
    return fits ? { start: start + late, end: end + late, now } : { start, end, now };
  }
  const next = Math.ceil(end / MINUTE) * MINUTE;
  const until = opening.open_until === null ? next : Date.parse(opening.open_until);
  return { start, end: next <= until ? next : Math.floor(end / MINUTE) * MINUTE, now };
}

/** Returns what would fit instead, as a button says it. */
export function alternativeInWords(one: Alternative, question: Question): string {
  const start = Date.parse(one.start_date);
  const when = nowOr(start);
  switch (one.change) {
    case "time":
      return `All of it from ${when}`;
    case "count": {
      const counts = question.wants.map((want, index) => {
        const least = one.reservations?.[index]?.min ?? one.reservations?.[index]?.amount ?? want.count;
        return least === want.count ? null : `${countOf(least, want.type)} instead of ${want.count}`;
      });
      return `${counts.filter(Boolean).join(" and ")}, ${when}`;
    }
    case "duration": {
      const long = duration(Date.parse(one.end_date) - start);
      const asked = question.exactly ? "" : ` instead of ${lengthInWords(question.length)}`;
      return `${long}${asked}, ${when}`;
    }
    case "requirement":
      return `Without ${inWords([partAt(question, one.drop ?? "")]) || "the requirement"}, ${when}`;
    default:
      return one.change;
  }
}
