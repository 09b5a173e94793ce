// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CalendarResource } from "../src/api/types.ts";
import { Rows, type View, sourceOf } from "../src/pages/calendar/data.ts";

const NOON = Date.parse("2031-03-03T12:00:00Z");
const HOUR = 3_600_000;
const VIEW: View = { from: NOON - 24 * HOUR, to: NOON + 24 * HOUR, now: NOON, project: "physics", mayChange: true };

/** A host with one lease of its own from 13:00 to 14:00. */
function host(id: string, status = "PENDING", user = "alice"): CalendarResource {
  const block = {
    kind: "mine",
    start: "2031-03-03T13:00:00Z",
    end: "2031-03-03T14:00:00Z",
    lease_id: "lease",
    reservation_id: "reservation",
    name: "work",
    user_id: user,
    status,
  };
  return { id, name: id, capacity: {}, properties: {}, blocks: [block] } as unknown as CalendarResource;
}

test("a resource that was not read again is the same row until the minute or the range changes", () => {
  const rows = new Rows();
  const resources = [host("h-1"), host("h-2")];
  const first = rows.of(resources, VIEW);
  assert.deepEqual(rows.of(resources, { ...VIEW, now: NOON + 59_000 }), first);
  assert.equal(rows.of(resources, VIEW)[0], first[0]);
  assert.notEqual(rows.of(resources, { ...VIEW, now: NOON + 60_000 })[0], first[0]);
  assert.notEqual(rows.of(resources, { ...VIEW, to: VIEW.to + HOUR })[0], first[0]);
});

test("blocks stay the same list until something in them changes", () => {
  const rows = new Rows();
  const blocks = rows.of([host("h-1")], VIEW)[0]!.blocks;
  assert.deepEqual(
    blocks.map(({ kind, mark, movable, label }) => [kind, mark, movable, label]),
    [["own", "booked", true, "work"]],
  );
  // In between nobody has looked at the row.
  rows.of([host("h-1")], { ...VIEW, now: NOON + 60_000 });
  assert.equal(rows.of([host("h-1")], { ...VIEW, now: NOON + 120_000 })[0]!.blocks, blocks);
  const active = rows.of([host("h-1", "ACTIVE")], VIEW)[0]!.blocks;
  assert.notEqual(active, blocks);
  assert.equal(active[0]!.mark, "active");
});

test("the state of a block follows the clock without being read again", () => {
  const rows = new Rows();
  const resources = [host("h-1")];
  assert.equal(rows.of(resources, VIEW)[0]!.blocks[0]!.mark, "booked");
  const due = rows.of(resources, { ...VIEW, now: NOON + HOUR })[0]!.blocks;
  assert.equal(due[0]!.mark, "changing");
  const over = rows.of(resources, { ...VIEW, now: NOON + 2 * HOUR })[0]!.blocks;
  assert.equal(over[0]!.movable, undefined);
});

test("a block that stays stands for what was read last", () => {
  const rows = new Rows();
  const block = rows.of([host("h-1")], VIEW)[0]!.blocks[0]!;
  assert.equal(rows.of([host("h-1", "PENDING", "bob")], VIEW)[0]!.blocks[0], block);
  assert.equal(sourceOf(block)?.block.user_id, "bob");
});
