// SPDX-License-Identifier: Apache-2.0
/** Random edits of every form: nothing may be acted on but the answer to just what the fields show at that moment. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Answered, type Span, actionable, afterStart, answerTo, disorder, keptLength } from "../src/forms/gate.ts";
import { readMoment, shownMoment } from "../src/time/typed.ts";
import { loadTemporal } from "../src/time/zone.ts";
import {
  type Booking,
  boundsPrice,
  impatience,
  leaseBody,
  mayKeep,
  misplaced,
  firstFit,
  newBooking,
  planInWords,
  planOf,
  seriesBody,
  subjectOf,
} from "../src/words/booking.ts";
import { moment, range } from "../src/time/format.ts";
import { bodyOf, newWant, paramsOf, questionOf } from "../src/words/question.ts";

await loadTemporal();
const ZONE = "Europe/Berlin";
const NOW = Date.parse("2026-11-26T15:30:00Z");
const HOUR = 3_600_000;

/** A generator with a seed, so that what fails can be tried again (mulberry32). */
function seeded(seed: number) {
  let state = seed;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  const one = <T>(some: readonly T[]): T => some[below(some.length)]!;
  return { next, below, one };
}
type Random = ReturnType<typeof seeded>;

const PASTED = [
  "2026-12-01T09:00",
  "30 Nov 2026 10:00",
  "1 Dec 0026 09:00",
  "12/01/2026, 09:00 AM",
  "tomorrow 9:00",
  "nonsense",
  "31 Feb 2027 10:00",
  "2 Dec 2026 18:00",
];

/** Types, clears, pastes or deletes in a text. */
function edited(text: string, random: Random): string {
  switch (random.below(9)) {
    case 0:
      return "";
    case 1:
      return random.one(PASTED);
    case 2:
      return text.slice(0, -1);
    case 3: {
      const at = random.below(text.length + 1);
      return text.slice(0, at) + random.one("0123456789 :.DecNov".split("")) + text.slice(at);
    }
    default:
      return `${1 + random.below(28)} Dec 2026 ${String(random.below(24)).padStart(2, "0")}:00`;
  }
}

/** "Exactly from … to …" as the page has it: texts, what they mean, the question, and answers that come in any order. */
class WindowForm {
  texts = { start: "1 Dec 2026 10:00", end: "2 Dec 2026 10:00" };
  span: Span = { start: this.#read("start"), end: this.#read("end") };
  entered: Span = this.span;
  count = "2";
  asked = questionOf(new URLSearchParams("min=2&start=2026-12-01T09:00:00Z&end=2026-12-02T09:00:00Z"));
  answered: Answered<string> = { of: null, data: null, error: null };
  pending: string[] = [];

  #read(name: "start" | "end"): number | null {
    return readMoment(this.texts[name], ZONE, NOW).value?.at ?? null;
  }

