// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { endsSoon, offerOf } from "../src/api/offers.ts";
import type { Lease, Wait } from "../src/api/types.ts";
import { movedReminder } from "../src/words/endings.ts";
import { changeOf, formOf, rebased, reminderOf } from "../src/words/lease-change.ts";
import { endingOf, hasBegun } from "../src/pages/leases/end-now.tsx";
import { momentsOf } from "../src/words/events.ts";
import { kindQuery, kindsOf, queryOf } from "../src/words/lease-list.ts";
import { countdownOf, stateOf } from "../src/words/lease.ts";
import {
  beforeInWords,
  beforeOf,
  roomInWords,
  endInSentence,
  ordinal,
  ESTIMATE_MEANS,
  estimateOf,
  placeInWords,
  triesInWords,
  usageInWords,
  waitInWords,
  waitSentences,
} from "../src/words/waiting.ts";

const NOW = Date.parse("2026-11-25T09:00:00Z");
const wait = (more: Partial<Wait> = {}): Wait => ({
  queued_at: "2026-11-25T08:00:00Z",
  earliest: "2026-11-25T08:00:00Z",
  until: "2026-11-30T08:00:30Z",
  position: 2,
  estimated_start: "2026-11-25T14:59:30Z",
  reason: null,
  ...more,
});
const lease = (more: Partial<Lease> = {}): Lease => ({
  id: "l1",
  name: "course",
  project_id: "physics",
  user_id: "alice",
  status: "WAITING",
  degraded: false,
  revision: 1,
  start_date: "2026-11-25T15:00:00Z",
  end_date: "2026-11-26T15:00:00Z",
  before_end_date: null,
  created_at: "2026-11-25T08:00:00Z",
  updated_at: null,
  deleted_at: null,
  conditions: [],
  reservations: [],
  events: [],
  ...more,
});

test("places in line are counted as people count", () => {
  assert.deepEqual([1, 2, 3, 4, 11, 12, 13, 21, 102, 111].map(ordinal), [
    "1st",
    "2nd",
    "3rd",
    "4th",
    "11th",
    "12th",
    "13th",
    "21st",
    "102nd",
    "111th",
  ]);
});

test("a lease that waits says its place and what is expected, to the minute", () => {
  const found = stateOf(lease({ wait: wait() }), NOW, "UTC");
  assert.deepEqual(found, { mark: "waiting", word: "waiting in line", next: "2nd, probably from today 15:00" });
  assert.equal(placeInWords(wait({ position: null, estimated_start: null }), "UTC", NOW), "its place comes soon");
  assert.equal(
    placeInWords(wait({ estimated_start: "2026-11-25T08:59:00Z" }), "UTC", NOW),
    "2nd, probably from now on",
  );
  assert.equal(waitSentences(wait({ position: 1 }), "UTC", NOW)[0], "It is the next in line.");
  const said = waitSentences(wait(), "UTC", NOW).join(" ");
  assert.match(
    said,
    /It will probably start today 15:00\. That is an estimate, which counts on leases that end early\./,
  );
  assert.match(said, /Nothing is booked for it yet/);
  assert.equal(estimateOf(lease({ wait: wait() })), ESTIMATE_MEANS);
  assert.equal(estimateOf(lease({ wait: wait({ estimated_start: null }) })), undefined);
  assert.equal(estimateOf(lease({ status: "PENDING", wait: wait() })), undefined);
  assert.equal(waitSentences(wait({ estimated_start: null }), "UTC", NOW)[1], "When it will start is not known yet.");
});

test("what may not cost more than something says so", () => {
  const said = (more: Partial<Wait>) => waitInWords(wait(more), "2 days", "UTC", NOW);
  assert.ok(said({ max_price: "1640.00" }).endsWith(" and starts only if it costs at most 1,640.00"));
  const priced = waitInWords(wait({ max_price: "12.50" }), "2 days", "UTC", NOW, "EUR");
  assert.ok(priced.endsWith(" and starts only if it costs at most 12.50 EUR"));
  assert.equal(said({ max_price: null }), said({}));
});

test("one that waited in vain says until when, and counts down to nothing", () => {
  const over = lease({ status: "TIMED_OUT", wait: wait({ until: "2026-11-25T08:30:10Z", position: null }) });
  assert.deepEqual(stateOf(over, NOW, "UTC"), {
    mark: "timed-out",
    word: "timed out",
    next: "waited until today 08:30",
  });
  assert.equal(countdownOf(over, NOW), null);
  assert.deepEqual(
    momentsOf(over, NOW).map((one) => one.title),
    ["Asked for", "Stopped waiting in line"],
  );
});

test("a countdown of what waits is a guess", () => {
  assert.equal(countdownOf(lease({ wait: wait() }), NOW)?.words, "probably in 6 h");
  assert.equal(
    countdownOf(lease({ wait: wait({ estimated_start: "2026-11-25T08:00:00Z" }) }), NOW)?.words,
    "probably soon",
  );
  assert.equal(countdownOf(lease({ wait: wait({ estimated_start: null }) }), NOW), null);
});

