// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Row } from "../src/grid/layout.ts";
import { freeOnly } from "../src/pages/calendar/data.ts";
import { refusalOf } from "../src/pages/leases/fits.tsx";
import { queryOf } from "../src/words/lease-list.ts";

function row(key: string, ...blocks: [start: number, end: number][]): Row {
  const made = blocks.map(([start, end]) => ({ key: `${start}`, kind: "other" as const, start, end, label: "" }));
  return { key, name: key, detail: "", blocks: made };
}

test("only rows that nothing occupies in the window are left; what ends as it begins is no obstacle", () => {
  const rows = [
    row("before", [0, 10]),
    row("inside", [12, 14]),
    row("after", [20, 30]),
    row("over", [0, 30]),
    row("free"),
  ];
  const names = rows.map((one) => one.key);
  const found = freeOnly(rows, names, { start: 10, end: 20 });
  assert.deepEqual(found.of, ["before", "after", "free"]);
  assert.deepEqual(
    found.rows.map((one) => one.key),
    found.of,
  );
  assert.deepEqual(freeOnly(rows, names, null).of, names);
});

test("degraded leases are asked for in any state, past ones not at all", () => {
  assert.equal(queryOf(false, ["degraded"], "").status, undefined);
  assert.equal(queryOf(false, ["degraded"], "").degraded, "true");
  assert.equal(
    queryOf(false, ["active", "degraded"], "").status,
    "in:IN_PROGRESS,STARTING,ACTIVE,UPDATING,TERMINATING",
  );
  assert.equal(queryOf(true, ["degraded"], "").degraded, undefined);
});

test("what does not fit says how much of it is free", () => {
  const why = { pointer: "", window: { start_date: "", end_date: "" }, steps: [], message: "" };
  assert.equal(
    refusalOf({ openings: [], reasons: [{ ...why, asked: 3, free: 1 }] }),
    "This does not fit: only 1 of 3 is free for the whole time.",
  );
  assert.equal(
    refusalOf({ openings: [], reasons: [{ ...why, asked: 3, free: 2 }] }),
    "This does not fit: only 2 of 3 are free for the whole time.",
  );
  assert.equal(
    refusalOf({ openings: [], reasons: [{ ...why, asked: 3, free: 0 }] }),
    "This does not fit: nothing of it is free for the whole time.",
  );
  assert.equal(
    refusalOf({ openings: [], reasons: [] }),
    "This does not fit: what it has is booked for a part of that time.",
  );
  // It cannot keep what it has: the hosts of others that end sooner do not help.
  const steps = [{ code: "promised", removed: 54, remaining: 1, until: "2026-11-28T01:57:00Z" }];
  const longer = { ...why, asked: 1, free: 0, steps: [...steps, { code: "in_use", removed: 1, remaining: 0 }] };
  assert.equal(
    refusalOf({ openings: [], reasons: [longer] }, true),
    "This does not fit: what it has is booked for a part of that time.",
  );
  const more = { ...why, asked: 3, free: 1, steps };
  assert.equal(
    refusalOf({ openings: [], reasons: [more] }, true),
    "This does not fit: only 1 of 3 is free for the whole time.",
  );
  assert.match(refusalOf({ openings: [], reasons: [more] }) ?? "", /for the whole time, again from /);
  const opening = { start_date: "", end_date: "", last_start_date: "", open_until: null, reservations: [] };
  assert.equal(refusalOf({ openings: [{ ...opening, refusals: [] }], reasons: [] }), null);
  const refusals = [{ code: "reservation.limit_exceeded", message: "a lease may last 7 days" }];
  assert.equal(
    refusalOf({ openings: [{ ...opening, refusals }], reasons: [] }),
    "Would be refused: a lease may last 7 days.",
  );
});
