// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import "temporal-polyfill/global";
import type { UsageReport, UsageRow } from "../src/api/reports.ts";
import {
  barsOf,
  highestMark,
  hoursOf,
  joined,
  labelOf,
  partInWords,
  percentOf,
  periodInWords,
  periodOf,
  sharesOf,
  spanOf,
  spansOf,
  thousandsOf,
  sumsOf,
  toDays,
  typesOf,
  usageInWords,
} from "../src/words/usage.ts";

const NOW = Date.parse("2026-11-26T13:00:00Z");
const HOUR = 3600;
const PARIS = "Europe/Paris";
const asked = (params: Record<string, string>, now = NOW) => periodOf(new URLSearchParams(params), now, PARIS);

function aReport(changes: Partial<UsageReport> = {}): UsageReport {
  return {
    from: "2026-10-31T23:00:00Z",
    to: "2026-11-30T23:00:00Z",
    time_zone: PARIS,
    step: "week",
    computed_through: "2026-11-26T13:00:00Z",
    rows: [],
    ...changes,
  };
}

test("months and quarters are those of the zone, and their last day belongs to them", () => {
  assert.deepEqual(asked({}), { name: "", first: "2026-11-01", last: "2026-11-30" });
  assert.deepEqual(asked({ period: "last-month" }), { name: "last-month", first: "2026-10-01", last: "2026-10-31" });
  assert.deepEqual(asked({ period: "quarter" }), { name: "quarter", first: "2026-10-01", last: "2026-12-31" });
  // In Paris the month has begun.
  assert.equal(asked({}, Date.parse("2026-11-30T23:30:00Z")).first, "2026-12-01");
  assert.equal(asked({ period: "last-month" }, Date.parse("2026-01-15T12:00:00Z")).first, "2025-12-01");
  assert.deepEqual(spanOf(asked({})), { from: "2026-11-01", to: "2026-12-01" });
});

test("days of an address are a period, and those that are none are this month", () => {
  const days = { period: "days", from: "2026-11-02", to: "2026-11-02" };
  assert.deepEqual(spanOf(asked(days)), { from: "2026-11-02", to: "2026-11-03" });
  for (const [from, to] of [
    ["2026-11-31", "2026-12-01"],
    ["2026-11-03", "2026-11-02"],
    ["soon", "later"],
  ] as const) {
    assert.equal(asked({ period: "days", from, to }).first, "2026-11-01");
  }
  assert.deepEqual(toDays(asked({ period: "last-month" })), { period: "days", from: "2026-10-01", to: "2026-10-31" });
});

test("a period is said as a month where it is one", () => {
  assert.equal(periodInWords(asked({})), "November 2026");
  assert.equal(periodInWords({ name: "days", first: "2026-11-01", last: "2026-11-14" }), "1 Nov – 14 Nov 2026");
  assert.equal(periodInWords({ name: "days", first: "2025-12-30", last: "2026-01-02" }), "30 Dec 2025 – 2 Jan 2026");
  assert.equal(periodInWords({ name: "days", first: "2026-11-02", last: "2026-11-02" }), "2 Nov 2026");
});

test("there is a bar for each week, cut at the edges of the period, and what rows have is in theirs", () => {
  const rows: UsageRow[] = [
    { from: "2026-10-31T23:00:00Z", resource_type: "physical:host", reserved: 5 * HOUR, used: HOUR, idle: HOUR },
    { from: "2026-11-01T23:00:00Z", resource_type: "physical:host", reserved: 2 * HOUR },
    { from: "2026-11-01T23:00:00Z", resource_type: "network", reserved: HOUR },
  ];
  const bars = barsOf(aReport({ rows }), "week");
  assert.deepEqual(
    bars.map((bar) => partInWords(bar, "week", PARIS)),
    ["1 Nov", "2 Nov – 8 Nov", "9 Nov – 15 Nov", "16 Nov – 22 Nov", "23 Nov – 29 Nov", "30 Nov"],
  );
  assert.deepEqual(
    bars.map(({ sums }) => sums.reserved / HOUR),
    [5, 3, 0, 0, 0, 0],
  );
  assert.deepEqual(
    bars.map((bar) => labelOf(bar, "week", PARIS)),
    ["1 Nov", "2 Nov", "9 Nov", "16 Nov", "23 Nov", "30 Nov"],
  );
  assert.equal(bars.at(-1)!.to, Date.parse("2026-11-30T23:00:00Z"));
});

test("days follow each other without a gap where clocks change, and every second of a row is in one bar", () => {
  const october = { from: "2026-09-30T22:00:00Z", to: "2026-10-31T23:00:00Z" };
  const days = barsOf(aReport(october), "day");
  assert.equal(days.length, 31);
  assert.deepEqual(
    days.slice(1).map(({ from }) => from),
    days.slice(0, -1).map(({ to }) => to),
  );
  assert.deepEqual([...new Set(days.map(({ from, to }) => (to - from) / 3_600_000))].sort(), [24, 25]);
  const rows = days.map(({ from }, index) => ({ from: new Date(from).toISOString(), reserved: index + 1 }));
  for (const step of ["day", "week", "month"] as const) {
    const total = barsOf(aReport({ ...october, rows }), step).reduce((sum, bar) => sum + bar.sums.reserved, 0);
    assert.equal(total, (31 * 32) / 2);
  }
  assert.equal(partInWords(days[0]!, "day", PARIS), "Thu 1 Oct");
  const [month] = barsOf(aReport(october), "month");
  assert.deepEqual([labelOf(month!, "month", PARIS), partInWords(month!, "month", PARIS)], ["Oct", "October 2026"]);
});

