// SPDX-License-Identifier: Apache-2.0
import "temporal-polyfill/global";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { HistoryEntry, JournalEntry, Lease, Reservation } from "../src/api/types.ts";
import {
  type Read,
  historyQuery,
  pageOfSubject,
  subjectInWords,
  toldOf,
  unnamedHosts,
  withEarlier,
  withNewest,
} from "../src/words/history.ts";
import { verbsOf } from "../src/words/history-choices.ts";

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

test("what a lease was charged is an amount of money, and leads to the lease", () => {
  const change = (field: string, after: string) => ({ field, reservation_id: null, before: null, after });
  const changes = [
    change("amount", "414.800000000"),
    change("currency", "EUR"),
    change("closed_until", "2026-11-24T09:00:00Z"),
  ];
  const lines = told({ verb: "created", changes }).lines;
  assert.deepEqual(lines, ["Amount: 414.80 EUR", "Charged until: Tue 24 Nov 09:00"]);
  const object = { type: "charge", id: "aea729db-b13e", name: null, revision: null } as JournalEntry["object"];
  assert.equal(subjectInWords({ object }), "charges of lease aea729db-b13e");
  assert.deepEqual(pageOfSubject({ object }), ["lease", { id: "aea729db-b13e" }]);
  assert.deepEqual(pageOfSubject({ object: { ...object, id: "81" } }), ["spending", {}]);
});

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
  assert.equal(change("requirement", '[">=", "$vcpus", "2"]', '["a", "b"]'), "Requirement: vCPUs ≥ 2 → a, b");
  assert.equal(
    change("reservations", '[{"resource_type": "x", "min": 1, "needs": ["==", "$gpu", "A100"]}]', "[]"),
    "Reservations: resource type x, min 1, needs gpu = A100 → none",
  );
  assert.equal(change("note", "[draft] as it was", "{x"), "Note: [draft] as it was → {x");
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

function entry(position: number, changes: Partial<JournalEntry> = {}): JournalEntry {
  return {
    id: String(position),
    position,
    at: "2026-11-25T10:00:00Z",
    verb: "changed",
    by: { kind: "service", user_id: null, project_id: null },
    changes: [],
    resources: [],
    reason: null,
    object: { type: "resource", id: "host/7", name: "node-7", revision: null },
    project_id: null,
    request_id: null,
    ...changes,
  };
}

test("what an entry is about is said in words, and leads to its page", () => {
  const about = (type: string, id: string, name: string | null) =>
    entry(1, { object: { type, id, name, revision: null } });
  assert.equal(subjectInWords(about("resource", "host/7", "node-7")), "host node-7");
  assert.equal(subjectInWords(about("resource", "network/a/b", null)), "network a/b");
  assert.equal(subjectInWords(about("property", "host/rack", "rack")), "property rack");
  assert.equal(subjectInWords(about("service", "blazar", null)), "options and policies");
  assert.deepEqual(pageOfSubject(about("resource", "network/a/b", null)), ["resource", { kind: "network", id: "a/b" }]);
  assert.deepEqual(pageOfSubject(about("lease", "5f", "x")), ["lease", { id: "5f" }]);
  assert.equal(pageOfSubject(about("feed", "5f", "x")), null);
});

test("changes of what is no lease are told in words, too", () => {
  const line = (field: string, before: string | null, after: string | null) =>
    told({ changes: [{ field, reservation_id: null, before, after }] }, { project_id: null, reservations: [] } as never)
      .lines[0];
  assert.equal(line("disabled", "false", "true"), "Disabled: no → yes");
  assert.equal(line("properties.rack", "7", "8"), "Property rack: 7 → 8");
  assert.equal(line("disabled_until", null, "2026-11-27T08:00:00Z"), "Disabled until: Fri 27 Nov 08:00");
  assert.equal(line("[manager] claim_ttl", "set", "set"), "[manager] claim_ttl: changed");
  assert.equal(line("policy blazar:leases:get", "set", null), "policy blazar:leases:get: set → none");
  const maintenance = told({ verb: "maintenance", reason: "needs_other_time" });
  assert.deepEqual(
    [maintenance.what, maintenance.lines],
    ["Told of maintenance", ["No other hosts are free in its time."]],
  );
  const moved = told({ verb: "moved", reason: "repacked" });
  assert.deepEqual(
    [moved.what, moved.lines],
    ["Moved to other resources", ["It had not started, and others needed its place."]],
  );
});

test("days are those of the reader's zone, the last one as a whole", () => {
  const asked = { type: "", object: "", verb: "", by: "", project: "", from: "2026-03-29", to: "2026-03-29" };
  const { from, to } = historyQuery(asked, "Europe/Berlin");
  assert.deepEqual([from, to], ["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"]);
  assert.equal(historyQuery({ ...asked, from: "2026-1" }, "UTC").from, undefined);
});

test("pages are put together without a gap and without doubles, however many entries come meanwhile", () => {
  const pageAfter = (all: number, below: number, size: number) => {
    const positions = Array.from({ length: all }, (_, index) => all - index).filter((one) => one < below);
    return { entries: positions.slice(0, size).map((one) => entry(one)), next: positions.length > size };
  };
  for (let seed = 1; seed <= 300; seed++) {
    let state = seed;
    const random = (most: number) => {
      state = (state * 48271) % 2147483647;
      return state % most;
    };
    let all = random(30);
    let known: Read = pageAfter(all, Number.POSITIVE_INFINITY, 5);
    for (let step = 0; step < 12; step++) {
      if (random(2) === 0) {
        all += random(9);
        known = withNewest(known, pageAfter(all, Number.POSITIVE_INFINITY, 5));
      } else if (known.next) {
        known = withEarlier(known, pageAfter(all, known.entries.at(-1)!.position, 1 + random(9)));
      }
      const positions = known.entries.map((one) => one.position);
      assert.deepEqual(
        positions,
        positions.map((_, index) => (positions[0] ?? 0) - index),
        `seed ${seed}`,
      );
      assert.equal(known.next, (positions.at(-1) ?? 1) > 1, `seed ${seed}`);
    }
  }
});

test("each type has what may be done to it, and the address is always among the choices", () => {
  assert.ok(verbsOf("resource", "").some(({ value }) => value === "disabled"));
  assert.ok(verbsOf("feed", "handed_on").some(({ text }) => text === "Handed on"));
  const every = verbsOf("", "");
  assert.equal(new Set(every.map(({ value }) => value)).size, every.length);
});
