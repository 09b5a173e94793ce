// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { backlogOf, isSent, OWN_EVENTS, subscriptionState, switchEvent } from "../src/words/subscriptions.ts";

test("a receiver that fails is not shown as well", () => {
  assert.equal(subscriptionState({ state: "active", failing_since: null }).word, "active");
  assert.equal(subscriptionState({ state: "active", failing_since: "2030-04-01T12:00:00Z" }).word, "failing");
  assert.equal(subscriptionState({ state: "paused", failing_since: "2030-04-01T12:00:00Z" }).word, "paused");
});

test("what is still to be sent, and what was refused, is said in numbers", () => {
  assert.deepEqual(backlogOf({ behind: 0, dead: 0, dropped: 0 }), []);
  assert.deepEqual(backlogOf({ behind: 1, dead: 2, dropped: 3 }), ["1 entry behind", "5 messages refused for good"]);
});

test("a name for all of a noun stands for each", () => {
  assert.equal(isSent(["lease.*"], "lease.failed"), true);
  assert.equal(isSent(["lease.*"], "subscription.disabled"), false);
  const without = switchEvent(["lease.*"], "lease.failed", false);
  assert.equal(isSent(without, "lease.failed"), false);
  assert.deepEqual(
    new Set(without),
    new Set(OWN_EVENTS.map(({ name }) => name).filter((name) => name.startsWith("lease.") && name !== "lease.failed")),
  );
});

test("a switch that is turned twice changes nothing", () => {
  const events = ["lease.before_end", "lease.kept"];
  assert.deepEqual(switchEvent(switchEvent(events, "lease.failed", true), "lease.failed", false), events);
  assert.deepEqual(switchEvent(events, "lease.before_end", true), events);
  assert.deepEqual(switchEvent(events, "lease.before_end", false), ["lease.kept"]);
});
