// SPDX-License-Identifier: Apache-2.0
/** What was done to a lease or to anything else, by whom, and what that changed, in words. Pure. */
import type { HistoryEntry, Json, JournalEntry, Lease } from "../api/types.ts";
import { moment } from "../time/format.ts";
import { capital } from "./events.ts";
import { gib, inWords, nounOf, typeName } from "./lease.ts";
import { nameInWords } from "./parameters.ts";
import { moneyToHundredths } from "./money.ts";
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

/** What is asked of a lease; of an object that is none: whose it is. */
export type Whose = Pick<Lease, "reservations"> & { project_id: string | null };

/** Verbs that say more in other words; the others are said as they are. */
const WHAT: Readonly<Record<string, string>> = {
  waiting: "Waits in line",
  promised: "Promised a start",
  advanced: "Promised an earlier start",
  moved: "Moved to other resources",
  retried: "Tried again",
  claim_ended: "Claim ended",
  before_end: "Warned of its end",
  maintenance: "Told of maintenance",
  unused_warning: "Told that nobody uses it",
  left_out: "Entries were left out",
  reminded: "Reminded",
  lapsed: "Deleted, as nobody confirmed it",
};

/** Names of resources by the ids that histories have. */
export type Names = ReadonlyMap<string, string>;

/** Returns the names that the lease shows to its reader. */
function namesOf(lease: Whose): Names {
  return new Map(
    lease.reservations.flatMap((one) =>
      one.allocations.map((part) => [part.resource.label ?? part.resource.id, resourceName(part)] as const),
    ),
  );
}

