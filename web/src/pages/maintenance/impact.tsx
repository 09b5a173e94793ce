// SPDX-License-Identifier: Apache-2.0
/** What a maintenance window does to leases: a sentence, and a row for each. */
import { useState } from "preact/hooks";
import type { AffectedLease } from "../../api/maintenance.ts";
import { When } from "../../parts/basics.tsx";
import { Rows } from "../../parts/list.tsx";
import { Phase } from "../../parts/state.tsx";
import { hrefOf } from "../../router.ts";
import { range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { OUTCOMES, outcomeInWords, outcomePhase } from "../../words/maintenance.ts";

const SHOWN = 50;

export interface AffectedProps {
  leases: readonly AffectedLease[];
  nameOf: (id: string) => string;
  /** It has been decided: whether it is carried out, and whether owners know, is said too. */
  opened?: boolean;
}

/** A row for each lease, those that notice most first. */
export function Affected({ leases, nameOf, opened = false }: AffectedProps) {
  const [shown, setShown] = useState(SHOWN);
  const sorted = [...leases].sort(
    (a, b) =>
      OUTCOMES.indexOf(a.outcome) - OUTCOMES.indexOf(b.outcome) || Date.parse(a.start_date) - Date.parse(b.start_date),
  );
  if (sorted.length === 0) return null;
  return (
    <>
      <Rows heads={["Lease", "When", "What becomes of it"]}>
        {sorted.slice(0, shown).map((lease) => (
          <Row key={lease.lease_id} lease={lease} nameOf={nameOf} opened={opened} />
        ))}
      </Rows>
      {sorted.length > shown && (
        <button type="button" class="quiet more" onClick={() => setShown(shown + 200)}>
          Show more of {sorted.length}
        </button>
      )}
    </>
  );
}

function Row({ lease, nameOf, opened }: { lease: AffectedLease; nameOf: (id: string) => string; opened: boolean }) {
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf("lease", { id: lease.lease_id })}>{lease.name || "without a name"}</a>
        <br />
        <span class="muted">
          {lease.user_id} of {lease.project_id}
        </span>
      </th>
      <td>{range(Date.parse(lease.start_date), Date.parse(lease.end_date), zone.value, present.value)}</td>
      <td>
        <Phase {...outcomePhase(lease.outcome)} />
        <p class="hint">{outcomeInWords(lease, nameOf)}</p>
        {lease.openings.length > 0 && (
          <p class="hint">
            It would fit from{" "}
            {lease.openings.slice(0, 3).map((at, index) => (
              <span key={at}>
                {index > 0 && " or from "}
                <When at={at} />
              </span>
            ))}
            .
          </p>
        )}
        {opened && (lease.moves.length > 0 || lease.told_at) && (
          <p class="hint">
            {lease.moves.length > 0 &&
              (lease.done ? "Moved. " : lease.outcome === "migrated" ? "" : "To be moved in a moment. ")}
            {lease.told_at && (
              <>
                Its owner was told <When at={Math.floor(Date.parse(lease.told_at) / 60_000) * 60_000} as="spoken" />.
              </>
            )}
          </p>
        )}
      </td>
    </tr>
  );
}
