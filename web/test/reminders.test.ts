// SPDX-License-Identifier: Apache-2.0
/** Reminders in forms and in the timeline. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { movedKeys } from "../src/api/change.ts";
import type { Lease, Reminder } from "../src/api/types.ts";
import { momentsOf, reminderMoments } from "../src/words/events.ts";
import { changeOf, formOf, rebased } from "../src/words/lease-change.ts";
import {
  SIDES,
  distanceOf,
  fromAddress,
  inAddress,
  newWish,
  noteOf,
  placed,
  sentOf,
  sideOf,
  timeInWords,
  wishesOf,
} from "../src/words/reminders.ts";

const SAVE: Reminder = {
  at: "-PT2H",
  from: "end",
  text: "copy the results",
  time: "2026-11-26T08:00:00Z",
  sent_at: null,
};

function lease(...reminders: Reminder[]): Lease {
  return {
    id: "l",
    name: "training",
    status: "ACTIVE",
    start_date: "2026-11-23T10:00:00Z",
    end_date: "2026-11-26T10:00:00Z",
    before_end_date: null,
    created_at: "2026-11-23T09:00:00Z",
    deleted_at: null,
    conditions: [],
    reservations: [],
    events: [],
    reminders,
  } as unknown as Lease;
}

test("a reminder is on one side of a date, at a distance, and stays what it is when the other is chosen", () => {
  for (const side of SIDES) {
    const wish = placed(newWish(), side, "P1D");
    assert.equal(sideOf(wish), side);
    assert.equal(distanceOf(wish), "P1D");
  }
  assert.deepEqual(placed(newWish(), "before its start", "PT30M"), { at: "-PT30M", from: "start", text: "" });
});

test("one with a date of its own is shown as that", () => {
  const dated = { at: "2026-11-24T09:00:00Z", from: null, text: "call" };
  assert.equal(sideOf(dated), null);
  assert.match(timeInWords(dated, "UTC", Date.parse("2026-11-23T10:00:00Z")), /09:00/);
  assert.equal(timeInWords(SAVE, "UTC", 0), "2 hours before its end");
});

test("what is begun and has no text is not sent", () => {
  assert.deepEqual(sentOf([newWish(), { ...newWish(), text: " go " }]), [{ at: "-PT2H", from: "end", text: "go" }]);
});

test("a lease that is booked again has the reminders that move with it; an address that was written by hand has none", () => {
  const later = { ...SAVE, at: "+PT90M", from: "start" as const };
  const dated = { ...SAVE, at: "2026-11-24T09:00:00Z", from: null };
  assert.deepEqual(fromAddress(inAddress([SAVE, later, dated])), wishesOf({ reminders: [SAVE, later] }));
  assert.equal(inAddress([dated]), null);
  for (const odd of [null, "", "{", "5", "[5]", '[["-PT2H"]]', '[["soon","end","x"]]', '[["-PT2H","middle","x"]]'])
    assert.deepEqual(fromAddress(odd), [], `${odd}`);
  assert.equal(fromAddress(JSON.stringify(Array(11).fill(["-PT2H", "end", "x"]))).length, 10);
});

test("a form says when a reminder is told, and before it is sent why it never would be", () => {
  const now = Date.parse("2026-11-24T10:00:00Z");
  const dates = { start: Date.parse("2026-11-24T09:00:00Z"), end: Date.parse("2026-11-24T13:00:00Z") };
  const said = (at: string, from: "start" | "end", known = [] as (typeof SAVE)[], recurs = false) =>
    noteOf({ at, from, text: "x" }, { ...dates, recurs }, known, "UTC", now);
  assert.deepEqual(said("-PT2H", "end"), { text: "Told Tue 24 Nov 11:00", wrong: false });
  assert.deepEqual(said("+PT30M", "start"), { text: "Tue 24 Nov 09:30 is over.", wrong: true });
  assert.deepEqual(said("+PT4H", "start"), { text: "Tue 24 Nov 13:00 is not before the end.", wrong: true });
  assert.equal(said("+PT4H", "start", [{ ...SAVE, at: "+PT4H", from: "start", text: "x" }])?.wrong, false);
  assert.deepEqual(said("+PT30M", "start", [], true), {
    text: "Tue 24 Nov 09:30 is over; it comes with the later leases.",
    wrong: false,
  });
  assert.equal(noteOf(SAVE, { start: null, end: null }, [], "UTC", now), null);
});

test("a form that was not touched changes nothing, and follows what others have changed", () => {
  const seen = lease(SAVE);
  const form = formOf(seen);
  assert.deepEqual(changeOf(form, seen), {});
  const other = lease({ ...SAVE, text: "other" });
  assert.deepEqual(rebased(form, seen, other).reminders, wishesOf(other));
  const typed = { ...form, reminders: [] };
  assert.deepEqual(changeOf(typed, seen), { reminders: [] });
  assert.deepEqual(rebased(typed, seen, other).reminders, []);
});

test("that a reminder was told meanwhile is no conflict, that it was changed is one", () => {
  const seen = lease(SAVE);
  const told = lease({ ...SAVE, sent_at: "2026-11-26T08:00:00Z" });
  assert.deepEqual(movedKeys(seen, told, { reminders: [] }), []);
  assert.deepEqual(movedKeys(seen, lease(), { reminders: [] }), ["reminders"]);
});

test("the timeline has what is told and was, and what never will be", () => {
  const now = Date.parse("2026-11-24T10:00:00Z");
  const told = { ...SAVE, text: "look", sent_at: "2026-11-24T08:00:30Z" };
  const missed = { ...SAVE, text: "missed", time: "2026-11-24T09:00:00Z" };
  const late = { ...SAVE, text: "late", time: "2026-11-27T08:00:00Z" };
  const found = momentsOf(lease(SAVE, told, missed, late), now).filter(({ id }) => id.startsWith("reminder"));
  assert.deepEqual(
    found.map(({ title, progress, details }) => [title, progress, details]),
    [
      ["Reminded", "done", ["look"]],
      ["Was to remind", "never", ["missed"]],
      ["Reminds", "due", ["copy the results"]],
      ["Was to remind", "never", ["late"]],
    ],
  );
  assert.equal(reminderMoments(lease(SAVE), true, 0)[0]?.title, "Was to remind");
});
