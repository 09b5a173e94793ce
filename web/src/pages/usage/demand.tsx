// SPDX-License-Identifier: Apache-2.0
/** What was asked for and not had in a period: apart from what was, as nobody knows what of it would have been used. */
import type { DemandReport } from "../../api/reports.ts";
import type { ResourceType } from "../../api/types.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { plural } from "../../time/format.ts";
import { demandInWords, mostRefused, reasonsOf } from "../../words/demand.ts";
import { sentence } from "../../words/events.ts";
import type { Period } from "../../words/usage.ts";
import { useParts } from "./reading.ts";

const QUERY = { group_by: "resource_type,code" };

/** The card. */
export function UnmetDemand({ period, type: wanted }: { period: Period; type?: ResourceType | undefined }) {
  const watch = useParts<DemandReport, DemandReport[]>("v1/reports/demand", period, QUERY, (parts) => parts);
  const { data = null, error = null, loading = false } = watch?.state.value ?? {};
  const all = data?.flatMap((report) => report.rows) ?? [];
  // Where nothing was reserved, what was refused most often is told of.
  const type = wanted ?? mostRefused(all);
  const rows = all.filter((row) => row.resource_type === type);
  const sentences = demandInWords(rows, type);
  const reasons = reasonsOf(rows);
  return (
    <section class="card usage" aria-labelledby="unmet">
      <h2 id="unmet">Asked for and not had</h2>
      {error !== null && <Trouble error={error} retry={() => void watch?.read()} />}
      {loading && <Skeleton lines={2} />}
      {data && sentences.length === 0 && <p>Nothing was refused, and nobody waited in line.</p>}
      {sentences.map((text) => (
        <p key={text}>{text}</p>
      ))}
      {reasons.length > 0 && (
        <ul class="reasons">
          {reasons.map(({ reason, refused }) => (
            <li key={reason}>
              {reason}: {plural(refused, "request")}
            </li>
          ))}
        </ul>
      )}
      {data?.[0]?.counted && <p class="hint">{sentence(data[0].counted)}</p>}
    </section>
  );
}
