// SPDX-License-Identifier: Apache-2.0
/** Running managers in words: their state, what each works on, and what is wrong with it. Pure. */
import type { Manager, ManagerWork } from "../api/managers.ts";
import { duration } from "../time/format.ts";
import type { Mark } from "./lease.ts";

/** Clocks that differ by more are told of: leases follow that of the database. */
const NOTABLE_MS = 2000;

const STATES: Readonly<Record<Manager["state"], { mark: Mark; word: string; next: string }>> = {
  starting: { mark: "changing", word: "starting", next: "waits for the message bus" },
  running: { mark: "active", word: "running", next: "" },
  draining: { mark: "changing", word: "draining", next: "finishes what it has begun" },
  stopping: { mark: "changing", word: "stopping", next: "" },
};

/** Returns the mark and the word of a manager's state. */
export function managerState(manager: Pick<Manager, "state" | "up">): { mark: Mark; word: string; next: string } {
  if (!manager.up) return { mark: "failed", word: "not up", next: "others take over its work" };
  return STATES[manager.state] ?? { mark: "booked", word: manager.state, next: "" };
}

const DOING: Readonly<Record<string, string>> = {
  start_lease: "starts",
  before_end_lease: "prepares the end of",
  end_lease: "ends",
  usage_check: "looks at the use of",
};

/** Says what is done to the lease of a claimed event. */
export function workInWords(work: Pick<ManagerWork, "event_type">): string {
  return DOING[work.event_type] ?? `${work.event_type.replaceAll("_", " ")} of`;
}

/** Says what is wrong with a manager, in a sentence each; none if all is well. */
export function troublesOf(manager: Manager, all: readonly Manager[], now: number): string[] {
  const found = manager.threads
    .filter((thread) => thread.failing_since !== null)
    .map((thread) => {
      const lasts = duration(now - Date.parse(thread.failing_since ?? ""));
      return `The thread ${thread.name} has failed for ${lasts}: ${thread.error ?? "no reason is known"}`;
    });
  if (!manager.up) return found;
  const up = all.filter((one) => one.up);
  if (Math.abs(manager.clock_offset_ms) > NOTABLE_MS) {
    const way = manager.clock_offset_ms > 0 ? "ahead of" : "behind";
    found.push(
      `Its clock is ${duration(Math.abs(manager.clock_offset_ms))} ${way} that of the database: set both by NTP.`,
    );
  }
  if (!manager.options_agree) found.push("Managers have different options: give all the same blazar.conf.");
  if (up.some((one) => one.rpc_version !== manager.rpc_version)) {
    found.push("Managers are of different versions, as during an upgrade.");
  }
  return found;
}
