// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Manager } from "../src/api/managers.ts";
import { managerState, troublesOf, workInWords } from "../src/words/managers.ts";

const NOW = Date.parse("2026-11-23T10:00:00Z");

function aManager(changes: Partial<Manager> = {}): Manager {
  return {
    id: "ctl1:4711:9f2c01aa",
    host: "ctl1",
    version: "19.0.0",
    rpc_version: "2.0",
    state: "running",
    up: true,
    started_at: "2026-11-23T08:00:00Z",
    seen_at: "2026-11-23T09:59:58Z",
    clock_offset_ms: 12,
    work: [],
    regions: [""],
    options_agree: true,
    threads: [{ name: "engine", last_round_at: "2026-11-23T09:59:59Z", failing_since: null, error: null }],
    ...changes,
  };
}

test("a manager that is not up is that, whatever it said last", () => {
  assert.equal(managerState(aManager()).word, "running");
  assert.equal(managerState(aManager({ state: "draining" })).next, "finishes what it has begun");
  for (const state of ["starting", "running", "stopping"] as const) {
    assert.deepEqual(managerState(aManager({ state, up: false })).word, "not up");
  }
});

test("what is done to a lease is said in words, that of later versions as it is called", () => {
  assert.equal(workInWords({ event_type: "start_lease" }), "starts");
  assert.equal(workInWords({ event_type: "paint_lease" }), "paint lease of");
});

test("a healthy manager has no trouble", () => {
  const one = aManager();
  assert.deepEqual(troublesOf(one, [one, aManager({ id: "b" })], NOW), []);
});

test("threads that fail, clocks, options and versions are told of", () => {
  const failing = { name: "outbox", last_round_at: null, failing_since: "2026-11-23T09:50:00Z", error: "it is away" };
  const one = aManager({ threads: [failing], clock_offset_ms: -90_000, options_agree: false });
  assert.deepEqual(troublesOf(one, [one, aManager({ id: "b", rpc_version: "2.1" })], NOW), [
    "The thread outbox has failed for 10 min: it is away",
    "Its clock is 2 min behind that of the database: set both by NTP.",
    "Managers have different options: give all the same blazar.conf.",
    "Managers are of different versions, as during an upgrade.",
  ]);
});

test("of one that is not up neither clock nor version matters, nor that of one for the others", () => {
  const gone = aManager({ up: false, clock_offset_ms: 90_000, options_agree: false, rpc_version: "1.9" });
  assert.deepEqual(troublesOf(gone, [gone, aManager()], NOW), []);
  assert.deepEqual(troublesOf(aManager(), [gone, aManager()], NOW), []);
});
