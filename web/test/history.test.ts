// SPDX-License-Identifier: Apache-2.0
import "temporal-polyfill/global";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryEntry, Lease, Reservation } from "../src/api/types.ts";
import { toldOf, unnamedHosts } from "../src/words/history.ts";

const NOW = Date.parse("2026-11-25T12:00:00Z");

function reservation(id: string, type: string, names: Record<string, string> = {}): Reservation {
  const allocations = Object.entries(names).map(([key, name]) => ({
    resource: { id: "7", type: "host", name, label: key },
    count: 1,
    used: null,
    status: "promised",
  }));
  return { id, resource_type: type, allocations } as unknown as Reservation;
}

const LEASE = {
  id: "1",
  project_id: "physics",
  reservations: [reservation("r1", "physical:host", { "h-1": "cn1" })],
} as unknown as Lease;

function told(changes: Partial<HistoryEntry>, lease: Lease = LEASE, names?: ReadonlyMap<string, string>) {
  const entry: HistoryEntry = {
    id: "3",
    at: "2026-11-25T10:00:00Z",
    verb: "changed",
    by: { kind: "user", user_id: "alice", project_id: "physics" },
    changes: [],
    resources: [],
    reason: null,
    ...changes,
  };
  return toldOf(entry, lease, "alice", "UTC", NOW, names);
}

test("who it was is said as far as the service tells the reader", () => {
  const who = (kind: "user" | "operator" | "service", user_id: string | null, project_id: string | null) =>
    told({ by: { kind, user_id, project_id } }).who;
  assert.equal(who("user", "alice", "physics"), "you");
  assert.equal(who("user", "bob", "physics"), "bob");
  assert.equal(who("user", "carol", "biology"), "carol of biology");
  assert.equal(who("user", null, null), "a user of another project");
  assert.equal(who("operator", null, null), "an operator");
  assert.equal(who("operator", "root", "admin"), "the operator root of admin");
  assert.equal(who("service", null, null), "the service");
});

test("what was changed is told before and after", () => {
  const change = (field: string, before: string | null, after: string | null, reservation_id: string | null = "r1") =>
    told({ changes: [{ field, reservation_id, before, after }] }).lines[0];
  assert.equal(
    change("end_date", "2026-11-26T08:00:00Z", "2026-11-27T08:00:00Z", null),
    "End: Thu 26 Nov 08:00 → Fri 27 Nov 08:00",
  );
  assert.equal(
    change("before_end_date", "2026-11-26T08:00:00Z", "2026-11-26T09:00:00Z", null),
    "Reminder: Thu 26 Nov 08:00 → Thu 26 Nov 09:00",
  );
  assert.equal(
    change("extend_if_free", null, "2026-11-27T08:00:00Z", null),
    "Goes on by itself until: Fri 27 Nov 08:00",
  );
  assert.equal(
    change("extend_if_free", "2026-11-27T08:00:00Z", null, null),
    "Goes on by itself until: Fri 27 Nov 08:00 → none",
  );
  assert.equal(change("name", null, "training", null), "Name: training");
  assert.equal(change("other_lease", null, "7f3a", null), "Other lease: 7f3a");
  assert.equal(change("memory_mb", "2048", "4096"), "Memory: 2 GiB → 4 GiB");
  assert.equal(change("vcpus", "2", "4"), "vCPUs: 2 → 4");
  assert.equal(change("resource_properties", '["==", "$gpu", "A100"]', ""), "With: gpu = A100 → none");
  assert.equal(change("network_name", "lab", "lab 2"), "Network name: lab → lab 2");
  assert.equal(change("resource_type", null, "physical:host"), "Added: whole hosts");
  assert.equal(change("resource_type", "physical:host", null), "Taken away: whole hosts");
});

test("projects that the reader may not know are not named", () => {
  const change = (field: string, before: string | null, after: string | null) =>
    told({ changes: [{ field, reservation_id: null, before, after }] }).lines;
  assert.deepEqual(change("project_id", null, "physics"), ["Project: another project → physics"]);
  assert.deepEqual(change("project_id", null, null), []);
  assert.deepEqual(change("offered_to", null, "physics"), ["Offered to: physics"]);
  assert.deepEqual(change("offered_to", "physics", null), ["Offered to: physics → none"]);
});

test("a number that is both the least and the most is told once", () => {
  const changes = ["max", "min"].map((field) => ({ field, reservation_id: "r1", before: "2", after: "3" }));
  assert.deepEqual(told({ changes }).lines, ["Number: 2 → 3"]);
  const [max] = changes;
  assert.deepEqual(told({ changes: [max!] }).lines, ["At most: 2 → 3"]);
});

test("of several reservations it is said which", () => {
  const two = { ...LEASE, reservations: [...LEASE.reservations, reservation("r2", "virtual:instance")] } as Lease;
  const changes = [{ field: "amount", reservation_id: "r2", before: "2", after: "3" }];
  assert.deepEqual(told({ changes }, two).lines, ["Servers, number: 2 → 3"]);
});

test("resources have the names that the lease shows", () => {
  const move = { reservation_id: "r1", gone: ["h-2"], come: ["h-1"], gone_count: 1, come_count: 1 };
  const swapped = { verb: "swapped", resources: [move] };
  // Both by their ids, or both by their names.
  assert.deepEqual(told(swapped).lines, ["Gave up h-2; got h-1"]);
  assert.deepEqual(told(swapped, LEASE, new Map([["h-2", "cn2"]])).lines, ["Gave up cn2; got cn1"]);
  assert.deepEqual(unnamedHosts([{ resources: [move] } as unknown as HistoryEntry], LEASE), ["h-2"]);
  const many = Array.from({ length: 100 }, (_, index) => `n${index}`);
  assert.deepEqual(told({ resources: [{ ...move, gone: [], gone_count: 0, come: many, come_count: 120 }] }).lines, [
    "Got n0, n1, n2, n3, n4 and 115 more",
  ]);
});

test("a reason is told where the verb does not say it", () => {
  assert.deepEqual(told({ verb: "ended", reason: "ended" }).lines, []);
  assert.deepEqual(told({ verb: "released", reason: "unused" }).lines, ["It was released because nobody used it."]);
  assert.deepEqual(told({ verb: "failed", reason: "quota_exceeded" }).lines, ["Quota exceeded."]);
});

test("verbs are said in words, unknown ones too", () => {
  assert.equal(told({ verb: "waiting" }).what, "Waits in line");
  assert.equal(told({ verb: "timed_out" }).what, "Timed out");
  assert.equal(told({ verb: "handed_on" }).what, "Handed on");
});
