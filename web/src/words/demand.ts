// SPDX-License-Identifier: Apache-2.0
/** What was asked for and not had, and what is expected of days to come, in words. Pure. */
import type { DemandRow, Forecast, ForecastRow } from "../api/reports.ts";
import type { ResourceType } from "../api/types.ts";
import { plural } from "../time/format.ts";
import { amountOf, hoursOf } from "./usage.ts";

/** Sums of rows of demand. */
export type Demand = Omit<Required<DemandRow>, "resource_type" | "code">;

/** Adds up rows. */
export function demandOf(rows: readonly DemandRow[]): Demand {
  const sum = (name: keyof Demand) => rows.reduce((total, row) => total + row[name], 0);
  return {
    refused: sum("refused"),
    refused_distinct: sum("refused_distinct"),
    refused_seconds: sum("refused_seconds"),
    waited: sum("waited"),
    granted: sum("granted"),
    timed_out: sum("timed_out"),
  };
}

/** Returns the type of which most requests were refused; "" if none were. */
export function mostRefused(rows: readonly DemandRow[]): ResourceType {
  const of = new Map<ResourceType, number>();
  for (const { resource_type: type = "", refused } of rows) of.set(type, (of.get(type) ?? 0) + refused);
  return [...of].sort(([, a], [, b]) => b - a)[0]?.[0] ?? "";
}

/** Says what was asked for and not had, in a sentence each; none if all had what they asked for. */
export function demandInWords(rows: readonly DemandRow[], type: ResourceType): string[] {
  const {
    refused,
    refused_distinct: distinct,
    refused_seconds: seconds,
    waited,
    granted,
    timed_out: gone,
  } = demandOf(rows);
  const sentences: string[] = [];
  if (refused > 0) {
    const different = distinct > 0 && distinct < refused ? `, ${distinct} of them different ones` : "";
    const amount = seconds > 0 ? `: ${amountOf(seconds, type)} were not had` : "";
    sentences.push(`${plural(refused, "request")} refused${different}${amount}.`);
  }
  const ends = [
    granted > 0 &&
      `${plural(granted, "lease")} got what it waited for`.replace("leases got what it", "leases got what they"),
    gone > 0 && `${plural(gone, "lease")} timed out`,
  ].filter((one) => one !== false);
  if (waited > 0) sentences.push(`${hoursOf(waited)} hours were waited in line.`);
  if (ends.length > 0) sentences.push(`${ends.join(", ")}.`);
  return sentences;
}

const REASONS: Readonly<Record<string, string>> = {
  not_enough_resources: "not enough was free",
  limit_exceeded: "beyond a limit of the project",
};

/** Returns why requests were refused, the most frequent first. */
export function reasonsOf(rows: readonly DemandRow[]): { reason: string; refused: number }[] {
  const of = new Map<string, number>();
  for (const { code = "", refused } of rows) {
    const reason = REASONS[code] ?? code.replaceAll("_", " ");
    if (reason !== "" && refused > 0) of.set(reason, (of.get(reason) ?? 0) + refused);
  }
  return [...of].map(([reason, refused]) => ({ reason, refused })).sort((a, b) => b.refused - a.refused);
}

/** Says what is promised and expected in the days to come, of all that there is. */
export function forecastInWords(rows: readonly ForecastRow[]): string {
  const sum = (value: (row: ForecastRow) => number) => rows.reduce((total, row) => total + value(row), 0);
  const all = Math.max(
    1,
    sum(({ registered }) => registered),
  );
  const percent = (seconds: number) => `${Math.round((100 * seconds) / all)} %`;
  const promised = `In the next ${plural(rows.length, "day")} ${percent(sum((row) => row.promised))} is promised`;
  const known = rows.filter(({ expected }) => expected !== null);
  if (rows.length === 0 || known.length < rows.length) return `${promised}.`;
  return `${promised}, and ${percent(sum((row) => row.expected!.median))} expected.`;
}

/** Says how far forecasts were off; "" while that is not known. */
export function accuracyInWords({ days, mean_error: error }: Forecast["accuracy"]): string {
  if (error === null) return "";
  return `In the last ${plural(days, "day")} it was off by ${Math.round(100 * error)} % of all there is on average.`;
}