test("the times of what waits are said to be probable, and none before they are known", () => {
  const start = {
    id: "s",
    event_type: "start_lease",
    time: "2026-11-25T08:59:00Z",
    status: "UNDONE",
    finished_at: null,
    attempts: 0,
    next_attempt_at: null,
    reason: null,
  };
  const found = momentsOf(lease({ wait: wait(), events: [start] }), NOW);
  assert.deepEqual(
    found.map((one) => [one.title, one.progress]),
    [
      ["Asked for", "done"],
      ["Will probably start", "due"],
      ["Stops waiting in line", "due"],
    ],
  );
  assert.equal(momentsOf(lease({ wait: wait({ estimated_start: null }), events: [start] }), NOW).length, 2);
});

test("what is left of a lease decides what its end is called", () => {
  assert.equal(endingOf({ status: "WAITING" }), "Leave the line");
  assert.equal(endingOf({ status: "TIMED_OUT" }), "Remove");
  assert.equal(endingOf({ status: "ACTIVE" }), "End now");
  assert.equal(endingOf({ status: "PENDING" }), "Delete");
  assert.equal(hasBegun({ status: "WAITING" }), false);
});

test("past leases say why they have ended", () => {
  const ended = (end_reason: NonNullable<Lease["end_reason"]>, more: Partial<Lease> = {}) =>
    lease({ status: "TERMINATED", deleted_at: "2026-11-25T08:00:00Z", end_reason, ...more });
  assert.equal(stateOf(ended("refused"), NOW, "UTC").word, "refused");
  assert.equal(stateOf(ended("unused", { deleted_at: null }), NOW, "UTC").word, "released, unused");
  assert.equal(stateOf(ended("ended", { deleted_at: null }), NOW, "UTC").word, "ended");
  assert.equal(endInSentence(ended("unused")), "It was released because nobody used it.");
  assert.match(endInSentence(ended("refused", { kind: "immediate" })) ?? "", /could not be handed over at once/);
  assert.equal(endInSentence(lease()), null);
  assert.equal(endInSentence(ended("deleted")), "It was deleted before its end.");
  assert.equal(endInSentence(ended("unconfirmed")), "Nobody confirmed it in time, so it was deleted.");
  assert.equal(stateOf(ended("unconfirmed"), NOW, "UTC").word, "not confirmed");
  assert.equal(endInSentence(ended("left_line")), "It left the line before it had anything.");
  assert.equal(stateOf(ended("left_line"), NOW, "UTC").word, "left the line");
  const left = momentsOf(ended("left_line"), NOW).map(({ title }) => title);
  assert.equal(left.at(-1), "Left the line");
});

test("who is before is read from a refusal, and nothing from another one", () => {
  assert.deepEqual(beforeOf({ before: 2, opening: "2026-11-25T10:00:00Z" }), { before: 2, opening: NOW + 3_600_000 });
  assert.deepEqual(beforeOf({ before: 1, opening: null }), { before: 1, opening: null });
  assert.equal(beforeOf({}), null);
  assert.equal(beforeOf(undefined), null);
  assert.match(beforeInWords({ before: 1, opening: null }), /^1 lease waits /);
  assert.match(beforeInWords({ before: 3, opening: null }), /^3 leases wait /);
});

test("use is said as a look has found it", () => {
  assert.equal(usageInWords({ usage: "unused", used_at: null }, "UTC", NOW), "Nothing was started in it yet.");
  assert.equal(
    usageInWords({ usage: "idle", used_at: "2026-11-25T07:00:10Z" }, "UTC", NOW),
    "All that is in it is stopped, or does nothing; it was used until today 07:00 at least.",
  );
  assert.equal(usageInWords({ usage: null }, "UTC", NOW), null);
});

test("a promised start may become earlier", () => {
  const promised = lease({ status: "PENDING", wait: wait({ advance: true, position: null, estimated_start: null }) });
  assert.deepEqual(stateOf(promised, NOW, "UTC"), {
    mark: "booked",
    word: "booked",
    next: "starts in 6 h, or earlier",
  });
});

test("tries that have failed are counted", () => {
  assert.equal(triesInWords(0, 3), "No try has failed; up to 3 tries may.");
  assert.equal(triesInWords(1, 3), "1 of 3 tries has failed.");
  assert.equal(triesInWords(3, 3), "All 3 tries have failed.");
});

test("what is tried again and has begun does not wait any more", () => {
  const runs = lease({ status: "ACTIVE", kind: "retries", wait: wait({ tries: 3, failed_tries: [] }) });
  assert.deepEqual(
    momentsOf(runs, NOW).map((one) => one.title),
    ["Asked for"],
  );
  assert.equal(stateOf(runs, NOW, "UTC").word, "active");
});

test("kinds are asked for only if not all are wanted", () => {
  assert.deepEqual(kindsOf("immediate,none"), ["immediate"]);
  assert.deepEqual(kindQuery(["immediate"]), { kind: "in:immediate" });
  assert.deepEqual(kindQuery(["scheduled", "immediate", "retries", "best_effort"]), {});
  assert.equal(queryOf(true, [], "", ["immediate"]).kind, "in:immediate");
  assert.equal(queryOf(false, ["waiting"], "").status, "in:WAITING,TIMED_OUT");
  assert.equal(queryOf(false, ["booked"], "").status, "in:CREATING,PENDING");
});

