// SPDX-License-Identifier: Apache-2.0
/** How far leases that end soon could go on. Asked one after the other: a table of leases is no storm of searches. */
import { useEffect, useState } from "preact/hooks";
import { request } from "./client.ts";
import type { Availability, Lease } from "./types.ts";

/** What a lease is offered at its end. */
export interface Offer {
  /** The latest end that is possible, in milliseconds; not after the present end if there is none. */
  end: number;
  limitedBy: string | null;
}

type Of = Pick<Lease, "id" | "status" | "start_date" | "end_date">;

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
const FRESH_MS = 2 * MINUTE;
const known = new Map<string, { at: number; wanted: (() => boolean)[]; offer: Promise<Offer | null> }>();
let last: Promise<unknown> = Promise.resolve();

/** True of a lease in use that ends within a day. */
export function endsSoon(lease: Of, now: number): boolean {
  const left = Date.parse(lease.end_date) - now;
  // One that was ended just now has no other end.
  return lease.status === "ACTIVE" && left > MINUTE && left <= DAY;
}

/** Returns the longest end that is offered: as long again where nothing is in the way as far as can be searched. */
export function offerOf(lease: Of, extension: Availability["extension"]): Offer | null {
  if (extension === null) return null;
  const ends = Date.parse(lease.end_date);
  const again = ends + Math.max(DAY, ends - Date.parse(lease.start_date));
  const most = extension.open_until === null ? again : Date.parse(extension.open_until);
  const endless = extension.open_until === null || extension.limited_by === "range";
  const end = Math.floor((endless ? Math.min(most, again) : most) / MINUTE) * MINUTE;
  return { end, limitedBy: endless ? null : extension.limited_by };
}

/** Asks for the offer to a lease if it is still wanted at its turn; null if that is not known, as after a refusal. */
function asked(lease: Of, isWanted: () => boolean): Promise<Offer | null> {
  const key = `${lease.id} ${lease.end_date}`;
  const before = known.get(key);
  if (before && Date.now() - before.at < FRESH_MS) {
    before.wanted.push(isWanted);
    return before.offer;
  }
  const wanted = [isWanted];
  const body = { lease_id: lease.id, explain: false, alternatives: false };
  const offer = last.then(async () => {
    if (!wanted.some((one) => one())) {
      known.delete(key);
      return null;
    }
    try {
      const { data } = await request<{ availability: Availability }>("POST", "v1/availability", { body });
      return offerOf(lease, data.availability.extension);
    } catch {
      return null; // An offer is an extra: what is in the way is said when one asks oneself.
    }
  });
  last = offer;
  if (known.size > 500) known.clear();
  known.set(key, { at: Date.now(), wanted, offer });
  return offer;
}

/** The offer to a lease that ends soon: undefined while it is asked for; null if there is nothing to be said. */
export function useOffer(lease: Of, wanted: boolean): Offer | null | undefined {
  const [offer, setOffer] = useState<Offer | null | undefined>(undefined);
  useEffect(() => {
    if (!wanted) {
      setOffer(null);
      return;
    }
    let gone = false;
    const ask = () => {
      if (document.hidden) return;
      void asked(lease, () => !gone).then((found) => !gone && setOffer(found));
    };
    setOffer(undefined);
    ask();
    const timer = setInterval(ask, FRESH_MS);
    return () => {
      gone = true;
      clearInterval(timer);
    };
  }, [lease.id, lease.end_date, wanted]);
  return offer;
}
