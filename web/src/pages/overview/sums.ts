// SPDX-License-Identifier: Apache-2.0
/** What an operator wants to know of capacity, added up. */
import type { Capacity, CapacitySeries } from "../../api/types.ts";
import { moment } from "../../time/format.ts";

/** Returns the number of the step of an answer in which a moment lies. */
export function stepAt(capacity: Pick<Capacity, "from" | "step_seconds" | "series">, now: number): number {
  const steps = capacity.series[0]?.free.length ?? 0;
  const since = Math.floor((now - Date.parse(capacity.from)) / (capacity.step_seconds * 1000));
  return Math.min(steps - 1, Math.max(0, since));
}

/** Returns what a capacity says now, or at first, in two sentences; each step has what is free when the fewest are. */
export function useInWords(
  capacity: Pick<Capacity, "from" | "to" | "step_seconds" | "series">,
  { free, total, promised, out_of_use: out }: Pick<CapacitySeries, "free" | "total" | "promised" | "out_of_use">,
  { zone, now, noun }: { zone: string; now: number; noun: string },
): string {
  const [from, step] = [Date.parse(capacity.from), capacity.step_seconds * 1000];
  const index = stepAt(capacity, now);
  const within = now >= from && now < Date.parse(capacity.to);
  const used = promised.map((count, at) => count + out[at]!);
  const fullest = used.reduce((best, count, at) => (at >= index && count > used[best]! ? at : best), index);
  // A point is the first instant of its step, which is past if the step has begun.
  const least = within && fullest === index ? "now" : moment(from + fullest * step, zone, now);
  return (
    `${within ? "Now" : "At first"} at least ${free[index]} of ${total[index]} ${noun} are free; of the others ` +
    `${promised[index]} are promised, ${out[index]} out of use and promised to nobody. ` +
    `Fewest free${within ? " from now on" : ""}: ${free[fullest]}, ${least}.`
  );
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
