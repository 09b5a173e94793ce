// SPDX-License-Identifier: Apache-2.0
/** Leases that wait in line, that go on by themselves, and why they have ended, in words. Pure. */
import type { CalendarPage, Json, Lease, Wait, WhyNot } from "../api/types.ts";
import { moment, plural, spoken } from "../time/format.ts";
import { money } from "./money.ts";

/** Returns "1st", "2nd", "3rd", "11th". */
export function ordinal(count: number): string {
  const tens = count % 100;
  const ending = tens >= 11 && tens <= 13 ? "th" : (["th", "st", "nd", "rd"][count % 10] ?? "th");
  return `${count}${ending}`;
}

/** Returns a place in line with what is expected: "2nd, probably from today 16:00". */
export function placeInWords(wait: Wait, zone: string, now: number): string {
  const place = wait.position === null ? "" : ordinal(wait.position);
  const when = wait.estimated_start === null ? "" : `probably from ${soonOr(wait.estimated_start, zone, now)}`;
  if (!place && !when) return wait.reason === null ? "its place comes soon" : "";
  return [place, when].filter(Boolean).join(", ");
}

const MINUTE = 60_000;

/** An estimate is good to the minute at best. */
function soonOr(instant: string, zone: string, now: number): string {
  const at = Math.ceil(Date.parse(instant) / MINUTE) * MINUTE;
  return at <= now + MINUTE ? "now on" : spoken(at, zone, now);
}

/** Returns an instant to the minute, as a person would say it. */
export function about(instant: string, zone: string, now: number): string {
  return spoken(Math.floor(Date.parse(instant) / MINUTE) * MINUTE, zone, now);
}

/** What the page of a lease says of its waiting, one sentence each. */
export function waitSentences(wait: Wait, zone: string, now: number): string[] {
  const said: string[] = [];
  if (wait.position === 1) said.push("It is the next in line.");
  else if (wait.position !== null) said.push(`It is the ${ordinal(wait.position)} of all that wait.`);
  else if (wait.reason === null) said.push("Its place in line is known in a moment.");
  if (wait.estimated_start !== null) {
    const when = soonOr(wait.estimated_start, zone, now);
    said.push(`It will probably start ${when === "now on" ? "now" : when}. ${ESTIMATE_MEANS}`);
  } else if (wait.position !== null && wait.reason === null) said.push("When it will start is not known yet.");
  return said;
}

/** Returns for how long and from when on what waits is asked for: "for 2 days, from Sat 28 Nov 09:00 on, as soon as possible". */
export function waitInWords(wait: Wait, long: string, zone: string, now: number, currency = ""): string {
  const earliest = Math.floor(Date.parse(wait.earliest) / MINUTE) * MINUTE;
  const from = earliest > now + MINUTE ? `, from ${moment(earliest, zone, now)} on` : "";
  const most =
    typeof wait.max_price === "string"
      ? ` and starts only if it costs at most ${money(wait.max_price, currency).trim()}`
      : "";
  return `for ${long}${from}, as soon as possible; it waits until ${about(wait.until, zone, now)}${most}`;
}

/** Steps of a reason that time alone undoes. */
const PASSING: readonly string[] = [
  "promised",
  "in_use",
  "affinity",
  "topology",
  "other_reservations",
  "no_substitute",
];

/** Steps of a reason that somebody undoes: what they take away takes new leases again one day. */
const RETURNING: Readonly<Record<string, string>> = { disabled: "out of use", failed: "broken" };

/** Types of which a step counts what is asked for; of others it counts what they lie on. */
const COUNTED: readonly string[] = ["physical:host", "virtual:floatingip"];

/** What there is of a reservation of which more is asked for, whatever is booked. */
export interface Shortage {
  /** Place of the reservation in the request. */
  index: number;
  /** How many there are at all, and how many of them take new leases now. */
  all: number;
  now: number;
  /** Why the others take none: "3 are out of use", "1 is broken". */
  away: readonly string[];
  /** How many of the others an operator has put out of use. */
  disabled: number;
  /** Something may be taken away from the request, so that more match. */
  narrowed: boolean;
}

