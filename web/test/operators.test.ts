// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CalendarResource, Capacity, Lease } from "../src/api/types.ts";
import { changesOf } from "../src/forms/pairs.tsx";
import { maintenanceSoon, promisedUntil } from "../src/pages/resources/state.tsx";
import { shareInWords } from "../src/pages/resources/leases.tsx";
import { busiest, nextStep, useInWords } from "../src/pages/overview/sums.ts";
import { fromNow } from "../src/words/steps.ts";

const HOUR = 3_600_000;
const NOW = Date.parse("2026-11-23T10:00:00Z");

/** A capacity of twelve hosts with these free, and the numbers of its beginning. */
function capacityOf(from: string, hours: number, free: number[], promised = 2, atStart?: number): Capacity {
  const start = Date.parse(from);
  const point = { total: 12, free: atStart ?? 0, promised, out_of_use: 12 - promised - (atStart ?? 0) };
  const series = {
    group: {},
    free,
    total: free.map(() => 12),
    promised: free.map(() => promised),
    out_of_use: free.map((count) => 12 - promised - count),
    ...(atStart === undefined ? {} : { at_start: point }),
  };
  const to = new Date(start + hours * free.length * HOUR).toISOString();
  return { as_of: from, from, to, step_seconds: hours * 3600, measure: "resource", series: [series] };
}

test("what is said of now is of now itself, not of the fewest in the step that goes on", () => {
  // Hosts were given back in this step; in half an hour two more will be promised.
  const whole = capacityOf("2026-11-23T06:00:00Z", 4, [9, 3, 6, 8]);
  const near = capacityOf("2026-11-23T10:00:00Z", 0.5, [8, 6, 6, 6, 6, 6, 6, 6, 5, 6, 6, 6], 2, 8);
  const said = (capacity: Capacity, beside: Capacity | null) =>
    useInWords(capacity, beside, { zone: "UTC", now: NOW, noun: "hosts" });
  assert.equal(
    said(whole, near),
    "Now 8 of 12 hosts are free; of the others 2 are promised, 2 out of use and promised to nobody. " +
      "Fewest free from now on: 6, Mon 23 Nov 10:30.",
  );
  assert.equal(said(whole, null), "");
  const free = capacityOf("2026-11-23T10:00:00Z", 0.5, Array(16).fill(6), 2, 6);
  assert.match(said(capacityOf("2026-11-23T08:00:00Z", 4, [3, 6, 7]), free), /Fewest free from now on: 6, now\.$/);
  assert.match(said(capacityOf("2026-11-24T08:00:00Z", 4, [7, 5]), null), /^At first at least 7 of 12 hosts are free/);
});

test("what is read of now reaches beyond the step that goes on", () => {
  const whole = capacityOf("2026-11-23T06:00:00Z", 4, [9, 3, 6, 8]);
  assert.equal(nextStep(whole, NOW + HOUR), Date.parse("2026-11-23T18:00:00Z"));
  assert.equal(nextStep(whole, NOW + 90 * HOUR), null);
});

test("the strip of time begins with what is free now", () => {
  const { values, at } = fromNow([43, 43, 50], 49);
  assert.deepEqual(
    values.map((value, index) => [at(index), value]),
    [
      [0, 49],
      [0.5, 43],
      [1, 43],
      [2, 50],
    ],
  );
  assert.deepEqual(fromNow([43, 50], 43).values, [43, 50]);
});

test("hours of projects are added up, the busiest first", () => {
  const series = (project: string | null, promised: number[]) => ({
    group: { project_id: project },
    total: [],
    free: [],
    promised,
    out_of_use: [],
  });
  const capacity = {
    as_of: "",
    from: "",
    to: "",
    step_seconds: 7200,
    measure: "resource",
    series: [series("a", [1, 2]), series("b", [4, 4]), series(null, [9]), series("c", [0])],
  };
  const whole = { ...capacity, step_seconds: 3600, series: [{ ...series(null, []), total: [20, 20, 20, 20] }] };
  assert.deepEqual(busiest(capacity, whole), [
    { project: "b", hours: 16, percent: 20 },
    { project: "a", hours: 6, percent: 8 },
  ]);
});

