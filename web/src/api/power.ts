// SPDX-License-Identifier: Apache-2.0
/** The power of hosts as it is on the wire. */
import type { Instant, Json } from "./types.ts";

export type PowerStateName = "on" | "going_off" | "off" | "waking";

export interface PowerStatus {
  state: PowerStateName;
  since: Instant;
  reason: string;
}

export interface HostPower extends PowerStatus {
  /** As in the list of hosts. */
  id: string;
  name: string;
  /** By what it is switched; null: by nothing, so that it never sleeps. */
  adapter: string | null;
  target: string | null;
  policy: "auto" | "keep";
  /** Until when it stays on, though nobody needs it. */
  kept_until: Instant | null;
  /** What a dry run would have it be; in truth it is on. */
  rehearsed: PowerStatus | null;
}

export interface PowerResults {
  hosts: { state: PowerStateName; reason: string; hosts: number }[];
  slept_hours: number;
  switched_off: number;
  woken: number;
  failed_wakes: number;
  missed_starts: number;
}

/** Hosts with the same values of some properties, which have a spare of their own. */
export interface PowerClass {
  group: { [property: string]: Json };
  hosts: number;
  asleep: number;
  /** How many free ones stay awake for leases that start at once. */
  spare: number;
  spare_source: "fixed" | "asked" | "share";
  /** The rule of the operators by which it is fixed now, as "MO-FR; 07:00-19:00"; null: the one for all classes. */
  spare_rule: string | null;
  asked_at_once: number;
}

/** What sleeps of the pools of volumes; in a dry run what would. */
export interface PowerOfPools {
  switched: number;
  kept: number;
  asleep: number;
  slept_hours: number;
  switched_off: number;
  woken: number;
  failed_wakes: number;
  missed_starts: number;
}

export interface PowerReport {
  mode: "off" | "dry_run" | "on";
  from: Instant;
  to: Instant;
  switched_hosts: number;
  kept_hosts: number;
  done: PowerResults;
  rehearsed: PowerResults;
  classes: PowerClass[];
  pools: PowerOfPools;
}
