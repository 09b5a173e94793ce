// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import "temporal-polyfill/global";
import { ticksOf } from "../src/grid/ticks.ts";
import { daysBetween, duration, exactly, range, relative, spoken } from "../src/time/format.ts";
import { fromWall, startOfDay, toWall, toWire } from "../src/time/zone.ts";

const HOUR = 3_600_000;
const BERLIN = "Europe/Berlin";
const at = (text: string) => Date.parse(text);

test("a wall clock goes to an instant and back", () => {
  assert.deepEqual(fromWall("2026-11-26T16:00", BERLIN), { at: at("2026-11-26T15:00:00Z"), later: null, gap: false });
  assert.equal(toWall(at("2026-11-26T15:00:00Z"), BERLIN), "2026-11-26T16:00");
  assert.equal(fromWall("no date", BERLIN), null);
  assert.equal(toWire(at("2026-11-26T15:00:00.400Z")), "2026-11-26T15:00:00Z");
});

test("a time that is left out when clocks are set forward moves on by an hour", () => {
  const meant = fromWall("2026-03-29T02:30", BERLIN);
  assert.deepEqual(meant, { at: at("2026-03-29T01:30:00Z"), later: null, gap: true });
});

test("a time that comes twice when clocks are set back has two instants", () => {
  const meant = fromWall("2026-10-25T02:30", BERLIN);
  assert.deepEqual(meant, { at: at("2026-10-25T00:30:00Z"), later: at("2026-10-25T01:30:00Z"), gap: false });
});

test("days begin at midnight of the zone, also on the days of 23 and 25 hours", () => {
  const spring = startOfDay(at("2026-03-29T10:00:00Z"), BERLIN);
  assert.equal(startOfDay(spring, BERLIN, 1) - spring, 23 * HOUR);
  const autumn = startOfDay(at("2026-10-25T10:00:00Z"), BERLIN);
  assert.equal(startOfDay(autumn, BERLIN, 1) - autumn, 25 * HOUR);
});

test("hourly ticks leave out an hour in spring and have one twice in autumn", () => {
  const hours = (day: string) => {
    const from = startOfDay(at(`${day}T10:00:00Z`), BERLIN);
    return ticksOf(from, startOfDay(from, BERLIN, 1), 60 / HOUR, BERLIN).minor.map((tick) => tick.label);
  };
  const spring = hours("2026-03-29");
  assert.equal(spring.length, 23);
  assert.ok(!spring.includes("02:00"));
  const autumn = hours("2026-10-25");
  assert.equal(autumn.length, 25);
  assert.equal(autumn.filter((label) => label === "02:00").length, 2);
});

test("ticks of several hours stay on the wall clock over a change of clocks", () => {
  const from = startOfDay(at("2026-10-25T10:00:00Z"), BERLIN);
  const ticks = ticksOf(from, startOfDay(from, BERLIN, 1), 15 / HOUR, BERLIN);
  assert.deepEqual(
    ticks.minor.map((tick) => tick.label),
    ["00:00", "03:00", "06:00", "09:00", "12:00", "15:00", "18:00", "21:00"],
  );
});

test("weekends are shaded from Saturday to Monday", () => {
  const from = at("2026-11-25T23:00:00Z");
  const { weekends, major } = ticksOf(from, from + 7 * 24 * HOUR, 6 / HOUR, BERLIN);
  assert.deepEqual(weekends, [{ start: at("2026-11-27T23:00:00Z"), end: at("2026-11-29T23:00:00Z") }]);
  assert.equal(major.length, 7);
});

test("wide views have days, weeks and months as ticks", () => {
  const from = at("2026-11-01T00:00:00Z");
  const labels = (days: number, pixelsPerDay: number) =>
    ticksOf(from, from + days * 24 * HOUR, pixelsPerDay / (24 * HOUR), "UTC").minor.map((tick) => tick.label);
  assert.deepEqual(labels(3, 50), ["Su 1", "Mo 2", "Tu 3"]);
  assert.deepEqual(labels(16, 12), ["2 Nov", "9 Nov", "16 Nov"]);
  assert.deepEqual(labels(70, 2), ["Nov", "Dec", "Jan"]);
});

test("instants are said as people say them", () => {
  const now = at("2026-11-23T10:15:42Z");
  assert.equal(spoken(at("2026-11-23T15:00:00Z"), BERLIN, now), "today 16:00");
  assert.equal(spoken(at("2026-11-24T08:00:00Z"), BERLIN, now), "tomorrow 09:00");
  assert.equal(spoken(at("2026-11-27T11:00:00Z"), BERLIN, now), "Friday 12:00");
  assert.equal(spoken(at("2027-01-02T11:00:00Z"), BERLIN, now), "Sat 2 Jan 2027 12:00");
  // Late in the evening in UTC it is tomorrow in Berlin.
  assert.equal(daysBetween(at("2026-11-23T22:30:00Z"), at("2026-11-23T23:30:00Z"), BERLIN), 1);
  assert.equal(range(at("2026-11-26T15:00:00Z"), at("2026-11-26T17:30:00Z"), BERLIN, now), "Thu 26 Nov 16:00 – 18:30");
});

test("seconds are shown where they matter", () => {
  const now = at("2026-11-23T10:15:42Z");
  const start = at("2026-11-26T15:00:27Z");
  assert.equal(exactly(start, BERLIN, now), "Thu 26 Nov 16:00:27");
  assert.equal(exactly(at("2026-11-26T15:00:00Z"), BERLIN, now), "Thu 26 Nov 16:00");
  const soon = at("2026-11-26T15:01:05Z");
  assert.equal(range(start, soon, BERLIN, now), "Thu 26 Nov 16:00:27 – Thu 26 Nov 16:01:05");
  assert.equal(range(start, start + HOUR, BERLIN, now), "Thu 26 Nov 16:00 – 17:00");
});

test("durations have their two largest units", () => {
  assert.equal(duration(3 * 24 * HOUR), "3 days");
  assert.equal(duration(26 * HOUR), "1 day 2 h");
  assert.equal(duration(2.5 * HOUR), "2 h 30 min");
  assert.equal(duration(30_000), "30 s");
  assert.equal(relative(5 * HOUR, 0), "in 5 h");
  assert.equal(relative(0, 3 * 24 * HOUR), "3 days ago");
});
