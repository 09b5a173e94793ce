// SPDX-License-Identifier: Apache-2.0
/** Maintenance windows as they are on the wire, and changes of them that overwrite nothing. */
import { type Answer, request } from "./client.ts";
import { Refused } from "./errors.ts";
import type { Instant } from "./types.ts";

export type MaintenanceStatus = "PLANNED" | "STARTING" | "ACTIVE" | "ENDING" | "DONE" | "CANCELLED";
export type Outcome =
  | "moved"
  | "partly_moved"
  | "needs_other_time"
  | "stays"
  | "active"
  | "migrated"
  | "partly_migrated";

export interface HostMove {
  reservation_id: string;
  from_host: string;
  to_host: string;
  count: number;
}

export interface AffectedLease {
  lease_id: string;
  name: string;
  project_id: string;
  user_id: string;
  start_date: Instant;
  end_date: Instant;
  status: string;
  outcome: Outcome;
  /** None of its hosts is in maintenance: it moves so that others can. */
  makes_room: boolean;
  hosts: string[];
  moves: HostMove[];
  openings: Instant[];
  /** What is planned has been carried out. */
  done: boolean;
  told_at: Instant | null;
  /** Why a lease in use keeps hosts, or how far the moves of its servers are. */
  note: string | null;
}

export interface Impact {
  /** Changes with what is said here. */
  id: string;
  start_date: Instant;
  end_date: Instant;
  hosts: string[];
  summary: Record<Outcome, number>;
  leases: AffectedLease[];
}

export interface Maintenance {
  id: string;
  name: string;
  reason: string | null;
  start_date: Instant;
  end_date: Instant;
  status: MaintenanceStatus;
  /** `servers`: how many it ran at the start; null: not known. */
  hosts: { id: string; name: string; servers: number | null }[];
  requirement: string | null;
  pending: "move" | "leave";
  active: "list" | "migrate";
  disable_service: boolean;
  /** Why its last step could not be made. */
  trouble: string | null;
  revision: number;
  created_at: Instant;
  updated_at: Instant | null;
  /** Not in lists. */
  leases?: AffectedLease[];
}

/** What may be sent to change a window. */
export interface MaintenanceChange {
  name?: string;
  start_date?: string;
  end_date?: string;
  impact_id?: string;
}

const ATTEMPTS = 4;

/**
 * Changes, ends or cancels a window as it was seen. The service itself moves windows on: only if its name or its dates
 * are others by now, the change is given up.
 */
export async function actOn(
  seen: Maintenance,
  etag: string | null,
  method: "PATCH" | "POST" | "DELETE",
  part = "",
  body?: MaintenanceChange,
): Promise<Answer<{ maintenance: Maintenance } | null>> {
  const path = `v1/maintenances/${seen.id}`;
  let tag = etag;
  for (let attempt = 1; ; attempt++) {
    try {
      return await request(method, `${path}${part}`, { ...(body ? { body } : {}), ifMatch: tag ?? undefined });
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 412 || attempt === ATTEMPTS) throw error;
    }
    const now = await request<{ maintenance: Maintenance }>("GET", path);
    const { name, start_date, end_date } = now.data.maintenance;
    if (name !== seen.name || start_date !== seen.start_date || end_date !== seen.end_date) {
      throw new Error("Somebody else has changed this window meanwhile. Close this and look at what it is now.");
    }
    tag = now.etag;
  }
}
