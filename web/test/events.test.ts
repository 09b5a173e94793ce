// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease, LeaseEvent } from "../src/api/types.ts";
import { momentsOf } from "../src/words/events.ts";
import { countdownOf, isEnding, isNews, stateOf } from "../src/words/lease.ts";
import { endInSentence } from "../src/words/waiting.ts";

const START = Date.parse("2026-11-24T08:00:00Z");
const MINUTE = 60_000;

function leaseWith(event: Partial<LeaseEvent>): Lease {
  const made = { id: "e", event_type: "start_lease", time: "2026-11-24T08:00:00Z", attempts: 1, next_attempt_at: null };
  return {
    status: "ACTIVE",
    start_date: "2026-11-24T08:00:00Z",
    end_date: "2026-11-25T08:00:00Z",
    created_at: "2026-11-23T08:00:00Z",
    deleted_at: null,
    reservations: [],
    events: [{ ...made, status: "DONE", finished_at: null, reason: null, ...event }],
  } as unknown as Lease;
}

const detailsOf = (event: Partial<LeaseEvent>) =>
  momentsOf(leaseWith(event), START + 10 * MINUTE).find(({ id }) => id === "e")!.details;

const NOT_READY = { code: "resource_not_ready", message: "the resources are not ready yet" };

test("why a start had to wait is told while it waits, and of a late one as history", () => {
  const told = ["The resources are not ready yet."];
  assert.deepEqual(detailsOf({ status: "IN_PROGRESS", reason: NOT_READY }), told);
  assert.deepEqual(detailsOf({ status: "ERROR", reason: NOT_READY }), told);
  assert.deepEqual(detailsOf({ finished_at: "2026-11-24T08:00:04Z", reason: NOT_READY }), []);
  assert.deepEqual(detailsOf({ finished_at: "2026-11-24T08:05:00Z", reason: NOT_READY }), [
    "5 min after its time (the try before: the resources are not ready yet).",
  ]);
  const away = { code: "cloud_unavailable", message: "the cloud does not answer" };
  assert.deepEqual(detailsOf({ finished_at: "2026-11-24T08:00:04Z", reason: away }), []);
});

test("what a start that is done could not get stays", () => {
  const failed = { code: "resource_failed", message: "a resource of the reservation has failed" };
  assert.deepEqual(detailsOf({ finished_at: "2026-11-24T08:00:04Z", reason: failed }), [
    "A resource of the reservation has failed.",
  ]);
});

test("a lease that somebody ends is ending at once, and nothing of it is late", () => {
  const now = START + 9 * MINUTE;
  const end = new Date(now + 5000).toISOString();
  const early = { end_date: end, end_reason: "ended_early" as const, wait: null };
  const warned = { event_type: "before_end_lease", time: "2026-11-24T08:00:00Z" };
  const ending: Lease = { ...leaseWith({ ...warned, status: "IN_PROGRESS" }), ...early };
  assert.deepEqual([stateOf(ending, now, "UTC").mark, stateOf(ending, now, "UTC").word], ["changing", "ending"]);
  assert.ok(isEnding(ending, now));
  assert.equal(countdownOf(ending, now)?.words, "is being ended");
  const titles = (lease: Lease) => momentsOf(lease, now).map(({ title, details }) => [title, ...details]);
  assert.deepEqual(titles(ending), [["Booked"]], "nobody is reminded");
  const delayed = { type: "end_delayed" as const, since: end };
  assert.equal(isNews(delayed, now), false);
  assert.equal(isNews(delayed, now + 2 * MINUTE), true);
  const done = new Date(now + 9000).toISOString();
  const ended: Lease = { ...leaseWith({ ...warned, finished_at: done }), ...early, status: "TERMINATED" };
  assert.equal(stateOf(ended, now, "UTC").word, "ended early");
  assert.deepEqual(titles(ended), [["Booked"]]);
  const saved: Lease = { ...ended, reservations: [{ before_end: "snapshot" }] as Lease["reservations"] };
  assert.deepEqual(titles(saved)[1], ["Reminded of the end", "Images of the servers were taken."]);
  const before: Lease = { ...leaseWith({ ...warned, finished_at: "2026-11-24T08:03:00Z" }), ...early };
  assert.deepEqual(titles(before)[1], ["Reminded of the end"], "it was reminded before it was ended");
  assert.equal(endInSentence(ended), "It was ended before its time was over.");
});

test("a lease whose end has come is ending, also before the service has begun with it", () => {
  const lease = leaseWith({});
  assert.equal(stateOf(lease, START + 1440 * MINUTE, "UTC").word, "ending");
  assert.equal(stateOf(lease, START + 1439 * MINUTE, "UTC").word, "active");
});

test("a lease in use counts down to its end, also where the clock of the page is behind", () => {
  const lease = leaseWith({});
  assert.equal(countdownOf(lease, START - 5000)?.words, "ends in 24 h");
  assert.equal(countdownOf({ ...lease, status: "STARTING" }, START - 5000)?.at, START + 1440 * MINUTE);
  assert.equal(countdownOf({ ...lease, status: "PENDING" }, START - 5000)?.words, "starts in less than a minute");
  assert.equal(countdownOf({ ...lease, status: "PENDING" }, START + 5000)?.words, "ends in 24 h");
  assert.equal(countdownOf(lease, START + 1441 * MINUTE)?.words, "its time is over");
  assert.equal(countdownOf({ ...lease, status: "ERROR" }, START), null);
  assert.equal(countdownOf({ ...lease, status: "TERMINATED" }, START), null);
});

test("a lease that is degraded before its start says so", () => {
  const dates = { start_date: new Date(START).toISOString(), end_date: new Date(START + 60 * MINUTE).toISOString() };
  const lease = { ...dates, status: "PENDING" as const, degraded: true };
  const { mark, word } = stateOf(lease, START - MINUTE, "UTC");
  assert.deepEqual([mark, word], ["degraded", "booked, degraded"]);
  assert.equal(stateOf(lease, START, "UTC").word, "starting");
});

test("what has just happened is no future, though the present of a page is some seconds old", () => {
  const dates = { start_date: new Date(START).toISOString(), end_date: new Date(START + 60 * MINUTE).toISOString() };
  const gone = { ...dates, status: "PENDING" as const, deleted_at: new Date(START + 8000).toISOString() };
  assert.equal(stateOf(gone, START, "UTC").next, "less than a minute ago");
  const ended = { ...dates, status: "TERMINATED" as const, deleted_at: null };
  assert.equal(stateOf(ended, START + 60 * MINUTE - 8000, "UTC").next, "less than a minute ago");
});
