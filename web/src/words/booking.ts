// SPDX-License-Identifier: Apache-2.0
/** The form that books, between what it shows and what is sent. Pure: the summary and the body are made of one plan. */
import type { Availability, BeforeEnd, LeaseKind, Opening } from "../api/types.ts";
import { duration, formatted, moment, range, spoken } from "../time/format.ts";
import { offsetName, shortName, toWire } from "../time/zone.ts";
import { whatOf } from "./lease.ts";
import { inIso, lengthInWords, lengthOf } from "./length.ts";
import { type Question, bySchema, countOf, wishOf } from "./question.ts";
import { type Wish, sentOf } from "./reminders.ts";
import { type Repeat, whenOf } from "./series.ts";

const MINUTE = 60_000;
const FIVE_MINUTES = 5 * MINUTE;
const DAY = 86_400_000;
const WEEK = 7 * DAY;

/** What a request that waits leaves open; null: nothing. */
export interface Flexible {
  /** The latest start that will do. */
  latest: number | null;
  /** How long it has to be at least, a duration. */
  atLeast: string | null;
}

/** What the form has. */
export interface Booking {
  /** Null: as it is proposed. */
  name: string | null;
  ends: readonly BeforeEnd[];
  remind: string;
  kind: LeaseKind;
  /** Until when it waits in line; null: it is booked. */
  patience: number | null;
  tries: number | null;
  flexible: Flexible;
  more: string | null;
  start: number | null;
  repeat: Repeat | null;
  reminders: readonly Wish[];
  /** The most that what waits, or each of a series, may cost, as it is typed; "": any price. */
  most: string;
  /** It keeps its hosts until it starts. */
  keeps: boolean;
  /** For how many minutes it is held, after which it is deleted unless somebody has confirmed it; null: it is firm. */
  held: number | null;
  /** The series that is booked as far as it fits, as it is sent; null: none is. */
  some: string | null;
}

/** What the form is about: it does not change while it is open, unless a refusal names another start that is taken. */
export interface Subject {
  question: Question;
  /** The first and the last start, the length, all in milliseconds. */
  first: number;
  last: number;
  length: number;
  /** Nothing was found: it waits. */
  unplaced: boolean;
  /** Of what waits: the first start that is known to fit; null if none is. */
  fits: number | null;
  opened: number;
}

/** Returns the instant cut to a whole minute: what is possible until then is possible a moment earlier. */
export function cut(at: number): number {
  return Math.floor(at / MINUTE) * MINUTE;
}

/** Returns what an opening is booked as; without one, what waits in line. */
export function subjectOf(
  question: Question,
  opening: Opening | null,
  window: { start: number; end: number } | null,
  opened: number,
  fits: number | null = null,
): Subject {
  const shown = window ?? unplaced(question, opened);
  const last = opening ? cut(Date.parse(opening.last_start_date)) : shown.start;
  return {
    question,
    first: shown.start,
    last,
    length: shown.end - shown.start,
    unplaced: opening === null,
    fits,
    opened,
  };
}

/** The window of what waits: the one that is asked for, or one from the earliest start on. */
function unplaced(question: Question, now: number): { start: number; end: number } {
  if (question.exactly) return question.exactly;
  const start = Math.max(question.from ?? now, now);
  return { start, end: start + (lengthOf(question.length)?.seconds ?? 86_400) * 1000 };
}

/** Returns the form as it is opened. */
export function newBooking(subject: Subject, reminders: readonly Wish[] = []): Booking {
  return {
    name: null,
    ends: subject.question.wants.map(() => "default"),
    remind: "",
    kind: "scheduled",
    patience: subject.unplaced ? patienceFrom(subject, subject.opened) : null,
    tries: null,
    flexible: { latest: null, atLeast: null },
    more: null,
    start: cut(subject.first),
    repeat: null,
    reminders,
    most: "",
    keeps: false,
    held: null,
    some: null,
  };
}

