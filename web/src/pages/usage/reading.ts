// SPDX-License-Identifier: Apache-2.0
/** Reads a report of a period, in as many requests as the service needs for it. */
import { request } from "../../api/client.ts";
import { type Watch, useWatch } from "../../api/live.ts";
import type { UsageReport } from "../../api/reports.ts";
import { type Period, joined, spansOf } from "../../words/usage.ts";

const EVERY_S = 300;
export const USAGE = "v1/reports/usage";

type Query = Record<string, string>;

/** Watches what the parts of a period answer together; null: nothing is asked, as the period is too long. */
export function useParts<T, Whole>(
  path: string,
  period: Period,
  query: Query | null,
  join: (parts: T[]) => Whole,
): Watch<Whole> | null {
  const spans = spansOf(period);
  const asked = query === null || spans.length === 0 ? null : { path, spans, query };
  const ask = async (_known: string | undefined, signal: AbortSignal) => {
    const answers = await Promise.all(
      spans.map((span) => request<{ report: T }>("GET", path, { query: { ...query, ...span }, signal })),
    );
    return { status: 200, data: join(answers.map(({ data }) => data.report)), etag: null };
  };
  return useWatch(asked && JSON.stringify(asked), asked && ask, EVERY_S);
}

/** Watches the report of usage of a period; null: nothing is asked, or the period is too long. */
export function useUsage(period: Period, query: Query | null): Watch<UsageReport> | null {
  return useParts<UsageReport, UsageReport>(USAGE, period, query, joined);
}

/** Returns the report of a period as the service writes it for spreadsheets: one head, and the rows of all parts. */
export async function readCsv(period: Period, query: Query): Promise<string> {
  const spans = spansOf(period);
  const answers = await Promise.all(
    spans.map((span) => request<string>("GET", USAGE, { query: { ...query, ...span }, accept: "text/csv" })),
  );
  return answers.map(({ data }, index) => (index === 0 ? data : data.slice(data.indexOf("\n") + 1))).join("");
}
