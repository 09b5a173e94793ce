// SPDX-License-Identifier: Apache-2.0
/** Reports as they are on the wire. Times are in seconds. */
import type { Instant, ResourceType } from "./types.ts";

/** What reports add up. What a service does not tell is left out. */
export interface Measures {
  reserved: number;
  used?: number;
  idle?: number;
  unseen?: number;
  lost?: number;
  overrun?: number;
  returned?: number;
  leases?: number;
  /** Watt-hours of hosts, and grams of CO2e of them; null: nothing is known. */
  energy_wh?: number | null;
  gco2?: number | null;
}

/** What a lease drew and emitted until an instant. */
export interface LeaseEnergy {
  computed_through: Instant;
  resource_seconds: number;
  energy_wh: number | null;
  source: "measured" | "rated" | "mixed" | null;
  unknown_seconds: number;
  carbon: {
    gco2: number;
    embodied_gco2: number;
    sci_mg: number | null;
    estimated: boolean;
    complete: boolean;
    embodied_complete: boolean;
  } | null;
}

/** What hosts drew in some time of theirs that no lease had; null where nothing is known. */
export interface UnbookedPart {
  resource_seconds: number;
  energy_wh: number | null;
  source: LeaseEnergy["source"];
  unknown_seconds: number;
  gco2: number | null;
}

export interface UnbookedEnergy {
  idle: UnbookedPart;
  asleep: UnbookedPart;
}

/** A row has what it is grouped by, and the begin of its step. */
export interface UsageRow extends Measures {
  from?: Instant;
  project_id?: string | null;
  user_id?: string | null;
  resource_type?: ResourceType;
  kind?: string | null;
  region?: string | null;
  lease_kind?: string | null;
  property?: string | null;
}

export interface UsageReport {
  from: Instant;
  to: Instant;
  /** The zone of its days. */
  time_zone: string;
  step: string;
  /** What is told is of what was so until then. */
  computed_through: Instant;
  /** For operators who ask for it; null where leases of the period were purged. */
  unbooked?: UnbookedEnergy | null;
  /** Seconds of hosts that leases had lent to preemptible servers. */
  lent_seconds?: number;
  rows: UsageRow[];
}

/** What was asked for and not had; `refused_seconds` are of different requests only. */
export interface DemandRow {
  resource_type?: ResourceType;
  code?: string;
  refused: number;
  refused_distinct: number;
  refused_seconds: number;
  waited: number;
  granted: number;
  timed_out: number;
}

export interface DemandReport extends Omit<UsageReport, "rows"> {
  /** How exact the counts are, in a sentence. */
  counted?: string;
  rows: DemandRow[];
}

/** A day to come: seconds of all resources of a kind. */
export interface ForecastRow {
  day: string;
  kind: string;
  registered: number;
  promised: number;
  expected: { lower: number; median: number; upper: number } | null;
  /** Why nothing is expected. */
  because?: string | null;
}

export interface Forecast {
  as_of: Instant;
  time_zone: string;
  /** How it is made, in a sentence. */
  method: string;
  rows: ForecastRow[];
  accuracy: { days: number; mean_error: number | null };
}
