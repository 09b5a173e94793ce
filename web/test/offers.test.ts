// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerInWords, stepInWords } from "../src/pages/search/openings.tsx";
import { shownMoment } from "../src/time/typed.ts";
import type { CalendarResource, Step } from "../src/api/types.ts";
import { loadTemporal, toWire } from "../src/time/zone.ts";
import { newWant, questionOf } from "../src/words/question.ts";
import {
  drawnWindow,
  endAfter,
  foundInWords,
  fullHour,
  openOf,
  usualStarts,
  withUsualStarts,
} from "../src/words/offers.ts";
import { disabledInWords, shortageInWords, shortageOf } from "../src/words/waiting.ts";

await loadTemporal();
const BERLIN = "Europe/Berlin";
const NOW = Date.parse("2026-11-26T15:37:12Z");
const shown = (at: number, zone = BERLIN) => shownMoment(at, zone);

test("a click on the strip means a full hour of the zone", () => {
  assert.equal(shown(fullHour(NOW, BERLIN)), "26 Nov 2026 16:00");
  assert.equal(shown(fullHour(NOW, BERLIN, true)), "26 Nov 2026 17:00");
  assert.equal(shown(fullHour(NOW, "Asia/Kathmandu"), "Asia/Kathmandu"), "26 Nov 2026 21:00");
});

test("a window that is drawn has full hours, is one at least, and does not begin in the past", () => {
  const day = 86_400_000;
  const drawn = drawnWindow(NOW + 2 * day, NOW + day, BERLIN, NOW);
  assert.deepEqual([shown(drawn.start), shown(drawn.end)], ["27 Nov 2026 17:00", "28 Nov 2026 17:00"]);
  const short = drawnWindow(NOW - day, NOW + 1000, BERLIN, NOW);
  assert.deepEqual([shown(short.start), shown(short.end)], ["26 Nov 2026 17:00", "26 Nov 2026 18:00"]);
});

test("usual starts are tomorrow, Monday and in a week, each once", () => {
  assert.deepEqual(
    usualStarts(NOW, BERLIN).map(({ text, at }) => `${text}: ${shown(at)}`),
    ["tomorrow 09:00: 27 Nov 2026 09:00", "Monday 09:00: 30 Nov 2026 09:00", "in a week: 3 Dec 2026 09:00"],
  );
  const sunday = Date.parse("2026-11-29T12:00:00Z");
  assert.deepEqual(
    usualStarts(sunday, BERLIN).map(({ text }) => text),
    ["tomorrow 09:00", "in a week"],
  );
});

test("days are those of the calendar", () => {
  const start = Date.parse("2027-03-27T08:00:00Z");
  assert.equal(shown(endAfter(start, "P1D", BERLIN)), "28 Mar 2027 09:00");
  assert.equal(shown(endAfter(start, "PT24H", BERLIN)), "28 Mar 2027 10:00");
});

test("an opening that may start at any time is offered at usual ones, none after its last start", () => {
  const wire = (at: number) => `${new Date(at).toISOString().slice(0, 19)}Z`;
  const opening = {
    start_date: wire(NOW),
    end_date: wire(NOW + 86_400_000),
    last_start_date: "2026-12-01T00:00:00Z",
    open_until: null,
    reservations: [{ count: 1 }],
    refusals: [],
  };
  const offered = withUsualStarts([opening], "P1D", BERLIN, NOW);
  assert.deepEqual(
    offered.map((one) => one.start_date),
    [opening.start_date, "2026-11-27T08:00:00Z", "2026-11-30T08:00:00Z"],
  );
  assert.equal(offered[2]!.end_date, "2026-12-01T08:00:00Z");
  const refused = { ...opening, refusals: [{ code: "x", message: "no" }] };
  assert.equal(withUsualStarts([refused], "P1D", BERLIN, NOW).length, 1);
});

test("an opening that was found at a usual start is listed once, in the order of the starts", () => {
  const opening = (start: string, end: string, last: string) => ({
    start_date: start,
    end_date: end,
    last_start_date: last,
    open_until: null,
    reservations: [{ count: 3 }],
    refusals: [],
  });
  const first = opening("2026-11-26T15:37:12Z", "2026-11-26T23:37:12Z", "2026-12-03T12:00:00Z");
  const monday = opening("2026-11-30T08:00:00Z", "2026-11-30T16:00:00Z", "2026-11-30T09:00:00Z");
  const listed = withUsualStarts([first, monday], "PT8H", BERLIN, NOW);
  assert.deepEqual(
    listed.map((one) => one.start_date),
    [first.start_date, "2026-11-27T08:00:00Z", monday.start_date, "2026-12-03T08:00:00Z"],
  );
  const onMonday = usualStarts(Date.parse("2026-11-30T12:00:00Z"), BERLIN);
  assert.equal(new Set(onMonday.map(({ at }) => at)).size, onMonday.length, "no start has two names");
});

