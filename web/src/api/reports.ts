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
