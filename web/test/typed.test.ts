// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { readClock, readDay, readMoment, shownMoment, stepped } from "../src/time/typed.ts";
import { loadTemporal } from "../src/time/zone.ts";

await loadTemporal();
const BERLIN = "Europe/Berlin";
// A Thursday, 16:30 in Berlin.
const NOW = Date.parse("2026-11-26T15:30:00Z");
const read = (text: string) => readMoment(text, BERLIN, NOW);
const shown = (text: string) => {
  const found = read(text);
  return found.problem ?? shownMoment(found.value.at, BERLIN);
};

test("dates are read as people write them", () => {
  const same = [
    "1 Dec 2026 09:00",
    "Tue 1 Dec 2026, 9:00",
    "Tuesday 1 December 2026 09:00",
    "1 dec 9:00",
    "Dec 1 2026 9:00 am",
    "1.12.2026 9:00",
    "1.12. 9:00",
    "2026-12-01T09:00",
    "2026-12-01 09:00",
    "2026-12-01T08:00:00Z",
    "2026-12-01T09:00:00+01:00",
    "2026-12-01 08:00 UTC",
    "2026-12-01 10:00 +02:00",
    "  1  Dec 2026   09:00 ",
    "Tuesday 9:00",
  ];
  for (const text of same) assert.equal(shown(text), "1 Dec 2026 09:00", text);
  assert.equal(shown("today 18:15"), "26 Nov 2026 18:15");
  assert.equal(shown("18:15"), "26 Nov 2026 18:15");
  assert.equal(shown("tomorrow 6:15 PM"), "27 Nov 2026 18:15");
  // On a Thursday the next one is meant, and a day without a year is one to come.
  assert.equal(shown("thu 9:00"), "3 Dec 2026 09:00");
  assert.equal(shown("5 Jan 9:00"), "5 Jan 2027 09:00");
});

test("what is half typed is no date, and a sentence says what is missing", () => {
  assert.match(shown(""), /^Write a date and a time, such as 27 Nov 2026 09:00\.$/);
  // Without a day it is no time that is missing.
  for (const text of ["abc", "12/10/2026 5pm", "+3 days", "1796688000"]) {
    assert.match(shown(text), /^Write a date and a time, such as 27 Nov 2026 09:00\.$/, text);
  }
  assert.match(shown("tomorrow"), /^Write the time too, such as 27 Nov 2026 09:00\.$/);
  assert.match(shown("1 Dec 2026"), /^Write the time too, such as 1 Dec 2026 09:00\.$/);
  assert.match(shown("1 Dec 2026 09:0"), /Write the time too, such as 1 Dec 2026 09:00/);
  assert.match(shown("1 Dec 0026 09:00"), /year/);
  assert.match(shown("1 Dec 26 09:00"), /four digits/);
  assert.match(shown("31 Nov 2026 09:00"), /no such date/);
  assert.match(shown("1 Foo 2026 09:00"), /no such month/);
  assert.match(shown("12/01/2026 09:00"), /month as a word/);
  assert.match(shown("1 Dec 2026 24:00"), /time as in 09:00/);
  assert.match(shown("soon 09:00"), /Write the date as in/);
});

test("whatever is shown is read as the same instant, in any zone", () => {
  for (const zone of [BERLIN, "UTC", "America/New_York", "Asia/Kathmandu"]) {
    for (let at = Date.parse("2026-01-01T00:15:00Z"); at < NOW; at += 11 * 3_600_000 + 900_000) {
      const found = readMoment(shownMoment(at, zone), zone, NOW);
      // Of two instants with one wall clock the first is read; the field asks which.
      assert.ok(found.value && (found.value.at === at || found.value.later === at), shownMoment(at, zone));
    }
  }
});

test("no prefix of a date means another instant than it says", () => {
  const whole = "Tue 1 Dec 2026 10:30";
  for (let end = 0; end < whole.length; end++) {
    const found = read(whole.slice(0, end));
    // "Tue 1 Dec 2026 10:3" and all before have no time of day.
    assert.notEqual(found.problem, undefined, whole.slice(0, end));
  }
});

test("days and times of day are read alone, too", () => {
  assert.equal(readDay("24 Dec", BERLIN, NOW).value, "2026-12-24");
  assert.equal(readDay("2026-12-24", BERLIN, NOW).value, "2026-12-24");
  assert.equal(readDay("24", BERLIN, NOW).problem, "Write the date as in 26 Nov 2026.");
  assert.equal(readClock("9:05").value, "09:05");
  assert.equal(readClock("12:05 am").value, "00:05");
  assert.equal(readClock("13:05 pm").value, undefined);
  assert.equal(readClock("9").value, undefined);
});

test("arrow keys move the part that the caret is in", () => {
  const text = "1 Dec 2026 09:00";
  const at = read(text).value!.at;
  const moved = (caret: number, up = true) => shownMoment(stepped(at, text, caret, up, BERLIN), BERLIN);
  assert.equal(moved(0), "2 Dec 2026 09:00");
  assert.equal(moved(12), "1 Dec 2026 10:00");
  assert.equal(moved(16, false), "1 Dec 2026 08:45");
});
