// SPDX-License-Identifier: Apache-2.0
/** A price list in words: which one is in force, its rules as sentences, what another one changes. Pure. */
import type { PriceChange, PriceComparison, PriceDocument, PriceListHead, Publication } from "../api/billing.ts";
import type { Json } from "../api/types.ts";
import { moment } from "../time/format.ts";
import { capital } from "./events.ts";
import { lengthInWords } from "./length.ts";
import { lineOf } from "./lines.ts";
import { digitsOf, isNothing, money } from "./money.ts";
import { monthInWords } from "./statement.ts";

/** What one pays for, by the measure that counts it. */
const MEASURES: Readonly<Record<string, string>> = {
  host: "a host",
  floatingip: "a floating IP",
  network: "a network",
  volume: "a volume",
  device: "a device",
  instance: "a server",
  vcpu: "a vCPU",
  card: "a GPU or other card of a server",
  gigabyte: "a GiB of volumes",
  kwh: "a kWh that hosts draw",
};
/** The measure that has a price by the kilowatt-hour. */
export const ENERGY = "kwh";
/** The measures that every service has. */
export const USUAL_MEASURES: readonly string[] = Object.keys(MEASURES);

/** Returns what a measure counts: "a host". */
export function measureInWords(measure: string): string {
  return MEASURES[measure] ?? measure.replaceAll("_", " ");
}

export type Standing = "in force" | "to come" | "replaced";

/** Returns what a version is now for a lease that is booked and starts now: of those that are valid the last one holds. */
export function standingOf(one: PriceListHead, all: readonly PriceListHead[], now: number): Standing {
  const isValid = ({ valid_from, published_at }: PriceListHead) =>
    Math.max(Date.parse(valid_from), Date.parse(published_at)) <= now;
  const inForce = all.filter(isValid).sort((a, b) => b.version - a.version)[0];
  if (inForce?.version === one.version) return "in force";
  const later = all.some((other) => other.version > one.version && other.valid_from <= one.valid_from);
  return isValid(one) || later ? "replaced" : "to come";
}

/** Returns the version whose prices hold now; undefined: there is none. */
export function inForce(all: readonly PriceListHead[], now: number): PriceListHead | undefined {
  return all.find((one) => standingOf(one, all, now) === "in force");
}

/** Returns the version that a new list begins as: that whose prices hold now, else the one published last. */
export function baseOf(all: readonly PriceListHead[], now: number): PriceListHead | undefined {
  return inForce(all, now) ?? all.at(-1);
}

/** A rule of a list: what it is about, and what it says. */
export interface Rule {
  name: string;
  says: string[];
}

type Entry = Readonly<Record<string, Json>>;

const DAYS: Readonly<Record<string, string>> = {
  MO: "Mon",
  TU: "Tue",
  WE: "Wed",
  TH: "Thu",
  FR: "Fri",
  SA: "Sat",
  SU: "Sun",
};

/** Returns all that a list has besides its prices by the hour, or the kilowatt-hour. `nameOf`: how a project is called by its id. */
export function rulesOf(document: PriceDocument, nameOf: (id: string) => string = (id) => id): Rule[] {
  const { currency, time_zone } = document;
  const entries = (key: string) => (document[key] ?? []) as readonly Entry[];
  const text = (key: string) => document[key] as string | undefined;
  const found: Rule[] = [
    { name: "Fee", says: document.fee ? [`${money(document.fee, currency)} for each lease, once it starts`] : [] },
    { name: `Hours (${time_zone})`, says: entries("hours").map(hoursInWords) },
    {
      name: "Booked shortly before",
      says: entries("lead").map((one) => `less than ${lengthInWords(textOf(one.below))} ahead: ${timesInWords(one)}`),
    },
    {
      name: "Many at once",
      says: entries("amount").map((one) => `more than ${textOf(one.above)}: ${timesInWords(one)}`),
    },
    { name: "Not used", says: text("unused") ? [`hours without use: × ${digitsOf(text("unused")!)}`] : [] },
    {
      name: "Projects",
      says: entries("projects").map((one) => `${nameOf(textOf(one.project_id))}: ${timesInWords(one)}`),
    },
    { name: "Time", says: roundingInWords(text("minimum"), text("round_up")) },
    { name: "Cancelled", says: entries("cancellation").map((one, index) => cancelInWords(one, index === 0)) },
    { name: "Given back early", says: [`${shareInWords(text("early_return") ?? "0")} of the rest is charged`] },
    { name: "Energy", says: energyInWords(text("pue"), text("load")) },
    { name: "Not kept", says: [keptInWords(text("late"), text("lost"))] },
  ];
  return found.filter(({ says }) => says.length > 0);
}

function textOf(value: Json | undefined): string {
  return String(value ?? "");
}

function timesInWords(one: Entry): string {
  return `× ${digitsOf(textOf(one.factor))}`;
}

function hoursInWords(one: Entry): string {
  const days = ((one.days ?? []) as string[]).map((day) => DAYS[day] ?? day);
  const clock = one.from || one.to ? ` ${textOf(one.from) || "00:00"} – ${textOf(one.to) || "24:00"}` : "";
  return `${days.length > 0 ? days.join(", ") : "every day"}${clock}: ${timesInWords(one)}`;
}

