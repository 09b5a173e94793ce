// SPDX-License-Identifier: Apache-2.0
/** Leases in words: state, what happens next, what was reserved. */
import type { BeforeEnd, Condition, Lease, Reservation, Wish } from "../api/types.ts";
import { ago, duration, plural, relative, spoken } from "../time/format.ts";
import { about, placeInWords } from "./waiting.ts";

/** How a state is drawn: each has a shape and a colour of its own. */
export type Mark =
  | "booked"
  | "waiting"
  | "timed-out"
  | "changing"
  | "active"
  | "degraded"
  | "failed"
  | "past"
  // Of resources.
  | "free";

/** The part of a state that is told without formatting a time. */
export interface Phase {
  mark: Mark;
  /** One or two words: "booked", "active". */
  word: string;
}

export interface State extends Phase {
  /** What happens next, as in "starts in 3 h". */
  next: string;
}

/** What of a lease its state is told from; blocks of the calendar have these too. */
export type Stateful = Pick<Lease, "status" | "start_date" | "end_date"> &
  Partial<Pick<Lease, "degraded" | "deleted_at" | "end_reason" | "wait">>;

/** Returns the mark and the word of a state; `start` in milliseconds. Thousands of blocks have one. */
export function phaseOf(
  lease: Pick<Stateful, "status" | "degraded" | "deleted_at" | "end_reason">,
  start: number,
  now: number,
): Phase {
  const ended = ENDED[lease.end_reason ?? ""];
  if (lease.deleted_at) return { mark: "past", word: ended ?? "deleted" };
  switch (lease.status) {
    case "WAITING":
      return { mark: "waiting", word: "waiting in line" };
    case "TIMED_OUT":
      return { mark: "timed-out", word: "timed out" };
    case "IN_PROGRESS":
      return { mark: "changing", word: "room is being made" };
    case "PENDING":
      if (now >= start) return { mark: "changing", word: "starting" };
      return lease.degraded ? { mark: "degraded", word: "booked, degraded" } : { mark: "booked", word: "booked" };
    case "CREATING":
      return { mark: "changing", word: "being made" };
    case "STARTING":
      return { mark: "changing", word: "starting" };
    case "ACTIVE":
      return lease.degraded ? { mark: "degraded", word: "active, degraded" } : { mark: "active", word: "active" };
    case "UPDATING":
      return { mark: "changing", word: "being changed" };
    case "TERMINATING":
      return { mark: "changing", word: "ending" };
    case "DELETING":
      return { mark: "changing", word: "being deleted" };
    case "TERMINATED":
      return { mark: "past", word: ended ?? "ended" };
    case "ERROR":
      return { mark: "failed", word: "failed" };
    default:
      return { mark: "booked", word: lease.status.toLowerCase().replaceAll("_", " ") };
  }
}

/** Ends that are more than an end or a deletion. */
const ENDED: Readonly<Record<string, string>> = {
  refused: "refused",
  unused: "released, unused",
  merged: "merged with another",
  ended_early: "ended early",
  left_line: "left the line",
  unconfirmed: "not confirmed",
};

/** Ends that are brought forward to the present while a lease is in use. */
const BROUGHT_FORWARD: readonly string[] = ["ended_early", "unused"];

/** True if the end of a lease was brought forward: what is due before it was due no sooner than the end itself. */
export function isBroughtForward({ end_reason: reason }: Pick<Stateful, "end_reason">): boolean {
  return BROUGHT_FORWARD.includes(reason ?? "");
}

/** True of a lease that is being ended, also before the service has begun with it. */
export function isEnding(lease: Pick<Stateful, "status" | "end_date" | "end_reason">, now: number): boolean {
  if (lease.status !== "ACTIVE") return lease.status === "TERMINATING";
  // The present of a page is some seconds old.
  return isBroughtForward(lease) || Date.parse(lease.end_date) <= now;
}

/** Returns the state of a lease in words. */
export function stateOf(known: Stateful, now: number, zone: string): State {
  const lease = isEnding(known, now) ? { ...known, status: "TERMINATING" } : known;
  const start = Date.parse(lease.start_date);
  return { ...phaseOf(lease, start, now), next: nextOf(lease, start, Date.parse(lease.end_date), now, zone) };
}