/** Returns until when it is proposed to wait: a week beyond the earliest start, and beyond the first one that fits. */
export function patienceFrom({ first, fits }: Pick<Subject, "first" | "fits">, now: number): number {
  return cut(Math.max(Math.max(now, first) + WEEK, fits === null ? 0 : fits + DAY));
}

/** Returns the first start that an answer knows to fit, in milliseconds; null if it knows none. */
export function firstFit(found: Pick<Availability, "openings" | "alternatives"> | null): number | null {
  const one = found?.openings[0] ?? found?.alternatives.find(({ change }) => change === "time");
  return one ? Date.parse(one.start_date) : null;
}

/** What would be done. */
export interface Plan {
  /** Waiting in line, a series, now or not at all, or just booked. */
  way: "waits" | "recurs" | "immediate" | "books";
  start: number;
  end: number;
  atOnce: boolean;
  name: string;
  /** For how many minutes it can be held before it starts at most; 0: it cannot. */
  holdable: number;
}

/** Returns what would be done with a form; `zone` is that of the page. */
export function planOf(subject: Subject, form: Booking, zone: string, now: number): Plan {
  const { question, first, length } = subject;
  const chosen = form.start === null || form.start <= first ? first : form.start;
  const atOnce = chosen <= now + MINUTE;
  const way = wayOf(form, atOnce);
  // A series begins at a time of the clock that is still to come when it is sent.
  const soon = Math.ceil((subject.opened + MINUTE) / FIVE_MINUTES) * FIVE_MINUTES;
  const start = way === "recurs" && atOnce ? soon : chosen;
  const what = whatIn(question);
  const dated = way === "books" || way === "immediate";
  const proposed = dated ? `${what} on ${formatted(start, zone, "day")}` : what;
  // The lease is confirmed or gone before its start, also if it is sent a minute later.
  const holdable = way === "books" ? Math.max(0, Math.floor((start - now) / MINUTE) - 1) : 0;
  return { way, start, end: start + length, atOnce, name: (form.name ?? proposed.slice(0, 80)).trim(), holdable };
}

/** Tells whether it is asked what something may cost at most: what is booked costs what is shown. */
export function boundsPrice({ way }: Pick<Plan, "way">): boolean {
  return way === "waits" || way === "recurs";
}

function wayOf(form: Booking, atOnce: boolean): Plan["way"] {
  if (form.patience !== null) return "waits";
  if (form.kind === "immediate" && atOnce) return "immediate";
  return form.repeat === null ? "books" : "recurs";
}

/** "2 hosts and 1 floating IP". */
function whatIn({ wants }: Question): string {
  return wants
    .map((want) => (bySchema(want.type) ? whatOf(wishOf(want)) : countOf(want.count, want.type)))
    .join(" and ");
}

/** Returns when that is, as the summary says it. */
export function planInWords(subject: Subject, plan: Plan, zone: string, now: number): string {
  const { question, length } = subject;
  const long = question.exactly ? duration(length) : lengthInWords(question.length);
  const zones = [...new Set([shortName(zone), offsetName(plan.end, zone)])].join(", ");
  const beside = `(${long}; ${zones})`;
  switch (plan.way) {
    case "waits":
      return plan.atOnce
        ? `${long}, as soon as possible`
        : `${long}, from ${moment(plan.start, zone, now)} on, as soon as possible`;
    case "recurs":
      return `first ${range(plan.start, plan.end, zone, now)} ${beside}`;
    default:
      return `${plan.atOnce ? `now – ${moment(plan.end, zone, now)}` : range(plan.start, plan.end, zone, now)} ${beside}`;
  }
}

/** Returns what is wrong with a date until which it waits, as a sentence; undefined if nothing is. */
export function impatience(plan: Plan, patience: number | null, zone: string, now: number): string | undefined {
  if (patience === null) return undefined;
  if (patience <= now) return "That is over already.";
  if (plan.atOnce || patience > plan.start) return undefined;
  return `It would give up before its earliest start, ${spoken(plan.start, zone, now)}.`;
}