test("how many there are at another start than the one that was searched is not made up", () => {
  const hosts = { ...newWant("physical:host"), count: 1, most: 40 };
  assert.equal(foundInWords(hosts, 22, true), "22 hosts");
  assert.equal(foundInWords(hosts, 22, false), "at least 1 host");
  assert.equal(foundInWords({ ...hosts, count: 4, most: null }, 4, false), "4 hosts");
  const devices = { ...newWant("device"), count: 2, values: { min: 2, max: 5 } };
  assert.equal(foundInWords(devices, 5, false), "at least 2 device");
  assert.equal(foundInWords({ ...devices, values: { min: 2, max: 2 } }, 2, false), "2 device");
});

test("an opening is all the time in which its length may lie", () => {
  const opening = {
    start_date: "2026-11-29T06:00:00Z",
    end_date: "2026-11-30T06:00:00Z",
    last_start_date: "2026-11-29T09:00:00Z",
  };
  const { start, end } = openOf(opening);
  assert.deepEqual([shown(start, "UTC"), shown(end, "UTC")], ["29 Nov 2026 06:00", "30 Nov 2026 09:00"]);
  const later = { ...opening, start_date: "2026-11-29T08:00:00Z", end_date: "2026-11-30T08:00:00Z" };
  assert.equal(openOf(later).end, end);
});

test("more than there is cannot be waited for, but what is out of use or broken comes back", () => {
  const steps = [
    { code: "registered", remaining: 59 },
    { code: "disabled", removed: 3, remaining: 56 },
    { code: "failed", removed: 1, remaining: 55 },
    { code: "promised", removed: 20, remaining: 35 },
  ];
  const said = (asked: number, some: Step[] = steps, type = "physical:host") => {
    const short = shortageOf([{ pointer: "/reservations/0", asked, steps: some }], () => type);
    return short && shortageInWords(short, (many) => (many === 1 ? "1 host" : `${many} hosts`));
  };
  assert.equal(said(40), null);
  assert.equal(said(70), "There are only 59 hosts of what you ask for, so no waiting helps. Ask for less.");
  assert.equal(
    said(56),
    "Only 55 of 59 hosts take new leases now: 3 are out of use and 1 is broken. Yours can begin once enough of them take leases again.",
  );
  const one = [steps[0]!, { code: "requirement", remaining: 1 }];
  assert.equal(
    said(2, one),
    "There is only 1 host of what you ask for, so no waiting helps. Ask for less, or take away a property.",
  );
  const none = [steps[0]!, { code: "requirement", remaining: 0 }];
  assert.equal(said(1, none), "There is none of what you ask for, so no waiting helps. Take away a property.");
  assert.equal(said(70, steps, "virtual:instance"), null, "of instances the steps count hosts");
  assert.equal(
    shortageOf([], () => undefined),
    null,
  );
});

test("of what is out of use it is said until when, and how many have no date", () => {
  const host = (...blocks: object[]) => ({ blocks }) as unknown as CalendarResource;
  const out = (end: string | null, code = "disabled") => ({
    kind: "out_of_use",
    start: "2026-11-26T15:37:00Z",
    end,
    code,
  });
  const to = "2026-12-31T15:37:00Z";
  const resources = [
    host(out("2026-11-30T08:00:00Z")),
    host(out(null)),
    host(out(null, "failed")),
    host(out("2026-11-30T08:00:00Z")),
    host({ ...out(null), start: "2026-12-02T00:00:00Z" }),
  ];
  assert.equal(disabledInWords({ resources, to }, 3, BERLIN, NOW), "2 until Monday 09:00, 1 without a date");
  assert.equal(disabledInWords({ resources, to }, 4, BERLIN, NOW), null, "not all of them were read");
  const long = disabledInWords({ resources: [host(out(to))], to }, 1, BERLIN, NOW);
  assert.match(long ?? "", /^1 until after /, "the answer ends there, not what is out of use");
});

test("a screen reader hears how many openings are listed, later starts of one opening too", () => {
  const now = Date.now();
  const opening = {
    start_date: toWire(now),
    end_date: toWire(now + 86_400_000),
    last_start_date: toWire(now + 20 * 86_400_000),
    open_until: null,
    reservations: [],
    refusals: [],
  };
  const listed = withUsualStarts([opening], "P1D", "UTC", now);
  assert.ok(listed.length > 2, `${listed.length} are listed`);
  assert.equal(answerInWords(listed), `${listed.length} openings, the first now.`);
  assert.equal(answerInWords([opening]), "1 opening, the first now.");
  assert.equal(answerInWords([]), "Nothing fits.");
});

test("what is booked says for which time: some of it is free now", () => {
  const question = questionOf(new URLSearchParams("min=14&for=P3D"));
  const said = (step: Partial<Step>) =>
    stepInWords({ code: "promised", remaining: 10, ...step }, question, "physical:host");
  assert.equal(said({ removed: 12 }), "without 12 that are booked for a part of that time");
  assert.match(
    said({ removed: 1, until: "2031-03-03T08:00:00Z" }),
    /^without 1 that is booked for a part of that time; enough are free again from Mon 3 Mar 2031 \d\d:00$/,
  );
});
