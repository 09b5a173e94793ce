// SPDX-License-Identifier: Apache-2.0
/** The values of the API at microversion 1.1, as they are on the wire. Instants are RFC 3339 with Z. */

export type Instant = string;
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** A requirement such as ["==", "$gpu", "A100"]; [] asks for nothing. */
export type Requirement = Json[];
export type ResourceType = string;
export type BeforeEnd = "default" | "none" | "notification" | "snapshot" | "migration";

export interface Reason {
  code: string;
  message: string;
  /** The unabridged text, for operators only. */
  detail?: string;
}

export interface Condition {
  type: string;
  reservation_id: string | null;
  since: Instant;
  count: number | null;
  reason: Reason | null;
}

export interface Allocation {
  resource: { id: string; type: string; name: string | null; label?: string };
  count: number;
  used: Record<string, number> | null;
  status: string;
}

export interface Use {
  scheduler_hints: Record<string, string>;
  flavor_id: string | null;
  server_group_id: string | null;
  network_id?: string | null;
  addresses: string[];
}

export interface Reservation {
  id: string;
  resource_type: ResourceType;
  status: string;
  /** The region that it lies in, if there is more than one. */
  region?: string;
  missing_resources: boolean;
  resources_changed: boolean;
  before_end: BeforeEnd;
  allocations: Allocation[];
  use: Use;
  min?: number;
  max?: number;
  amount?: number;
  vcpus?: number;
  memory_mb?: number;
  disk_gb?: number;
  ephemeral_gb?: number;
  extra_specs?: Record<string, string>;
  gpus?: number;
  gpu_model?: string;
  affinity?: boolean | null;
  flavor_id?: string;
  network_id?: string;
  required_floatingips?: string[];
  resource_properties?: Requirement;
  hypervisor_properties?: Requirement;
  /** How hosts lie to each other, by a property that operators give them. */
  together?: string | { property: string; prefer?: boolean; size?: number } | null;
  spread?: string | { property: string; most?: number } | null;
  /** How many idle hosts are kept while others are lent to preemptible servers. */
  lend_beyond?: number | null;
  /** What it is made of, as a stack is. */
  children?: Reservation[];
  /** What it has made in the project, and since when that is known to be deleted. */
  made?: { id: string; deleted_at: Instant | null }[];
  created_at: Instant | null;
  updated_at: Instant | null;
}

export interface LeaseEvent {
  id: string;
  event_type: string;
  time: Instant;
  status: string;
  finished_at: Instant | null;
  attempts: number;
  next_attempt_at: Instant | null;
  reason: Reason | null;
}

/** The place of a lease in the line; of one that has timed out, what it was. */
export interface Wait {
  queued_at: Instant;
  /** The earliest start that it asks for. */
  earliest: Instant;
  until: Instant;
  /** The latest start that will do; null: any. */
  latest?: Instant | null;
  /** How long it has to be at least, a duration; null: as it asks for. */
  at_least?: string | null;
  /** From 1; null before the first plan. */
  position: number | null;
  estimated_start: Instant | null;
  /** Why no waiting helps as things are, or why its turn did not. */
  reason: string | null;
  /** Its start was promised: it may become earlier, and never later. */
  advance?: boolean;
  /** The most that it may cost, a decimal; null: any price. */
  max_price?: string | null;
  /** How many tries may fail; null: they are not counted. */
  tries?: number | null;
  failed_tries?: { at: Instant; reason: Reason }[];
}

export type LeaseKind = "scheduled" | "immediate" | "retries" | "best_effort";
export type Usage = "unknown" | "used" | "idle" | "unused";

/** What its user wants to be told at a time of a lease. */
export interface Reminder {
  /** A duration with its sign, or a date. */
  at: string;
  /** The date that the duration counts from; null: it is a date of its own. */
  from: "start" | "end" | null;
  text: string;
  time: Instant;
  sent_at: Instant | null;
}