/** Returns what is wrong with a start, as a sentence; undefined if nothing is. */
export function misplaced(subject: Subject, start: number | null, zone: string, now: number): string | undefined {
  // What is typed has whole minutes.
  if (start === null || (start >= subject.first - MINUTE && start <= subject.last)) return undefined;
  const from = subject.first <= now + MINUTE ? "now" : spoken(subject.first, zone, now);
  return `This opening is for starts from ${from} until ${spoken(subject.last, zone, now)}.`;
}

function reservationsOf({ question }: Subject, { ends }: Booking): Record<string, unknown>[] {
  return question.wants.map((want, index) => ({ ...wishOf(want), before_end: ends[index] ?? "default" }));
}

/** Returns what is sent of a single lease. */
export function leaseBody(subject: Subject, form: Booking, plan: Plan, zone: string): Record<string, unknown> {
  const { question } = subject;
  const { patience, tries, flexible, more, remind } = form;
  const waits = plan.way === "waits" && patience !== null;
  return {
    name: plan.name,
    kind: waits && tries !== null ? "retries" : plan.way === "immediate" ? "immediate" : "scheduled",
    start_date: plan.atOnce ? "now" : toWire(plan.start),
    // Just what the summary says: the end does not move while the dialog is open. Who waits gets the whole length.
    end_date: waits && !question.exactly ? `+${question.length}` : toWire(plan.end),
    time_zone: zone,
    reservations: reservationsOf(subject, form),
    ...(remind ? { before_end_date: `-${remind}` } : {}),
    ...(waits
      ? {
          wait: { until: toWire(patience), ...(tries === null ? {} : { tries }), ...flexibleBody(flexible) },
          ...mostBody(form),
        }
      : {}),
    ...(more === null ? {} : { extend_if_free: { until: `+${more}` } }),
    ...keepsBody(subject, form, plan),
    ...(form.held !== null && plan.holdable ? { confirm_within: `PT${Math.min(form.held, plan.holdable)}M` } : {}),
    ...remindersBody(form),
  };
}

/** Returns whether it can be chosen that hosts are kept: what begins at once has them. */
export function mayKeep({ question }: Subject, { atOnce, way }: Plan): boolean {
  return question.wants.some((want) => want.type === "physical:host") && (!atOnce || way === "recurs");
}

function keepsBody(subject: Subject, form: Booking, plan: Plan): Record<string, boolean> {
  return form.keeps && mayKeep(subject, plan) ? { keep_hosts: true } : {};
}

/** Returns what is sent of what a request leaves open. */
export function flexibleBody({ latest, atLeast }: Flexible): Record<string, string> {
  return { ...(latest === null ? {} : { latest: toWire(latest) }), ...(atLeast === null ? {} : { at_least: atLeast }) };
}

/** Returns what is sent of a series, as it is asked whether it fits: without how much of it has to. */
export function seriesBody(subject: Subject, form: Booking, plan: Plan, zone: string): Record<string, unknown> {
  return {
    name: plan.name,
    ...(form.repeat ? whenOf(form.repeat, plan.start, plan.end, zone) : {}),
    ...(form.remind ? { before_end_date: `-${form.remind}` } : {}),
    ...remindersBody(form),
    ...mostBody(form),
    ...keepsBody(subject, form, plan),
    reservations: reservationsOf(subject, form),
  };
}

function mostBody({ most }: Booking): Record<string, unknown> {
  return most.trim() === "" ? {} : { max_price: most.trim() };
}

function remindersBody({ reminders }: Booking): Record<string, unknown> {
  const wanted = sentOf(reminders);
  return wanted.length > 0 ? { reminders: wanted } : {};
}

/** Returns the length of what is asked for, as a duration. */
export function lengthAsked({ question, length }: Subject): string {
  return question.exactly ? inIso(length / 1000) : question.length;
}
