// SPDX-License-Identifier: Apache-2.0
/** The life of a lease as a list of what has happened and what will, each in a sentence. */
import type { Lease, LeaseEvent, Wait } from "../api/types.ts";
import { duration, relative } from "../time/format.ts";
import { endInWords, isBroughtForward, isInLine } from "./lease.ts";

export type Progress = "done" | "doing" | "failed" | "due" | "never";

export interface Moment {
  id: string;
  at: number;
  progress: Progress;
  title: string;
  /** More sentences, each on a line of its own. */
  details: readonly string[];
}

const TITLES: Record<string, Record<Progress, string>> = {
  start_lease: {
    done: "Started",
    doing: "Starting",
    failed: "The start has failed",
    due: "Starts",
    never: "Was to start",
  },
  before_end_lease: {
    done: "Reminded of the end",
    doing: "Preparing the end",
    failed: "What was to be done before the end has failed",
    due: "Reminds of the end",
    never: "Was to remind of the end",
  },
  end_lease: { done: "Ended", doing: "Ending", failed: "The end has failed", due: "Ends", never: "Was to end" },
};

/** Why an event had to wait: told of one that is done only if it was late. Other reasons are what did not succeed. */
const OF_AN_EARLIER_TRY: readonly string[] = [
  "resource_not_ready",
  "host_waking",
  "previous_user_not_left",
  "server_in_the_way",
  "cloud_unavailable",
  "cloud_refused",
  "quota_exceeded",
  "role_missing",
  "internal_error",
];

/** Returns the moments of a lease in the order of their time. */
export function momentsOf(lease: Lease, now: number): Moment[] {
  const over = lease.deleted_at !== null || lease.status === "TERMINATED" || lease.status === "TIMED_OUT";
  // Of a lease that waits nothing is known before the first plan, and what it waited for in vain never was to be.
  const guessed =
    lease.status === "TIMED_OUT" ||
    lease.end_reason === "left_line" ||
    (lease.status === "WAITING" && lease.wait?.estimated_start === null);
  const events = guessed ? [] : lease.events.filter((event) => !isIdleReminder(event, lease));
  const moments = events.map((event) => momentOf(event, lease, over, now));
  moments.push({
    id: "created",
    at: Math.floor(Date.parse(lease.created_at) / 60_000) * 60_000,
    progress: "done",
    title: lease.wait ? "Asked for" : "Booked",
    details: [],
  });
  // Of the kind that is tried again, the wait is known later, too.
  if (lease.wait && isInLine(lease)) moments.push(giveUp(lease.wait, lease.deleted_at !== null, now));
  if (!guessed) moments.push(...reminderMoments(lease, over, now));
  if (lease.deleted_at) {
    const left = lease.end_reason === "left_line";
    moments.push({
      id: "deleted",
      at: Date.parse(lease.deleted_at),
      progress: "done",
      title: left ? "Left the line" : "Deleted",
      details: [],
    });
  }
  const order = ["created", "start_lease", "before_end_lease", "end_lease"];
  const rank = new Map(lease.events.map((event) => [event.id, order.indexOf(event.event_type)]));
  return moments.sort((a, b) => a.at - b.at || (rank.get(a.id) ?? 0) - (rank.get(b.id) ?? 0));
}

/** Returns the reminders of a lease as moments of its life. */
export function reminderMoments(lease: Lease, over: boolean, now: number): Moment[] {
  return (lease.reminders ?? []).map((one, index) => {
    const at = Date.parse(one.sent_at ?? one.time);
    const end = Date.parse(lease.end_date);
    const due = Date.parse(one.time);
    // One of a series may have been past when its lease was made; a manager that is late tells it within minutes.
    const missed = due >= end || due < now - 15 * 60_000;
    const dropped = over || lease.status === "ERROR" || missed;
    const progress = one.sent_at !== null ? "done" : dropped ? "never" : "due";
    const title = { done: "Reminded", never: "Was to remind", due: "Reminds" }[progress];
    return { id: `reminder-${index}`, at: Math.floor(at / 60_000) * 60_000, progress, title, details: [one.text] };
  });
}