export interface Lease {
  id: string;
  name: string;
  project_id: string;
  user_id: string;
  status: string;
  degraded: boolean;
  revision: number;
  start_date: Instant;
  end_date: Instant;
  before_end_date: Instant | null;
  created_at: Instant;
  updated_at: Instant | null;
  deleted_at: Instant | null;
  conditions: Condition[];
  reservations: Reservation[];
  events: LeaseEvent[];
  kind?: LeaseKind;
  end_reason?:
    | "ended"
    | "deleted"
    | "refused"
    | "unused"
    | "merged"
    | "ended_early"
    | "left_line"
    | "unconfirmed"
    | null;
  /** Null: nobody looks whether it is used. */
  usage?: Usage | null;
  used_at?: Instant | null;
  /** When it is released, unless somebody uses or keeps it. */
  release_at?: Instant | null;
  /** An operator wants it to stay, used or not; null: nobody looks. */
  held?: boolean | null;
  wait?: Wait | null;
  extend_if_free?: { until: Instant; reason: string | null } | null;
  reminders?: Reminder[];
  /** Until it starts, no other lease makes it leave its hosts. */
  keep_hosts?: boolean;
  /** When it is deleted unless somebody confirms it before; null: it is firm. */
  confirm_by?: Instant | null;
  /** Of a dry run: how many other leases would get other hosts. */
  moves_others?: number | null;
  /** In the answer to who books, and in a dry run. */
  waking?: Waking | null;
  /** To whom it is offered; null: to nobody. */
  transfer?: TransferOffer | null;
  /** The series that it is of. */
  series_id?: string | null;
  /** In all; null: nothing had a price when it was booked. */
  price?: Price | null;
}

/** To whom a lease is offered, until when. */
export interface TransferOffer {
  project_id: string;
  /** Only this user may accept it; null: any member of the project. */
  user_id: string | null;
  message: string | null;
  offered_at: Instant;
  expires_at: Instant;
}

/** An offer as who may accept it sees it: no hosts, and no ids of the cloud. */
export interface Transfer extends TransferOffer {
  from_project_id: string;
  from_user_id: string;
  lease: Pick<
    Lease,
    "id" | "name" | "kind" | "status" | "revision" | "start_date" | "end_date" | "before_end_date" | "extend_if_free"
  > & {
    reservations: {
      id: string;
      resource_type: ResourceType;
      region?: string;
      status: string;
      count: number;
      parameters: { [name: string]: Json };
    }[];
  };
}

/** What was done to a lease. Texts before and after; null: there was none, or the reader may not know it. */
export interface HistoryEntry {
  id: string;
  at: Instant;
  verb: string;
  by: { kind: "user" | "operator" | "service"; user_id: string | null; project_id: string | null };
  /** `reservation_id` null: it is of the lease. */
  changes: { field: string; reservation_id: string | null; before: string | null; after: string | null }[];
  resources: { reservation_id: string; gone: string[]; come: string[]; gone_count: number; come_count: number }[];
  reason: string | null;
}

/** An entry of the journal. */
export interface JournalEntry extends HistoryEntry {
  position: number;
  object: { type: string; id: string; name: string | null; revision: number | null };
  project_id: string | null;
  request_id: string | null;
}

export type SeriesStatus = "CREATING" | "ACTIVE" | "ENDED" | "FAILED" | "DELETING" | "DELETED";

/** One lease of a series, as its rule has it. */
export interface Occurrence {
  /** Its start by the rule, a local time, which names it for ever. */
  recurrence_id: string;
  start_date: Instant;
  end_date: Instant;
  state: "planned" | "booked" | "unfit" | "cancelled" | "over";
  lease_id: string | null;
  lease_status: string | null;
  changed: boolean;
  reason: string | null;
  opening: { start_date: Instant; end_date: Instant } | null;
  /** What it costs; null: nothing has a price. */
  price?: Price | null;
}

/** Leases that recur. Local times are those of its time zone. */
export interface Series {
  id: string;
  name: string;
  project_id: string;
  user_id: string;
  status: SeriesStatus;
  reason: string | null;
  rule: string;
  start: string;
  time_zone: string;
  duration: string | null;
  until_local: string | null;
  fit: "all" | "as_many";
  /** The most that each may cost, a decimal; null: any price. */
  max_price?: string | null;
  reservations: Wish[];
  reminders?: Pick<Reminder, "at" | "from" | "text">[];
  keep_hosts?: boolean;
  booked_until: Instant | null;
  /** The series that this one goes on from. */
  previous_id?: string | null;
  created_at: Instant;
  deleted_at: Instant | null;
  /** Not in lists. */
  occurrences?: Occurrence[];
}

export interface Link {
  rel: string;
  href: string;
}

