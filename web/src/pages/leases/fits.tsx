// SPDX-License-Identifier: Apache-2.0
/** Whether a change of a lease fits, in a sentence, before it is sent. */
import { useAsked } from "../../api/ask.ts";
import type { LeaseChange } from "../../api/change.ts";
import { plain } from "../../api/errors.ts";
import type { Availability, Lease } from "../../api/types.ts";
import { useSettled } from "../../parts/settled.tsx";
import { spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import type { Fit } from "../../words/fits.ts";
import { withinSentence } from "../../words/refusal.ts";
import { CostLine, Granted, GrantedEnd, useCostOfChange } from "./cost.tsx";

export interface FitsProps {
  lease: Lease;
  /** What would be sent; of nothing but names and endings nothing is asked. */
  change: LeaseChange | null;
  /** Said if it fits. */
  yes: string;
  /** Takes the latest end that would be granted, in milliseconds, where only the end moves. */
  onTake?: (end: number) => void;
  /** Takes what would be granted in place of the change. */
  onOffer?: (offer: Fit) => void;
}

/** Asks the service, and says what it answers, also what the change costs. */
export function Fits({ lease, change, yes, onTake, onOffer }: FitsProps) {
  // While a field shows what is no value, nothing of it is known.
  const settled = useSettled();
  const question = change && settled ? questionOf(lease, change) : null;
  const asked = useAsked<{ availability: Availability }>("v1/availability", question);
  const found = asked.loading ? undefined : asked.data?.availability;
  const { words, denied, error } = useCostOfChange(lease, change);
  const lacking =
    asked.loading || asked.error ? null : found && refusalOf(found, question !== null && !question.start_date);
  const refusal = lacking ?? (denied === null ? null : `Would be refused: ${denied}.`);
  const text = asked.error ? plain(asked.error) : found ? (refusal ?? yes) : "";
  return (
    <>
      <p class={asked.error || refusal ? "preview bad" : "preview"} role="status">
        {text}
      </p>
      {onTake && <GrantedEnd error={error} lease={lease} onTake={onTake} />}
      {onOffer && <Granted error={error} lease={lease} window={windowOf(lease, change)} onTake={onOffer} />}
      <CostLine words={words} />
    </>
  );
}

/** Returns the time for which a change asks, in milliseconds. */
export function windowOf(lease: Lease, change: LeaseChange | null): { start: number; end: number } {
  return {
    start: Date.parse(change?.start_date ?? lease.start_date),
    end: Date.parse(change?.end_date ?? lease.end_date),
  };
}

function questionOf(lease: Lease, change: LeaseChange): Record<string, unknown> | null {
  const { start_date, end_date } = change;
  const sized = (change.reservations ?? []).filter((one) =>
    Object.keys(one).some((name) => name !== "id" && name !== "before_end"),
  );
  if (start_date === undefined && end_date === undefined && sized.length === 0) return null;
  const onlyEnd = start_date === undefined && end_date !== undefined;
  return {
    lease_id: lease.id,
    ...(onlyEnd ? {} : { start_date: start_date ?? lease.start_date }),
    end_date: end_date ?? lease.end_date,
    ...(sized.length > 0 ? { reservations: sized.map(({ before_end: _, ...one }) => one) } : {}),
    alternatives: false,
  };
}

/**
 * Returns why it does not fit; null if it does. `startStays`: only the end moves, so that what is free at a later start
 * does not help.
 */
export function refusalOf(
  { openings, reasons }: Pick<Availability, "openings" | "reasons">,
  startStays = false,
): string | null {
  const refusals = openings[0]?.refusals ?? [];
  if (refusals.length > 0)
    return `Would be refused: ${refusals.map((one) => withinSentence(one.message, zone.value, present.value)).join("; ")}.`;
  if (openings.length > 0) return null;
  const missing = reasons.map((one) => missingOf(one, startStays));
  return `This does not fit: ${missing.join("; ") || TAKEN}.`;
}

const TAKEN = "what it has is booked for a part of that time";

function missingOf(reason: Availability["reasons"][number], startStays: boolean): string {
  if (reason.steps.some(({ code }) => code === "in_use")) return TAKEN;
  const until = startStays ? undefined : [...reason.steps].reverse().find((step) => step.until)?.until;
  const back = until ? `, again from ${spoken(Date.parse(until), zone.value, present.value)}` : "";
  const free =
    reason.free === 0
      ? "nothing of it is"
      : `only ${reason.free} of ${reason.asked} ${reason.free === 1 ? "is" : "are"}`;
  return `${free} free for the whole time${back}`;
}
