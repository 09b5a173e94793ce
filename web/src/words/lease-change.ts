// SPDX-License-Identifier: Apache-2.0
/** The form that changes a lease, between the lease and what is sent: only what differs. Pure. */
import type { LeaseChange } from "../api/change.ts";
import { parametersOf } from "../api/kinds.ts";
import type { BeforeEnd, Json, Lease, Reservation } from "../api/types.ts";
import { type Values, fieldsOf as schemaFields, withValue } from "../forms/schema.ts";
import { toWire } from "../time/zone.ts";
import { movedReminder } from "./endings.ts";
import type { Fit } from "./fits.ts";
import { SHOWN_ELSEWHERE } from "./parameters.ts";
import { bySchema } from "./question.ts";
import { type Wish, sameWishes, sentOf, wishesOf } from "./reminders.ts";

const MINUTE = 60_000;

/** What the form holds of one reservation. */
export interface Part {
  id: string;
  least: number;
  most: number;
  beforeEnd: BeforeEnd;
  /** Of types whose form is made of their schema: the parameters. */
  values: Values;
}

export interface Form {
  name: string;
  start: number | null;
  end: number | null;
  /** Null: nothing typed yet. */
  remind: number | null;
  /** The reminder was not touched: it moves with the end. */
  remindFollows: boolean;
  /** Up to when it goes on by itself; null: it does not. */
  goesOn: number | null;
  reminders: readonly Wish[];
  parts: readonly Part[];
}

/** Returns the form as it is opened. */
export function formOf(lease: Lease): Form {
  return {
    name: lease.name,
    start: Date.parse(lease.start_date),
    end: Date.parse(lease.end_date),
    remind: lease.before_end_date === null ? null : Date.parse(lease.before_end_date),
    remindFollows: true,
    goesOn: lease.extend_if_free ? Date.parse(lease.extend_if_free.until) : null,
    reminders: wishesOf(lease),
    parts: lease.reservations.map((one) => ({
      id: one.id,
      least: one.min ?? one.amount ?? 1,
      most: one.max ?? one.amount ?? 1,
      beforeEnd: one.before_end,
      values: bySchema(one.resource_type) ? parametersIn(one) : {},
    })),
  };
}

/** Returns the dates that are proposed, and nothing else of what has them. */
export function datesOf(proposed: Pick<Form, "start" | "end"> | undefined): Partial<Form> {
  return proposed ? { start: proposed.start, end: proposed.end } : {};
}

/** Returns what of a form differs from the lease, as it is sent. */
export function changeOf(form: Form, lease: Lease): LeaseChange {
  const change: LeaseChange = {};
  if (form.name.trim() !== lease.name) change.name = form.name.trim();
  if (moved(form.start, lease.start_date)) change.start_date = toWire(form.start!);
  if (moved(form.end, lease.end_date)) change.end_date = toWire(form.end!);
  // With new dates the service moves a reminder of which nothing is said, also one that is meant to stay.
  const dated = change.start_date !== undefined || change.end_date !== undefined;
  if (!form.remindFollows && form.remind !== null && (dated || moved(form.remind, lease.before_end_date)))
    change.before_end_date = toWire(form.remind);
  if (form.goesOn === null && lease.extend_if_free) change.extend_if_free = null;
  if (moved(form.goesOn, lease.extend_if_free?.until ?? null)) change.extend_if_free = { until: toWire(form.goesOn!) };
  const reminders = sentOf(form.reminders);
  if (!sameWishes(reminders, wishesOf(lease))) change.reminders = reminders;
  const parts = lease.reservations.flatMap((one) => {
    const part = form.parts.find(({ id }) => id === one.id);
    const changes = part ? partChange(part, one) : {};
    return Object.keys(changes).length > 0 ? [{ id: one.id, ...changes }] : [];
  });
  if (parts.length > 0) change.reservations = parts;
  return change;
}

/** Returns the form with what is offered in place of what it asks for. */
export function withOffer(form: Form, offer: Fit): Form {
  // Ends are typed by the minute.
  const end = Math.floor(Date.parse(offer.end_date) / MINUTE) * MINUTE;
  if (offer.change === "time") return { ...form, start: Date.parse(offer.start_date), end };
  if (offer.change === "duration") return { ...form, end };
  const parts = form.parts.map((part) => {
    const { id, ...counts } = offer.reservations?.find((one) => one.id === part.id) ?? {};
    if (id === undefined) return part;
    const { least, most, values } = part;
    return {
      ...part,
      least: counts.min ?? counts.amount ?? least,
      most: counts.max ?? counts.amount ?? most,
      values: Object.keys(values).length > 0 ? { ...values, ...counts } : values,
    };
  });
  return { ...form, parts };
}