/** What one reservation of a question or of a new lease asks for; types have parameters of their own. */
export interface Wish {
  [parameter: string]: Json | undefined;
  resource_type: ResourceType;
  min?: number;
  max?: number;
  amount?: number;
  vcpus?: number;
  memory_mb?: number;
  disk_gb?: number;
  ephemeral_gb?: number;
  extra_specs?: Record<string, string>;
  gpus?: number;
  gpu_model?: string;
  flavor_id?: string;
  network_id?: string;
  affinity?: boolean | null;
  resource_properties?: Requirement;
  hypervisor_properties?: Requirement;
  /** How hosts lie to each other, by a property that operators give them. */
  together?: string | { property: string; prefer?: boolean; size?: number } | null;
  spread?: string | { property: string; most?: number } | null;
  /** How many idle hosts are kept while others are lent to preemptible servers. */
  lend_beyond?: number | null;
  before_end?: BeforeEnd;
}

/** What a reservation costs in hours of one price, or in kilowatt-hours, of which it is an estimate. */
export interface PricePart {
  /** Its place in the lease. */
  reservation: number;
  sku: string;
  count?: number;
  hours?: string;
  per_hour?: string;
  /** Of energy, with its price, instead of the three before. */
  kwh?: string;
  per_kwh?: string;
  factor: string;
  amount: string;
}

/** What a lease costs; amounts are decimals of the currency. Of one that is booked it is without fee and parts. */
export interface Price {
  amount: string;
  currency: string;
  fee?: string;
  parts?: PricePart[];
  /** What it costs to cancel it until when; none once it has started, and in lists. */
  if_cancelled?: { until: Instant; amount: string }[];
  /** What its project was charged for it so far. */
  charged?: string;
  /** Of a change that is not made: how much more it would cost than before. */
  difference?: string;
  /** What of the amount is for energy, by an estimate: of what is booked as long as it is not charged. */
  estimated?: string;
  /** Of a quote: who books with it pays no more for some minutes. */
  quoted_at?: Instant;
}

export interface Opening {
  start_date: Instant;
  end_date: Instant;
  last_start_date: Instant;
  open_until: Instant | null;
  reservations: { count: number; region?: string }[];
  refusals: Refusal[];
  /** At its start; null: nothing has a price. */
  price?: Price | null;
  /** What its first start would wait for; null: nothing. */
  waking?: Waking | null;
  /** How many other leases would get other hosts for it. */
  moves_others?: number;
}

/** What a start waits for: so many of its hosts and pools sleep, and the last is awake then. */
export interface Waking {
  hosts: number;
  pools: number;
  ready_at: Instant;
  message: string;
}

export interface Refusal {
  code: string;
  message: string;
  data?: Json;
}

export interface Step {
  code: string;
  remaining: number;
  removed?: number;
  pointer?: string;
  until?: Instant | null;
}

export interface WhyNot {
  pointer: string;
  window: { start_date: Instant; end_date: Instant };
  asked: number;
  free: number;
  steps: Step[];
  message: string;
}

export interface Alternative {
  change: "time" | "count" | "duration" | "requirement";
  start_date: Instant;
  end_date: Instant;
  /** Of a change by their ids. */
  reservations?: { id?: string; min?: number; max?: number; amount?: number }[];
  drop?: string;
  /** What the lease would cost then, if that has a price. */
  price?: string;
  currency?: string;
}

/** Why there is no room even if other leases get other hosts: full at an instant, none at all, too many moves, or not proven. */
export type Proof =
  | { code: "full_at"; at: Instant; hosts: number; promised: number; asked: number }
  | { code: "too_many_moves"; moves_others: number }
  | { code: "no_arrangement" }
  | { code: "not_proven" };

export interface Availability {
  as_of: Instant;
  earliest: Instant;
  latest: Instant;
  duration_seconds: number | null;
  searched_until: Instant;
  complete: boolean;
  openings: Opening[];
  not_checked: string[];
  reasons: WhyNot[];
  alternatives: Alternative[];
  extension: { open_until: Instant | null; limited_by: string | null; refusals: Refusal[] } | null;
  /** Null: it fits, or nobody was to get other hosts for it. */
  proof?: Proof | null;
}

export type BlockKind = "mine" | "other" | "cleaning" | "out_of_use" | "lease";

export interface Block {
  kind: BlockKind;
  start: Instant;
  end: Instant | null;
  used?: Record<string, number> | null;
  lease_id?: string;
  reservation_id?: string;
  name?: string;
  project_id?: string;
  user_id?: string;
  status?: string;
  code?: string;
  reason?: string | null;
}