function roundingInWords(minimum: string | undefined, step: string | undefined): string[] {
  const least = minimum ? [`at least ${lengthInWords(minimum)} of each reservation`] : [];
  return [...least, ...(step ? [`rounded up to ${lengthInWords(step)}`] : [])];
}

function shareInWords(share: string): string {
  return isNothing(share) ? "nothing" : `${Math.round(Number(share) * 10_000) / 100} %`;
}

function cancelInWords(one: Entry, first: boolean): string {
  const share = `${shareInWords(textOf(one.share))} is charged`;
  if (one.before_start === undefined) return first ? share : `later: ${share}`;
  return `more than ${lengthInWords(textOf(one.before_start))} before the start: ${share}`;
}

function energyInWords(pue: string | undefined, load: string | undefined): string[] {
  const more = pue ? [`what hosts draw × ${digitsOf(pue)}, for what the site adds`] : [];
  return [...more, ...(load ? [`estimated for hosts at ${Math.round(Number(load) * 100)} % of their load`] : [])];
}

function keptInWords(late: string | undefined, lost: string | undefined): string {
  const free = [late === "charge" ? "" : "a late start", lost === "charge" ? "" : "a missing resource"].filter(Boolean);
  return free.length > 0 ? `nothing is charged for the time of ${free.join(" or ")}` : "late starts are charged, too";
}

const INSTANT = /^\d{4}-\d\d-\d\dT[\d:]+Z$/;

const KEYS: Readonly<Record<string, string>> = {
  per_hour: "by the hour",
  per_kwh: "by the kWh",
  pue: "energy that the site adds",
  load: "load of hosts in estimates",
  valid_from: "valid from",
  time_zone: "time zone",
  early_return: "given back early",
  round_up: "rounded up to",
  unused: "not used",
  lead: "booked shortly before",
  amount: "many at once",
  hours: "hours",
  requirement: "condition",
};

/** Returns what a change is about: "host-a100: by the hour" for "prices[host-a100].per_hour". */
export function fieldInWords(field: string): string {
  const [, list = field, name = "", key = ""] = /^(\w+)(?:\[([^\]]*)\])?(?:\.(.+))?$/.exec(field) ?? [];
  const last = key === "" ? "" : (KEYS[key] ?? key.replaceAll("_", " "));
  if (name !== "") return [name, last].filter(Boolean).join(": ");
  return [capital(KEYS[list] ?? list.replaceAll("_", " ")), last].filter(Boolean).join(": ");
}

/** Returns a value of a change as it is read, instants in a zone; null: there was none. */
export function valueOfChange(text: PriceChange["before"], zone: string, now: number): string {
  if (text === null) return "none";
  try {
    const value = JSON.parse(text) as Json;
    if (typeof value === "string" && INSTANT.test(value)) return moment(Date.parse(value), zone, now);
    return typeof value === "object" ? lineOf(value) : String(value);
  } catch {
    return text;
  }
}

/** Returns the list that is proposed first: that which is in force, or one with a price for hosts. */
export function draftOf(base: PriceDocument | null, from: string, zone: string): PriceDocument {
  if (base) return { ...base, valid_from: from };
  const prices = [{ sku: "host", measure: "host", per_hour: "1.00" }];
  return { currency: "EUR", decimals: 2, valid_from: from, time_zone: zone, prices };
}

/** What a text is instead of a price list. */
export type Pasted = { document: PriceDocument; problem: null } | { document: null; problem: string };

/** Reads a document that was typed or pasted. */
export function readDocument(text: string): Pasted {
  try {
    // Editors of Windows begin a text with a mark, which is trimmed, too.
    const found = JSON.parse(text.trim()) as unknown;
    if (typeof found === "object" && found !== null && !Array.isArray(found)) {
      return { document: found as PriceDocument, problem: null };
    }
    return { document: null, problem: "This is no JSON object: it begins with { and ends with }." };
  } catch (error) {
    return { document: null, problem: `This is not JSON: ${error instanceof Error ? error.message : "it is cut"}.` };
  }
}

/** Returns what an operator may not have meant by a list, as sentences. */
export function doubtsInWords(of: Pick<Publication, "left_out" | "replaced" | "unmatched">): string[] {
  const without = `It has no price for ${of.left_out.join(", ")}: what is booked by these before it begins is free from then on.`;
  const nobody = `No resource has the price of ${of.unmatched.join(", ")} now: look at the condition, and at the order, as the first price that fits counts.`;
  const never = of.replaced.map(
    (version) =>
      `Price list ${version} was published ahead, and never holds for what is booked after this one. Publish it again then if it is to hold.`,
  );
  return [...(of.left_out.length > 0 ? [without] : []), ...(of.unmatched.length > 0 ? [nobody] : []), ...never];
}

/** Returns what a month would have cost by another list. */
export function comparisonInWords(found: PriceComparison): string {
  const { month, currency, leases } = found;
  const whose = found.is_whole ? "Leases" : `The first ${leases} leases that were looked at`;
  const [before, then] = [found.amount, found.new_amount].map((amount) => money(amount, currency));
  return `${whose} cost ${before} in ${monthInWords(month)}; by the new list it would have been ${then}.`;
}
