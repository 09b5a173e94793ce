// SPDX-License-Identifier: Apache-2.0
/** What an operator wants to know of capacity, added up. */
import type { Capacity, CapacityPoint } from "../../api/types.ts";
import { moment } from "../../time/format.ts";

/** Returns the number of the step of an answer in which a moment lies. */
export function stepAt(capacity: Pick<Capacity, "from" | "step_seconds" | "series">, now: number): number {
  const steps = capacity.series[0]?.free.length ?? 0;
  const since = Math.floor((now - Date.parse(capacity.from)) / (capacity.step_seconds * 1000));
  return Math.min(steps - 1, Math.max(0, since));
}

/** Returns the end of the step after the one that goes on now; null if now is not in the range of an answer. */
export function nextStep(capacity: Steps, now: number): number | null {
  if (now < Date.parse(capacity.from) || now >= Date.parse(capacity.to)) return null;
  return Date.parse(capacity.from) + (stepAt(capacity, now) + 2) * capacity.step_seconds * 1000;
}

type Steps = Pick<Capacity, "from" | "to" | "step_seconds" | "series">;

/** Returns when the fewest are free from now on; `near` begins now, and reaches beyond the step of `capacity` that goes on. */
function fewestFrom(near: Steps, capacity: Steps, now: number): { at: number | null; free: number } {
  const [close, far] = [near.series[0]!, capacity.series[0]!];
  const next = Date.parse(capacity.from) + (stepAt(capacity, now) + 1) * capacity.step_seconds * 1000;
  const points = ({ from, step_seconds: step }: Steps, free: readonly number[]) =>
    free.map((count, index) => ({ at: Date.parse(from) + index * step * 1000, free: count }));
  const later = [
    ...points(near, close.free).filter(({ at }) => at < next),
    ...points(capacity, far.free).filter(({ at }) => at >= next),
  ];
  let fewest: { at: number | null; free: number } = { at: null, free: close.at_start!.free };
  for (const one of later) if (one.free < fewest.free) fewest = one;
  return fewest;
}

/**
 * Returns what a capacity says now, or at first, in two sentences; "" while that is not known. What is free now `near`
 * tells, which begins now: a step of the other has what is free when the fewest are, and may have begun long ago.
 */
export function useInWords(
  capacity: Steps,
  near: Steps | null,
  { zone, now, noun }: { zone: string; now: number; noun: string },
): string {
  const within = now >= Date.parse(capacity.from) && now < Date.parse(capacity.to);
  const series = capacity.series[0];
  const number = (count: number) => count.toLocaleString("en");
  const said = ({ free, total, promised, out_of_use: out }: CapacityPoint) =>
    `${number(free)} of ${number(total)} ${noun} are free; of the others ${number(promised)} are promised, ` +
    `${number(out)} out of use and promised to nobody.`;
  if (within) {
    const present = near?.series[0]?.at_start;
    if (!near || !present || !series) return "";
    const { at, free } = fewestFrom(near, capacity, now);
    return `Now ${said(present)} Fewest free from now on: ${number(free)}, ${at === null ? "now" : moment(at, zone, now)}.`;
  }
  if (!series || series.free.length === 0) return "";
  const [free, total, promised, out] = [series.free[0]!, series.total[0]!, series.promised[0]!, series.out_of_use[0]!];
  const fullest = series.free.reduce((best, count, index) => (count < series.free[best]! ? index : best), 0);
  const at = moment(Date.parse(capacity.from) + fullest * capacity.step_seconds * 1000, zone, now);
  const first = said({ free, total, promised, out_of_use: out });
  return `At first at least ${first} Fewest free: ${number(series.free[fullest]!)}, ${at}.`;
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
