// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CalendarResource } from "../src/api/types.ts";
import { changesOf } from "../src/forms/pairs.tsx";
import { promisedUntil } from "../src/pages/resources/state.tsx";
import { type Brief, busiest, sorted } from "../src/pages/overview/sums.ts";

const HOUR = 3_600_000;
const NOW = Date.parse("2026-11-23T10:00:00Z");

function lease(status: string, start: number, end: number, more: Partial<Brief> = {}): Brief {
  const dates = {
    start_date: new Date(NOW + start * HOUR).toISOString(),
    end_date: new Date(NOW + end * HOUR).toISOString(),
  };
  return {
    id: status,
    name: status,
    status,
    degraded: false,
    deleted_at: null,
    project_id: "p",
    user_id: "u",
    conditions: [],
    ...dates,
    ...more,
  };
}

test("leases are sorted by what they need", () => {
  const soon = lease("PENDING", 5, 6);
  const later = lease("PENDING", 500, 600);
  const late = lease("PENDING", -1, 400);
  const broken = lease("ACTIVE", -5, 400, { degraded: true });
  const failed = lease("ERROR", -5, 5);
  const ending = lease("ACTIVE", -5, 3);
  const gone = lease("ACTIVE", -5, 3, { deleted_at: "2026-11-23T09:00:00Z" });
  const found = sorted([later, soon, late, broken, failed, ending, gone], NOW, 168 * HOUR);
  assert.deepEqual(found.starting, [soon]);
  assert.deepEqual(found.ending, [ending, soon]);
  assert.deepEqual(found.late, [late]);
  assert.deepEqual(found.degraded, [broken]);
  assert.deepEqual(found.failed, [failed]);
});

test("a start that is due this minute is not late", () => {
  assert.deepEqual(sorted([lease("PENDING", -0.01, 5)], NOW, HOUR).late, []);
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
  assert.deepEqual(busiest(capacity), [
    { project: "b", hours: 16 },
    { project: "a", hours: 6 },
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
