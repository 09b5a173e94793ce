// SPDX-License-Identifier: Apache-2.0
/** What an operator wants to know of capacity, added up. */
import type { Capacity } from "../../api/types.ts";

/** Returns the number of the step of an answer in which a moment lies. */
export function stepAt(capacity: Capacity, now: number): number {
  const steps = capacity.series[0]?.free.length ?? 0;
  const since = Math.floor((now - Date.parse(capacity.from)) / (capacity.step_seconds * 1000));
  return Math.min(steps - 1, Math.max(0, since));
}

/** Returns resource-hours by project, the busiest first, and how much of all hours of the same range these are. */
export function busiest(capacity: Capacity, all: Capacity): { project: string; hours: number; percent: number }[] {
  const sum = (counts: readonly number[] = []) => counts.reduce((one, other) => one + other, 0);
  const step = capacity.step_seconds / 3600;
  const whole = Math.max(1, sum(all.series[0]?.total) * (all.step_seconds / 3600));
  return capacity.series
    .map((series) => {
      const hours = Math.round(sum(series.promised) * step);
      return { project: String(series.group.project_id ?? ""), hours, percent: Math.round((100 * hours) / whole) };
    })
    .filter((share) => share.project !== "" && share.hours > 0)
    .sort((a, b) => b.hours - a.hours);
}
