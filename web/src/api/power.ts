// SPDX-License-Identifier: Apache-2.0
/** The power of hosts as it is on the wire. */
import type { Instant } from "./types.ts";

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

export interface PowerReport {
  mode: "off" | "dry_run" | "on";
  from: Instant;
  to: Instant;
  switched_hosts: number;
  kept_hosts: number;
  done: PowerResults;
  rehearsed: PowerResults;
}
