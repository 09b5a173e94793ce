// SPDX-License-Identifier: Apache-2.0
/** Budgets in words: what a project may have in a period, what it had, what is booked, what is left. Pure. */
import type { Budget } from "../api/billing.ts";
import type { ResourceType } from "../api/types.ts";
import { formatted, moment } from "../time/format.ts";
import { hoursOfMeasure } from "./counted-hours.ts";

/** Returns what is counted: "host hours", or the currency. */
export function budgetName({ measure, unit }: Pick<Budget, "measure" | "unit">): string {
  if (measure === null) return "kept by another service";
  return unit === "money" ? measure : hoursOfMeasure(measure);
}

/** Returns an amount of a budget with its unit: "491.5 h", "120.50 EUR"; what is left is rounded down. */
export function budgetAmount(amount: string, { measure, unit }: Pick<Budget, "measure" | "unit">, up = false): string {
  const parts = unit === "money" ? 100 : 10;
  const many = Number(amount) * parts;
  // Not "-0".
  const cut = (up ? Math.ceil(many - 1e-6) : Math.floor(many + 1e-6)) / parts || 0;
  if (unit === "hours") return `${cut.toLocaleString("en")} h`;
  const digits = Number.isInteger(cut) ? 0 : 2;
  return `${cut.toLocaleString("en", { minimumFractionDigits: digits }).replace("-", "−")} ${measure}`;
}

/** Returns the period: "November 2026" of a whole month of UTC, else its dates in a zone. */
export function budgetPeriod({ period }: Pick<Budget, "period">, zone: string, now: number): string {
  if (period === null) return "";
  const [start, end] = [new Date(period.start), new Date(period.end)];
  const isMonth =
    period.start.endsWith("-01T00:00:00Z") &&
    Date.UTC(start.getUTCFullYear(), start.getUTCMonth() + 1, 1) === end.getTime();
  if (isMonth) return formatted(start.getTime(), "UTC", "month");
  return `${moment(start.getTime(), zone, now)} – ${moment(end.getTime(), zone, now)}`;
}

/** Returns the first instant before an end at which a period of these budgets is over; null: none is. */
export function nextPeriod(budgets: readonly Pick<Budget, "period">[], end: number): number | null {
  const ends = budgets.flatMap(({ period }) => (period === null ? [] : [Date.parse(period.end)]));
  const first = Math.min(...ends);
  return first < end ? first : null;
}

/** The parts of the bar of a budget, as shares of the limit; nothing is drawn beyond it. */
export interface BudgetShares {
  used: number;
  held: number;
}

/** Returns how much of a budget is used and held; null: its numbers are not known. */
export function sharesOfBudget({ limit, used, held }: Budget): BudgetShares | null {
  if (limit === null || used === null || held === null) return null;
  const whole = Number(limit);
  if (whole <= 0) return { used: 1, held: 0 };
  const had = Math.min(1, Number(used) / whole);
  return { used: had, held: Math.min(1 - had, Number(held) / whole) };
}

/** Returns "2 SU more than that" of a budget that was lowered, or passed by a correction; null: it is not passed. */
export function overInWords(budget: Budget): string | null {
  const { limit, used, held } = budget;
  if (limit === null || used === null || held === null) return null;
  const over = Number(used) + Number(held) - Number(limit);
  return over > 0.004 ? `${budgetAmount(String(over), budget, true)} more than that` : null;
}

/** Returns "491.5 h of 1,000 h left in November 2026"; null: the service does not know. */
export function leftInWords(budget: Budget, zone: string, now: number): string | null {
  const { limit, left } = budget;
  if (limit === null || left === null) return null;
  const name = budget.unit === "money" ? "" : ` (${budgetName(budget)})`;
  const period = budgetPeriod(budget, zone, now);
  return `${budgetAmount(left, budget)} of ${budgetAmount(limit, budget)}${name} left${period ? ` in ${period}` : ""}`;
}

/** Measures that types take from a budget of hours; of others it is the type's own name. */
const TAKEN: Readonly<Record<ResourceType, readonly string[]>> = {
  "physical:host": ["host"],
  "virtual:instance": ["instance", "vcpu", "card"],
  "flavor:instance": ["instance", "vcpu", "card"],
  "virtual:server": ["instance", "vcpu", "card"],
  "virtual:stack": ["instance", "vcpu", "card", "gigabyte", "floatingip"],
  "virtual:floatingip": ["floatingip"],
  "virtual:volume": ["volume", "gigabyte"],
};

/** Tells whether leases of these types take something from a budget. */
export function isBudgetOf(
  { measure, unit }: Pick<Budget, "measure" | "unit">,
  types: readonly ResourceType[],
): boolean {
  return unit === "money" || types.some((type) => (TAKEN[type] ?? [type]).includes(measure ?? ""));
}