test("what is neither used nor idle was not looked at", () => {
  const sums = sumsOf([
    { reserved: 10, used: 4, idle: 1, unseen: 5, leases: 1 },
    { reserved: 3, leases: 2 },
  ]);
  assert.deepEqual([sums.reserved, sums.used, sums.idle, sums.unseen, sums.leases], [13, 4, 1, 8, 3]);
});

test("energy is that of the rows that have one, in kilowatt-hours", () => {
  const rated = { reserved: 1, energy_wh: 12_340 };
  assert.equal(sumsOf([rated, { reserved: 1, energy_wh: null }, { reserved: 1 }]).energy, 12_340);
  assert.equal(sumsOf([{ reserved: 1, energy_wh: null }]).energy, null);
  assert.equal(sumsOf([{ reserved: 1, energy_wh: 0 }]).energy, 0);
  assert.deepEqual([0, 12_340, 1_234_567].map(thousandsOf), ["0.0", "12.3", "1,234.6"]);
});

test("shares are sorted by what is reserved; what is not told is a share, too", () => {
  const rows: UsageRow[] = [
    { user_id: "curie", resource_type: "network", reserved: 1 },
    { user_id: null, resource_type: "network", reserved: 5 },
    { user_id: "curie", resource_type: "physical:host", reserved: 2 },
  ];
  assert.deepEqual(
    sharesOf(rows, "user").map(({ value, sums }) => [value, sums.reserved]),
    [
      [null, 5],
      ["curie", 3],
    ],
  );
  assert.deepEqual(typesOf(rows), ["network", "physical:host"]);
  assert.deepEqual(typesOf([]), []);
});

test("hours and percents never say nothing of what is there, nor all of what is not", () => {
  assert.deepEqual([0, 60, 5400, 99.96 * HOUR, 1_234_567 * HOUR].map(hoursOf), [
    "0",
    "< 0.1",
    "1.5",
    "100",
    "1,234,567",
  ]);
  assert.deepEqual(
    [percentOf(0, 10), percentOf(1, 1000), percentOf(999, 1000), percentOf(10, 10), percentOf(1, 0)],
    ["0 %", "< 1 %", "> 99 %", "100 %", "0 %"],
  );
});

test("a report is said in a sentence, also where nobody looks at the use", () => {
  const said = (reserved: number, used = 0, idle = 0) =>
    usageInWords(sumsOf([{ reserved, used, idle }]), "physical:host");
  assert.equal(
    said(100 * HOUR, 50 * HOUR, 40 * HOUR),
    "100 host hours reserved: 50 % used, 40 % idle, 10 % not looked at",
  );
  assert.equal(said(100 * HOUR, 60 * HOUR, 40 * HOUR), "100 host hours reserved: 60 % used, 40 % idle");
  assert.equal(said(HOUR), "1 host hour reserved; whether it was used was not looked at");
  assert.equal(said(0), "0 host hours reserved");
});

test("the highest mark of an axis is not lower than the highest bar, nor more than twice as high", () => {
  for (const most of [0.01, 0.7, 1, 3, 4.2, 9.99, 10, 250, 1001, 99_999]) {
    assert.ok(highestMark(most) >= most && highestMark(most) <= 2.01 * most, String(most));
  }
  assert.equal(highestMark(0), 1);
});

test("a long period is asked for by months that follow each other, one that is too long not at all", () => {
  const days = (first: string, last: string) => spansOf({ name: "days", first, last });
  assert.deepEqual(spansOf(asked({ period: "quarter" })), [
    { from: "2026-10-01", to: "2026-11-01" },
    { from: "2026-11-01", to: "2026-12-01" },
    { from: "2026-12-01", to: "2027-01-01" },
  ]);
  assert.deepEqual(days("2026-10-15", "2026-11-14"), [{ from: "2026-10-15", to: "2026-11-15" }]);
  assert.deepEqual(days("2026-10-15", "2026-11-15"), [
    { from: "2026-10-15", to: "2026-11-01" },
    { from: "2026-11-01", to: "2026-11-16" },
  ]);
  assert.equal(days("2026-01-01", "2026-12-31").length, 12);
  assert.deepEqual(days("2026-01-01", "2027-01-01"), []);
});

test("the report of several parts has the rows of all, and does not say how many leases there were", () => {
  const october = aReport({
    from: "2026-09-30T22:00:00Z",
    to: "2026-10-31T23:00:00Z",
    computed_through: "2026-10-31T23:00:00Z",
    rows: [{ reserved: 2, leases: 1 }],
  });
  const november = aReport({ rows: [{ reserved: 3, leases: 1 }] });
  const december = aReport({
    from: "2026-11-30T23:00:00Z",
    to: "2026-12-31T23:00:00Z",
    computed_through: "2026-11-30T23:00:00Z",
  });
  const all = joined([october, november, december]);
  assert.deepEqual([all.from, all.to, all.computed_through], [october.from, december.to, november.computed_through]);
  assert.deepEqual([sumsOf(all.rows).reserved, sumsOf(all.rows).leases], [5, null]);
  assert.equal(joined([november]), november);
});
