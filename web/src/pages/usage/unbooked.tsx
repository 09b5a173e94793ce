// SPDX-License-Identifier: Apache-2.0
/** What hosts drew that no lease had, for operators: it is in no sum of leases. Nothing where nothing is known of it. */
import type { UnbookedEnergy, UsageReport } from "../../api/reports.ts";
import { sumUnbooked, unbookedInWords, unbookedNotes } from "../../words/energy.ts";
import type { Period } from "../../words/usage.ts";
import { USAGE, useParts } from "./reading.ts";

const QUERY = { unbooked: "true", group_by: "kind" };

/** The card. */
export function Unbooked({ period }: { period: Period }) {
  const watch = useParts<UsageReport, UnbookedEnergy | null>(USAGE, period, QUERY, (reports) =>
    // Of a part that is to come there is nothing.
    sumUnbooked(reports.filter((one) => one.computed_through > one.from).map(({ unbooked }) => unbooked)),
  );
  const found = watch?.state.value.data ?? null;
  if (found === null || (found.idle.source === null && found.asleep.source === null)) return null;
  const lines = [unbookedInWords(found.idle, "Idle"), unbookedInWords(found.asleep, "Asleep")].filter(Boolean);
  return (
    <section class="card usage" aria-labelledby="unbooked">
      <h2 id="unbooked">Energy of nobody</h2>
      <p>Hosts that no lease had:</p>
      <ul>
        {lines.map((line) => (
          <li key={line}>{line}</li>
        ))}
      </ul>
      {unbookedNotes(found).map((note) => (
        <p key={note} class="hint">
          {note}
        </p>
      ))}
    </section>
  );
}
