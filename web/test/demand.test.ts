// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { DemandRow, ForecastRow } from "../src/api/reports.ts";
import {
  accuracyInWords,
  demandInWords,
  demandOf,
  forecastInWords,
  mostRefused,
  reasonsOf,
} from "../src/words/demand.ts";

const HOUR = 3600;

function aRow(changes: Partial<DemandRow> = {}): DemandRow {
  return { refused: 0, refused_distinct: 0, refused_seconds: 0, waited: 0, granted: 0, timed_out: 0, ...changes };
}

test("what was refused is said with how much that would have been, and of which different ones", () => {
  const rows = [
    aRow({ code: "not_enough_resources", refused: 9, refused_distinct: 2, refused_seconds: 20 * HOUR }),
    aRow({ code: "limit_exceeded", refused: 3, refused_distinct: 1, refused_seconds: 4 * HOUR }),
  ];
  assert.deepEqual(demandInWords(rows, "physical:host"), [
    "12 requests refused, 3 of them different ones: 24 host hours were not had.",
  ]);
  assert.deepEqual(demandInWords([aRow({ refused: 1, refused_distinct: 1 })], "network"), ["1 request refused."]);
  assert.equal(demandOf(rows).refused, 12);
});

test("who waited is said with what became of it", () => {
  assert.deepEqual(demandInWords([aRow({ waited: 1.5 * HOUR, granted: 2, timed_out: 1 })], "physical:host"), [
    "1.5 hours were waited in line.",
    "2 leases got what they waited for, 1 lease timed out.",
  ]);
  assert.deepEqual(demandInWords([aRow({ granted: 1 })], "physical:host"), ["1 lease got what it waited for."]);
});

test("where all had what they asked for there is nothing to say", () => {
  assert.deepEqual(demandInWords([], "physical:host"), []);
  assert.deepEqual(reasonsOf([aRow({ code: "", waited: HOUR })]), []);
});

test("reasons are in words, the most frequent first; those of later versions as they are called", () => {
  const rows = [
    aRow({ code: "painted_over", refused: 1 }),
    aRow({ code: "not_enough_resources", refused: 2 }),
    aRow({ code: "not_enough_resources", refused: 3 }),
  ];
  assert.deepEqual(reasonsOf(rows), [
    { reason: "not enough was free", refused: 5 },
    { reason: "painted over", refused: 1 },
  ]);
});

test("a forecast says what is promised, and what is expected only if it is known of every day", () => {
  const day = (median: number | null): ForecastRow => ({
    day: "2026-12-01",
    kind: "host",
    registered: 100,
    promised: 30,
    expected: median === null ? null : { lower: median, median, upper: median },
  });
  assert.equal(forecastInWords([day(40), day(60)]), "In the next 2 days 30 % is promised, and 50 % expected.");
  assert.equal(forecastInWords([day(40), day(null)]), "In the next 2 days 30 % is promised.");
  assert.equal(forecastInWords([]), "In the next 0 days 0 % is promised.");
});

test("how far forecasts were off is said only if it is known", () => {
  assert.equal(accuracyInWords({ days: 28, mean_error: null }), "");
  assert.match(accuracyInWords({ days: 28, mean_error: 0.07 }), /In the last 28 days it was off by 7 %/);
});

test("where nothing was reserved, what was refused most often is told of", () => {
  const rows = [
    aRow({ resource_type: "network", refused: 2 }),
    aRow({ resource_type: "physical:host", refused: 1 }),
    aRow({ resource_type: "physical:host", refused: 2 }),
  ];
  assert.equal(mostRefused(rows), "physical:host");
  assert.equal(mostRefused([]), "");
});