/** Returns when one is reminded if the form is sent as it is; null: never, or nothing is typed. */
export function reminderOf(form: Form, lease: Lease, leadSeconds: number): number | null {
  if (!form.remindFollows || form.remind === null) return form.remind;
  const before = { start: Date.parse(lease.start_date), end: Date.parse(lease.end_date) };
  const start = moved(form.start, lease.start_date) ? form.start! : before.start;
  const end = moved(form.end, lease.end_date) ? form.end! : before.end;
  return end > start ? movedReminder(form.remind, before, { start, end }, leadSeconds * 1000) : form.remind;
}

/** Returns the form over a newer lease: what was typed stays, what was not touched follows the lease. */
export function rebased(form: Form, old: Lease, now: Lease): Form {
  const before = formOf(old);
  const after = formOf(now);
  const pick = <T>(typed: T, was: T, is: T): T => (typed === was ? is : typed);
  return {
    name: pick(form.name, before.name, after.name),
    start: pick(form.start, before.start, after.start),
    end: pick(form.end, before.end, after.end),
    remind: form.remindFollows ? after.remind : pick(form.remind, before.remind, after.remind),
    remindFollows: form.remindFollows,
    goesOn: pick(form.goesOn, before.goesOn, after.goesOn),
    reminders: sameWishes(form.reminders, before.reminders) ? after.reminders : form.reminders,
    parts: after.parts.map((is) => {
      const typed = form.parts.find(({ id }) => id === is.id);
      const was = before.parts.find(({ id }) => id === is.id);
      if (!typed || !was) return is;
      return {
        id: is.id,
        least: pick(typed.least, was.least, is.least),
        most: pick(typed.most, was.most, is.most),
        beforeEnd: pick(typed.beforeEnd, was.beforeEnd, is.beforeEnd),
        values: rebasedValues(typed.values, was.values, is.values),
      };
    }),
  };
}

/** What was not touched follows the lease. */
function rebasedValues(typed: Values, was: Values, is: Values): Values {
  const touched = namesOf(typed, was).filter((name) => !same(typed[name], was[name]));
  return touched.reduce((made, name) => withValue(made, name, typed[name]), is);
}

function namesOf(one: Values, other: Values): string[] {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])];
}

function same(one: Json | undefined, other: Json | undefined): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

export function parametersIn(one: Reservation): Values {
  const all = Object.entries(one as unknown as Values);
  return Object.fromEntries(all.filter(([name, value]) => !SHOWN_ELSEWHERE.includes(name) && value !== null));
}

/** What differs from the lease; what was cleared is as if it had never been given. */
function valueChanges(part: Part, one: Reservation): Partial<Reservation> {
  const before = parametersIn(one);
  const fields = schemaFields(parametersOf(one.resource_type));
  const changed = namesOf(part.values, before).filter((name) => !same(part.values[name], before[name]));
  return Object.fromEntries(
    changed.map((name) => {
      const field = fields.find((other) => other.name === name);
      const none = field?.control === "requirement" ? [] : (field?.initial ?? null);
      return [name, part.values[name] ?? none];
    }),
  );
}

function partChange(part: Part, one: Reservation): Partial<Reservation> {
  const ending = part.beforeEnd === one.before_end ? {} : { before_end: part.beforeEnd };
  if (bySchema(one.resource_type)) return { ...valueChanges(part, one), ...ending };
  const changes: Partial<Reservation> = {};
  if (one.min !== undefined && part.least !== one.min) changes.min = part.least;
  if (one.max !== undefined && Math.max(part.most, part.least) !== one.max)
    changes.max = Math.max(part.most, part.least);
  if (one.amount !== undefined && part.least !== one.amount) changes.amount = part.least;
  return { ...changes, ...ending };
}

/** A field shows whole minutes: only what differs by one has been changed. */
function moved(at: number | null, from: string | null): boolean {
  return at !== null && (from === null || Math.floor(at / MINUTE) !== Math.floor(Date.parse(from) / MINUTE));
}
