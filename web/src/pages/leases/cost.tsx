// SPDX-License-Identifier: Apache-2.0
/** What a lease costs, what of that was charged, and what a change of it would cost. Nothing of it without prices. */
import { useState } from "preact/hooks";
import { useAsked } from "../../api/ask.ts";
import { usePriceLists } from "../../api/billing.ts";
import type { LeaseChange } from "../../api/change.ts";
import { Refused } from "../../api/errors.ts";
import { info, may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { Instead } from "../../parts/basics.tsx";
import { useSettled } from "../../parts/settled.tsx";
import { spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { capital } from "../../words/events.ts";
import { type Fit, latestEndOf, offerInWords, offersOf } from "../../words/fits.ts";
import { isNothing, money } from "../../words/money.ts";
import { cancellationSteps, cancellingOf, costOf, differenceInWords, estimateOf } from "../../words/price.ts";
import { withinSentence } from "../../words/refusal.ts";
import { Charges } from "../spending/charges.tsx";

/** The card of a lease. */
export function CostPanel({ lease }: { lease: Lease }) {
  const [open, setOpen] = useState(false);
  const lists = usePriceLists();
  const { price } = lease;
  if (!price && lease.status === "WAITING" && lists?.state.value.data?.price_lists.length) return <NotPriced />;
  if (!price) return null;
  const steps = lease.status === "PENDING" ? cancellationSteps(price, zone.value, present.value) : [];
  const own = info.value?.project_id === lease.project_id;
  return (
    <section class="card stack cost" aria-label="What it costs">
      <h2>Cost</h2>
      <p>
        <strong>{costOf(price)}</strong> in all
        {!isNothing(price.charged ?? "0") && `, ${money(price.charged!, price.currency)} of it charged so far`}
        {price.estimated !== undefined && `, ${estimateOf(price)}`}
      </p>
      {steps.length > 0 && (
        <div>
          <p class="muted">To cancel it costs</p>
          <ul class="reasons">
            {steps.map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </div>
      )}
      {may("blazar:charges:get") && (
        <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
          <summary>What was charged</summary>
          {open && (
            <Charges
              query={{ lease_id: lease.id, ...(own ? {} : { all_projects: true }) }}
              empty="Nothing yet: it is charged at the end of each month, and once all of it is given back."
            />
          )}
        </details>
      )}
    </section>
  );
}

/** What waits costs what its time does: that is known with its start. */
function NotPriced() {
  return (
    <section class="card stack cost" aria-label="What it costs">
      <h2>Cost</h2>
      <p>Nothing while it waits. What it costs is said once it has a start.</p>
    </section>
  );
}

/** What the service says of what a change costs. */
export interface ChangeCost {
  /** What it costs; null: nothing that costs anything is changed, or it is not known. */
  words: string | null;
  /** Why it would be refused: what it costs is not looked at where the service says whether it fits. */
  denied: string | null;
  /** The refusal itself. */
  error: unknown;
}

/** Asks what a change costs before it is sent. */
export function useCostOfChange(lease: Lease, change: LeaseChange | null): ChangeCost {
  const settled = useSettled();
  const costs = change !== null && Boolean(lease.price) && isCostly(change);
  const { name: _, reminders: __, before_end_date: ___, ...asked } = change ?? {};
  const path = `v1/leases/${lease.id}?dry_run=true`;
  const found = useAsked<{ lease: Lease }>(path, costs && settled ? asked : null, 60, "PUT");
  if (found.loading) return { words: null, denied: null, error: null };
  const denied =
    found.error instanceof Refused && found.error.has("limit_exceeded")
      ? found.error.faults.map(({ detail }) => withinSentence(detail, zone.value, present.value)).join("; ")
      : null;
  return { words: differenceInWords(found.data?.lease.price), denied, error: found.error };
}

interface GrantedProps {
  error: unknown;
  lease: Lease;
  /** What is asked for, in milliseconds. */
  window: { start: number; end: number };
  onTake: (offer: Fit) => void;
}

/** After a change was refused: what would be granted in its place, each a click. */
export function Granted({ error, lease, window, onTake }: GrantedProps) {
  const offers = offersOf(error, window);
  if (offers.length === 0) return null;
  return (
    <Instead>
      {offers.map((one) => (
        <button key={one.change} type="button" onClick={() => onTake(one)}>
          {capital(offerInWords(one, lease, zone.value, present.value))}
          {one.price !== undefined && ` (${money(one.price, one.currency ?? "")} in all)`}
        </button>
      ))}
    </Instead>
  );
}

interface GrantedEndProps {
  error: unknown;
  lease: Lease;
  /** Takes an end, in milliseconds. */
  onTake: (end: number) => void;
}

/** After a later end was refused for a limit: the latest one that would be granted. */
export function GrantedEnd({ error, lease, onTake }: GrantedEndProps) {
  const window = { start: Date.parse(lease.start_date), end: Date.parse(lease.end_date) };
  const end = error instanceof Refused ? latestEndOf(error.data("limit_exceeded"), window) : null;
  if (end === null) return null;
  return (
    <Instead>
      <button type="button" onClick={() => onTake(end)}>
        Until {spoken(end, zone.value, present.value)}
      </button>
    </Instead>
  );
}

/** Says what a change costs; nothing where that is not known. */
export function CostLine({ words }: Pick<ChangeCost, "words">) {
  return words === null ? null : (
    <p class="cost-line" role="status">
      {words}
    </p>
  );
}

/** Says what a change costs that always fits. */
export function CostOfChange({ lease, change }: { lease: Lease; change: LeaseChange | null }) {
  return <CostLine words={useCostOfChange(lease, change).words} />;
}

/** Names and endings cost nothing. */
function isCostly({ start_date, end_date, reservations = [] }: LeaseChange): boolean {
  const sized = reservations.some((one) => Object.keys(one).some((name) => name !== "id" && name !== "before_end"));
  return start_date !== undefined || end_date !== undefined || sized;
}

/** Says what it costs to delete a lease that has not begun. */
export function CostOfDeletion({ lease }: { lease: Lease }) {
  const cancelling = lease.price ? cancellingOf(lease.price, present.value) : null;
  if (!cancelling) return null;
  return (
    <p class="cost-line">
      {cancelling.amount === "" ? "To cancel it costs nothing now." : `To cancel it costs ${cancelling.amount} now.`}
    </p>
  );
}
