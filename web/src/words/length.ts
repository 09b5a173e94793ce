// SPDX-License-Identifier: Apache-2.0
/** Durations between the API's form and words. Pure. */

export type Unit = "minutes" | "hours" | "days" | "weeks";
export interface Length {
  count: number;
  unit: Unit;
  seconds: number;
}
const SECONDS: Record<Unit, number> = { weeks: 604_800, days: 86_400, hours: 3_600, minutes: 60 };

/** Reads a duration such as "P3D", "PT36H" or "72h" into one number and the largest unit that fits; null if it is none. */
export function lengthOf(text: string): Length | null {
  // So the service writes what it has computed.
  const computed = /^PT(\d+)S$/.exec(text);
  if (computed) return lengthOf(inIso(Number(computed[1])));
  const iso = /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?)?$/.exec(text);
  const brief = /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?$/.exec(text);
  const found = iso ?? brief;
  if (!found) return null;
  const [weeks, days, hours, minutes] = found.slice(1, 5).map((one) => Number(one ?? 0)) as [
    number,
    number,
    number,
    number,
  ];
  const seconds = weeks * 604_800 + days * 86_400 + hours * 3_600 + minutes * 60;
  if (seconds <= 0 || seconds > 5 * 366 * 86_400) return null;
  if (weeks && !days && !hours && !minutes) return { count: weeks, unit: "weeks", seconds };
  // Days stay days and hours stay hours: over a change of clocks they differ.
  if (!hours && !minutes) return { count: weeks * 7 + days, unit: "days", seconds };
  if (!minutes) return { count: (weeks * 7 + days) * 24 + hours, unit: "hours", seconds };
  return { count: seconds / 60, unit: "minutes", seconds };
}

/** Returns a duration as the API takes it. */
export function isoOf(count: number, unit: Unit): string {
  return unit === "weeks"
    ? `P${count}W`
    : unit === "days"
      ? `P${count}D`
      : unit === "hours"
        ? `PT${count}H`
        : `PT${count}M`;
}

/** Returns seconds as a duration in the largest unit that leaves no rest; rests below a minute are cut. */
export function inIso(seconds: number): string {
  const unit = (["days", "hours"] as const).find((one) => seconds % SECONDS[one] === 0) ?? "minutes";
  return isoOf(Math.max(1, Math.floor(seconds / SECONDS[unit])), unit);
}

/** Returns half of a duration, in whole hours or, if it is short, minutes. */
export function half(text: string): string {
  const seconds = (lengthOf(text)?.seconds ?? SECONDS.hours) / 2;
  const unit = seconds < SECONDS.hours ? SECONDS.minutes : seconds % SECONDS.days === 0 ? SECONDS.days : SECONDS.hours;
  return inIso(Math.max(60, Math.floor(seconds / unit) * unit));
}

/** Returns "3 days" for "P3D". */
export function lengthInWords(text: string): string {
  const length = lengthOf(text);
  if (!length) return text;
  return `${length.count} ${length.count === 1 ? length.unit.slice(0, -1) : length.unit}`;
}
