// SPDX-License-Identifier: Apache-2.0
/** Maintenance windows, and what becomes of leases, in words. Pure. */
import type { AffectedLease, Maintenance, MaintenanceStatus, Outcome } from "../api/maintenance.ts";
import type { CalendarResource, Lease } from "../api/types.ts";
import { duration, plural, range, relative, spoken } from "../time/format.ts";
import type { Mark } from "./lease.ts";
import { listed } from "./use.ts";

/** True if nothing of the window is to come. */
export function isOver({ status }: Pick<Maintenance, "status">): boolean {
  return status === "DONE" || status === "CANCELLED";
}

/** True once the window has begun, and has not ended. */
export function isGoingOn({ status }: Pick<Maintenance, "status">): boolean {
  return status === "STARTING" || status === "ACTIVE" || status === "ENDING";
}

const PHASES: Readonly<Record<MaintenanceStatus, { mark: Mark; word: string }>> = {
  PLANNED: { mark: "booked", word: "planned" },
  STARTING: { mark: "changing", word: "starting" },
  ACTIVE: { mark: "active", word: "in maintenance" },
  ENDING: { mark: "changing", word: "ending" },
  DONE: { mark: "past", word: "over" },
  CANCELLED: { mark: "past", word: "cancelled" },
};

/** Returns the mark, the word of a window's state, and what happens next. */
export function maintenanceState(
  window: Pick<Maintenance, "status" | "start_date" | "end_date">,
  now: number,
): { mark: Mark; word: string; next: string } {
  const start = Date.parse(window.start_date);
  const end = Date.parse(window.end_date);
  const next =
    window.status === "PLANNED"
      ? `starts ${relative(start, now)}`
      : window.status === "ACTIVE"
        ? `ends ${relative(end, now)}`
        : "";
  return { ...PHASES[window.status], next };
}

/** Says what opening a window does; `now`: its start is the present. */
export function openingInWords({ now, leases }: { now: boolean; leases: boolean }): string {
  const shown = leases ? ", leases get what is shown above, and their owners are told" : "";
  return (
    `The maintenance books the hosts out: from its start to its end nobody can book them${shown}. ` +
    (now
      ? "It starts at once and ends by itself, or earlier if you end it."
      : "It starts and ends by itself; until it starts, you can change or cancel it.")
  );
}

/** What becomes of a lease, in the order of how much its owner notices. */
export const OUTCOMES: readonly Outcome[] = [
  "needs_other_time",
  "partly_moved",
  "active",
  "partly_migrated",
  "stays",
  "migrated",
  "moved",
];

const WORDS: Readonly<Record<Outcome, { mark: Mark; word: string }>> = {
  moved: { mark: "booked", word: "other hosts, same time" },
  partly_moved: { mark: "degraded", word: "some hosts replaced" },
  needs_other_time: { mark: "failed", word: "needs another time" },
  stays: { mark: "degraded", word: "keeps its hosts" },
  active: { mark: "active", word: "has started" },
  migrated: { mark: "active", word: "servers move" },
  partly_migrated: { mark: "degraded", word: "some servers move" },
};

/** Returns the mark and the word of what becomes of a lease. */
export function outcomePhase(outcome: Outcome): { mark: Mark; word: string } {
  return WORDS[outcome];
}

/** Returns what becomes of a lease in a sentence; `nameOf` gives the name of a host. */
export function outcomeInWords(lease: AffectedLease, nameOf: (id: string) => string): string {
  const moves = movesInWords(lease, nameOf);
  const staying = lease.hosts.filter((id) => !lease.moves.some((move) => move.from_host === id));
  const kept = listed(staying.map(nameOf).sort(), 4);
  switch (lease.outcome) {
    case "moved":
      return lease.makes_room
        ? `It makes room for a lease that has a host in maintenance: ${moves}.`
        : moves
          ? `${moves}.`
          : "It gets other hosts at the same time.";
    case "partly_moved":
      return `${moves}; for ${kept || "the others"} nothing is free.`;
    case "needs_other_time":
      return `Nothing else is free in its time, so it keeps ${kept || "its hosts"}.`;
    case "stays":
      return `It keeps ${kept || "its hosts"}, as leases are left where they are.`;
    case "migrated":
      return lease.done
        ? `${moves}.`
        : `It has started: before the window its servers are moved to ${lease.hosts.length === 1 ? "another host" : "other hosts"}.${noteOf(lease)}`;
    case "partly_migrated":
      return `It has started: some of its servers are moved to other hosts.${noteOf(lease)}`;
    default:
      if (lease.note) return `It keeps ${kept || "its hosts"}.${noteOf(lease)}`;
      return `It keeps ${kept || "its hosts"}; move or delete its servers yourself.`;
  }
}