function nextOf(lease: Stateful, start: number, end: number, now: number, zone: string): string {
  if (lease.deleted_at) return ago(Date.parse(lease.deleted_at), now);
  switch (lease.status) {
    case "WAITING":
      return lease.wait ? placeInWords(lease.wait, zone, now) : "";
    case "TIMED_OUT":
      return lease.wait ? `waited until ${about(lease.wait.until, zone, now)}` : "";
    case "PENDING":
      if (now >= start) return `due ${relative(start, now)}`;
      return `starts ${relative(start, now)}${lease.wait?.advance ? ", or earlier" : ""}`;
    case "CREATING":
      return `starts ${relative(start, now)}`;
    case "STARTING":
      return `since ${spoken(start, zone, now)}`;
    case "ACTIVE":
    case "UPDATING":
      return `ends ${relative(end, now)}`;
    case "TERMINATING":
      return `since ${spoken(end, zone, now)}`;
    case "TERMINATED":
      return ago(end, now);
    case "ERROR":
      return end > now ? `until ${spoken(end, zone, now)}` : relative(end, now);
    default:
      return "";
  }
}

/** Returns what is counted down to, in words, and its instant; null if nothing is. */
export function countdownOf(lease: Stateful, now: number): { words: string; at: number; share: number } | null {
  if (isPast({ ...lease, deleted_at: lease.deleted_at ?? null })) return null;
  if (["ERROR", "TIMED_OUT", "IN_PROGRESS"].includes(lease.status)) return null;
  if (lease.status === "WAITING") {
    const estimate = lease.wait?.estimated_start ?? null;
    if (estimate === null) return null;
    const at = Date.parse(estimate);
    // An estimate that has just come waits for the next plan.
    return { words: at > now ? `probably ${relative(at, now)}` : "probably soon", at, share: 0 };
  }
  const start = Date.parse(lease.start_date);
  const end = Date.parse(lease.end_date);
  // The present of a page is some seconds old: what the service says to be in use has begun all the same.
  const begun = now >= start || BEGUN.includes(lease.status);
  const share = Math.max(0, Math.min(1, (now - start) / (end - start)));
  if (!begun) return { words: `starts ${relative(start, now)}`, at: start, share };
  if (isBroughtForward(lease)) return { words: "is being ended", at: end, share: 1 };
  return { words: now < end ? `ends ${relative(end, now)}` : "its time is over", at: end, share };
}

const BEGUN: readonly string[] = ["STARTING", "ACTIVE", "TERMINATING"];

/** True of a lease that waits in line, or has done so in vain: nothing of it can be changed. */
export function isInLine({ status }: Pick<Lease, "status">): boolean {
  return status === "WAITING" || status === "TIMED_OUT";
}

/** True if nothing of the lease is left to change. */
export function isPast(lease: Pick<Lease, "status" | "deleted_at">): boolean {
  return lease.status === "TERMINATED" || lease.deleted_at !== null;
}

const TYPES: Record<string, [string, string]> = {
  "physical:host": ["host", "hosts"],
  "virtual:instance": ["server", "servers"],
  "flavor:instance": ["server", "servers"],
  "virtual:floatingip": ["floating IP", "floating IPs"],
  "virtual:volume": ["volume", "volumes"],
  "virtual:server": ["server", "servers"],
  "virtual:stack": ["stack", "stacks"],
  network: ["network", "networks"],
};
/** Words of the kinds of the service, which may come from other packages. */
const learnt = new Map<string, [string, string]>();

/** Takes over the words of kinds for the types that reserve them. */
export function learnWords(kinds: readonly { noun: string; nouns: string; resource_types: readonly string[] }[]): void {
  for (const { noun, nouns, resource_types: types } of kinds) for (const type of types) learnt.set(type, [noun, nouns]);
}

/** Types that have forms and sentences of their own; others are shown by their schemas. */
export const IN_SENTENCES: readonly string[] = [
  "physical:host",
  "virtual:instance",
  "flavor:instance",
  "virtual:floatingip",
];

/** Returns the noun for a resource type: "host" or "hosts". */
export function nounOf(type: string, count = 2): string {
  const [one, many] = TYPES[type] ?? learnt.get(type) ?? [type, type];
  return count === 1 ? one : many;
}

