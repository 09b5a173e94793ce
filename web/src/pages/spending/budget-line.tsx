// SPDX-License-Identifier: Apache-2.0
/** What is left of the project's budgets before one books, a line for each period that is touched. */
import { useBudgets } from "../../api/billing.ts";
import type { ResourceType } from "../../api/types.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { isBudgetOf, leftInWords, nextPeriod } from "../../words/budget.ts";

const MINUTE = 60_000;
/** How many periods are told: what lasts longer is told of when it is refused. */
const MOST = 4;

interface BudgetLineProps {
  /** The start of what is asked for, in milliseconds. */
  at: number;
  /** Its end; null: only the period of the start counts. */
  end: number | null;
  types: readonly ResourceType[];
}

/** The lines; nothing where nothing that is asked for is limited. */
export function BudgetLines(props: BudgetLineProps) {
  return (
    <div class="budget-lines hint">
      <BudgetLine {...props} before={0} />
    </div>
  );
}

/** A line, and those of the periods after it. `before`: how many lines stand before it. */
function BudgetLine({ at, end, types, before }: BudgetLineProps & { before: number }) {
  // Of a start that has come the present period is asked, with the same words at each moment.
  const later = at > present.value + MINUTE ? { at: toWire(Math.floor(at / MINUTE) * MINUTE) } : {};
  const { data = null } = useBudgets(later)?.state.value ?? {};
  const limiting = (data?.budgets ?? []).filter((one) => isBudgetOf(one, types));
  // Of a longer period than that of the line before it is told already.
  const begun = limiting.filter(({ period }) => before === 0 || period === null || Date.parse(period.start) >= at);
  const told = begun.flatMap((one) => leftInWords(one, zone.value, present.value) ?? []);
  const next = end === null || before + 1 >= MOST ? null : nextPeriod(limiting, end);
  return (
    <>
      {told.length > 0 && <p class="budget-line">Budget: {told.join("; ")}.</p>}
      {next !== null && next > at && <BudgetLine key={next} at={next} end={end} types={types} before={before + 1} />}
    </>
  );
}
