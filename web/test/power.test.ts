// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { PowerClass, PowerReport, PowerResults } from "../src/api/power.ts";
import {
  adaptersOf,
  canWake,
  isNotable,
  poolsInWords,
  powerInWords,
  powerState,
  reasonOf,
  spareInWords,
  wakingInWords,
} from "../src/words/power.ts";

const SUMS = { slept_hours: 0, switched_off: 0, woken: 0, failed_wakes: 0, missed_starts: 0 };
const NOTHING: PowerResults = { hosts: [], ...SUMS };
const RESULTS: PowerResults = {
  ...NOTHING,
  hosts: [
    { state: "on", reason: "done", hosts: 5 },
    { state: "off", reason: "done", hosts: 2 },
    { state: "waking", reason: "start", hosts: 1 },
  ],
  slept_hours: 1204.4,
  switched_off: 12,
};
const REPORT: PowerReport = {
  mode: "on",
  from: "2030-03-02T12:00:00Z",
  to: "2030-04-01T12:00:00Z",
  switched_hosts: 8,
  kept_hosts: 0,
  done: RESULTS,
  rehearsed: NOTHING,
  classes: [],
  pools: { ...SUMS, switched: 2, kept: 0, asleep: 1, slept_hours: 12.4 },
};
const CLASS: PowerClass = {
  group: { gpu: "A100" },
  hosts: 8,
  asleep: 3,
  spare: 2,
  spare_source: "fixed",
  spare_rule: "gpu=A100; MO-FR",
  asked_at_once: 0,
};

void test("why so many hosts stay awake is said of each class", () => {
  assert.equal(
    spareInWords(CLASS, false),
    "gpu A100: 3 of 8 hosts asleep; 2 free hosts stay awake for leases that start at once (set by the operators for gpu=A100; MO-FR).",
  );
  const learned: PowerClass = { ...CLASS, group: {}, spare: 1, spare_rule: null };
  assert.match(spareInWords(learned, true), /^1 free host stays awake .*\(set by the operators\)/);
  assert.match(spareInWords({ ...learned, spare_source: "share" }, true), /a share of them/);
  assert.match(
    spareInWords({ ...learned, spare_source: "asked", asked_at_once: 7 }, true),
    /\(half more than the 7 asked for within the worst hour of two weeks\)/,
  );
  assert.match(spareInWords({ ...CLASS, group: { gpu: null } }, false), /^gpu none: /);
});

void test("what sleeps of the pools is said where some can", () => {
  assert.deepEqual(poolsInWords(REPORT), ["1 pool is asleep; in all, pools have slept for 12 hours."]);
  assert.deepEqual(poolsInWords({ ...REPORT, pools: { ...REPORT.pools, switched: 0 } }), []);
  assert.deepEqual(poolsInWords({ ...REPORT, mode: "off" }), []);
  const bad = { ...REPORT.pools, failed_wakes: 1, missed_starts: 2 };
  assert.deepEqual(poolsInWords({ ...REPORT, mode: "dry_run", pools: bad }), [
    "This is a dry run: no pool is switched.",
    "1 pool would be asleep; in all, pools would have slept for 12 hours.",
    "1 wake failed, and 2 pools would not have been awake when a lease began.",
  ]);
});

void test("what sleeps and what that saves is said in sentences", () => {
  assert.deepEqual(powerInWords(REPORT), [
    "2 hosts are asleep, and 1 is waking.",
    "In 30 days hosts have slept for 1,204 hours together; they were switched off 12 times.",
  ]);
});

void test("a dry run says that nothing is switched", () => {
  const [first, second] = powerInWords({ ...REPORT, mode: "dry_run", rehearsed: RESULTS });
  assert.equal(first, "This is a dry run: no host is switched.");
  assert.equal(second, "2 hosts would be asleep, and 1 would be waking.");
});

void test("nothing is said where nothing is planned", () => {
  assert.deepEqual(powerInWords({ ...REPORT, mode: "off" }), []);
});

void test("wakes that failed are told", () => {
  const done = { ...RESULTS, failed_wakes: 1, missed_starts: 2 };
  assert.equal(
    powerInWords({ ...REPORT, done }).at(-1),
    "1 wake failed, and 2 hosts were not awake when a lease began.",
  );
});

void test("without a switch no host can sleep, and the page says what gives it one", () => {
  assert.match(powerInWords({ ...REPORT, switched_hosts: 0 }).join(" "), /No host has a switch yet/);
});

void test("a host that is simply on is not worth a word", () => {
  assert.equal(isNotable({ state: "on", reason: "done", policy: "auto" }), false);
  assert.equal(isNotable({ state: "on", reason: "done", policy: "keep" }), true);
  assert.equal(isNotable({ state: "on", reason: "timed_out", policy: "auto" }), true);
  assert.equal(powerState("off").word, "asleep");
  assert.equal(reasonOf({ state: "off", reason: "done" }), "nobody needs it");
  assert.equal(reasonOf({ state: "waking", reason: "start" }), "a lease starts soon");
});

void test("what a start waits for is said in the user's zone", () => {
  const now = Date.parse("2030-04-01T12:00:00Z");
  const waking = { hosts: 1, pools: 0, ready_at: "2030-04-01T12:11:00Z", message: "" };
  assert.equal(
    wakingInWords(waking, "Europe/Berlin", now),
    "1 of its hosts sleeps, and is woken for it: it begins at about today 14:11",
  );
  assert.match(wakingInWords({ ...waking, pools: 1 }, "UTC", now), /^1 of its hosts and 1 of its volume pools sleep,/);
});

void test("what sleeps can be woken, and what did not wake can be tried again", () => {
  assert.equal(canWake({ state: "off", reason: "done" }), true);
  assert.equal(canWake({ state: "on", reason: "timed_out" }), true);
  assert.equal(canWake({ state: "on", reason: "done" }), false);
});

void test("a pool of volumes is switched by a hook", () => {
  assert.deepEqual(adaptersOf("volume"), ["hook", "simulated"]);
  assert.equal(adaptersOf("host").length, 4);
});
