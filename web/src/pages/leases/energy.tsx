// SPDX-License-Identifier: Apache-2.0
/** What the hosts of a lease drew and emitted until now. Nothing where nothing is known of them. */
import { useLive } from "../../api/live.ts";
import type { LeaseEnergy } from "../../api/reports.ts";
import { may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { energyInWords, energyNotes, sciInWords } from "../../words/energy.ts";
import { isPast } from "../../words/lease.ts";

const EVERY_S = 300;

/** Before its start a lease has drawn nothing. */
const NOT_STARTED: readonly string[] = ["CREATING", "PENDING", "WAITING", "IN_PROGRESS", "STARTING"];

/** The card of a lease. */
export function EnergyPanel({ lease }: { lease: Lease }) {
  const asks = may("blazar:leases:get_energy") && !NOT_STARTED.includes(lease.status);
  const watch = useLive<{ energy: LeaseEnergy }>(asks ? `v1/leases/${lease.id}/energy` : null, {}, EVERY_S);
  const energy = watch?.state.value.data?.energy;
  if (!energy || energy.energy_wh === null) return null;
  return (
    <section class="card stack" aria-label="What it drew">
      <h2>Energy</h2>
      <p>
        <strong>{energyInWords(energy.energy_wh, energy.carbon?.gco2 ?? null)}</strong>
        {isPast(lease) ? "" : " so far"}
        {sciInWords(energy) && `, ${sciInWords(energy)}`}
      </p>
      {energyNotes(energy).map((note) => (
        <p key={note} class="hint">
          {note}
        </p>
      ))}
    </section>
  );
}
