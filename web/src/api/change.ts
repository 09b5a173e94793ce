// SPDX-License-Identifier: Apache-2.0
/** Changes of a lease that never overwrite what somebody else has changed meanwhile. */
import { type Answer, request } from "./client.ts";
import { Refused } from "./errors.ts";
import type { Lease, Reminder, Reservation } from "./types.ts";

/** What may be sent with PUT; a missing key is left alone. */
export interface LeaseChange {
  name?: string;
  start_date?: string;
  end_date?: string;
  before_end_date?: string | null;
  time_zone?: string;
  /** Null: it is not prolonged by itself any more. */
  extend_if_free?: { until: string } | null;
  keep_hosts?: boolean;
  /** In place of all that it has. */
  reminders?: readonly Pick<Reminder, "at" | "from" | "text">[];
  reservations?: (Partial<Reservation> & { id: string })[];
}

/** Somebody else has changed just what was to be changed: the user decides. */
export class Changed extends Error {
  override readonly name = "Changed";
  constructor(
    readonly lease: Lease,
    readonly etag: string | null,
    /** The keys that are no longer as they were seen. */
    readonly keys: readonly string[],
  ) {
    super("The lease was changed meanwhile. What you typed is kept; look at it and send it again.");
  }
}

type Send = <T>(
  method: string,
  path: string,
  options: { body?: unknown; ifMatch?: string | undefined },
) => Promise<Answer<T>>;

const ATTEMPTS = 4;

/**
 * Sends a change of a lease as it was seen. If the lease has moved on, it is read again: what touches none of the
 * keys of the change is no obstacle (the service itself moves leases on), anything else raises Changed.
 */
export async function changeLease(
  seen: Lease,
  etag: string | null,
  change: LeaseChange,
  send: Send = request,
): Promise<Answer<{ lease: Lease }>> {
  return await insisted(seen, etag, change, send, (path, ifMatch) =>
    send<{ lease: Lease }>("PUT", path, { body: change, ifMatch }),
  );
}

/** Deletes a lease as it was seen; raises Changed if its dates or its state are others by now. */
export async function deleteLease(seen: Lease, etag: string | null, send: Send = request): Promise<void> {
  const touched: LeaseChange = { start_date: seen.start_date, end_date: seen.end_date };
  await insisted(seen, etag, touched, send, (path, ifMatch) => send<null>("DELETE", path, { ifMatch }));
}

async function insisted<T>(
  seen: Lease,
  etag: string | null,
  change: LeaseChange,
  send: Send,
  act: (path: string, ifMatch: string | undefined) => Promise<T>,
): Promise<T> {
  const path = `v1/leases/${seen.id}`;
  let tag = etag;
  for (let attempt = 1; ; attempt++) {
    if (tag === null) tag = await fresh(seen, path, change, send);
    try {
      return await act(path, tag ?? undefined);
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 412 || attempt === ATTEMPTS) throw error;
      tag = null;
    }
  }
}

async function fresh(seen: Lease, path: string, change: LeaseChange, send: Send): Promise<string | null> {
  const answer = await send<{ lease: Lease }>("GET", path, {});
  const keys = movedKeys(seen, answer.data.lease, change);
  if (keys.length > 0) throw new Changed(answer.data.lease, answer.etag, keys);
  return answer.etag;
}

/** Returns the keys of a change whose present value is not the one that was seen. */
export function movedKeys(seen: Lease, now: Lease, change: LeaseChange): string[] {
  const keys = (["name", "start_date", "end_date", "before_end_date", "keep_hosts"] as const).filter(
    (key) => key in change && seen[key] !== now[key],
  ) as string[];
  if ("extend_if_free" in change && seen.extend_if_free?.until !== now.extend_if_free?.until)
    keys.push("extend_if_free");
  // That one was told meanwhile is no change of it.
  const asked = (lease: Lease) => JSON.stringify((lease.reminders ?? []).map(({ at, from, text }) => [at, from, text]));
  if (change.reminders && asked(seen) !== asked(now)) keys.push("reminders");
  for (const part of change.reservations ?? []) {
    const old = seen.reservations.find((one) => one.id === part.id);
    const present = now.reservations.find((one) => one.id === part.id);
    for (const key of Object.keys(part) as (keyof Reservation)[]) {
      if (JSON.stringify(old?.[key]) !== JSON.stringify(present?.[key])) keys.push(key);
    }
  }
  return keys;
}
