// SPDX-License-Identifier: Apache-2.0
/** What the project may have in a period: what it had, what is booked, what is left. */
import { type Budget, useBudgets } from "../../api/billing.ts";
import { projectName } from "../../api/session.ts";
import { Trouble } from "../../parts/basics.tsx";
import { Rows } from "../../parts/list.tsx";
import { hrefOf } from "../../router.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { budgetAmount, budgetName, budgetPeriod, overInWords, sharesOfBudget } from "../../words/budget.ts";
import { capital } from "../../words/events.ts";

interface BudgetCardProps {
  /** Only those of it. */
  unit?: Budget["unit"];
  /** Of another one, for operators. */
  project?: string;
  /** "2026-12"; undefined: the present periods. */
  month?: string | undefined;
}

/** The card; nothing where nothing is limited. */
export function BudgetCard({ unit, project, month }: BudgetCardProps) {
  const watch = useBudgets({ ...atMonth(month), ...(project === undefined ? {} : { project_id: project }) });
  const { data = null, error = null } = watch?.state.value ?? {};
  const budgets = (data?.budgets ?? []).filter((one) => unit === undefined || one.unit === unit);
  // Where budgets cannot be read the page has the rest all the same.
  if (error !== null && !data) return <Trouble error={error} retry={() => void watch?.read()} />;
  if (budgets.length === 0) return null;
  return (
    <section class="card budgets" aria-labelledby="budget">
      <h2 id="budget">Budget</h2>
      <ul>
        {budgets.map((one) => (
          <BudgetItem key={`${one.measure}${one.period?.start}`} budget={one} />
        ))}
      </ul>
    </section>
  );
}

/** Asks for the periods of a month. */
function atMonth(month: string | undefined): { at?: string } {
  return month === undefined ? {} : { at: `${month}-01T00:00:00Z` };
}

/** For operators: what is left to each project, those with the least of it first. */
export function BudgetsByProject({ month }: Pick<BudgetCardProps, "month">) {
  const watch = useBudgets({ ...atMonth(month), all_projects: true, limit: MOST });
  const { data = null, error = null } = watch?.state.value ?? {};
  if (error !== null && !data) return <Trouble error={error} retry={() => void watch?.read()} />;
  // Who has taken nothing has all of it.
  const known = (data?.budgets ?? []).filter((one) => one.limit !== null && Number(one.used) + Number(one.held) > 0);
  if (known.length === 0) return null;
  const sorted = [...known].sort((a, b) => shareLeft(a) - shareLeft(b));
  return (
    <section class="card stack" aria-labelledby="budgets">
      <h2 id="budgets">Budgets by project</h2>
      <Rows heads={["Project", "Of", "Left", "Used", "Booked"]}>
        {sorted.map((one) => (
          <tr key={`${one.project_id} ${one.measure} ${one.unit}`}>
            <th scope="row">
              <a href={hrefOf("spending", { project: one.project_id })}>{projectName(one.project_id)}</a>
            </th>
            <td>
              {budgetAmount(one.limit!, one)} <span class="muted">{one.unit === "hours" && budgetName(one)}</span>
              <p class="hint">{budgetPeriod(one, zone.value, present.value)}</p>
            </td>
            <td data-head="Left">
              {budgetAmount(one.left ?? "0", one)}
              <BudgetBar budget={one} />
            </td>
            <td data-head="Used">{budgetAmount(one.used ?? "0", one, true)}</td>
            <td data-head="Booked">{budgetAmount(one.held ?? "0", one, true)}</td>
          </tr>
        ))}
      </Rows>
    </section>
  );
}

/** The service cuts longer pages. */
const MOST = 1000;

function shareLeft({ limit, left }: Budget): number {
  return Number(left) / Math.max(1e-9, Number(limit));
}

function BudgetItem({ budget }: { budget: Budget }) {
  const { limit, used, held, left } = budget;
  const period = budgetPeriod(budget, zone.value, present.value);
  const name = budget.unit === "money" ? "Money" : capital(budgetName(budget));
  const over = overInWords(budget);
  if (limit === null || used === null || held === null || left === null) {
    return (
      <li>
        <h3>{name}</h3>
        <p class="muted">Another service keeps it: how much is left is known only when one books.</p>
      </li>
    );
  }
  return (
    <li>
      <h3>
        {name} <span class="muted">{period}</span>
      </h3>
      <p>
        <strong>{budgetAmount(left, budget)} left</strong> of {budgetAmount(limit, budget)}
      </p>
      <BudgetBar budget={budget} />
      <p class="muted budget-key">
        <span class="budget-used">{budgetAmount(used, budget, true)} used</span>
        <span class="budget-held">{budgetAmount(held, budget, true)} booked</span>
      </p>
      {over !== null && <p class="refusal">{over}</p>}
    </li>
  );
}

function BudgetBar({ budget }: { budget: Budget }) {
  const shares = sharesOfBudget(budget);
  if (!shares) return null;
  return (
    <div class="budget-bar" aria-hidden="true">
      <span class="budget-bar-used" style={{ width: `${shares.used * 100}%` }} />
      <span class="budget-bar-held" style={{ width: `${shares.held * 100}%` }} />
    </div>
  );
}
