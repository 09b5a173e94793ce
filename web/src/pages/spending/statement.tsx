// SPDX-License-Identifier: Apache-2.0
/** A statement: the totals of a month, its charges, and files of it. */
import { useState } from "preact/hooks";
import type { Statement } from "../../api/billing.ts";
import { request } from "../../api/client.ts";
import { BusyButton, Trouble } from "../../parts/basics.tsx";
import { saveCsv } from "../../parts/save.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { energyInWords } from "../../words/energy.ts";
import { money, moneyToHundredths } from "../../words/money.ts";
import { categoryInWords, isPriced, monthInWords, sizeOf, statementNotes } from "../../words/statement.ts";
import { Charges } from "./charges.tsx";
import { StatementState } from "./state.tsx";

/** The card. */
export function StatementCard({ statement, onCorrected }: { statement: Statement; onCorrected: () => void }) {
  return (
    <section class="card stack roomy" aria-labelledby="statement">
      <div class="row spread">
        <div>
          <h2 id="statement">{monthInWords(statement.month)}</h2>
          <StatementState statement={statement} />
        </div>
        <Files statement={statement} />
      </div>
      <p class="spending-sum">{money(statement.amount, statement.currency)}</p>
      <Totals statement={statement} />
      {typeof statement.energy_wh === "number" && (
        <p>
          Hosts drew {energyInWords(statement.energy_wh, statement.gco2 ?? null)} for it
          {statement.totals.some((one) => one.category === "energy" && isPriced(one)) ? "." : ", which costs nothing."}
        </p>
      )}
      <p class="hint">{statementNotes(statement, zone.value, present.value).join(" ")}</p>
      <h3>Charges</h3>
      <Charges query={{ project_id: statement.project_id, month: statement.month }} onCorrected={onCorrected} />
    </section>
  );
}

function Totals({ statement }: { statement: Statement }) {
  const { totals, currency, amount } = statement;
  return (
    <div class="table-scroll">
      <table class="list stacked figures">
        <caption class="visually-hidden">Totals of {monthInWords(statement.month)}</caption>
        <thead>
          <tr>
            <th scope="col">Charged for</th>
            <th scope="col">Price</th>
            <th scope="col">Hours</th>
            <th scope="col">Amount</th>
          </tr>
        </thead>
        <tbody>
          {totals.filter(isPriced).map((one) => (
            <tr key={`${one.category}${one.status}${one.sku}`}>
              <th scope="row">{categoryInWords(one)}</th>
              <td class="number" data-head="Price">
                {one.sku ?? ""}
              </td>
              <td class="number" data-head="Hours">
                {sizeOf(one)}
              </td>
              <td class="number" data-head="Amount" title={money(one.amount, currency)}>
                {moneyToHundredths(one.amount, currency)}
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">To pay</th>
            <td />
            <td />
            <td class="number" data-head="Amount">
              {money(amount, currency)}
            </td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}

const FORMS = [
  { form: "csv", text: "Save as CSV" },
  { form: "focus", text: "Save as FOCUS" },
] as const;

/** Saves the statement as the service writes it, for spreadsheets and for programs that read bills. */
function Files({ statement }: { statement: Statement }) {
  const [busy, setBusy] = useState<string | null>(null);
  const [error, setError] = useState<unknown>(null);
  const save = async (form: (typeof FORMS)[number]["form"]) => {
    setBusy(form);
    setError(null);
    try {
      const query = { project_id: statement.project_id, format: form };
      const path = `v1/statements/${statement.month}`;
      const { data } = await request<string>("GET", path, { query, accept: "text/csv" });
      saveCsv(data, `statement-${statement.month}${form === "focus" ? "-focus" : ""}.csv`);
    } catch (problem) {
      setError(problem);
    }
    setBusy(null);
  };
  return (
    <div class="row">
      {FORMS.map(({ form, text }) => (
        <BusyButton key={form} type="button" busy={busy === form} doing="Reading…" onClick={() => void save(form)}>
          {text}
        </BusyButton>
      ))}
      {error !== null && <Trouble error={error} />}
    </div>
  );
}
