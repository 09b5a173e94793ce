// SPDX-License-Identifier: Apache-2.0
/** Filters of a list of leases, and the query that they stand for. */

import type { LeaseKind } from "../api/types.ts";

export type Filter = "active" | "booked" | "waiting" | "trouble" | "degraded";

/** The states to choose from, and what each word means. */
export const FILTERS: readonly { value: Filter; text: string; meaning: string }[] = [
  { value: "active", text: "Running", meaning: "in use, or just being started or ended" },
  { value: "booked", text: "Booked", meaning: "has what it needs from its start on, which is still to come" },
  { value: "waiting", text: "Waiting in line", meaning: "has nothing yet: it is booked when it is its turn" },
  {
    value: "trouble",
    text: "Failed",
    meaning: "could not be started, changed or ended as it should; its page says why",
  },
  {
    value: "degraded",
    text: "Degraded",
    meaning: "in any state: something that it has is broken, replaced or missing",
  },
];

/** When the resources of a lease are handed over, and what each word means. Waiting in line is a state. */
export const KINDS: readonly { value: LeaseKind; text: string; meaning: string }[] = [
  {
    value: "scheduled",
    text: "Scheduled",
    meaning: "handed over at its start; also what waits in line for a start, if a failed start is not tried again",
  },
  { value: "immediate", text: "Immediate", meaning: "at once, or not at all" },
  {
    value: "retries",
    text: "Tried again",
    meaning: "as scheduled; but what could not be handed over goes back to its place in line, and is tried again",
  },
  { value: "best_effort", text: "Room is made", meaning: "servers of others are moved away, so that it can start" },
];

/** A degraded lease is in any state; without "Degraded" the filter is by state alone. */
export const STATUSES: Record<Filter, readonly string[]> = {
  active: ["IN_PROGRESS", "STARTING", "ACTIVE", "UPDATING", "TERMINATING"],
  booked: ["CREATING", "PENDING"],
  waiting: ["WAITING", "TIMED_OUT"],
  trouble: ["ERROR"],
  degraded: [],
};

/** What a row of a table of leases needs; events are not read. */
export const LIST_FIELDS =
  "name,status,degraded,revision,start_date,end_date,before_end_date,created_at,updated_at,deleted_at,user_id,project_id,conditions,reservations,kind,end_reason,usage,release_at,wait,extend_if_free,transfer";

/** Reads the filters of an address, such as "active,waiting". */
export function filtersOf(text: string | null): Filter[] {
  const named = (text ?? "").split(",");
  return FILTERS.map(({ value }) => value).filter((value) => named.includes(value));
}

/** Reads the kinds of an address, such as "immediate". */
export function kindsOf(text: string | null): LeaseKind[] {
  const named = (text ?? "").split(",");
  return KINDS.map(({ value }) => value).filter((value) => named.includes(value));
}

/** Returns what to ask for, of leases of some kinds; of all kinds nothing. */
export function kindQuery(kinds: readonly LeaseKind[]): Record<string, string> {
  return kinds.length === 0 || kinds.length === KINDS.length ? {} : { kind: `in:${kinds.join(",")}` };
}

/** Returns the query of GET /v1/leases: what comes next first, of past ones the latest. */
export function queryOf(
  past: boolean,
  filters: readonly Filter[],
  text: string,
  kinds: readonly LeaseKind[] = [],
): Record<string, string> {
  const query: Record<string, string> = {
    ...kindQuery(kinds),
    state: past ? "past" : "current",
    sort_key: past ? "end_date" : "start_date",
    sort_dir: past ? "desc" : "asc",
    fields: LIST_FIELDS,
  };
  const statuses = past ? [] : filters.flatMap((one) => STATUSES[one]);
  if (statuses.length > 0) query.status = `in:${statuses.join(",")}`;
  if (!past && filters.includes("degraded")) query.degraded = "true";
  if (text.trim().length >= 2) query.text = text.trim();
  return query;
}
