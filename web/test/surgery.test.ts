// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease, Reservation } from "../src/api/types.ts";
import {
  cutBody,
  hostsOf,
  isOperable,
  mayMerge,
  mergeQueries,
  shrinkBody,
  shrinkInWords,
  swapInWords,
  maySplit,
} from "../src/words/surgery.ts";

function lease(id: string, changes: object = {}, hosts: readonly string[] = ["h-1", "h-2"]): Lease {
  const allocations = hosts.map((name) => ({
    resource: { id: name, type: "host", name: null },
    count: 1,
    used: null,
    status: "promised",
  }));
  return {
    id,
    project_id: "physics",
    status: "PENDING",
    start_date: "2026-12-01T08:00:00Z",
    end_date: "2026-12-02T08:00:00Z",
    reservations: [{ id: "r", resource_type: "physical:host", allocations }],
    ...changes,
  } as unknown as Lease;
}

test("hosts are named as they are shown, without those that were given back", () => {
  const one = lease("a");
  one.reservations[0]!.allocations[1]!.status = "released";
  assert.deepEqual(hostsOf(one), [{ name: "h-1", reservation: "r" }]);
});

test("what goes is all of a reservation, or so many of its hosts", () => {
  const one = lease("a");
  assert.deepEqual(cutBody(one, new Map()), []);
  assert.deepEqual(cutBody(one, new Map([["r", 0]])), []);
  assert.deepEqual(cutBody(one, new Map([["r", 1]])), [{ id: "r", count: 1 }]);
  assert.deepEqual(cutBody(one, new Map([["r", 2]])), [{ id: "r" }]);
  assert.deepEqual(cutBody(one, new Map([["r", true]])), [{ id: "r" }]);
});

test("leases of a project with the same window, or one after the other, may be merged", () => {
  const one = lease("a");
  const after = { start_date: one.end_date, end_date: "2026-12-03T08:00:00Z" };
  assert.equal(mayMerge(one, one), false);
  assert.equal(mayMerge(one, lease("b")), true);
  assert.equal(mayMerge(one, lease("b", after)), true);
  assert.equal(mayMerge(lease("a", { status: "ACTIVE" }), lease("b")), false);
  assert.equal(mayMerge(lease("a", { status: "ACTIVE" }), lease("b", after)), true);
  assert.equal(mayMerge(one, lease("b", { project_id: "chemistry" })), false);
  assert.equal(mayMerge(one, lease("b", { end_date: "2026-12-02T09:00:00Z" })), false);
  assert.equal(isOperable({ status: "WAITING" }), false);
});

test("a swap says which host goes and which comes", () => {
  assert.equal(swapInWords(lease("a"), lease("a", {}, ["h-2", "h-3"])), "It gives up h-1, and gets h-3.");
  assert.equal(swapInWords(lease("a"), lease("a")), "It keeps its hosts.");
});

test("hosts that are given up are sent by their reservation, and what is left is said", () => {
  const before = lease("a");
  const id = before.reservations[0]?.id;
  assert.equal(shrinkBody(before, new Set()), null);
  assert.equal(shrinkBody(before, new Set(["h-9"])), null);
  assert.deepEqual(shrinkBody(before, new Set(["h-1"])), { reservations: [{ id, give_up: ["h-1"] }] });
  assert.equal(shrinkInWords(before, lease("a", {}, ["h-2"])), "It gives up h-1, and keeps 1 host.");
});

test("a split is offered where something would be left of the lease", () => {
  const part = (resource_type: string) => ({ resource_type }) as Reservation;
  const one = [part("physical:host")];
  assert.equal(maySplit({ status: "PENDING", reservations: one }), true);
  assert.equal(maySplit({ status: "ACTIVE", reservations: one }), false);
  assert.equal(maySplit({ status: "PENDING", reservations: [part("virtual:floatingip")] }), false);
  assert.equal(maySplit({ status: "ACTIVE", reservations: [...one, part("virtual:floatingip")] }), true);
});

test("the questions for what may be merged are by dates and states, so that their answers are short", () => {
  const one = lease("a", { status: "ACTIVE" });
  const { same, after } = mergeQueries(one);
  assert.deepEqual(
    [same.project_id, same.status, same.start_date, same.end_date],
    ["physics", "ACTIVE", one.start_date, one.end_date],
  );
  assert.deepEqual([after.project_id, after.status, after.start_date], ["physics", "PENDING", one.end_date]);
  assert.equal(after.end_date, undefined);
});