export interface CalendarResource {
  id: string;
  type: string;
  name: string | null;
  label?: string;
  reservable: boolean;
  capacity: Record<string, number>;
  properties: Record<string, Json>;
  blocks: Block[];
}

export interface CalendarPage {
  as_of: Instant;
  from: Instant;
  to: Instant;
  resources: CalendarResource[];
  /** Of all pages, if it was asked for. */
  count?: number;
  links?: Link[];
}

/** How much there is at an instant. */
export interface CapacityPoint {
  total: number;
  free: number;
  promised: number;
  out_of_use: number;
}

export interface CapacitySeries {
  group: Record<string, Json>;
  total: number[];
  free: number[];
  promised: number[];
  out_of_use: number[];
  /** At the beginning itself; the points are the least of their steps. */
  at_start?: CapacityPoint;
}

export interface Capacity {
  as_of: Instant;
  from: Instant;
  to: Instant;
  step_seconds: number;
  measure: string;
  series: CapacitySeries[];
}

export interface Property {
  name: string;
  type: "text" | "number";
  private: boolean;
  minimum?: number;
  maximum?: number;
  values: { value: string | number; count: number }[];
  truncated: boolean;
}

/** Why a resource takes no new leases, and until when. */
export type Disabled = { reason: string | null; since: Instant | null; until: Instant | null } | null;
export type Failure = { reason: string; since: Instant } | null;

/** A resource of any kind. Members see less of it. */
export interface Resource {
  id: string;
  kind: string;
  label?: string;
  name: string | null;
  attributes: Record<string, Json>;
  capacity: Record<string, number>;
  traits?: string[];
  properties: Record<string, Json>;
  reservable: boolean;
  disabled?: Disabled;
  failure?: Failure;
  authorized_projects?: string[] | null;
  created_at?: Instant;
  updated_at?: Instant | null;
}

/** A host as operators see it. */
export interface Host extends Resource {
  label: string;
  name: string;
  disabled: Disabled;
  failure: Failure;
  authorized_projects: string[] | null;
  updated_at: Instant | null;
}

/** A host by its name. */
export type NamedHost = Pick<Host, "id" | "name">;

/** What the cloud has to register. */
export interface Candidate {
  id: string;
  name: string;
  state: string;
  servers: number;
  resource_id: string | null;
  region?: string;
  /** The fields that register it, as far as the cloud tells them. */
  registration?: Record<string, Json>;
}

export interface Feed {
  id: string;
  kind: "user" | "project" | "resource" | "free_busy";
  name: string;
  user_id: string;
  project_id: string;
  resource: string | null;
  /** In the answer to the request that made it, never again. */
  url?: string;
  created_at: Instant;
  expires_at: Instant;
  last_used_at: Instant | null;
}

export interface Info {
  now: Instant;
  user_id: string;
  project_id: string;
  allowed: string[];
  /** This and what follows with a question mark only a manager knows: it is missing while none answers. */
  resource_types?: ResourceType[];
  before_end?: { default: BeforeEnd; lead_seconds: number };
  cleaning_seconds?: number;
  /** For how long a lease may be unconfirmed; 0: each is firm. */
  confirm_within_seconds?: number;
  limits?: { limit: string; value: number; unit: string }[];
  bounds: {
    page: number;
    availability_range_seconds?: number;
    /** The longest range of the calendar, and how far ahead it may end. */
    range_seconds?: number;
    range_ahead_seconds?: number;
  };
  idempotency_seconds?: number;
  /** How the service tells subscribers. */
  channels?: ("webhook" | "mail")[];
  /** What the API says while no manager answers. */
  notice?: string;
}

/** One item of an answer that refuses. */
export interface Fault {
  status: number;
  code: string;
  title: string;
  detail: string;
  request_id?: string;
  pointer?: string;
  parameter?: string;
  header?: string;
  data?: { [key: string]: Json };
}

/** What an operator may have to act on. */
export interface Problem {
  id: string;
  kind: string;
  since: Instant;
  summary: string;
  explanation: string[];
  actions: string[];
  lease_id: string | null;
  region: string;
  /** Kind and id of a resource, as "host/1". */
  resource_id: string | null;
}

/** What was done about a problem, or would be. */
export interface ProblemRepair {
  problem_id: string;
  action: string;
  dry_run: boolean;
  said: string[];
}
