// SPDX-License-Identifier: Apache-2.0
import "temporal-polyfill/global";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Occurrence, Series } from "../src/api/types.ts";
import {
  clockOf,
  firstFitting,
  firstGranted,
  firstInWords,
  fitInWords,
  occurrencePhase,
  repeats,
  ruleInWords,
  ruleOf,
  seriesPhase,
  untilLocal,
  whenOf,
} from "../src/words/series.ts";

const START = "2026-11-25T09:00";
const AT = Date.parse("2026-11-25T09:00:00Z");

test("how often something recurs becomes a rule", () => {
  const until = "2026-12-31";
  assert.equal(ruleOf({ every: "week", until }, START), "FREQ=WEEKLY;BYDAY=WE;UNTIL=20261231");
  assert.equal(ruleOf({ every: "fortnight", until }, START), "FREQ=WEEKLY;INTERVAL=2;BYDAY=WE;UNTIL=20261231");
  assert.equal(ruleOf({ every: "workday", until }, START), "FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;UNTIL=20261231");
  assert.equal(ruleOf({ every: "day", until }, START), "FREQ=DAILY;UNTIL=20261231");
  assert.equal(ruleOf({ every: "month", until }, START), "FREQ=MONTHLY;BYMONTHDAY=25;UNTIL=20261231");
});

test("the choices name the day of the first start", () => {
  assert.deepEqual(
    repeats(START).map((one) => one.text),
    ["each Wednesday", "every other Wednesday", "from Monday to Friday", "each day", "on day 25 of each month"],
  );
});

test("from Monday to Friday begins on one of them", () => {
  assert.ok(!repeats("2026-11-28T09:00").some((one) => one.value === "workday"));
});

test("the end of each is a time of the clock, days later if need be", () => {
  assert.equal(untilLocal(AT, AT + 3.5 * 3_600_000, "UTC"), "12:30");
  assert.equal(untilLocal(AT, AT + 25 * 3_600_000, "UTC"), "10:00+1d");
  assert.deepEqual(whenOf({ every: "day", until: "2026-12-01" }, AT, AT + 3_600_000, "Europe/Berlin"), {
    rule: "FREQ=DAILY;UNTIL=20261201",
    start: "2026-11-25T10:00",
    time_zone: "Europe/Berlin",
    until_local: "11:00",
  });
});

test("rules are said in words, and those without words are shown", () => {
  assert.equal(ruleInWords("FREQ=WEEKLY;BYDAY=MO,WE;COUNT=24"), "each Monday and Wednesday, 24 times");
  assert.equal(ruleInWords("FREQ=WEEKLY;UNTIL=20261231;BYDAY=MO"), "each Monday, until Thu 31 Dec 2026");
  assert.equal(ruleInWords("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR"), "Monday to Friday");
  assert.equal(ruleInWords("FREQ=WEEKLY;INTERVAL=2;BYDAY=FR"), "every 2 weeks on Friday");
  assert.equal(ruleInWords("FREQ=DAILY"), "each day");
  assert.equal(ruleInWords("FREQ=MONTHLY;BYDAY=1MO"), "each month on first Monday");
  assert.equal(ruleInWords("FREQ=MONTHLY;BYMONTHDAY=15"), "each month on day 15");
  assert.equal(ruleInWords("FREQ=YEARLY;BYMONTH=3;BYDAY=1MO"), "FREQ=YEARLY;BYMONTH=3;BYDAY=1MO");
});

test("a series and each of it have a word and a shape", () => {
  const now = Date.parse("2026-11-26T12:00:00Z");
  const phase = (more: Partial<Series>) => {
    const series = { status: "ACTIVE", start: "2026-11-26T09:00:00", time_zone: "Europe/Berlin", ...more } as Series;
    return seriesPhase(series, "Europe/Berlin", now);
  };
  assert.deepEqual(phase({}), { mark: "active", word: "going on" });
  assert.deepEqual(phase({ status: "FAILED", start: "2026-12-01T09:00:00" }), { mark: "failed", word: "not booked" });
  const begins = { mark: "booked", word: "booked", next: "begins Tuesday 09:00" };
  assert.deepEqual(phase({ start: "2026-12-01T09:00:00" }), begins);
  // The first of them may have been cancelled.
  const [gone, first] = [
    { state: "cancelled", start_date: "2026-11-26T08:00:00Z" },
    { state: "booked", start_date: "2026-12-01T08:00:00Z" },
  ] as Occurrence[];
  assert.deepEqual(phase({ occurrences: [gone!, first!] }), begins);
  assert.deepEqual(occurrencePhase({ state: "unfit" }), { mark: "failed", word: "does not fit" });
  const of = (...states: ("booked" | "unfit")[]) => fitInWords(states.map((state) => ({ state })));
  assert.equal(of("booked", "booked"), "All 2 fit.");
  assert.equal(of("booked", "unfit", "booked"), "2 of 3 fit.");
  assert.equal(of("booked"), "It fits.");
  assert.equal(of("unfit"), "It does not fit.");
});

test("times of day are those of the rule", () => {
  const start = "2026-11-25T09:00:00";
  assert.equal(clockOf({ start, until_local: "12:30:00", duration: null }), "09:00 until 12:30");
  assert.equal(clockOf({ start, until_local: "06:00:00+1d", duration: null }), "09:00 until 06:00 1 day later");
  assert.equal(clockOf({ start, until_local: null, duration: "PT8H" }), "09:00 for 8h");
});

test("of a series that does not fit as a whole the first ones are offered, until the last day of them", () => {
  const days = (...states: ("planned" | "unfit")[]) =>
    states.map((state, index) => ({ state, recurrence_id: `2030-05-0${index + 1}T08:00:00` }));
  const first = firstFitting(days("planned", "planned", "unfit", "planned"));
  assert.deepEqual(first, { count: 2, of: 4, until: "2030-05-02" });
  assert.equal(firstInWords(first!), "The first 2 of 4, until Thu 2 May 2030");
  assert.equal(firstFitting(days("unfit", "planned")), null);
  assert.equal(firstFitting(days("planned", "planned")), null);
  const granted = firstGranted({ fits: { occurrences: 3, until: "2030-04-04T08:00:00" } });
  assert.equal(firstInWords(granted!), "The first 3, until Thu 4 Apr 2030");
  assert.equal(firstGranted({ fits: {} }), null);
  assert.equal(firstGranted(undefined), null);
});
