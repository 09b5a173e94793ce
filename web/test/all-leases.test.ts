// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import "temporal-polyfill/global";
import { LISTS, askedOf, ownersOf, queryOf } from "../src/words/all-leases.ts";

const NOW = Date.parse("2026-11-23T10:20:30Z");
const asked = (params: Record<string, string>) => {
  const { fields: _, ...query } = queryOf(new URLSearchParams(params), NOW, "Europe/Berlin");
  return query;
};
const order = { sort_key: "start_date", sort_dir: "asc" };

test("what runs now comes first, what has ended last comes first of what is past", () => {
  assert.deepEqual(asked({}), order);
  assert.deepEqual(asked({ states: "past" }), { sort_key: "end_date", sort_dir: "desc", state: "past" });
  assert.deepEqual(asked({ states: "past,failed" }), { ...order, state: "all", status: "in:ERROR,TERMINATED" });
  assert.deepEqual(asked({ sort: "created_at", dir: "desc" }), { sort_key: "created_at", sort_dir: "desc" });
});

test("nonsense in an address is left out", () => {
  assert.deepEqual(asked({ states: "x", when: "y", by: "start", sort: "z", from: "2026-12-01" }), order);
  assert.deepEqual(asked({ when: "range", from: "2026-02-30", to: "soon" }), order);
});

test("what should have started or ended two minutes ago is late", () => {
  assert.deepEqual(asked(LISTS.lateStart), {
    ...order,
    status: "in:PENDING,STARTING",
    start_date: "lt:2026-11-23T10:18:00Z",
  });
  assert.deepEqual(asked(LISTS.lateEnd), {
    ...order,
    status: "in:ACTIVE,UPDATING,TERMINATING",
    end_date: "lt:2026-11-23T10:18:00Z",
  });
});

test("the next days are asked for with the same words for an hour", () => {
  const bounds = ["gte:now", "lt:2026-11-30T11:00:00Z"];
  assert.deepEqual(asked(LISTS.starting), { ...order, status: "in:CREATING,PENDING", start_date: bounds });
  assert.deepEqual(asked({ when: "now" }), {
    ...order,
    start_date: "lt:2026-11-23T10:21:00Z",
    end_date: "gt:2026-11-23T10:20:00Z",
  });
});

test("days of a range are those of the zone, the last one whole", () => {
  const range = { when: "range", from: "2026-12-01", to: "2026-12-02" };
  assert.deepEqual(asked(range), { ...order, from: "2026-11-30T23:00:00Z", to: "2026-12-02T23:00:00Z" });
  assert.deepEqual(asked({ ...range, by: "end" }), {
    ...order,
    end_date: ["gte:2026-11-30T23:00:00Z", "lt:2026-12-02T23:00:00Z"],
  });
});

test("each list that is counted elsewhere is one that the page can show", () => {
  for (const [name, params] of Object.entries(LISTS)) {
    const read = askedOf(new URLSearchParams(params));
    assert.ok(read.states.length > 0 || read.time !== "", name);
  }
});

test("the leases of a user can be asked for, and who has leases is proposed", () => {
  assert.deepEqual(asked({ user: "alice" }), { ...order, user_id: "alice" });
  const lease = (project_id: string, user_id: string) => ({ project_id, user_id });
  assert.deepEqual(ownersOf([lease("physics", "erin"), lease("biology", "bob"), lease("physics", "bob")]), {
    projects: ["biology", "physics"],
    users: ["bob", "erin"],
  });
});