test("only what changed of the properties is sent, and null for what goes", () => {
  const before = { gpu: "A100", rack: "r1", cores: 8 };
  assert.deepEqual(
    changesOf(before, [
      ["gpu", "H100"],
      ["cores", "8"],
      ["owner", "ops"],
      ["", "x"],
    ]),
    { gpu: "H100", rack: null, owner: "ops" },
  );
});

test("a host is promised until its lease ends, or for longer than what was read", () => {
  const block = (start: number, end: number | null, kind: "lease" | "cleaning" | "out_of_use" = "lease") => ({
    kind,
    start: new Date(NOW + start * HOUR).toISOString(),
    end: end === null ? null : new Date(NOW + end * HOUR).toISOString(),
    used: null,
  });
  const row = (id: string, ...blocks: ReturnType<typeof block>[]) => ({ id, blocks }) as unknown as CalendarResource;
  const rows = [
    row("ends", block(-1, 5)),
    row("goes on", block(-1, 24)),
    row("later", block(1, 24)),
    row("cleaned", block(-1, 5, "cleaning")),
    row("broken", block(-1, null, "out_of_use")),
  ];
  assert.deepEqual(
    [...promisedUntil(rows, NOW, NOW + 24 * HOUR)],
    [
      ["ends", { until: new Date(NOW + 5 * HOUR).toISOString(), part: null }],
      ["goes on", { until: null, part: null }],
    ],
  );
});

test("a host is in maintenance while its window goes on, and until it begins that is said a day before", () => {
  const window = (start: number, end: number) => ({
    kind: "out_of_use" as const,
    code: "maintenance",
    start: new Date(NOW + start * HOUR).toISOString(),
    end: new Date(NOW + end * HOUR).toISOString(),
  });
  const row = (id: string, ...blocks: object[]) => ({ id, blocks }) as unknown as CalendarResource;
  const rows = [
    row("now", window(-1, 5)),
    row("soon", window(-9, -3), window(20, 30)),
    row("later", window(30, 40)),
    row("broken", { ...window(-1, 5), code: "failed" }),
  ];
  assert.deepEqual([...maintenanceSoon(rows, NOW).keys()], ["now", "soon"]);
});

test("of a shared resource it is said how much is free, and until when something of it is promised", () => {
  const at = (hours: number) => new Date(NOW + hours * HOUR).toISOString();
  const block = (hours: number, UNIT: number) => ({ kind: "lease", start: at(-1), end: at(hours), used: { UNIT } });
  const row = (...blocks: object[]) =>
    [{ id: "solver", capacity: { UNIT: 20 }, blocks }] as unknown as CalendarResource[];
  const found = (...blocks: object[]) => promisedUntil(row(...blocks), NOW, NOW + 24 * HOUR).get("solver");
  assert.deepEqual(found(block(2, 6), block(9, 4)), {
    until: at(9),
    part: { free: "10 of 20 units free", none: false, first: at(2) },
  });
  assert.deepEqual(found(block(24, 6), block(9, 14)), {
    until: null,
    part: { free: "0 of 20 units free", none: true, first: at(9) },
  });
});

test("how much of a shared resource a lease has is what its allocations of it use", () => {
  const got = (id: string, used: Record<string, number> | null) => ({ resource: { id }, used });
  const lease = (...allocations: object[]) => ({ reservations: [{ allocations }] }) as unknown as Lease;
  const both = lease(got("solver", { UNIT: 6 }), got("other", { UNIT: 3 }), got("solver", { UNIT: 2 }));
  assert.equal(shareInWords(both, "solver"), "8 units");
  assert.equal(shareInWords(lease(got("pool", { GIGABYTES: 1500, VOLUMES: 2 })), "pool"), "1,500 GiB, 2 volumes");
  assert.equal(shareInWords(lease(got("solver", { UNIT: 1 })), "solver"), "1 unit");
  assert.equal(shareInWords(lease(got("solver", null)), "solver"), "all of it");
});
