// SPDX-License-Identifier: Apache-2.0
/** What an operator wants to know of leases and capacity, added up. */
import type { Capacity, Lease } from "../../api/types.ts";

/** What of a lease the overview reads. */
export type Brief = Pick<
  Lease,
  | "id"
  | "name"
  | "status"
  | "degraded"
  | "start_date"
  | "end_date"
  | "deleted_at"
  | "project_id"
  | "user_id"
  | "conditions"
  | "usage"
  | "release_at"
  | "wait"
>;

export interface Sorted {
  failed: Brief[];
  degraded: Brief[];
  /** Should have started. */
  late: Brief[];
  starting: Brief[];
  ending: Brief[];
  /** Will be released because nobody uses them, the next first. */
  released: Brief[];
}

/** A start that is due for less than this is on its way, not late. */
const PATIENCE = 120_000;

/** Sorts leases by what they need; a lease may both start and end. */
export function sorted(leases: readonly Brief[], now: number, within: number): Sorted {
  const begins = (lease: Brief) => Date.parse(lease.start_date);
  const ends = (lease: Brief) => Date.parse(lease.end_date);
  const soon = (at: number) => at >= now && at < now + within;
  const over = ["TERMINATED", "WAITING", "TIMED_OUT"];
  const live = leases.filter((lease) => !lease.deleted_at && !over.includes(lease.status));
  const release = (lease: Brief) => Date.parse(lease.release_at ?? "");
  return {
    failed: live.filter((lease) => lease.status === "ERROR"),
    degraded: live.filter((lease) => lease.degraded && lease.status !== "ERROR"),
    late: live.filter((lease) => lease.status === "PENDING" && begins(lease) < now - PATIENCE),
    starting: live
      .filter((lease) => lease.status === "PENDING" && soon(begins(lease)))
      .sort((a, b) => begins(a) - begins(b)),
    ending: live.filter((lease) => lease.status !== "ERROR" && soon(ends(lease))).sort((a, b) => ends(a) - ends(b)),
    released: live.filter((lease) => lease.release_at).sort((a, b) => release(a) - release(b)),
  };
}

/** Returns the number of the step of an answer in which a moment lies. */
export function stepAt(capacity: Capacity, now: number): number {
  const steps = capacity.series[0]?.free.length ?? 0;
  const since = Math.floor((now - Date.parse(capacity.from)) / (capacity.step_seconds * 1000));
  return Math.min(steps - 1, Math.max(0, since));
}

/** Returns resource-hours by project, the busiest first. */
export function busiest(capacity: Capacity): { project: string; hours: number }[] {
  const hours = capacity.step_seconds / 3600;
  return capacity.series
    .map((series) => ({
      project: String(series.group.project_id ?? ""),
      hours: Math.round(series.promised.reduce((sum, count) => sum + count, 0) * hours),
    }))
    .filter((share) => share.project !== "" && share.hours > 0)
    .sort((a, b) => b.hours - a.hours);
}
