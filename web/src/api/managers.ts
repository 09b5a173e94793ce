// SPDX-License-Identifier: Apache-2.0
/** Running managers of the service as they are on the wire. */
import type { Instant } from "./types.ts";

export interface ManagerWork {
  event_id: string;
  lease_id: string;
  event_type: string;
  since: Instant | null;
}

export interface ManagerThread {
  name: string;
  last_round_at: Instant | null;
  /** Since when its rounds fail; null: they do not. */
  failing_since: Instant | null;
  error: string | null;
}

export interface Manager {
  /** What its claims begin with. */
  id: string;
  host: string;
  version: string;
  /** The number of the calls that it answers. */
  rpc_version: string;
  state: "starting" | "running" | "draining" | "stopping";
  /** It was seen within the time that a claim lives. */
  up: boolean;
  started_at: Instant;
  seen_at: Instant;
  /** How far its clock is ahead of that of the database. */
  clock_offset_ms: number;
  /** The first of the events that it has claimed. */
  work: ManagerWork[];
  regions: string[];
  /** Its options are those of all managers that are up. */
  options_agree: boolean;
  threads: ManagerThread[];
}