/** The service's note begins with a small letter, and may have several parts. */
function noteOf({ note }: AffectedLease): string {
  return note ? ` ${note.charAt(0).toUpperCase()}${note.slice(1)}.` : "";
}

function movesInWords(lease: AffectedLease, nameOf: (id: string) => string): string {
  return listed(
    lease.moves.map((move) => {
      const way = `${nameOf(move.from_host)} → ${nameOf(move.to_host)}`;
      return move.count > 1 ? `${way} (${move.count})` : way;
    }),
    4,
  );
}

/** Returns what a window would do, in one sentence. */
export function impactInWords(leases: readonly Pick<AffectedLease, "outcome">[]): string {
  if (leases.length === 0) return "No lease is affected.";
  const counted = OUTCOMES.map((outcome) => ({
    outcome,
    count: leases.filter((one) => one.outcome === outcome).length,
  })).filter(({ count }) => count > 0);
  const parts = counted.map(({ outcome, count }) => `${count} ${SHORT[outcome](count)}`);
  return `${plural(leases.length, "lease")} ${leases.length === 1 ? "is" : "are"} affected: ${parts.join(", ")}.`;
}

const SHORT: Readonly<Record<Outcome, (count: number) => string>> = {
  moved: (count) => (count === 1 ? "gets other hosts at the same time" : "get other hosts at the same time"),
  partly_moved: (count) => (count === 1 ? "is moved in part" : "are moved in part"),
  needs_other_time: (count) => (count === 1 ? "needs another time" : "need another time"),
  stays: (count) => (count === 1 ? "stays where it is" : "stay where they are"),
  active: (count) => (count === 1 ? "has started" : "have started"),
  migrated: (count) => (count === 1 ? "is migrated with its servers" : "are migrated with their servers"),
  partly_migrated: (count) => (count === 1 ? "is migrated in part" : "are migrated in part"),
};

/** True if every lease that is affected keeps its time and gets all it has asked for. */
export function isPainless(leases: readonly Pick<AffectedLease, "outcome">[]): boolean {
  return leases.every((one) => one.outcome === "moved");
}

/** Returns names of hosts for a row: the first few, and how many more. */
export function hostsInWords(hosts: Maintenance["hosts"], most = 4): string {
  return listed(
    hosts.map((host) => host.name),
    most,
  );
}

/** Returns how long a window is. */
export function lengthOfWindow(window: Pick<Maintenance, "start_date" | "end_date">): string {
  return duration(Date.parse(window.end_date) - Date.parse(window.start_date));
}

/** A window that meets hosts of a lease, as its owner sees it. */
export interface Meeting {
  start: number;
  end: number;
  /** Names or labels of the hosts. */
  hosts: readonly string[];
}

/** Returns the windows of maintenance that meet a time, in milliseconds, in the order of their start. */
export function windowsOf(
  resources: readonly Pick<CalendarResource, "id" | "name" | "blocks">[],
  time: { start: number; end: number },
): Meeting[] {
  const found = new Map<string, { start: number; end: number; hosts: string[] }>();
  for (const resource of resources) {
    for (const block of resource.blocks) {
      if (block.code !== "maintenance" || block.end === null) continue;
      if (Date.parse(block.end) <= time.start || Date.parse(block.start) >= time.end) continue;
      const key = `${block.start} ${block.end}`;
      const one = found.get(key) ?? { start: Date.parse(block.start), end: Date.parse(block.end), hosts: [] };
      const name = resource.name ?? resource.id;
      if (!one.hosts.includes(name)) one.hosts.push(name);
      found.set(key, one);
    }
  }
  return [...found.values()].sort((a, b) => a.start - b.start || a.end - b.end);
}

/** Returns what a window means for a lease, for its owner. */
export function affectedInWords(
  meeting: Meeting,
  lease: Pick<Lease, "status" | "start_date">,
  zone: string,
  now: number,
): string {
  const { start, end, hosts } = meeting;
  const one = hosts.length === 1;
  const going = start <= now;
  const state = going ? (one ? "is" : "are") : "will be";
  const when = going ? `until ${spoken(end, zone, now)}` : range(start, end, zone, now);
  const said = `${listed(hosts)} ${state} in maintenance ${going ? when : `(${when})`}.`;
  const begun = lease.status !== "PENDING" || Date.parse(lease.start_date) <= now;
  const means = begun
    ? "The lease keeps its hosts and its time; what runs there may be interrupted."
    : `The lease keeps ${one ? "it" : "them"} and its time unless other hosts become free for it; another time may suit you better.`;
  return `${said} ${means}`;
}