/** Returns of which reservation more is asked for than takes new leases now; null if of none. */
export function shortageOf(
  reasons: readonly Pick<WhyNot, "pointer" | "asked" | "steps">[],
  typeAt: (index: number) => string | undefined,
): Shortage | null {
  const found = reasons.flatMap(({ pointer, asked, steps }): Shortage[] => {
    const index = Number(pointer.split("/")[2] ?? 0);
    let [all, gone] = [Number.POSITIVE_INFINITY, 0];
    const away: string[] = [];
    for (const step of steps.filter(({ code }) => !PASSING.includes(code))) {
      const why = RETURNING[step.code];
      const removed = step.removed ?? 0;
      if (why === undefined) all = step.remaining + gone;
      else {
        gone += removed;
        away.push(`${removed} ${removed === 1 ? "is" : "are"} ${why}`);
      }
    }
    const now = all - gone;
    const disabled = steps.find(({ code }) => code === "disabled")?.removed ?? 0;
    const short = COUNTED.includes(typeAt(index) ?? "") ? now < asked : now === 0;
    const narrowed = steps.some(({ code }) => code === "requirement");
    const never = all < Math.max(1, asked);
    return short ? [{ index, all, now, away: never ? [] : away, disabled: never ? 0 : disabled, narrowed }] : [];
  });
  // What never comes counts before what comes back.
  return found.find(({ away }) => away.length === 0) ?? found[0] ?? null;
}

/**
 * Returns until when resources are out of use: "1 until tomorrow 09:00, 2 without a date"; null if the calendar does not
 * show just as many as there are.
 */
export function disabledInWords(
  { resources, to }: Pick<CalendarPage, "resources" | "to">,
  many: number,
  zone: string,
  now: number,
): string | null {
  const blocks = resources.flatMap((one) =>
    one.blocks.filter(
      ({ kind, code, start }) => kind === "out_of_use" && code === "disabled" && Date.parse(start) <= now,
    ),
  );
  if (blocks.length !== many) return null;
  const counts = new Map<number, number>();
  for (const { end } of blocks) {
    const until = end === null ? Number.POSITIVE_INFINITY : Date.parse(end);
    counts.set(until, (counts.get(until) ?? 0) + 1);
  }
  const said = ([until, count]: [number, number]) => {
    if (until === Number.POSITIVE_INFINITY) return `${count} without a date`;
    // What goes on beyond what was asked ends there in the answer.
    return `${count} until ${until >= Date.parse(to) ? "after " : ""}${spoken(until, zone, now)}`;
  };
  return [...counts]
    .sort(([one], [other]) => one - other)
    .map(said)
    .join(", ");
}

/** Returns a shortage as sentences; `count` says how many of a kind: "54 hosts"; `dates`: until when some are out of use. */
export function shortageInWords(
  { all, now, away, narrowed }: Shortage,
  count: (many: number) => string,
  dates: string | null = null,
): string {
  const be = (many: number) => (many === 1 ? "is" : "are");
  if (away.length === 0) {
    const less = [...(all > 0 ? ["Ask for less"] : []), ...(narrowed ? ["take away a property"] : [])].join(", or ");
    const only = all === 0 ? "is none" : `${be(all)} only ${count(all)}`;
    const help = less ? ` ${less[0]!.toUpperCase()}${less.slice(1)}.` : "";
    return `There ${only} of what you ask for, so no waiting helps.${help}`;
  }
  const take = `${now === 0 ? "None" : `Only ${now}`} of ${count(all)} ${now === 1 ? "takes" : "take"} new leases now`;
  return `${take}: ${away.join(" and ")}. Yours can begin once enough of them take leases again.${dates === null ? "" : ` Out of use: ${dates}.`}`;
}

/** What an estimated start is, so that nobody takes it for a booking. */
export const ESTIMATE_MEANS =
  "That is an estimate, which counts on leases that end early. Nothing is booked for it yet: it may become earlier or later.";

