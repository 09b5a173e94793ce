// SPDX-License-Identifier: Apache-2.0
/** Sends what the dialog that books shows. One key for all attempts, so that a lost answer never books twice. */
import { useRef, useState } from "preact/hooks";
import { newKey, postOnce } from "../../api/client.ts";
import { Refused } from "../../api/errors.ts";
import type { Lease, Price, Series } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { go } from "../../router.ts";
import { zone } from "../../time/zone.ts";
import { type Booking, type Plan, type Subject, leaseBody, seriesBody } from "../../words/booking.ts";

/** How long an answer to a request for now or not at all may take, with what the service takes to return things. */
const HANDING_OVER_MS = 65_000;

/** Returns what sends a plan, and how that goes. `marked`: what the lease was to have, as it is named in the calendar. */
export function useSending(marked: readonly string[]) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const key = useRef(newKey());
  const book = async (subject: Subject, form: Booking, plan: Plan, shown: Price | null) => {
    // A list that was published meanwhile may be dearer: what was shown holds for some minutes, and is the most.
    const body = { ...leaseBody(subject, form, plan, zone.value), ...(shown === null ? {} : priceBody(shown)) };
    // What was wanted at once is not asked for again later by itself.
    const once = plan.way === "immediate" ? { attempts: 1, patienceMs: HANDING_OVER_MS } : {};
    const { lease } = (await postOnce<{ lease: Lease }>("v1/leases", body, key.current, once)).data;
    note(lease.status === "WAITING" ? `In line: ${lease.name}` : `Booked: ${lease.name}`);
    go("lease", { id: lease.id, marked: marked.join(",") });
  };
  const bookSeries = async (subject: Subject, form: Booking, plan: Plan, some: boolean) => {
    const body = { ...seriesBody(subject, form, plan, zone.value), fit: some ? "as_many" : "all" };
    const { series } = (await postOnce<{ series: Series }>("v1/series", body, key.current)).data;
    note(`Booked: ${series.name}`);
    go("series", { id: series.id });
  };
  const send = async (subject: Subject, form: Booking, plan: Plan, some: boolean, shown: Price | null) => {
    if (busy) return;
    if (plan.name === "") {
      setError(missingName());
      return;
    }
    setBusy(true);
    setError(null);
    try {
      if (plan.way === "recurs") await bookSeries(subject, form, plan, some);
      else await book(subject, form, plan, shown);
    } catch (refused) {
      // A definite answer ends this attempt; after a lost one the key stays, whatever is changed.
      if (refused instanceof Refused && refused.status < 500 && !refused.has("request_in_progress"))
        key.current = newKey();
      setError(refused);
      setBusy(false);
    }
  };
  return { busy, error, setError, send };
}

function priceBody({ amount, quoted_at }: Price): Record<string, unknown> {
  return { max_price: amount, ...(quoted_at === undefined ? {} : { quoted_at }) };
}

function missingName(): Refused {
  const detail = "Give the lease a name.";
  return new Refused(400, [{ status: 400, code: "reservation.missing_field", title: "", detail, pointer: "/name" }]);
}
