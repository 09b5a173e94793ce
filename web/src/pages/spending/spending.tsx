// SPDX-License-Identifier: Apache-2.0
/** What leases have cost, month by month, and what is left: of the own project; for operators, of all of them. */
import { type Statement, usePriceLists } from "../../api/billing.ts";
import { useLiveList } from "../../api/live.ts";
import { info, may, projectName } from "../../api/session.ts";
import { Empty, PageHead, Skeleton, Trouble } from "../../parts/basics.tsx";
import { Choose } from "../../parts/filters.tsx";
import { hrefOf, place, setParams } from "../../router.ts";
import { present } from "../../time/now.ts";
import { money } from "../../words/money.ts";
import { monthFirst, monthInWords, monthsOf, monthsToSee, sumOf } from "../../words/statement.ts";
import { BudgetCard, BudgetsByProject } from "./budgets.tsx";
import { StatementState } from "./state.tsx";
import { StatementCard } from "./statement.tsx";

const EVERY_S = 120;

/** The page; `?month=` and, for operators, `?project=` choose a statement. */
export function SpendingPage() {
  const { params } = place.value;
  const operator = may("blazar:calendar:get_owners");
  const own = info.value?.project_id ?? "";
  const project = operator ? params.get("project") : own;
  const lists = usePriceLists();
  const query = project === null ? { all_projects: true } : { project_id: project };
  const watch = useLiveList<Statement>("v1/statements", "statements", query, Number.POSITIVE_INFINITY, EVERY_S);
  const { data, error } = watch.state.value;
  const unpriced = lists?.state.value.data?.price_lists.length === 0;
  const now = new Date(present.value).toISOString().slice(0, 7);
  const charged = monthsOf(data?.items ?? []);
  const usual = monthFirst(charged, present.value);
  // Nothing may be charged for a month of which something is booked.
  const months = !data || (charged.length === 0 && unpriced) ? [] : monthsToSee(charged, present.value);
  const asked = months.find((one) => one === params.get("month"));
  const month = asked ?? usual;
  const shown = data?.items.filter((one) => one.month === month) ?? [];
  return (
    <>
      <PageHead title="Spending" lead={leadOf(project)}>
        {may("blazar:price_lists:get") && (
          <a class="button" href={hrefOf("prices")}>
            Prices
          </a>
        )}
      </PageHead>
      {months.length > 0 && (
        <div class="row spending-tools">
          <Choose
            label="Month"
            options={months.map((value) => ({ value, text: monthInWords(value) }))}
            chosen={month ?? now}
            onChange={(value) => setParams({ month: value === now && (usual ?? now) === now ? null : value })}
          />
          {operator && project !== null && (
            <a href={hrefOf("spending", { month: params.get("month") })}>All projects</a>
          )}
        </div>
      )}
      {project !== null && (
        <BudgetCard key={`${project}${asked}`} month={asked} {...(project === own ? {} : { project })} />
      )}
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {!data && error === null && <Skeleton lines={6} />}
      {data && month === undefined && (
        <Empty title={unpriced ? "Nothing has a price" : "Nothing was charged yet"}>
          {unpriced
            ? "Leases are free here, until a price list is published."
            : "What leases cost is charged when they have ended, and at the end of each month (UTC)."}
        </Empty>
      )}
      {data && month !== undefined && shown.length === 0 && (
        <p class="muted spending-none">
          Nothing was charged for {monthInWords(month)} yet: that is at its end (UTC), and once a lease has ended.
        </p>
      )}
      {month !== undefined && project === null && shown.length > 0 && <ByProject statements={shown} month={month} />}
      {project === null && <BudgetsByProject key={asked} month={asked} />}
      {project !== null && shown[0] && (
        <StatementCard key={shown[0].id} statement={shown[0]} onCorrected={() => void watch.read()} />
      )}
    </>
  );
}

function leadOf(project: string | null): string {
  if (project === null) return "All projects: what their leases have cost.";
  return `The project ${projectName(project)}: what its leases have cost, and what is left.`;
}

/** The statements of a month, the dearest first; each leads to its charges. */
function ByProject({ statements, month }: { statements: readonly Statement[]; month: string }) {
  const sorted = [...statements].sort((a, b) => Number(b.amount) - Number(a.amount));
  const currency = sorted[0]?.currency ?? "";
  return (
    <section class="card stack" aria-labelledby="by-project">
      <h2 id="by-project">{monthInWords(month)} by project</h2>
      <div class="table-scroll">
        <table class="list stacked figures">
          <caption class="visually-hidden">Statements of {monthInWords(month)}</caption>
          <thead>
            <tr>
              <th scope="col">Project</th>
              <th scope="col">State</th>
              <th scope="col">To pay</th>
            </tr>
          </thead>
          <tbody>
            {sorted.map((one) => (
              <tr key={one.id}>
                <th scope="row">
                  <a href={hrefOf("spending", { project: one.project_id, month })}>{projectName(one.project_id)}</a>
                </th>
                <td class="number statement-state">
                  <StatementState statement={one} />
                </td>
                <td class="number" data-head="To pay">
                  {money(one.amount, one.currency)}
                </td>
              </tr>
            ))}
          </tbody>
          <tfoot>
            <tr>
              <th scope="row">Sum</th>
              <td />
              <td class="number" data-head="To pay">
                {money(sumOf(sorted.map(({ amount }) => amount)), currency)}
              </td>
            </tr>
          </tfoot>
        </table>
      </div>
    </section>
  );
}