/** Returns the ids of hosts in a history that the lease does not have any more: their names are to be looked up. */
export function unnamedHosts(history: readonly HistoryEntry[], lease: Whose): string[] {
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
  lease: Whose,
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
function whoInWords(by: HistoryEntry["by"], lease: Whose, me: string | undefined): string {
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
  keep_hosts: "Keeps its hosts",
  min: "At least",
  max: "At most",
  amount: "Number",
  money: "Amount",
  closed_until: "Charged until",
  vcpus: "vCPUs",
  memory_mb: "Memory",
  disk_gb: "Disk",
  ephemeral_gb: "Ephemeral disk",
  gpus: "GPUs",
  gpu_model: "GPU model",
  hypervisor_properties: "Hosts with",
  resource_properties: "With",
  project_id: "Project",
  user_id: "User",
  offered_to: "Offered to",
  other_lease: "Other lease",
  why: "Why",
  entries: "How many",
  extendable_until: "Can be extended until",
  maintenance_start_date: "Maintenance from",
  maintenance_end_date: "Maintenance until",
  disabled_reason: "Why it is disabled",
  failure: "Failure",
  authorized_projects: "For the projects",
  pending: "Leases that have not started",
  active: "Leases in use",
  disable_service: "Disables hosts in Nova",
  secret_generation: "Secret number",
  expires_at: "Expires",
  reminders: "Reminders",
  reminder: "Told",
};

/** What stands before a point in the name of a field: `properties.rack`. */
const PARTS: Readonly<Record<string, string>> = {
  properties: "Property",
  capacity: "Capacity",
  attributes: "Of the cloud",
};

function fieldInWords(field: string): string {
  const [part, ...rest] = field.split(".");
  if (rest.length > 0 && PARTS[part!]) return `${PARTS[part!]} ${rest.join(".")}`;
  // Options and rules have the names that they have in files.
  return FIELDS[field] ?? (/[[:]/.test(field) ? field : nameInWords(field));
}

function changesInWords(entry: HistoryEntry, lease: Whose, zone: string, now: number): string[] {
  // Of two projects that are both not told there is nothing to say.
  const told = withMoney(withNumbers(entry.changes)).filter(({ before, after }) => before !== null || after !== null);
  return told.map(({ field, reservation_id: id, before, after }) => {
    const of = id === null || lease.reservations.length < 2 ? "" : typeOf(lease, id);
    if (field === "resource_type") {
      return before === null ? `Added: ${typeName(after ?? "")}` : `Taken away: ${typeName(before)}`;
    }
    const [was, is] = [before, after].map((value) => valueInWords(field, value, zone, now));
    const name = fieldInWords(field);
    const value = before === after ? "changed" : before === null && field !== "project_id" ? is : `${was} → ${is}`;
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

/** An amount that stands beside its currency is one of money. */
function withMoney(changes: HistoryEntry["changes"]): HistoryEntry["changes"] {
  const currency = changes.find(({ field }) => field === "currency")?.after ?? null;
  if (currency === null || !changes.some(({ field }) => field === "amount")) return changes;
  const inMoney = (amount: string | null) => (amount === null ? null : moneyToHundredths(amount, currency));
  return changes.flatMap((one) => {
    if (one.field === "currency") return [];
    if (one.field !== "amount") return [one];
    return [{ ...one, field: "money", before: inMoney(one.before), after: inMoney(one.after) }];
  });
}

const OTHER: Readonly<Record<string, string>> = { min: "max", max: "min" };

function typeOf(lease: Whose, reservation: string): string {
  return lease.reservations.find((one) => one.id === reservation)?.resource_type ?? "";
}

/** A time on the clock of a place, as series have it. */
const LOCAL = /^\d{4}-\d\d-\d\dT\d\d:\d\d$/;
const INSTANT = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

function valueInWords(field: string, value: string | null, zone: string, now: number): string {
  if (value === null && field === "project_id") return "another project";
  if (value === null || value === "") return "none";
  if (value === "true" || value === "false") return value === "true" ? "yes" : "no";
  if (LOCAL.test(value)) return value.replace("T", " ");
  if (INSTANT.test(value)) return moment(Date.parse(value), zone, now);
  if (field.endsWith("_properties")) return inWords([list(value)]) || value;
  const structure = /^[[{]/.test(value) ? structureInWords(value) : null;
  if (structure !== null) return structure;
  const amount = Number(value);
  if (field === "memory_mb" && Number.isFinite(amount)) return gib(amount);
  return field.endsWith("_gb") ? `${value} GiB` : value;
}

/** Returns a list, a requirement or an object that is written as JSON in words; null if it is none. */
function structureInWords(text: string): string | null {
  try {
    return partInWords(JSON.parse(text) as Json) || "none";
  } catch {
    return null;
  }
}

function partInWords(value: Json): string {
  if (value === null) return "none";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "object") return String(value);
  if (!Array.isArray(value)) {
    const parts = Object.entries(value).filter(([, part]) => part !== null && part !== "");
    return parts.map(([name, part]) => `${nameInWords(name).toLowerCase()} ${partInWords(part)}`).join(", ");
  }
  if (OPERATORS.has(String(value[0]))) return inWords([value]);
  return value.map((part) => partInWords(part)).join(value.some((part) => typeof part === "object") ? "; " : ", ");
}

/** What a requirement begins with. */
const OPERATORS: ReadonlySet<string> = new Set(["and", "or", "not", "in", "==", "!=", ">=", "<=", ">", "<"]);

const MOST = 6;

function movesInWords(entry: HistoryEntry, lease: Whose, found: Names): string[] {
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
const SAID: readonly string[] = ["ended", "ended_early", "left_line", "unconfirmed", "deleted", "refused"];

/** Why a lease keeps hosts that will be in maintenance. */
const KEEPS: Readonly<Record<string, string>> = {
  needs_other_time: "No other hosts are free in its time.",
  stays: "It is not given other hosts.",
  active: "It is in use, and keeps its hosts.",
};

const MAKES_ROOM = "It had not started, and others needed its place.";

/** Why a lease was moved, if it is for another one. */
const MOVED: Readonly<Record<string, string>> = { repacked: MAKES_ROOM, repacked_again: MAKES_ROOM };

function reasonInWords({ reason, verb }: HistoryEntry): string[] {
  if (reason !== null && verb === "maintenance") return [KEEPS[reason] ?? `${capital(reason)}.`];
  if (reason !== null && MOVED[reason] !== undefined) return [MOVED[reason]];
  if (reason === null || SAID.includes(reason) || reason === verb) return [];
  const end = endInSentence({ end_reason: reason as NonNullable<Lease["end_reason"]> });
  return [end ?? `${capital(reason.replaceAll("_", " "))}.`];
}

const NOUNS: Readonly<Record<string, string>> = {
  lease: "lease",
  series: "series",
  resource: "resource",
  property: "property",
  maintenance: "maintenance",
  feed: "feed",
  price_list: "price list",
  rule: "rule",
  charge: "charge",
  budget: "budget",
  subscription: "subscription",
  server: "preemptible server",
};

/** Returns what an entry of the journal is about, in words: a resource by its kind, as "host node-7". */
export function subjectInWords({ object }: Pick<JournalEntry, "object">): string {
  const [kind, id] = splitId(object.id);
  const noun = object.type === "resource" ? kind : (NOUNS[object.type] ?? object.type);
  if (object.type === "service") return "options and policies";
  if (isAccount(object)) return `charges of lease ${object.id}`;
  return `${noun} ${object.name ?? (object.type === "resource" ? id : object.id)}`;
}

/** The page of what an entry is about with its parameters; null if there is none. */
export function pageOfSubject({
  object,
}: {
  object: Pick<JournalEntry["object"], "type" | "id">;
}): [string, Record<string, string>] | null {
  const [kind, id] = splitId(object.id);
  if (["lease", "series", "maintenance"].includes(object.type)) return [object.type, { id: object.id }];
  if (object.type === "charge") return isAccount(object) ? ["lease", { id: object.id }] : ["spending", {}];
  return object.type === "resource" ? ["resource", { kind, id }] : null;
}

/** True if it is all that a lease was charged at a time; a correction has the number of the charge. */
function isAccount({ type, id }: Pick<JournalEntry["object"], "type" | "id">): boolean {
  return type === "charge" && !/^\d+$/.test(id);
}

function splitId(id: string): [string, string] {
  const at = id.indexOf("/");
  return [id.slice(0, at), id.slice(at + 1)];
}

/** What of the journal is looked at, as the address says it. */
export interface AskedHistory {
  type: string;
  object: string;
  verb: string;
  by: string;
  project: string;
  from: string;
  to: string;
}

/** Returns the question to the service: days are those of the zone, and the last one is looked at as a whole. */
export function historyQuery(asked: AskedHistory, zone: string): Record<string, string | undefined> {
  const day = (text: string, more: number) => {
    try {
      const at = Temporal.PlainDate.from(text).add({ days: more }).toZonedDateTime(zone);
      return at.toInstant().toString();
    } catch {
      return undefined; // It is being typed.
    }
  };
  return {
    object_type: asked.type || undefined,
    object_id: asked.object || undefined,
    verb: asked.verb || undefined,
    by: asked.by || undefined,
    project_id: asked.project || undefined,
    from: asked.from ? day(asked.from, 0) : undefined,
    to: asked.to ? day(asked.to, 1) : undefined,
  };
}

/** The latest entries, newest first, as far as they were read. `next`: there are earlier ones. */
export interface Read {
  entries: readonly JournalEntry[];
  next: boolean;
}

/** Returns what is known once the newest page was read again: entries never change, and more of them come. */
export function withNewest(known: Read, page: Read): Read {
  const last = page.entries.at(-1);
  const first = known.entries[0];
  // More came than a page has: what lies between was not read.
  if (!last || !first || (page.next && last.position > first.position + 1)) return page;
  const older = known.entries.filter((entry) => entry.position < last.position);
  return { entries: [...page.entries, ...older], next: older.length > 0 ? known.next : page.next };
}

/** Returns what is known once the page after its last entry was read. */
export function withEarlier(known: Read, page: Read): Read {
  const last = known.entries.at(-1)?.position ?? Number.POSITIVE_INFINITY;
  const earlier = page.entries.filter((entry) => entry.position < last);
  return { entries: [...known.entries, ...earlier], next: page.next };
}
