// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CalendarResource } from "../src/api/types.ts";
import { changesOf } from "../src/forms/pairs.tsx";
import { maintenanceSoon, promisedUntil } from "../src/pages/resources/state.tsx";
import { busiest, useInWords } from "../src/pages/overview/sums.ts";

const HOUR = 3_600_000;
const NOW = Date.parse("2026-11-23T10:00:00Z");

test("what is out of use is told without what is promised, so that the numbers add up", () => {
  const numbers = { free: [9, 8, 5, 8], total: [12, 12, 12, 12], promised: [1, 2, 5, 2], out_of_use: [2, 2, 2, 2] };
  const capacity = {
    from: "2026-11-23T06:00:00Z",
    to: "2026-11-23T22:00:00Z",
    step_seconds: 14_400,
    series: [{ group: {}, ...numbers }],
  };
  assert.equal(
    useInWords(capacity, numbers, { zone: "UTC", now: NOW, noun: "hosts" }),
    "Now at least 8 of 12 hosts are free; of the others 2 are promised, 2 out of use and promised to nobody. " +
      "Fewest free from now on: 5, Mon 23 Nov 14:00.",
  );
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
      ["ends", new Date(NOW + 5 * HOUR).toISOString()],
      ["goes on", null],
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