/** Returns the name of a resource type for a list of choices. */
export function typeName(type: string): string {
  const names: Record<string, string> = {
    "physical:host": "whole hosts",
    "virtual:instance": "servers on shared hosts",
    "flavor:instance": "servers of a flavor",
    "virtual:server": "servers, booted at the start",
    "virtual:stack": "stacks of a template",
  };
  return names[type] ?? nounOf(type);
}

/** Returns what a reservation asks for: "2 hosts with gpu = A100", "3 servers of 2 vCPU, 4 GiB". */
export function whatOf(asked: Reservation | Wish): string {
  const type = asked.resource_type;
  const own = ownWords(asked);
  if (own !== null) return own;
  const least = asked.min ?? asked.amount ?? 1;
  const most = asked.max ?? least;
  const count = most > least ? `${least} to ${most}` : String(least);
  const gigabytes = (asked as { size?: unknown }).size;
  const volume = type === "virtual:volume" && typeof gigabytes === "number" ? ` of ${gigabytes} GiB` : "";
  const size = asked.vcpus ? ` of ${asked.vcpus} vCPU, ${gib(asked.memory_mb ?? 0)}${besideSize(asked)}` : "";
  const requirement = inWords([asked.hypervisor_properties, asked.resource_properties]);
  return `${count} ${nounOf(type, most)}${size}${volume}${requirement ? ` with ${requirement}` : ""}${lying(asked)}${lending(asked)}`;
}

/** How hosts lie to each other: ", of one rack", ", in groups of 8 of one nvlink_domain", ", each of another rack". */
function lying({ together, spread }: Pick<Wish, "together" | "spread">): string {
  const words: string[] = [];
  if (together) {
    const { property, prefer = false, size = 0 } = typeof together === "string" ? { property: together } : together;
    words.push(`, ${size ? `in groups of ${size} ` : ""}of one ${property}${prefer ? " if possible" : ""}`);
  }
  if (spread) {
    const { property, most = 1 } = typeof spread === "string" ? { property: spread } : spread;
    words.push(most > 1 ? `, at most ${most} of a ${property}` : `, each of another ${property}`);
  }
  return words.join("");
}

/** Whether idle hosts are lent: ", idle hosts beyond 1 are lent". */
function lending({ lend_beyond: kept = null }: Pick<Wish, "lend_beyond">): string {
  if (kept === null) return "";
  return kept === 0 ? ", idle hosts are lent" : `, idle hosts beyond ${kept} are lent`;
}

/** What of a server few ask for: ", 2 × A100, 30 GiB of ephemeral disk, hw:cpu_policy = dedicated". */
function besideSize(asked: Reservation | Wish): string {
  const { ephemeral_gb: ephemeral, extra_specs: specs, gpus, gpu_model: model } = asked;
  const cards = gpus && model ? [`${gpus} × ${model}`] : [];
  const disk = ephemeral ? [`${ephemeral} GiB of ephemeral disk`] : [];
  return [...cards, ...disk, ...Object.entries(specs ?? {}).map(([name, value]) => `${name} = ${value}`)]
    .map((one) => `, ${one}`)
    .join("");
}

/** Of types whose things have a class or a name to be called by: "1 microscope", "2 × microscope", "network lab". */
function ownWords(asked: Reservation | Wish): string | null {
  const { class: kind, network_name: network } = asked as { class?: unknown; network_name?: unknown };
  if (asked.resource_type === "virtual:stack") {
    const { stack_name: name } = asked as { stack_name?: unknown };
    return typeof name === "string" && name !== "" ? `stack ${name}` : "stack";
  }
  if (asked.resource_type === "network" && typeof network === "string" && network !== "") return `network ${network}`;
  if (asked.resource_type !== "generic" || typeof kind !== "string" || kind === "") return null;
  if (asked.amount) return `${plural(asked.amount, "unit")} of a ${kind}`;
  const least = asked.min ?? asked.max ?? 1;
  const most = asked.max ?? least;
  const requirement = inWords([asked.resource_properties]);
  const count = most > least ? `${least} to ${most} × ` : most > 1 ? `${most} × ` : "1 ";
  return `${count}${kind}${requirement ? ` with ${requirement}` : ""}`;
}

/** Returns what all reservations of a lease ask for. */
export function whatOfLease(lease: Pick<Lease, "reservations">): string {
  return lease.reservations.map(whatOf).join(" and ");
}

