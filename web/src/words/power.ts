// SPDX-License-Identifier: Apache-2.0
/** The power of hosts in words: which sleep, why, and what that saves. Pure. */
import type { HostPower, PowerClass, PowerReport, PowerResults, PowerStateName, PowerStatus } from "../api/power.ts";
import type { Waking } from "../api/types.ts";
import { plural, spoken } from "../time/format.ts";
import type { Mark } from "./lease.ts";

const STATES: Readonly<Record<PowerStateName, { mark: Mark; word: string }>> = {
  on: { mark: "active", word: "awake" },
  going_off: { mark: "changing", word: "going to sleep" },
  off: { mark: "past", word: "asleep" },
  waking: { mark: "changing", word: "waking" },
};

const REASONS: Readonly<Record<string, string>> = {
  idle: "nobody needs it",
  start: "a lease starts soon",
  spare: "too few free hosts were awake",
  operator: "an operator woke it",
  needed: "it was needed after all",
  refused: "it could not be switched off",
  external: "somebody else switched it on",
  missed: "a lease began before it was awake",
  timed_out: "it did not wake in time",
};

/** Says why a host is in its power state; empty if that is nothing to tell. */
export function reasonOf({ state, reason }: Pick<PowerStatus, "state" | "reason">): string {
  // It has gone to sleep as it was asked to: that was since nobody needs it.
  if (state === "off") return REASONS.idle!;
  return REASONS[reason] ?? "";
}

/** Returns the mark and the word of a power state. */
export function powerState(state: PowerStateName): { mark: Mark; word: string } {
  return STATES[state];
}

/** What a switch may be, and what its target is. */
export const ADAPTERS: Readonly<Record<string, { text: string; hint: string }>> = {
  redfish: { text: "Redfish", hint: "The https URL of the system on its BMC, which ends like /redfish/v1/Systems/1." },
  hook: { text: "a hook", hint: "The URL of a service of yours that switches it." },
  ironic: { text: "Ironic", hint: "The name or id of the node." },
  simulated: { text: "the simulated cloud", hint: "Its name." },
};

/** Returns by what one of a kind may be switched: no driver switches a pool of volumes. */
export function adaptersOf(kind: string): string[] {
  return Object.keys(ADAPTERS).filter((name) => kind === "host" || name === "hook" || name === "simulated");
}

/** Tells whether a wake has something to do: it sleeps, or did not wake before. */
export function canWake({ state, reason }: Pick<HostPower, "state" | "reason">): boolean {
  return state === "off" || (state === "on" && reason === "timed_out");
}

/** Says what a start waits for: "1 of its hosts sleeps, and is woken for it: it begins at about today 12:11". */
export function wakingInWords(waking: Waking, zone: string, now: number): string {
  const counts = [
    { count: waking.hosts, words: "hosts" },
    { count: waking.pools, words: "volume pools" },
  ].filter(({ count }) => count > 0);
  const what = counts.map(({ count, words }) => `${count} of its ${words}`).join(" and ");
  const they = waking.hosts + waking.pools === 1 ? "sleeps, and is" : "sleep, and are";
  return `${what} ${they} woken for it: it begins at about ${spoken(Date.parse(waking.ready_at), zone, now)}`;
}

/** Tells whether there is something to say of the power of a host beside all else. */
export function isNotable({ state, reason, policy }: Pick<HostPower, "state" | "reason" | "policy">): boolean {
  return state !== "on" || policy === "keep" || reason === "timed_out";
}

/** Says how many hosts of a class stay awake for leases that start at once, and why so many. */
export function spareInWords(found: PowerClass, alone: boolean): string {
  const values = Object.entries(found.group).map(
    ([name, value]) => `${name} ${value === null ? "none" : String(value)}`,
  );
  const whose = alone ? "" : `${values.join(", ")}: ${found.asleep} of ${plural(found.hosts, "host")} asleep; `;
  const stay = found.spare === 1 ? "1 free host stays" : `${found.spare} free hosts stay`;
  return `${whose}${stay} awake for leases that start at once (${sourceInWords(found)}).`;
}

function sourceInWords({ spare_source: source, spare_rule: rule, asked_at_once: asked }: PowerClass): string {
  if (source === "asked") return `half more than the ${asked} asked for within the worst hour of two weeks`;
  if (source === "share") return "a share of them, as few were asked for at once";
  return rule === null ? "set by the operators" : `set by the operators for ${rule}`;
}

/** Says in sentences what sleeps of the pools of volumes; none where none has a switch, or nothing is planned. */
export function poolsInWords({ mode, pools }: PowerReport): string[] {
  const dry = mode === "dry_run";
  if (mode === "off" || (pools.switched === 0 && !dry)) return [];
  const found = [
    `${plural(pools.asleep, "pool")} ${dry ? "would be" : pools.asleep === 1 ? "is" : "are"} asleep; in all, pools ` +
      `${dry ? "would have" : "have"} slept for ${Math.round(pools.slept_hours).toLocaleString("en")} hours.`,
  ];
  if (dry) found.unshift("This is a dry run: no pool is switched.");
  const bad = [
    pools.failed_wakes > 0 && `${plural(pools.failed_wakes, "wake")} failed`,
    pools.missed_starts > 0 &&
      `${plural(pools.missed_starts, "pool")} ${dry ? "would not have been" : pools.missed_starts === 1 ? "was not" : "were not"} awake when a lease began`,
  ].filter((text) => text !== false);
  return bad.length === 0 ? found : [...found, `${bad.join(", and ")}.`];
}

function numberIn(results: PowerResults, state: PowerStateName): number {
  return results.hosts.filter((one) => one.state === state).reduce((sum, one) => sum + one.hosts, 0);
}

/** Says in sentences what sleeps and what that has saved; none where nothing is planned. */
export function powerInWords(report: PowerReport): string[] {
  if (report.mode === "off") return [];
  const dry = report.mode === "dry_run";
  const results = dry ? report.rehearsed : report.done;
  const [asleep, waking] = [numberIn(results, "off"), numberIn(results, "waking")];
  const would = (real: string, rehearsed: string) => (dry ? rehearsed : real);
  const found = [
    `${plural(asleep, "host")} ${would(asleep === 1 ? "is" : "are", "would be")} asleep` +
      (waking > 0 ? `, and ${waking} ${would(waking === 1 ? "is" : "are", "would be")} waking.` : "."),
  ];
  if (dry) found.unshift("This is a dry run: no host is switched.");
  if (!dry && report.switched_hosts === 0)
    found.push("No host has a switch yet: blazar power set gives it one, and only then it can sleep.");
  const days = Math.round((Date.parse(report.to) - Date.parse(report.from)) / 86_400_000);
  const hours = Math.round(results.slept_hours).toLocaleString("en");
  found.push(
    `In ${plural(days, "day")} hosts ${would("have slept", "would have slept")} for ${hours} hours together; they ` +
      `${would("were", "would have been")} switched off ${plural(results.switched_off, "time")}.`,
  );
  const bad = [
    results.failed_wakes > 0 && `${plural(results.failed_wakes, "wake")} failed`,
    results.missed_starts > 0 &&
      `${plural(results.missed_starts, "host")} ${would(results.missed_starts === 1 ? "was" : "were", "would have been")} not awake when a lease began`,
  ].filter((text) => text !== false);
  if (bad.length > 0) found.push(`${bad.join(", and ")}.`.replace(/^\w/, (letter) => letter.toUpperCase()));
  return found;
}
