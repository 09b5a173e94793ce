// SPDX-License-Identifier: Apache-2.0
import "temporal-polyfill/global";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Occurrence, Price, Series } from "../src/api/types.ts";
import { mostInWords } from "../src/words/series.ts";
import { type SeriesForm, changeInWords, changeOf, formOf, scopeOf } from "../src/words/series-change.ts";

const NOW = Date.parse("2026-12-01T12:00:00Z");

function occurrence(day: string, changes: Partial<Occurrence> = {}): Occurrence {
  return {
    recurrence_id: `${day}T09:00:00`,
    start_date: `${day}T09:00:00Z`,
    end_date: `${day}T12:00:00Z`,
    state: "booked",
    lease_id: day,
    lease_status: "PENDING",
    changed: false,
    reason: null,
    opening: null,
    ...changes,
  };
}

const SERIES: Series = {
  id: "s",
  name: "course",
  project_id: "p",
  user_id: "u",
  status: "ACTIVE",
  reason: null,
  rule: "FREQ=WEEKLY;UNTIL=20261231T235959;BYDAY=MO",
  start: "2026-11-30T09:00:00",
  time_zone: "UTC",
  duration: null,
  until_local: "12:00:00",
  fit: "all",
  reservations: [{ resource_type: "physical:host", min: 2, max: 2 }],
  reminders: [{ at: "-PT2H", from: "end", text: "save" }],
  booked_until: null,
  created_at: "2026-11-01T00:00:00Z",
  deleted_at: null,
  occurrences: [
    occurrence("2026-11-30", { state: "over" }),
    occurrence("2026-12-07"),
    occurrence("2026-12-14", { state: "cancelled" }),
    occurrence("2026-12-21"),
  ],
};

function changed(part: Partial<SeriesForm>, since: string | null = null, series = SERIES) {
  const shown = formOf(series, since, NOW);
  return changeOf(series, since, shown, { ...shown, ...part });
}

test("the most that each may cost is sent if it is another one, and taken away by nothing", () => {
  assert.deepEqual(changed({ most: " " }), {});
  assert.deepEqual(changed({ most: "64.50 " }), { max_price: "64.50" });
  const bound = { ...SERIES, max_price: "80.00" };
  assert.deepEqual(changed({ most: "80.00" }, null, bound), {});
  assert.deepEqual(changed({ most: "" }, null, bound), { max_price: null });
  assert.equal(mostInWords(SERIES), "");
  assert.equal(mostInWords(bound), "Each may cost at most 80.00");
  const price = { amount: "40.00", currency: "EUR" } as Price;
  const priced = { ...bound, occurrences: [{ ...SERIES.occurrences![1]!, price }] };
  assert.equal(mostInWords(priced), "Each may cost at most 80.00 EUR");
});

test("reminders are sent as a whole, and only if they are others", () => {
  const shown = formOf(SERIES, null, NOW).reminders;
  assert.deepEqual(shown, SERIES.reminders);
  assert.deepEqual(changed({ reminders: [...shown] }), {});
  assert.deepEqual(changed({ reminders: [] }, "2026-12-21T09:00:00"), { reminders: [], from: "2026-12-21T09:00:00" });
});

test("a change is about what is to come, from one on", () => {
  assert.deepEqual(
    scopeOf(SERIES, null, NOW).map((one) => one.lease_id),
    ["2026-12-07", "2026-12-21"],
  );
  assert.equal(scopeOf(SERIES, "2026-12-21T09:00:00", NOW).length, 1);
});

test("only what differs is sent", () => {
  assert.deepEqual(changed({}), {});
  assert.deepEqual(changed({ name: "lab" }), { name: "lab" });
  assert.deepEqual(changed({ end: "13:00" }, "2026-12-21T09:00:00"), {
    until_local: "13:00",
    from: "2026-12-21T09:00:00",
  });
  // What has begun is not moved: the start is that of the first to come.
  assert.deepEqual(changed({ start: "10:00" }), { start: "2026-12-07T10:00" });
  assert.deepEqual(changed({ until: "2027-01-31" }), { rule: "FREQ=WEEKLY;BYDAY=MO;UNTIL=20270131" });
  assert.deepEqual(changed({ every: "day" }), {
    rule: "FREQ=DAILY;UNTIL=20261231",
    start: "2026-12-07T09:00",
  });
});

test("an end before the start is on the next day", () => {
  assert.deepEqual(changed({ start: "22:00", end: "06:00" }), { start: "2026-12-07T22:00", until_local: "06:00+1d" });
  const night = { ...SERIES, start: "2026-11-30T22:00:00", until_local: "06:00:00+1d" };
  assert.deepEqual(changed({ end: "07:00" }, "2026-12-21T22:00:00", night).until_local, "07:00+1d");
  assert.deepEqual(changed({ end: "23:30" }, "2026-12-21T22:00:00", night).until_local, "23:30");
});

test("a series that is counted ends with its last one, and one without an end may get one", () => {
  const counted = { ...SERIES, rule: "FREQ=WEEKLY;COUNT=4" };
  assert.equal(formOf(counted, null, NOW).until, "2026-12-21");
  const endless = { ...SERIES, rule: "FREQ=WEEKLY" };
  assert.equal(formOf(endless, null, NOW).until, "");
  assert.deepEqual(changed({ until: "2026-12-31" }, null, endless), { rule: "FREQ=WEEKLY;UNTIL=20261231" });
  assert.deepEqual(changed({ every: "day" }, null, endless).rule, "FREQ=DAILY");
});

test("what comes of a change is said in numbers", () => {
  const before = scopeOf(SERIES, null, NOW);
  const moved = { ...before[0]!, end_date: "2026-12-07T13:00:00Z" };
  const fresh = occurrence("2026-12-28", { lease_id: null });
  const unfit = occurrence("2026-12-29", { lease_id: null, state: "unfit" });
  assert.equal(
    changeInWords(before, [moved, fresh, unfit]),
    "Of 2 leases to come: 1 gets other times, 1 is newly booked, 1 is given up, 1 does not fit.",
  );
  assert.equal(changeInWords(before, before), "Of 2 leases to come: 2 keep their times.");
});