/** Returns "4 GiB" for 4096. */
export function gib(megabytes: number): string {
  return megabytes % 1024 === 0 || megabytes > 20480 ? `${Math.round(megabytes / 1024)} GiB` : `${megabytes} MiB`;
}

/** Properties of Nova by the words that people use. */
const NAMES: Record<string, string> = {
  vcpus: "vCPUs",
  memory_mb: "memory",
  local_gb: "disk",
  availability_zone: "zone",
};
const SIGNS: Record<string, string> = { "==": "=", "!=": "≠", ">=": "≥", "<=": "≤", ">": ">", "<": "<", in: "in" };

/** Returns requirements in words: "gpu = A100 and vcpus ≥ 32". */
export function inWords(requirements: readonly (unknown[] | undefined)[]): string {
  return requirements
    .filter((one): one is unknown[] => Array.isArray(one) && one.length > 0)
    .map((one) => part(one))
    .join(" and ");
}

function part(requirement: unknown): string {
  if (!Array.isArray(requirement)) return String(requirement);
  const [operator, ...rest] = requirement;
  if (operator === "and" || operator === "or") {
    return rest
      .map((one) => (Array.isArray(one) && one[0] === "or" ? `(${part(one)})` : part(one)))
      .join(` ${operator} `);
  }
  if (operator === "not") return excluded(rest[0]);
  const name = String(rest[0]).replace(/^\$/, "");
  const values = rest
    .slice(1)
    .map((value) => (name === "memory_mb" ? gib(Number(value)) : name === "local_gb" ? `${value} GiB` : String(value)));
  return `${NAMES[name] ?? name} ${SIGNS[String(operator)] ?? operator} ${values.join(", ")}`;
}

/** "gpu neither A100 nor H100", where all of what is excluded is one property; else "not …". */
function excluded(requirement: unknown): string {
  const inner = Array.isArray(requirement) ? requirement : [];
  const equal = (inner[0] === "or" ? inner.slice(1) : [inner]) as unknown[][];
  const [name] = new Set(equal.map((one) => one[1]));
  const simple = equal.length > 0 && equal.every((one) => one[0] === "==" && one[1] === name);
  if (!simple) return `not ${part(requirement)}`;
  const label = String(name).replace(/^\$/, "");
  const values = equal.map((one) => String(one[2]));
  return `${NAMES[label] ?? label} ${values.length > 1 ? `neither ${values.slice(0, -1).join(" nor ")} nor ${values.at(-1)}` : `not ${values[0]}`}`;
}

/** Types whose users have servers, which go at the end. */
export const HAS_SERVERS: readonly string[] = [
  "physical:host",
  "virtual:instance",
  "flavor:instance",
  "virtual:server",
];

/** Returns what happens at the end to what a reservation has, to the servers first. */
export function endInWords(action: BeforeEnd, type = "physical:host"): string {
  if (type === "virtual:floatingip") return "the addresses are taken back";
  if (type === "virtual:stack") return "the stack and all that is in it are deleted";
  if (!HAS_SERVERS.includes(type)) return "what was reserved is taken back";
  switch (action) {
    case "snapshot":
      return "images of the servers are taken, then they are deleted";
    case "migration":
      return "the servers are moved to other hosts";
    default:
      return "the servers are deleted";
  }
}

const MINUTE = 60_000;

/** True of a condition that is worth a warning: that an end takes some seconds is none. */
export function isNews({ type, since }: Pick<Condition, "type" | "since">, now: number): boolean {
  return type !== "end_delayed" || now - Date.parse(since) >= MINUTE;
}

/** Returns a condition of a lease in a sentence. */
export function conditionInWords(condition: Condition): string {
  const fallback: Record<string, string> = {
    missing_resources: condition.count ? `${plural(condition.count, "resource")} missing` : "resources are missing",
    resources_changed: "some resources were replaced",
    start_delayed: "the start is late",
    start_failed: "the start has failed",
    save_failed: "the images could not be taken",
    end_delayed: "the end is late",
  };
  return condition.reason?.message ?? fallback[condition.type] ?? condition.type.replaceAll("_", " ");
}

/** Returns the length of a lease in words. */
export function lengthOf(lease: Pick<Lease, "start_date" | "end_date">): string {
  return duration(Date.parse(lease.end_date) - Date.parse(lease.start_date));
}
