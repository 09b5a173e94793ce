// SPDX-License-Identifier: Apache-2.0
/** That servers of others are being moved off the hosts of a lease, or could not be. */
import type { Lease } from "../../api/types.ts";
import { StateMark } from "../../parts/state.tsx";
import { sentence } from "../../words/events.ts";
import { roomInWords } from "../../words/waiting.ts";

/** Nothing for leases for which no room is made. */
export function RoomPanel({ lease }: { lease: Lease }) {
  const said = roomInWords(lease);
  if (!said) return null;
  const making = lease.status === "IN_PROGRESS";
  return (
    <section class="card wait" aria-label="Room for it">
      <h2>
        <StateMark mark={making ? "changing" : "timed-out"} />{" "}
        {making ? "Room is being made" : "Room was not made in time"}
      </h2>
      <p role={making ? "status" : undefined}>{sentence(said)}</p>
      <p class="hint">
        {making
          ? "It starts as soon as its hosts are empty. Whatever was moved stays where it is, also if you delete the lease."
          : "What was moved stays where it is. Nothing is kept for this lease; ask again, or remove it."}
      </p>
    </section>
  );
}
