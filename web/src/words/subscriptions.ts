// SPDX-License-Identifier: Apache-2.0
/** Subscriptions in words: their state, what they send, and how far they are behind. Pure. */
import type { Subscription } from "../api/subscriptions.ts";
import { plural } from "../time/format.ts";
import type { Mark } from "./lease.ts";

const STATES: Readonly<Record<Subscription["state"], { mark: Mark; word: string; next: string }>> = {
  unconfirmed: { mark: "changing", word: "unconfirmed", next: "waits until its receiver accepts a test" },
  active: { mark: "active", word: "active", next: "" },
  paused: { mark: "booked", word: "paused", next: "is sent all of it when it is resumed" },
  disabled: { mark: "failed", word: "disabled", next: "is sent nothing until it is resumed" },
};

/** Returns the mark and the words of a state; one that fails now says so. */
export function subscriptionState(found: Pick<Subscription, "state" | "failing_since">) {
  if (found.state === "active" && found.failing_since !== null) {
    return { mark: "failed" as Mark, word: "failing", next: "is tried again and again" };
  }
  return STATES[found.state];
}

/** Returns what may still have to be sent, and what was refused for good; empty if that is nothing. */
export function backlogOf(found: Pick<Subscription, "behind" | "dead" | "dropped">): string[] {
  const refused = found.dead + found.dropped;
  return [
    ...(found.behind > 0 ? [`${plural(found.behind, "entry", "entries")} behind`] : []),
    ...(refused > 0 ? [`${plural(refused, "message", "messages")} refused for good`] : []),
  ];
}

/** What users may want to hear of their own leases, in the order of a lease's life. */
export const OWN_EVENTS: readonly { name: string; text: string; hint: string }[] = [
  { name: "lease.created", text: "It is booked", hint: "also when you book it yourself" },
  { name: "lease.promised", text: "It waits, and its start is promised", hint: "as soon as its time is known" },
  { name: "lease.started", text: "It starts", hint: "what it has can be used" },
  { name: "lease.changed", text: "It is changed", hint: "also by yourself" },
  { name: "lease.moved", text: "It is moved to other hosts", hint: "because its own cannot be used" },
  { name: "lease.maintenance", text: "Hosts of it will be in maintenance", hint: "while the lease goes on" },
  { name: "lease.degraded", text: "Something of it is missing", hint: "a host has failed, for example" },
  { name: "lease.failed", text: "It fails", hint: "to start, to change or to end" },
  { name: "lease.unused_warning", text: "Nobody uses it", hint: "so that it will be released" },
  { name: "lease.released", text: "It was released, as nobody used it", hint: "others can book what it had" },
  { name: "lease.before_end", text: "It ends soon", hint: "in time to save your work, or to extend it" },
  { name: "lease.reminded", text: "A reminder of yours is due", hint: "at the time that you have set" },
  { name: "lease.ended", text: "It has ended", hint: "what it had is returned" },
  { name: "lease.offered", text: "It is offered to another project", hint: "which accepts or declines it" },
  { name: "subscription.disabled", text: "A subscription of yours is disabled", hint: "because its receiver failed" },
];

/** Returns whether a name is among names of which one may stand for all of a noun. */
export function isSent(events: readonly string[], name: string): boolean {
  return events.includes(name) || events.includes(allOf(name));
}

/** Returns names of events with one more, or without it; a name that stands for all becomes those that are left. */
export function switchEvent(events: readonly string[], name: string, on: boolean): string[] {
  const all = allOf(name);
  if (on) return isSent(events, name) ? [...events] : [...events, name];
  if (!events.includes(all)) return events.filter((one) => one !== name);
  const others = OWN_EVENTS.map((event) => event.name).filter((one) => allOf(one) === all && one !== name);
  return [...new Set([...events.filter((one) => one !== all && one !== name), ...others])];
}

function allOf(name: string): string {
  return `${name.slice(0, name.indexOf("."))}.*`;
}
