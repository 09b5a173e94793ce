// SPDX-License-Identifier: Apache-2.0
import "temporal-polyfill/global";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { AffectedLease } from "../src/api/maintenance.ts";
import {
  affectedInWords,
  impactInWords,
  isPainless,
  maintenanceState,
  openingInWords,
  outcomeInWords,
  windowsOf,
} from "../src/words/maintenance.ts";

const NOW = Date.parse("2026-11-25T12:00:00Z");
const nameOf = (id: string) => `cn${id}`;

function affected(changes: Partial<AffectedLease>): AffectedLease {
  return {
    lease_id: "1",
    name: "gan",
    project_id: "physics",
    user_id: "alice",
    start_date: "2026-12-01T08:00:00Z",
    end_date: "2026-12-02T08:00:00Z",
    status: "PENDING",
    outcome: "moved",
    makes_room: false,
    hosts: ["1"],
    moves: [],
    openings: [],
    done: false,
    told_at: null,
    note: null,
    ...changes,
  };
}

const MOVE = { reservation_id: "r", from_host: "1", to_host: "9", count: 1 };

test("what becomes of a lease names the hosts", () => {
  assert.equal(outcomeInWords(affected({ moves: [MOVE] }), nameOf), "cn1 → cn9.");
  const room = affected({ moves: [MOVE], makes_room: true, hosts: [] });
  assert.equal(outcomeInWords(room, nameOf), "It makes room for a lease that has a host in maintenance: cn1 → cn9.");
  const part = affected({ outcome: "partly_moved", hosts: ["1", "2"], moves: [MOVE] });
  assert.equal(outcomeInWords(part, nameOf), "cn1 → cn9; for cn2 nothing is free.");
  const time = affected({ outcome: "needs_other_time" });
  assert.equal(outcomeInWords(time, nameOf), "Nothing else is free in its time, so it keeps cn1.");
  const going = affected({ outcome: "migrated", note: "2 servers are still on cn1" });
  const before = "It has started: before the window its servers are moved to another host.";
  assert.equal(outcomeInWords(going, nameOf), `${before} 2 servers are still on cn1.`);
  assert.equal(outcomeInWords(affected({ outcome: "migrated", done: true, moves: [MOVE] }), nameOf), "cn1 → cn9.");
  const locked = affected({ outcome: "active", note: "server a on cn1 cannot be moved: it is locked" });
  assert.equal(outcomeInWords(locked, nameOf), "It keeps cn1. Server a on cn1 cannot be moved: it is locked.");
});

test("an impact is one sentence, what hurts most first", () => {
  assert.equal(impactInWords([]), "No lease is affected.");
  assert.equal(
    impactInWords([{ outcome: "moved" }, { outcome: "needs_other_time" }, { outcome: "moved" }]),
    "3 leases are affected: 1 needs another time, 2 get other hosts at the same time.",
  );
  assert.equal(isPainless([{ outcome: "moved" }]), true);
  assert.equal(isPainless([{ outcome: "moved" }, { outcome: "active" }]), false);
});

test("a window says what happens next", () => {
  const dates = { start_date: "2026-11-25T15:00:00Z", end_date: "2026-11-25T18:00:00Z" };
  assert.equal(maintenanceState({ ...dates, status: "PLANNED" }, NOW).next, "starts in 3 h");
  assert.equal(maintenanceState({ ...dates, status: "ACTIVE" }, NOW).next, "ends in 6 h");
  assert.equal(maintenanceState({ ...dates, status: "DONE" }, NOW).next, "");
});

const WEEK = { start: NOW, end: NOW + 7 * 86_400_000 };
const BLOCK = { kind: "out_of_use" as const, start: "2026-12-01T10:00:00Z", end: "2026-12-01T12:00:00Z" };

test("windows that meet a lease are those of its hosts, each once", () => {
  const row = (id: string, code: string) => ({ id, name: null, blocks: [{ ...BLOCK, code }] });
  const found = windowsOf([row("h-1", "maintenance"), row("h-2", "maintenance"), row("h-3", "failed")], WEEK);
  assert.deepEqual(
    found.map((one) => one.hosts),
    [["h-1", "h-2"]],
  );
  assert.deepEqual(windowsOf([row("h-1", "maintenance")], { start: Date.parse(BLOCK.end), end: WEEK.end }), []);
});

test("an owner reads when hosts are in maintenance, and what that means", () => {
  const meeting = { start: Date.parse(BLOCK.start), end: Date.parse(BLOCK.end), hosts: ["h-1"] };
  const pending = { status: "PENDING", start_date: "2026-12-01T08:00:00Z" };
  assert.match(
    affectedInWords(meeting, pending, "UTC", NOW),
    /^h-1 will be in maintenance \(Tue 1 Dec 10:00 – 12:00\)\. The lease keeps it and its time unless/,
  );
  const active = { status: "ACTIVE", start_date: "2026-11-20T08:00:00Z" };
  assert.match(
    affectedInWords(meeting, active, "UTC", Date.parse("2026-12-01T11:00:00Z")),
    /^h-1 is in maintenance until today 12:00\. .* may be interrupted\.$/,
  );
});

test("what opening a window does is said before it is opened", () => {
  assert.equal(
    openingInWords({ now: false, leases: true }),
    "The maintenance books the hosts out: from its start to its end nobody can book them, leases get what is shown " +
      "above, and their owners are told. It starts and ends by itself; until it starts, you can change or cancel it.",
  );
  assert.equal(
    openingInWords({ now: true, leases: false }),
    "The maintenance books the hosts out: from its start to its end nobody can book them. " +
      "It starts at once and ends by itself, or earlier if you end it.",
  );
});