/** True of the reminder of an end that came at once: nobody was reminded of anything, and nothing was to be saved. */
function isIdleReminder(event: LeaseEvent, lease: Lease): boolean {
  if (event.event_type !== "before_end_lease" || !isBroughtForward(lease) || event.status === "ERROR") return false;
  const before = event.finished_at !== null && Date.parse(event.finished_at) < Date.parse(lease.end_date);
  return !before && !lease.reservations.some((one) => one.before_end === "snapshot" || one.before_end === "migration");
}

/** Returns when an event became due: of an end that was brought forward, with what comes before it, when that was done. */
function dueAt(event: LeaseEvent, lease: Lease): number {
  const time = Date.parse(event.time);
  const moved = event.event_type !== "start_lease" && isBroughtForward(lease);
  return moved ? Math.max(time, Date.parse(lease.end_date)) : time;
}

function giveUp(wait: Wait, over: boolean, now: number): Moment {
  const at = Math.floor(Date.parse(wait.until) / 60_000) * 60_000;
  const past = at <= now;
  const title = past ? "Stopped waiting in line" : "Stops waiting in line";
  return { id: "wait", at, progress: past ? "done" : over ? "never" : "due", title, details: [] };
}

/** What the times of a lease that waits are: an estimate. */
const PROBABLY: Record<string, string> = {
  start_lease: "Will probably start",
  before_end_lease: "Will then remind of the end",
  end_lease: "Will then end",
};

function momentOf(event: LeaseEvent, lease: Lease, over: boolean, now: number): Moment {
  const progress = lease.status === "WAITING" ? "due" : progressOf(event, over, now);
  const due = dueAt(event, lease);
  const finished = event.finished_at === null ? null : Date.parse(event.finished_at);
  const title =
    (lease.status === "WAITING" && PROBABLY[event.event_type]) ||
    (TITLES[event.event_type]?.[progress] ?? event.event_type.replaceAll("_", " "));
  const details: string[] = [];
  const late = progress === "done" && finished !== null && finished - due >= 60_000;
  const why = event.reason ? (event.reason.detail ?? event.reason.message) : null;
  const waited = progress === "done" && OF_AN_EARLIER_TRY.includes(event.reason?.code ?? "");
  if (late) details.push(`${duration(finished - due)} after its time${waited ? ` (the try before: ${why})` : ""}.`);
  if (why !== null && !waited) details.push(sentence(why));
  if (progress === "doing" && event.attempts > 1) details.push(`${event.attempts} attempts so far.`);
  if (progress === "doing" && event.next_attempt_at) {
    const next = Date.parse(event.next_attempt_at);
    if (next > now) details.push(`Tried again ${relative(next, now)}.`);
  }
  if (event.event_type === "before_end_lease") details.push(...before(lease, progress));
  if (event.event_type === "end_lease" && (progress === "due" || progress === "doing")) details.push(...endings(lease));
  return { id: event.id, at: Math.floor((finished ?? due) / 60_000) * 60_000, progress, title, details };
}

function progressOf(event: LeaseEvent, over: boolean, now: number): Progress {
  if (event.status === "DONE") return "done";
  if (event.status === "ERROR") return "failed";
  if (over) return "never";
  if (event.status === "IN_PROGRESS" || event.attempts > 0) return "doing";
  return Date.parse(event.time) <= now ? "doing" : "due";
}

function before(lease: Lease, progress: Progress): string[] {
  const actions = new Set(lease.reservations.map((one) => one.before_end));
  const done = progress === "done";
  const found: string[] = [];
  if (actions.has("snapshot"))
    found.push(done ? "Images of the servers were taken." : "Images of the servers are taken.");
  if (actions.has("migration")) found.push(done ? "The servers were moved." : "The servers are moved to other hosts.");
  return found;
}

function endings(lease: Lease): string[] {
  const found = lease.reservations.map((one) => sentence(endInWords(one.before_end, one.resource_type)));
  return [...new Set(found)];
}

/** Returns a text that begins with a capital. */
export function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

/** Returns a text that begins with a capital and ends with a full stop. */
export function sentence(text: string): string {
  const whole = capital(text);
  return /[.!?]$/.test(whole) ? whole : `${whole}.`;
}
