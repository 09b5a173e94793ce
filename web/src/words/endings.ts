// SPDX-License-Identifier: Apache-2.0
/** What may happen at the end of a lease, and when one is reminded, as choices. */
import type { BeforeEnd, ResourceType } from "../api/types.ts";
import { duration } from "../time/format.ts";
import { HAS_SERVERS } from "./lease.ts";

const SECOND = 1000;

export interface Choice<T extends string> {
  value: T;
  text: string;
}

/** Returns the actions at the end that a type of resource can have: of those that its schema allows, if it is known. */
export function endChoices(type: ResourceType, allowed?: readonly unknown[]): Choice<BeforeEnd>[] {
  const choices = HAS_SERVERS.includes(type) ? serverChoices(type) : NOTICES;
  return allowed ? choices.filter((one) => allowed.includes(one.value)) : choices;
}

/** Of what has no servers. */
const NOTICES: Choice<BeforeEnd>[] = [
  { value: "default", text: "What is usual here" },
  { value: "notification", text: "Take it back, and say so before" },
  { value: "none", text: "Take it back" },
];

function serverChoices(type: ResourceType): Choice<BeforeEnd>[] {
  const choices: Choice<BeforeEnd>[] = [
    { value: "default", text: "What is usual here" },
    { value: "snapshot", text: "Take images of the servers, then delete them" },
    { value: "notification", text: "Delete the servers, and say so before" },
    { value: "none", text: "Delete the servers" },
  ];
  // Servers of a reserved share of a host have nowhere to go.
  if (type === "physical:host") choices.splice(2, 0, { value: "migration", text: "Move the servers to other hosts" });
  return choices;
}

const LEADS: readonly [string, number][] = [
  ["PT15M", 900],
  ["PT1H", 3_600],
  ["PT3H", 10_800],
  ["P1D", 86_400],
  ["P2D", 172_800],
  ["P1W", 604_800],
];

/** Returns the leads that fit into a lease of this length; "" is the operator's own. */
export function reminders(lengthMs: number, defaultSeconds: number): Choice<string>[] {
  const usual = { value: "", text: `${duration(defaultSeconds * 1000)} before the end` };
  const fits = LEADS.filter(([, seconds]) => seconds * 1000 < lengthMs && seconds !== defaultSeconds);
  return [usual, ...fits.map(([value, seconds]) => ({ value, text: `${duration(seconds * 1000)} before the end` }))];
}

/**
 * Returns when one is reminded of another end if nothing else is asked: as long before it as of the end before, as the
 * service does it. `lead`: the operator's own time, which a reminder has again that the start had cut off.
 */
export function movedReminder(
  reminder: number,
  before: { start: number; end: number },
  after: { start: number; end: number },
  lead: number,
): number {
  if (after.start === before.start && after.end === before.end) return reminder;
  const cutOff = reminder <= before.start || (reminder <= before.start + SECOND && before.end - reminder < lead);
  const distance = lead > 0 && cutOff ? lead : before.end - reminder;
  return distance >= after.end - after.start ? after.start : after.end - distance;
}