  get unsettled(): number {
    const bad = (["start", "end"] as const).filter((name) => this.#read(name) === null).length;
    return bad + (disorder(this.span) ? 1 : 0) + (this.#count() === null ? 1 : 0);
  }

  #count(): number | null {
    const number = Number(this.count);
    return this.count.trim() !== "" && Number.isInteger(number) && number >= 1 ? number : null;
  }

  get question(): string {
    return JSON.stringify(bodyOf(this.asked, ZONE));
  }

  put(span: Span) {
    this.span = span;
    if (span.start !== null && span.end !== null && span.end > span.start)
      this.asked = { ...this.asked, exactly: { start: span.start, end: span.end } };
  }

  step(random: Random) {
    switch (random.below(9)) {
      case 0:
        this.texts.start = edited(this.texts.start, random);
        this.put({ ...this.span, start: this.#read("start") });
        break;
      case 1:
        this.texts.end = edited(this.texts.end, random);
        this.put({ ...this.span, end: this.#read("end") });
        break;
      case 2: {
        // The field of the start is left: only now may the end move, and it is shown where it is.
        const next = afterStart(this.span, this.entered);
        if (next !== this.span && next.end !== null) this.texts.end = shownMoment(next.end, ZONE);
        this.put(next);
        this.entered = this.span;
        break;
      }
      case 3:
        this.count = random.one(["", "3", "17", "-1", "1e", "2", "5"]);
        if (this.#count() !== null) {
          this.asked = { ...this.asked, wants: [{ ...newWant("physical:host"), count: this.#count()! }] };
        }
        break;
      case 4:
      case 5:
        this.pending.push(this.question);
        break;
      default: {
        const [of] = this.pending.splice(random.below(this.pending.length || 1), 1);
        if (of !== undefined) this.answered = { of, data: of, error: null };
      }
    }
  }

  /** What would be booked now, if anything may be. */
  get bookable(): string | null {
    return actionable({ unsettled: this.unsettled, question: this.question, answered: this.answered });
  }
}

test("exactly from … to …: nothing can be booked but what the fields show, whatever is typed", () => {
  let booked = 0;
  for (let seed = 1; seed <= 300; seed++) {
    const random = seeded(seed);
    const form = new WindowForm();
    for (let turn = 0; turn < 40; turn++) {
      form.step(random);
      const found = form.bookable;
      if (found === null) continue;
      booked += 1;
      const body = JSON.parse(found);
      const shown = {
        start: shownMoment(Date.parse(body.start_date), ZONE),
        end: shownMoment(Date.parse(body.end_date), ZONE),
      };
      const read = (text: string) => shownMoment(readMoment(text, ZONE, NOW).value!.at, ZONE);
      const where = `seed ${seed}, turn ${turn}`;
      assert.equal(shown.start, read(form.texts.start), where);
      assert.equal(shown.end, read(form.texts.end), where);
      assert.equal(body.reservations[0].min, Number(form.count), where);
      assert.ok(Date.parse(body.end_date) > Date.parse(body.start_date), where);
    }
  }
  assert.ok(booked > 500, `${booked} could be booked`);
});

test("typing in the start never moves the end; leaving it may, by the length that there was at first", () => {
  for (let seed = 1; seed <= 200; seed++) {
    const random = seeded(seed);
    let span: Span = { start: NOW, end: NOW + 24 * HOUR };
    const entered = span;
    let text = shownMoment(NOW, ZONE);
    for (let key = 0; key < 15; key++) {
      text = edited(text, random);
      span = { ...span, start: readMoment(text, ZONE, NOW).value?.at ?? null };
      assert.equal(span.end, NOW + 24 * HOUR);
    }
    const left = afterStart(span, entered);
    if (left.start !== null) assert.ok(left.end === NOW + 24 * HOUR || left.end === left.start + 24 * HOUR);
    if (left.start !== null) assert.equal(disorder(left), undefined);
  }
});

test("a window that keeps its length moves once its start is left, unless its end was typed", () => {
  const before: Span = { start: NOW, end: NOW + 4 * HOUR };
  assert.deepEqual(keptLength({ start: NOW + HOUR, end: before.end }, before), {
    start: NOW + HOUR,
    end: NOW + 5 * HOUR,
  });
  assert.deepEqual(keptLength({ start: null, end: before.end }, before), { start: null, end: before.end });
  const typed: Span = { start: NOW + HOUR, end: NOW + 9 * HOUR };
  assert.equal(keptLength(typed, before), typed);
});

test("a month that is typed before its day takes nothing along", () => {
  // "12 01": for a moment the start lies in January, then in December.
  const entered: Span = { start: Date.parse("2026-11-30T09:00Z"), end: Date.parse("2026-12-01T09:00Z") };
  const typed: Span = { start: Date.parse("2026-12-01T10:00Z"), end: entered.end };
  assert.equal(disorder(typed), "The end has to be after the start.");
  assert.deepEqual(afterStart(typed, entered), { start: typed.start, end: Date.parse("2026-12-02T10:00Z") });
});

test("an answer is one to the question that it answers, and to none while a field is half typed", () => {
  const answered = { of: "q", data: "yes", error: null };
  assert.equal(answerTo("other", answered), null);
  assert.equal(answerTo(null, answered), null);
  assert.equal(actionable({ unsettled: 0, question: "q", answered }), "yes");
  assert.equal(actionable({ unsettled: 1, question: "q", answered }), null);
  // A refusal is no answer to act on.
  assert.equal(actionable({ unsettled: 0, question: "q", answered: { ...answered, data: null, error: "no" } }), null);
});

/** Changes one part of the dialog that books. */
function part(form: Booking, first: number, random: Random): Partial<Booking> {
  switch (random.below(9)) {
    case 0:
      return { name: random.one([null, "", "mine", " mine "]) };
    case 1:
      return { start: random.one([null, first - HOUR, first, first + 5 * HOUR, first + 400 * HOUR]) };
    case 2:
      return { patience: random.one([null, NOW - HOUR, first + HOUR, first + 200 * HOUR]) };
    case 3:
      return { kind: random.one(["scheduled", "immediate"]) };
    case 4:
      return {
        repeat: random.one([null, { every: "week", until: "2027-02-01" }, { every: "day", until: "2026-12-20" }]),
      };
    case 5:
      return { more: random.one([null, "P1D"]) };
    case 6:
      return { remind: random.one(["", "PT1H", "P1D"]) };
    case 7:
      return { tries: random.one([null, 3]) };
    default:
      return { ends: form.ends.map(() => random.one(["default", "none", "snapshot"])) };
  }
}

test("it is proposed to wait beyond the first start that fits, however far ahead that is", () => {
  const question = questionOf(new URLSearchParams("min=2&for=P2D"));
  const at = (hours: number) => ({ start_date: new Date(NOW + hours * HOUR).toISOString() });
  const proposed = (found: object | null) =>
    newBooking(subjectOf(question, null, null, NOW, firstFit(found as Parameters<typeof firstFit>[0]))).patience;
  assert.equal(proposed(null), NOW + 7 * 24 * HOUR);
  assert.equal(proposed({ openings: [at(2)], alternatives: [] }), NOW + 7 * 24 * HOUR);
  assert.equal(proposed({ openings: [at(11 * 24), at(12 * 24)], alternatives: [] }), NOW + 12 * 24 * HOUR);
  const time = { change: "time", ...at(20 * 24) };
  assert.equal(proposed({ openings: [], alternatives: [{ change: "count", ...at(1) }, time] }), NOW + 21 * 24 * HOUR);
});

test("what waits and each of a series may cost what is typed, and what is booked what is shown", () => {
  const question = questionOf(new URLSearchParams("min=2&for=P2D"));
  const subject = subjectOf(question, null, { start: NOW + HOUR, end: NOW + 49 * HOUR }, NOW);
  const repeat = { every: "week", until: "2026-12-31" } as const;
  const sent = (form: Booking) => {
    const plan = planOf(subject, form, "UTC", NOW);
    const body = plan.way === "recurs" ? seriesBody(subject, form, plan, "UTC") : leaseBody(subject, form, plan, "UTC");
    return [boundsPrice(plan), body.max_price];
  };
  const form = { ...newBooking(subject), most: " 12.50" };
  assert.deepEqual(sent(form), [true, "12.50"]);
  assert.deepEqual(sent({ ...form, most: "" }), [true, undefined]);
  assert.deepEqual(sent({ ...form, patience: null }), [false, undefined]);
  assert.deepEqual(sent({ ...form, patience: null, repeat }), [true, "12.50"]);
});

test("what begins later may keep its hosts, and so may a series; what begins now has them", () => {
  const sent = (asked: string, start: number, part: Partial<Booking> = {}) => {
    const question = questionOf(new URLSearchParams(asked));
    const subject = subjectOf(question, null, { start, end: start + 48 * HOUR }, NOW);
    const form = { ...newBooking(subject), patience: null, keeps: true, ...part };
    const plan = planOf(subject, form, "UTC", NOW);
    const body = plan.way === "recurs" ? seriesBody(subject, form, plan, "UTC") : leaseBody(subject, form, plan, "UTC");
    return [mayKeep(subject, plan), body.keep_hosts];
  };
  const repeat = { every: "week", until: "2026-12-31" } as const;
  assert.deepEqual(sent("min=2&for=P2D", NOW + HOUR), [true, true]);
  assert.deepEqual(sent("min=2&for=P2D", NOW + HOUR, { keeps: false }), [true, undefined]);
  assert.deepEqual(sent("min=2&for=P2D", NOW), [false, undefined]);
  assert.deepEqual(sent("min=2&for=P2D", NOW, { repeat }), [true, true]);
  assert.deepEqual(sent("type=virtual:instance&for=P2D", NOW + HOUR), [false, undefined]);
});

test("what begins later may be held until it is confirmed; what begins now, waits or recurs is not", () => {
  const sent = (start: number, part: Partial<Booking> = {}) => {
    const question = questionOf(new URLSearchParams("min=2&for=P2D"));
    const subject = subjectOf(question, null, { start, end: start + 48 * HOUR }, NOW);
    const form = { ...newBooking(subject), patience: null, held: 15, ...part };
    const plan = planOf(subject, form, "UTC", NOW);
    const body = plan.way === "recurs" ? seriesBody(subject, form, plan, "UTC") : leaseBody(subject, form, plan, "UTC");
    return [plan.holdable, body.confirm_within];
  };
  const repeat = { every: "week", until: "2026-12-31" } as const;
  assert.deepEqual(sent(NOW + HOUR), [59, "PT15M"]);
  assert.deepEqual(sent(NOW + HOUR, { held: null }), [59, undefined]);
  assert.deepEqual(sent(NOW + 5 * 60_000), [4, "PT4M"]);
  assert.deepEqual(sent(NOW), [0, undefined]);
  assert.deepEqual(sent(NOW + HOUR, { repeat }), [0, undefined]);
  assert.deepEqual(sent(NOW + HOUR, { patience: NOW + 48 * HOUR }), [0, undefined]);
});

test("the summary names a zone once", () => {
  const question = questionOf(new URLSearchParams("min=2&for=P2D"));
  const subject = subjectOf(question, null, { start: NOW + HOUR, end: NOW + 49 * HOUR }, NOW);
  const said = (zone: string) =>
    planInWords(subject, planOf(subject, { ...newBooking(subject), patience: null }, zone, NOW), zone, NOW);
  assert.ok(said("UTC").endsWith("(2 days; UTC)"), said("UTC"));
  assert.ok(said("Europe/Berlin").endsWith("(2 days; Berlin, UTC+01:00)"), said("Europe/Berlin"));
});

test("the dialog that books sends what its summary says: books, waits, recurs, now or not at all", () => {
  const ways = new Set<string>();
  for (let seed = 1; seed <= 800; seed++) {
    const random = seeded(seed);
    const first = NOW + random.one([0, 1, 30, 100]) * HOUR;
    const exactly = random.one([null, { start: first, end: first + 48 * HOUR }]);
    const question = { ...questionOf(new URLSearchParams("min=2&for=P2D")), exactly, from: exactly ? null : first };
    const opening = random.one([
      null,
      {
        start_date: new Date(first).toISOString(),
        end_date: new Date(first + 48 * HOUR).toISOString(),
        last_start_date: new Date(first + 100 * HOUR).toISOString(),
        open_until: null,
        reservations: [],
        refusals: [],
      },
    ]);
    const subject = subjectOf(question, opening, opening && { start: first, end: first + 48 * HOUR }, NOW);
    let form = newBooking(subject);
    const proposed = planOf(subject, form, ZONE, NOW);
    assert.equal(impatience(proposed, form.patience, ZONE, NOW), undefined, "what is proposed can be");
    for (let turn = 0; turn < 8; turn++) {
      form = { ...form, ...part(form, first, random) };
      if (form.start === null || misplaced(subject, form.start, ZONE, NOW)) form = { ...form, start: first };
      const plan = planOf(subject, form, ZONE, NOW);
      ways.add(plan.way);
      const words = planInWords(subject, plan, ZONE, NOW);
      const where = `seed ${seed}, turn ${turn}: ${words}`;
      assert.equal(plan.end - plan.start, 48 * HOUR, where);
      assert.equal(plan.name, plan.name.trim());
      if (plan.way === "recurs") {
        const body = seriesBody(subject, form, plan, ZONE);
        assert.ok(words.startsWith(`first ${range(plan.start, plan.end, ZONE, NOW)}`), where);
        assert.equal(
          shownMoment(plan.start, ZONE),
          shownMoment(readMoment(String(body.start), ZONE, NOW).value!.at, ZONE),
          where,
        );
        continue;
      }
      const body = leaseBody(subject, form, plan, ZONE);
      const start = body.start_date === "now" ? NOW : Date.parse(String(body.start_date));
      assert.equal("wait" in body, plan.way === "waits", where);
      assert.equal(body.kind === "immediate", plan.way === "immediate", where);
      if (plan.way === "waits") {
        // No time that it may not get: neither an end nor a day in its name.
        assert.ok(!words.includes("–"), where);
        assert.ok(body.start_date === "now" || words.includes(moment(start, ZONE, NOW)), where);
        assert.ok(form.name !== null || !plan.name.includes(" on "), where);
        if (impatience(plan, form.patience, ZONE, NOW) === undefined && body.start_date !== "now")
          assert.ok(Date.parse((body.wait as { until: string }).until) > start, where);
        continue;
      }
      assert.ok(words.includes(moment(Date.parse(String(body.end_date)), ZONE, NOW).slice(-5)), where);
      assert.equal(words.startsWith("now"), body.start_date === "now", where);
      if (body.start_date !== "now") assert.ok(words.startsWith(moment(start, ZONE, NOW)), where);
    }
  }
  assert.deepEqual([...ways].sort(), ["books", "immediate", "recurs", "waits"]);
});

test("a question goes through its address whatever was typed", () => {
  for (let seed = 1; seed <= 300; seed++) {
    const random = seeded(seed);
    const form = new WindowForm();
    for (let turn = 0; turn < 20; turn++) form.step(random);
    const kept = Object.entries(paramsOf(form.asked)).filter(([, value]) => value !== null);
    const again = questionOf(new URLSearchParams(kept.map(([name, value]) => [name, String(value)])));
    assert.deepEqual(bodyOf(again, ZONE), bodyOf(form.asked, ZONE), `seed ${seed}`);
  }
});
