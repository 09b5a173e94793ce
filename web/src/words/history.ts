// SPDX-License-Identifier: Apache-2.0
/** What was done to a lease, by whom, and what that changed, in words. Pure. */
import type { HistoryEntry, Lease } from "../api/types.ts";
import { moment } from "../time/format.ts";
import { capital } from "./events.ts";
import { gib, inWords, nounOf, typeName } from "./lease.ts";
import { nameInWords } from "./parameters.ts";
import { list } from "./reading.ts";
import { listed, resourceName } from "./use.ts";
import { endInSentence } from "./waiting.ts";

/** One entry: what, by whom, and the lines below it. */
export interface Told {
  id: string;
  at: number;
  what: string;
  who: string;
  lines: readonly string[];
}

/** Verbs that say more in other words; the others are said as they are. */
const WHAT: Readonly<Record<string, string>> = {
  waiting: "Waits in line",
  promised: "Promised a start",
  advanced: "Promised an earlier start",
  moved: "Moved to other resources",
  retried: "Tried again",
  claim_ended: "Claim ended",
};

/** Names of resources by the ids that histories have. */
export type Names = ReadonlyMap<string, string>;

/** Returns the names that the lease shows to its reader. */
function namesOf(lease: Lease): Names {
  return new Map(
    lease.reservations.flatMap((one) =>
      one.allocations.map((part) => [part.resource.label ?? part.resource.id, resourceName(part)] as const),
    ),
  );
}

/** Returns the ids of hosts in a history that the lease does not have any more: their names are to be looked up. */
export function unnamedHosts(history: readonly HistoryEntry[], lease: Lease): string[] {
  const known = namesOf(lease);
  const moves = history.flatMap((entry) => entry.resources);
  const ids = moves.flatMap(({ reservation_id: id, gone, come }) =>
    ON_HOSTS.includes(typeOf(lease, id)) ? [...gone, ...come] : [],
  );
  return [...new Set(ids)].filter((id) => !known.has(id)).sort();
}

const ON_HOSTS: readonly string[] = ["physical:host", "virtual:instance", "flavor:instance"];

/** Returns an entry in words; `me` is the id of the reader, `found` are names besides those that the lease has. */
export function toldOf(
  entry: HistoryEntry,
  lease: Lease,
  me: string | undefined,
  zone: string,
  now: number,
  found: Names = new Map(),
): Told {
  return {
    id: entry.id,
    at: Math.floor(Date.parse(entry.at) / 60_000) * 60_000,
    what:
      (entry.reason === "left_line" ? "Left the line" : WHAT[entry.verb]) ?? capital(entry.verb.replaceAll("_", " ")),
    who: whoInWords(entry.by, lease, me),
    lines: [...changesInWords(entry, lease, zone, now), ...movesInWords(entry, lease, found), ...reasonInWords(entry)],
  };
}

/** Who it was, as far as the service tells the reader. */
function whoInWords(by: HistoryEntry["by"], lease: Lease, me: string | undefined): string {
  if (by.kind === "service") return "the service";
  const operator = by.kind === "operator";
  if (by.user_id === null) return operator ? "an operator" : "a user of another project";
  if (by.user_id === me) return "you";
  const name = operator ? `the operator ${by.user_id}` : by.user_id;
  return by.project_id === null || by.project_id === lease.project_id ? name : `${name} of ${by.project_id}`;
}

const FIELDS: Readonly<Record<string, string>> = {
  name: "Name",
  start_date: "Start",
  end_date: "End",
  before_end_date: "Reminder",
  extend_if_free: "Goes on by itself until",
  min: "At least",
  max: "At most",
  amount: "Number",
  vcpus: "vCPUs",
  memory_mb: "Memory",
  disk_gb: "Disk",
  ephemeral_gb: "Ephemeral disk",
  hypervisor_properties: "Hosts with",
  resource_properties: "With",
  project_id: "Project",
  user_id: "User",
  offered_to: "Offered to",
  other_lease: "Other lease",
  why: "Why",
};

function changesInWords(entry: HistoryEntry, lease: Lease, zone: string, now: number): string[] {
  // Of two projects that are both not told there is nothing to say.
  const told = withNumbers(entry.changes).filter(({ before, after }) => before !== null || after !== null);
  return told.map(({ field, reservation_id: id, before, after }) => {
    const of = id === null || lease.reservations.length < 2 ? "" : typeOf(lease, id);
    if (field === "resource_type") {
      return before === null ? `Added: ${typeName(after ?? "")}` : `Taken away: ${typeName(before)}`;
    }
    const [was, is] = [before, after].map((value) => valueInWords(field, value, zone, now));
    const name = FIELDS[field] ?? nameInWords(field);
    const value = before === null && field !== "project_id" ? is : `${was} → ${is}`;
    return `${of ? `${capital(nounOf(of))}, ${name.startsWith("vCPU") ? name : name.toLowerCase()}` : name}: ${value}`;
  });
}

/** Of "min" and "max" that are one number before and after, one is enough. */
function withNumbers(changes: HistoryEntry["changes"]): HistoryEntry["changes"] {
  return changes.flatMap((one) => {
    const { field, reservation_id: id, before, after } = one;
    if (field !== "min" && field !== "max") return [one];
    const twin = changes.find((other) => other.reservation_id === id && other.field === OTHER[field]);
    if (twin?.before !== before || twin?.after !== after) return [one];
    return field === "min" ? [{ ...one, field: "amount" }] : [];
  });
}

const OTHER: Readonly<Record<string, string>> = { min: "max", max: "min" };

function typeOf(lease: Lease, reservation: string): string {
  return lease.reservations.find((one) => one.id === reservation)?.resource_type ?? "";
}

function valueInWords(field: string, value: string | null, zone: string, now: number): string {
  if (value === null && field === "project_id") return "another project";
  if (value === null || value === "") return "none";
  if (field.endsWith("_date") || field === "extend_if_free") return moment(Date.parse(value), zone, now);
  if (field.endsWith("_properties")) return inWords([list(value)]) || value;
  const amount = Number(value);
  if (field === "memory_mb" && Number.isFinite(amount)) return gib(amount);
  return field.endsWith("_gb") ? `${value} GiB` : value;
}

const MOST = 6;

function movesInWords(entry: HistoryEntry, lease: Lease, found: Names): string[] {
  const names = new Map([...found, ...namesOf(lease)]);
  // By their names only if all of them have one: a name and an id beside each other look like two kinds of things.
  const all = entry.resources.flatMap(({ gone, come }) => [...gone, ...come]).every((id) => names.has(id));
  const named = (ids: readonly string[], count: number) => {
    const known = ids.map((id) => (all && names.get(id)) || id);
    if (count <= MOST) return listed(known, MOST);
    return `${known.slice(0, MOST - 1).join(", ")} and ${count - MOST + 1} more`;
  };
  return entry.resources.flatMap((move) => {
    const said = [
      move.gone_count > 0 ? `gave up ${named(move.gone, move.gone_count)}` : "",
      move.come_count > 0 ? `got ${named(move.come, move.come_count)}` : "",
    ].filter(Boolean);
    return said.length > 0 ? [capital(said.join("; "))] : [];
  });
}

/** Ends that the verb says already. */
const SAID: readonly string[] = ["ended", "ended_early", "left_line", "deleted", "refused"];

function reasonInWords({ reason, verb }: HistoryEntry): string[] {
  if (reason === null || SAID.includes(reason) || reason === verb) return [];
  const end = endInSentence({ end_reason: reason as NonNullable<Lease["end_reason"]> });
  return [end ?? `${capital(reason.replaceAll("_", " "))}.`];
}
