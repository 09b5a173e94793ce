// SPDX-License-Identifier: Apache-2.0
/** What a series consists of, in rows. */
import type { ComponentChildren } from "preact";
import type { Occurrence } from "../../api/types.ts";
import { When } from "../../parts/basics.tsx";
import { Rows } from "../../parts/list.tsx";
import { LeaseState, Phase } from "../../parts/state.tsx";
import { hrefOf } from "../../router.ts";
import { range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { sentence } from "../../words/events.ts";
import { occurrencePhase } from "../../words/series.ts";

interface OccurrencesProps {
  occurrences: readonly Occurrence[];
  /** Draws what can be done with one; without it there is nothing. */
  actions?: ((one: Occurrence) => ComponentChildren) | undefined;
}

/** Occurrences in rows: those of a preview, too, which have no leases. */
export function Occurrences({ occurrences, actions }: OccurrencesProps) {
  const now = present.value;
  const here = zone.value;
  return (
    <Rows heads={["When", "State", ...(actions ? [""] : [])]}>
      {occurrences.map((one) => (
        <tr key={one.recurrence_id}>
          <th scope="row">
            {one.lease_id ? (
              <a href={hrefOf("lease", { id: one.lease_id })}>
                {range(Date.parse(one.start_date), Date.parse(one.end_date), here, now)}
              </a>
            ) : (
              range(Date.parse(one.start_date), Date.parse(one.end_date), here, now)
            )}
          </th>
          <td>
            <StateOf one={one} />
            {one.changed && <p class="hint">changed by itself</p>}
            {one.state === "unfit" && one.reason && <p class="hint">{sentence(one.reason)}</p>}
            {one.state === "unfit" && one.opening && (
              <p class="hint">
                It would fit from <When at={one.opening.start_date} /> until <When at={one.opening.end_date} />.
              </p>
            )}
          </td>
          {actions && <td class="actions">{actions(one)}</td>}
        </tr>
      ))}
    </Rows>
  );
}

/** The lease's own state where there is one. */
function StateOf({ one }: { one: Occurrence }) {
  if (one.lease_status === null || one.state !== "booked") return <Phase {...occurrencePhase(one)} />;
  return <LeaseState lease={{ status: one.lease_status, start_date: one.start_date, end_date: one.end_date }} />;
}
