// SPDX-License-Identifier: Apache-2.0
/** The charges of a statement, in the order in which they were made; operators answer wrong ones. */
import { useState } from "preact/hooks";
import type { Charge } from "../../api/billing.ts";
import { useLiveList } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import { Skeleton, Trouble, When } from "../../parts/basics.tsx";
import { More, Rows, useMore } from "../../parts/list.tsx";
import { hrefOf } from "../../router.ts";
import { money, moneyToHundredths } from "../../words/money.ts";
import { categoryInWords, isPriced, reckoningOf } from "../../words/statement.ts";
import { CorrectDialog } from "./correct.tsx";

const STEP = 25;
const EVERY_S = 60;

interface ChargesProps {
  /** Which are listed, as a query of the service. */
  query: Record<string, string | boolean>;
  /** Said where there are none. */
  empty?: string;
  /** One was corrected. */
  onCorrected?: () => void;
}

/** The list. */
export function Charges({ query, empty, onCorrected }: ChargesProps) {
  const { wanted, more } = useMore(JSON.stringify(query), STEP);
  const [wrong, setWrong] = useState<Charge | null>(null);
  const watch = useLiveList<Charge>("v1/charges", "charges", query, wanted, EVERY_S);
  const { data, error } = watch.state.value;
  const corrects = may("blazar:charges:correct");
  return (
    <section class="stack" aria-label="Charges">
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {!data && error === null && <Skeleton lines={5} />}
      {data?.items.length === 0 && empty && <p class="muted">{empty}</p>}
      {data && data.items.length > 0 && (
        <>
          <Rows heads={["Lease", "For", "From – until", "Amount", ...(corrects ? [""] : [])]}>
            {data.items.map((one) => (
              <ChargeRow key={one.id} charge={one} onCorrect={corrects ? () => setWrong(one) : null} />
            ))}
          </Rows>
          <More shown={data.items.length} count={data.count} onMore={more} />
        </>
      )}
      {wrong && (
        <CorrectDialog
          charge={wrong}
          onClose={() => setWrong(null)}
          onDone={() => {
            setWrong(null);
            void watch.read();
            onCorrected?.();
          }}
        />
      )}
    </section>
  );
}

function ChargeRow({ charge, onCorrect }: { charge: Charge; onCorrect: (() => void) | null }) {
  const { category, sku, reason, corrects, lease_name: name } = charge;
  const how = reckoningOf(charge);
  return (
    <tr>
      <th scope="row">
        {name === null ? (
          <span class="muted">lease {charge.lease_id.slice(0, 8)}</span>
        ) : (
          <a href={hrefOf("lease", { id: charge.lease_id })}>{name}</a>
        )}
        <span class="muted charge-number">no. {charge.id}</span>
      </th>
      <td>
        {categoryInWords(charge)}
        {sku && <span class="muted"> {sku}</span>}
        {how && <p class="hint">{how}</p>}
        {corrects !== null && (
          <p class="hint">
            of charge {corrects}: {reason}
          </p>
        )}
      </td>
      <td data-head="From – until">
        <When at={charge.from} />
        {charge.to !== charge.from && (
          <>
            {" – "}
            <When at={charge.to} />
          </>
        )}
      </td>
      <td class="number" data-head="Amount" title={money(charge.amount, charge.currency)}>
        {moneyToHundredths(charge.amount, charge.currency)}
      </td>
      {onCorrect && (
        <td>
          {category !== "correction" && isPriced(charge) && (
            <button type="button" class="small" aria-label={`Correct charge ${charge.id}`} onClick={onCorrect}>
              Correct
            </button>
          )}
        </td>
      )}
    </tr>
  );
}
