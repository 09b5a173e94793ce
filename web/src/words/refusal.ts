// SPDX-License-Identifier: Apache-2.0
/** Sentences of the service in the words of a page: without names of fields and options, in its zone. Pure. */
import { formatted, moment } from "../time/format.ts";
import { hoursOfMeasure } from "./counted-hours.ts";
import { inWords } from "./lease.ts";
import { digitsOf } from "./money.ts";
import { nameInWords } from "./parameters.ts";

const FIELDS =
  /^(?:(?:reservations|start_date|end_date|before_end_date|max_price|name|duration|wait|until|min|max|amount|kind|rule|earliest|latest)(?:, )?)+: /;
/** A part of the rule of a series. */
const PART = /^(?:UNTIL|COUNT|INTERVAL|FREQ|BY[A-Z]+|WKST): /;
/** What fields are called where a sentence of the service names them; what is in quotes is what somebody has typed. */
const NAMES: Readonly<Record<string, string>> = {
  start_date: "the start",
  end_date: "the end",
  before_end_date: "the reminder",
  earliest: "the earliest start",
  latest: "the latest start",
};
const NAME = /(?<!['"“\w])(?:(?:start|end|before_end)_date\b|(?<=^)(?:earliest|latest)(?= \d))(?!['"”])/g;
/** "Lease with {'lease_id': '93c5…'} not found", as API 1.0 says it. */
const NOT_FOUND = /^(\w[\w ]*) with \{.*\} not found\.?$/;
/** The name of a limit of the operator, as "(max_resource_hours)", "(leases_per_project is 0)" or "(blazar:spend)". */
const OPTION = / \((?:[a-z]+(?:_[a-z]+)+|blazar:\w+)(?: is \d+)?\)/g;
/** How a document has it, which a field does not. */
const QUOTED = /(?<=\b(?:amount|factor|"1")) as a string(?=, such as)/g;
/** A period of the service that may be a month of UTC: its name says it in any zone. */
const PERIOD = /from (\d{4})-(\d\d)-01 00:00 to (\d{4})-(\d\d)-01 00:00(?![\d:])/g;
/** An amount of money or hours, which is read with commas. */
const AMOUNT =
  /(?<![\w.:'"“-])\d{4,}(?:\.\d+)?(?= (?:[a-z]+-hours\b|[A-Z][A-Z0-9]{1,7}\b|that (?:the project|it) has\b|are left\b))/g;
/** What a budget of hours counts. */
const COUNTED = /(?<![\w-])([a-z]+)-hours\b/g;
/** An instant in UTC, as the service says it; what is in quotes is what somebody has typed. */
const INSTANT = /(?<!['"“\d-])(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d)(?::\d\d)?(?:Z| UTC)?(?!['"”\d:])/g;

/** A comparison of a requirement, as the service says it; what is in quotes is what somebody has typed. */
const COMPARISON = /(?<!['"“$\w])([a-z][\w:.-]*) (==|!=|>=|<=|>|<) ([^\s;,()'"”]+)/gi;

/** What follows a name that is a word of its own, where a sentence names a field by it. */
const VERB = /^ (?:is|are|has|have|may|must|cannot|needs?|names?|refers?|takes?) /;

/**
 * Returns a sentence of the service about the field of a JSON pointer, which calls it by its key or its place in the
 * body, with the label of the field instead: "reservations[0].network_id is missing" is "Network is missing".
 */
export function withLabel(text: string, pointer: string, label?: string): string {
  const parts = pointer
    .split("/")
    .slice(1)
    .map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const key = parts.findLast((part) => !isNumber(part)) ?? "";
  if (key === "" || key in NAMES) return text;
  const path = parts.map((part, index) => (isNumber(part) ? `[${part}]` : index > 0 ? `.${part}` : part)).join("");
  const name = label ?? nameInWords(key.replace(/(?<=.)_id$/, ""));
  for (const called of new Set([path, key])) {
    if (!text.startsWith(called)) continue;
    const rest = text.slice(called.length);
    if (rest.startsWith(": ")) return rest.slice(2);
    if (VERB.test(rest)) return name + rest;
  }
  return text;
}

function isNumber(part: string): boolean {
  return /^\d+$/.test(part);
}

/** Returns a sentence of its own as the page says it: "The lease would last 9 days; the limit is 7 days; choose an end by Thu 3 Dec 10:00." */
export function inPageWords(text: string, zone: string, now: number): string {
  const plain = withinSentence(text, zone, now);
  return plain.charAt(0).toUpperCase() + plain.slice(1);
}

/** Returns "in November 2026" for the first of it and the first of the next month; null: it is longer. */
function monthOf([year, month, nextYear, next]: number[]): string | null {
  if (nextYear! * 12 + next! !== year! * 12 + month! + 1) return null;
  return `in ${formatted(Date.UTC(year!, month! - 1), "UTC", "month")}`;
}

/** Returns it as a part of a sentence, after a colon. */
export function withinSentence(text: string, zone: string, now: number): string {
  const plain = text
    .replace(NOT_FOUND, (_, what: string) => `there is no such ${what.toLowerCase()} any more`)
    .replace(FIELDS, "")
    .replace(PART, "")
    .replace(NAME, (field) => NAMES[field]!)
    .replace(OPTION, "")
    .replace(QUOTED, "")
    .replace(AMOUNT, (amount) => digitsOf(amount, 2))
    .replace(COUNTED, (_, measure: string) => hoursOfMeasure(measure))
    .replace(PERIOD, (found, ...parts: string[]) => monthOf(parts.slice(0, 4).map(Number)) ?? found)
    .replace(COMPARISON, (_, name: string, sign: string, value: string) => inWords([[sign, `$${name}`, value]]))
    .replace(INSTANT, (found, day: string, clock: string) => {
      const at = Date.parse(`${day}T${clock}:00Z`);
      return Number.isNaN(at) ? found : moment(at, zone, now);
    })
    .trim();
  return plain || text;
}