const DAY = 86_400_000;

test("an end within a day is offered a later one, as far as others leave room", () => {
  const runs = lease({ status: "ACTIVE", start_date: "2026-11-24T15:00:00Z", end_date: "2026-11-25T15:00:00Z" });
  assert.equal(endsSoon(runs, NOW), true);
  assert.equal(endsSoon({ ...runs, end_date: "2026-11-27T15:00:00Z" }, NOW), false);
  assert.equal(endsSoon({ ...runs, status: "PENDING" }, NOW), false);
  const ends = Date.parse(runs.end_date);
  const extension = (hours: number, limited_by: string | null) => ({
    open_until: new Date(ends + hours * 3_600_000 + 30_000).toISOString(),
    limited_by,
    refusals: [],
  });
  assert.deepEqual(offerOf(runs, extension(7, "promised")), { end: ends + 7 * 3_600_000, limitedBy: "promised" });
  // As far as can be searched is no offer: as long again is.
  assert.deepEqual(offerOf(runs, extension(9000, "range")), { end: ends + DAY, limitedBy: null });
  assert.deepEqual(offerOf(runs, extension(3, "range")), { end: ends + 3 * 3_600_000, limitedBy: null });
  assert.equal(offerOf(runs, null), null);
});

test("a change sets up to when a lease goes on by itself, or stops it", () => {
  const goes = lease({ status: "ACTIVE", extend_if_free: { until: "2026-11-28T15:00:00Z", reason: null } });
  assert.deepEqual(changeOf(formOf(goes), goes), {});
  assert.deepEqual(changeOf({ ...formOf(goes), goesOn: null }, goes), { extend_if_free: null });
  const at = Date.parse("2026-11-29T15:00:00Z");
  assert.deepEqual(changeOf({ ...formOf(goes), goesOn: at }, goes), {
    extend_if_free: { until: "2026-11-29T15:00:00Z" },
  });
  const stopped = lease({ status: "ACTIVE", extend_if_free: null });
  assert.equal(rebased(formOf(goes), goes, stopped).goesOn, null);
  assert.equal(rebased({ ...formOf(goes), goesOn: at }, goes, stopped).goesOn, at);
});

test("the reminder moves with the dates that it is shown beside, until it is touched", () => {
  const booked = lease({
    status: "PENDING",
    start_date: "2026-11-27T18:00:00Z",
    end_date: "2026-11-29T05:59:00Z",
    before_end_date: "2026-11-29T04:59:00Z",
  });
  const [start, end] = [Date.parse("2026-11-28T06:00:00Z"), Date.parse("2026-11-29T17:59:00Z")];
  const form = { ...formOf(booked), start, end };
  assert.equal(new Date(reminderOf(form, booked, 3600)!).toISOString(), "2026-11-29T16:59:00.000Z");
  assert.equal(changeOf(form, booked).before_end_date, undefined);
  // One that is meant to stay where it was is sent: the service would move it.
  const stays = { ...form, remindFollows: false };
  assert.equal(reminderOf(stays, booked, 3600), Date.parse("2026-11-29T04:59:00Z"));
  assert.equal(changeOf(stays, booked).before_end_date, "2026-11-29T04:59:00Z");
  assert.deepEqual(changeOf({ ...formOf(booked), remindFollows: false }, booked), {});
  // Neither end nor start is changed while what stands there is no order.
  assert.equal(reminderOf({ ...form, end: start }, booked, 3600), Date.parse("2026-11-29T04:59:00Z"));
  assert.equal(reminderOf(formOf({ ...booked, before_end_date: null }), booked, 3600), null);
});

test("a reminder is as long before another end, and one that the start had cut off at the usual time again", () => {
  const before = { start: 0, end: 1800 };
  assert.equal(movedReminder(0, before, { start: 0, end: 9000 }, 3600), 5400);
  assert.equal(movedReminder(1200, before, { start: 0, end: 9000 }, 3600), 8400);
  assert.equal(movedReminder(5400, { start: 0, end: 9000 }, { start: 0, end: 1800 }, 3600), 0);
  assert.equal(movedReminder(1200, before, before, 3600), 1200);
});

test("who has room made for a lease reads how many servers are left, or that it was in vain", () => {
  const event = { event_type: "start_lease", reason: { code: "making_room", message: "servers are moved, 3 left" } };
  const lease = { kind: "best_effort", status: "IN_PROGRESS", events: [event] } as unknown as Lease;
  assert.equal(roomInWords(lease), "servers are moved, 3 left");
  assert.match(roomInWords({ ...lease, status: "TIMED_OUT", events: [] })!, /could not be moved off its hosts in time/);
  assert.equal(roomInWords({ ...lease, status: "ACTIVE" }), null);
  assert.equal(roomInWords({ ...lease, status: "TIMED_OUT", kind: "retries" }), null);
});
