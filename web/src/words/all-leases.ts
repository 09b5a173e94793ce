// SPDX-License-Identifier: Apache-2.0
/** Lists of all projects' leases: what an address asks for. Numbers elsewhere are counts of such lists. Pure. */
import type { Params } from "../router.ts";
import { startOfDate, toWire } from "../time/zone.ts";
import { LIST_FIELDS, STATUSES, kindQuery, kindsOf } from "./lease-list.ts";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
/** What is due for less than this is on its way, not late. */
const PATIENCE = 2 * MINUTE;

export type Query = Record<string, string | number | boolean | readonly string[]>;

/** States to choose from; those that only operators tell apart have a name of their own. */
export const STATES = [
  { value: "booked", text: "booked", statuses: STATUSES.booked },
  { value: "active", text: "running", statuses: STATUSES.active },
  { value: "waiting", text: "waiting in line", statuses: ["WAITING"] },
  { value: "timed-out", text: "timed out", statuses: ["TIMED_OUT"] },
  { value: "failed", text: "failed", statuses: STATUSES.trouble },
  { value: "degraded", text: "degraded", statuses: [] },
  { value: "past", text: "past", statuses: ["TERMINATED"] },
] as const;
export type State = (typeof STATES)[number]["value"];

/** Times to choose from. */
export const TIMES = [
  { value: "", text: "any time" },
  { value: "now", text: "now" },
  { value: "day", text: "the next 24 hours", days: 1 },
  { value: "week", text: "the next 7 days", days: 7 },
  { value: "month", text: "the next 30 days", days: 30 },
  { value: "range", text: "between two days" },
  { value: "late-start", text: "late: should have started" },
  { value: "late-end", text: "late: should have ended" },
  { value: "release", text: "about to be released, unused" },
] as const;
export type Time = (typeof TIMES)[number]["value"];

/** What has to lie in a span of time. */
export const EDGES = [
  { value: "", text: "any of it" },
  { value: "start", text: "its start" },
  { value: "end", text: "its end" },
] as const;
export type Edge = (typeof EDGES)[number]["value"];

export const ORDERS = [
  { value: "start_date", text: "start" },
  { value: "end_date", text: "end" },
  { value: "created_at", text: "when it was booked" },
  { value: "name", text: "name" },
  { value: "release_at", text: "when it is released" },
] as const;
type Order = (typeof ORDERS)[number]["value"];

/** What an address says, read. */
export interface Asked {
  states: readonly State[];
  time: Time;
  edge: Edge;
  order: Order;
  descending: boolean;
}

/** Reads an address; nonsense in it is left out. */
export function askedOf(params: URLSearchParams): Asked {
  const named = (params.get("states") ?? "").split(",");
  const states = STATES.map(({ value }) => value).filter((value) => named.includes(value));
  const time = TIMES.find(({ value }) => value === params.get("when"))?.value ?? "";
  const past = states.length === 1 && states[0] === "past";
  const natural: Order = time === "release" ? "release_at" : past ? "end_date" : "start_date";
  return {
    states,
    time,
    edge: hasSpan(time) ? (EDGES.find(({ value }) => value === params.get("by"))?.value ?? "") : "",
    order: ORDERS.find(({ value }) => value === params.get("sort"))?.value ?? natural,
    descending: params.has("dir") ? params.get("dir") === "desc" : past,
  };
}

/** True of times that begin and end, so that a part of a lease can lie in them. */
export function hasSpan(time: Time): boolean {
  return ["day", "week", "month", "range"].includes(time);
}

/**
 * Returns what the API is asked for what an address says. What runs on with the time is rounded, so that the question
 * stays the same from one reading to the next, and the same on all pages.
 */
export function queryOf(params: URLSearchParams, now: number, zone: string): Query {
  const { states, time, edge, order, descending } = askedOf(params);
  const query: Query = {
    sort_key: order,
    sort_dir: descending ? "desc" : "asc",
    fields: LIST_FIELDS,
    ...kindQuery(kindsOf(params.get("kind"))),
    ...timeQuery(params, time, edge, now, zone),
  };
  const of = STATES.filter(({ value }) => states.includes(value)).flatMap(({ statuses }) => [...statuses] as string[]);
  if (states.includes("past")) query.state = of.length > 1 ? "all" : "past";
  // Past ones alone are all that the state leaves; late ones have states of their own.
  if (of.length > 0 && !(states.includes("past") && of.length === 1) && !query.status)
    query.status = `in:${of.join(",")}`;
  if (states.includes("degraded")) query.degraded = true;
  const project = params.get("project");
  if (project) query.project_id = project;
  const user = params.get("user");
  if (user) query.user_id = user;
  const text = (params.get("text") ?? "").trim();
  if (text.length >= 2) query.text = text;
  return query;
}

function timeQuery(params: URLSearchParams, time: Time, edge: Edge, now: number, zone: string): Query {
  const due = toWire(Math.floor((now - PATIENCE) / MINUTE) * MINUTE);
  switch (time) {
    case "":
      return {};
    case "now": {
      // The service refuses a range without a length. A whole minute asks the same question for as long.
      const minute = Math.floor(now / MINUTE) * MINUTE;
      return { start_date: `lt:${toWire(minute + MINUTE)}`, end_date: `gt:${toWire(minute)}` };
    }
    case "late-start":
      return { status: "in:PENDING,STARTING", start_date: `lt:${due}` };
    case "late-end":
      return { status: "in:ACTIVE,UPDATING,TERMINATING", end_date: `lt:${due}` };
    case "release":
      return { release_at: "gt:2000-01-01T00:00:00Z" };
    case "range":
      return within(edge, dayOf(params.get("from"), zone), dayOf(params.get("to"), zone, 1));
    default: {
      const { days } = TIMES.find(({ value }) => value === time) as { days: number };
      return within(edge, "now", toWire(Math.ceil(now / HOUR) * HOUR + days * DAY));
    }
  }
}

/** Returns the beginning of a day of an address, or of one `later`; null if it names none. */
function dayOf(text: string | null, zone: string, later = 0): string | null {
  const at = startOfDate(text ?? "", zone, later);
  return at === null ? null : toWire(at);
}

/** Returns what has its start, its end, or any of it between two instants, of which each may be missing. */
function within(edge: Edge, from: string | null, to: string | null): Query {
  if (edge === "") return { ...(from ? { from } : {}), ...(to ? { to } : {}) };
  const bounds = [...(from ? [`gte:${from}`] : []), ...(to ? [`lt:${to}`] : [])];
  return bounds.length > 0 ? { [`${edge}_date`]: bounds } : {};
}

/** Returns the projects and the users of some leases, each once, in the order of their names. */
export function ownersOf(leases: readonly { project_id: string; user_id: string }[]): {
  projects: string[];
  users: string[];
} {
  const names = (of: "project_id" | "user_id") => [...new Set(leases.map((lease) => lease[of]))].sort();
  return { projects: names("project_id"), users: names("user_id") };
}

/** States of leases whose dates are those of a booking; of those that wait they are guesses, and what has failed is over. */
const LIVE = "booked,active";

/** What an operator has to know of leases: the address of each list, whose length is the number. */
export const LISTS = {
  failed: { states: "failed" },
  lateStart: { when: "late-start" },
  lateEnd: { when: "late-end" },
  degraded: { states: "degraded" },
  starting: { states: "booked", when: "week", by: "start" },
  ending: { states: LIVE, when: "week", by: "end", sort: "end_date" },
  waiting: { states: "waiting", sort: "created_at" },
  released: { when: "release" },
} as const satisfies Record<string, Params>;
