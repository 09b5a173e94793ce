// SPDX-License-Identifier: Apache-2.0
/** Statements and charges in words: months, what is charged for what, sums of several projects. Pure. */
import type { Charge, ChargeCategory, Statement, StatementTotal } from "../api/billing.ts";
import { formatted, moment } from "../time/format.ts";
import { energyInWords } from "./energy.ts";
import { digitsOf, money } from "./money.ts";
import { hoursOf } from "./usage.ts";

const CATEGORIES: Readonly<Record<ChargeCategory, string>> = {
  usage: "Used",
  fee: "Fees",
  rounding_up: "Rounded up",
  early_return: "Given back early",
  cancellation: "Cancelled",
  free: "Not charged",
  adjustment: "Rounding",
  correction: "Corrections",
  energy: "Energy",
};
const FREE: Readonly<Record<string, string>> = {
  late: "a late start",
  lost: "a missing resource",
};

/** Returns what a line is charged for: "Used", "Reserved and not used", "Not charged: a late start". */
export function categoryInWords({ category, status }: Pick<StatementTotal, "category" | "status">): string {
  if (category === "usage" && status === "unused") return "Reserved and not used";
  if (category === "free") return FREE[status] ? `Not charged: ${FREE[status]}` : "Not charged";
  return CATEGORIES[category];
}

/** Tells whether a total or a charge is one of money: energy without a price is told apart. */
export function isPriced({ category, sku }: Pick<StatementTotal, "category" | "sku">): boolean {
  return category !== "energy" || sku !== null;
}

/** Returns how much a total is of: "48" hours, "12.5 kWh"; "" of what is counted otherwise. */
export function sizeOf({ category, sku, resource_seconds, energy_wh }: StatementTotal): string {
  if (category === "energy") return energyInWords(energy_wh ?? null, null);
  return resource_seconds > 0 && sku !== null ? hoursOf(resource_seconds) : "";
}

/** Returns "November 2026" for "2026-11"; months of statements are those of UTC. */
export function monthInWords(month: string): string {
  return formatted(Date.parse(`${month}-01T00:00:00Z`), "UTC", "month");
}

/** Says how a statement is to be read: its month is one of UTC, and its lines are cut for the eye. */
export function statementNotes({ period }: Pick<Statement, "period">, zone: string, now: number): string[] {
  const [start, end] = [period.start, period.end].map((at) => moment(Date.parse(at), zone, now));
  const dates = formatted(Date.parse(period.start), zone, "clock") === "00:00" ? [] : [`${start} – ${end}`];
  return [
    ...dates.map((text) => `A month of UTC: ${text}.`),
    "Lines are shown to the hundredth, and charged to the last digit, which the files have.",
  ];
}

/** Returns the months that statements are of, the latest first. */
export function monthsOf(statements: readonly Pick<Statement, "month">[]): string[] {
  return [...new Set(statements.map(({ month }) => month))].sort().reverse();
}

/** How many months after the present one there are to look at: what is booked for them counts against their budgets. */
const AHEAD = 3;

/** Returns the months that there are to choose from, the latest first: also those that budgets are of. */
export function monthsToSee(months: readonly string[], now: number): string[] {
  const at = new Date(now);
  const ahead = Array.from({ length: AHEAD + 1 }, (_, more) =>
    new Date(Date.UTC(at.getUTCFullYear(), at.getUTCMonth() + more)).toISOString().slice(0, 7),
  );
  return [...new Set([...months, ...ahead])].sort().reverse();
}

/** Returns which of the months is looked at first: the present one (UTC), else the last before it, else the next one. */
export function monthFirst(months: readonly string[], now: number): string | undefined {
  const present = new Date(now).toISOString().slice(0, 7);
  return months.find((one) => one <= present) ?? months.at(-1);
}

/** Returns the sum of decimals, exactly. */
export function sumOf(amounts: readonly string[]): string {
  const decimals = Math.max(0, ...amounts.map((one) => one.split(".")[1]?.length ?? 0));
  const scaled = amounts.map((one) => {
    const [whole = "0", part = ""] = one.replace("-", "").split(".");
    const value = BigInt(whole + part.padEnd(decimals, "0"));
    return one.startsWith("-") ? -value : value;
  });
  const sum = scaled.reduce((all, one) => all + one, 0n);
  const digits = (sum < 0n ? -sum : sum).toString().padStart(decimals + 1, "0");
  const cut = digits.length - decimals;
  return `${sum < 0n ? "-" : ""}${digits.slice(0, cut)}${decimals > 0 ? `.${digits.slice(cut)}` : ""}`;
}

/** Returns how a charge came about: "48 h × 3.20 EUR × 1.25"; "" where there is nothing to multiply. */
export function reckoningOf(charge: Charge): string {
  const { sku, resource_seconds: seconds, unit_price: unit, factor, currency, category } = charge;
  const drawn = energyInWords(charge.energy_wh ?? null, null);
  if (category === "energy" && sku === null) return energyInWords(charge.energy_wh ?? null, charge.gco2 ?? null);
  if (category === "correction" || category === "adjustment" || category === "free") return "";
  const parts = [money(unit, currency), ...(Number(factor) === 1 ? [] : [factorInWords(factor)])];
  const size = category === "energy" ? drawn : `${hoursOf(seconds)} h`;
  return [...(sku === null ? [] : [size]), ...parts].join(" × ");
}

/** An exact factor may have many digits. */
function factorInWords(factor: string): string {
  return digitsOf(factor.length > 8 ? String(Math.round(Number(factor) * 10_000) / 10_000) : factor);
}