/** Returns what the times of a lease that waits are, if some are told. */
export function estimateOf(lease: { status: string; wait?: Wait | null }): string | undefined {
  return lease.status === "WAITING" && lease.wait?.estimated_start ? ESTIMATE_MEANS : undefined;
}

/** What waiting means, in one sentence. */
export const WAITING_MEANS =
  "You get it when it is your turn and enough is free, for as long as you asked for; till then it costs nothing, and you can leave the line.";

/** Returns how the tries of a lease have gone. */
export function triesInWords(failed: number, tries: number): string {
  if (failed === 0) return `No try has failed; up to ${plural(tries, "try", "tries")} may.`;
  if (failed >= tries) return `All ${plural(tries, "try", "tries")} have failed.`;
  return `${failed} of ${plural(tries, "try", "tries")} ${failed === 1 ? "has" : "have"} failed.`;
}

/** What the service says of those who are before somebody; null if it does not. */
export interface Before {
  before: number;
  /** From when on it fits without delaying them, in milliseconds. */
  opening: number | null;
}

/** Reads the data of a refusal because others wait. */
export function beforeOf(data: { [key: string]: Json } | undefined): Before | null {
  const { before, opening } = data ?? {};
  if (typeof before !== "number") return null;
  const at = typeof opening === "string" ? Date.parse(opening) : Number.NaN;
  return { before, opening: Number.isNaN(at) ? null : at };
}

/** Returns how many are before somebody, as a sentence. */
export function beforeInWords({ before }: Before): string {
  return `${plural(before, "lease")} ${before === 1 ? "waits" : "wait"} in line for the same, and would get it later because of yours.`;
}

/** Returns how far room is made for a lease, or why it was not; null if none is made. */
export function roomInWords(lease: Pick<Lease, "kind" | "status" | "events">): string | null {
  const late = lease.status === "TIMED_OUT" && lease.kind === "best_effort";
  if (lease.status !== "IN_PROGRESS" && !late) return null;
  const { reason } = lease.events.find((one) => one.event_type === "start_lease") ?? { reason: null };
  const usual = late
    ? "The servers of others could not be moved off its hosts in time"
    : "Servers of others are being moved off its hosts";
  return reason?.message ?? usual;
}

/** Returns why a lease has ended, as a sentence; null if that is not known, or it has not. */
export function endInSentence(lease: Pick<Lease, "end_reason" | "kind">): string | null {
  switch (lease.end_reason) {
    case "ended":
      return "Its time was over.";
    case "deleted":
      return "It was deleted before its end.";
    case "left_line":
      return "It left the line before it had anything.";
    case "unconfirmed":
      return "Nobody confirmed it in time, so it was deleted.";
    case "ended_early":
      return "It was ended before its time was over.";
    case "refused":
      return lease.kind === "immediate"
        ? "It could not be handed over at once, so the request was refused."
        : "Its request was refused after it had been booked.";
    case "unused":
      return "It was released because nobody used it.";
    case "merged":
      return "It was merged with another lease, which has what it had.";
    default:
      return null;
  }
}

/** Returns why a lease is going to be released: what the last look has found. */
export function whyReleased(usage: Lease["usage"]): string {
  switch (usage) {
    case "unused":
      return "nothing is in it";
    case "idle":
      return "all that is in it is stopped, or does nothing";
    default:
      return "nothing runs on it";
  }
}

/** Returns what looks have found of the use of a lease, as a sentence; null if nobody looks. */
export function usageInWords(lease: Pick<Lease, "usage" | "used_at">, zone: string, now: number): string | null {
  const seen = lease.used_at ? about(lease.used_at, zone, now) : null;
  switch (lease.usage) {
    case "used":
      return seen ? `It is used; last seen ${seen}.` : "It is used.";
    case "idle":
      return `All that is in it is stopped, or does nothing${seen ? `; it was used until ${seen} at least` : ""}.`;
    case "unused":
      return seen ? `Nothing is in it; it was used until ${seen} at least.` : "Nothing was started in it yet.";
    case "unknown":
      return "Whether it is used is not known yet.";
    default:
      return null;
  }
}
