// SPDX-License-Identifier: Apache-2.0
/** What a lease costs, in words. Pure. */
import type { Price, PricePart } from "../api/types.ts";
import { moment } from "../time/format.ts";
import { digitsOf, isNothing, money } from "./money.ts";

/** What it costs to cancel a lease, and until when. */
export interface Cancelling {
  /** "" : it is free. */
  amount: string;
  until: string;
}

/** Returns what it costs to cancel a lease now; null: it cannot be cancelled any more, or nothing is known of it. */
export function cancellingOf(price: Price, now: number): Cancelling | null {
  const next = price.if_cancelled?.find(({ until }) => Date.parse(until) > now);
  if (!next) return null;
  return { amount: isNothing(next.amount) ? "" : money(next.amount, price.currency), until: next.until };
}

/** Returns "673.80 EUR", and "about 673.80 EUR" if energy has a price: nobody knows what hosts will draw. */
export function costOf(price: Price): string {
  return `${price.estimated === undefined ? "" : "about "}${money(price.amount, price.currency)}`;
}

/** Returns "about 12.40 EUR of it for energy, which is charged as it is drawn". */
export function estimateOf(price: Price): string {
  return `about ${money(price.estimated!, price.currency)} of it for energy, which is charged as it is drawn`;
}

/**
 * Returns "Costs 673.80 EUR; free to cancel until Thu 25 Apr 10:00", or what it costs to cancel if that is not
 * free.
 */
export function priceInWords(price: Price, zone: string, now: number): string {
  const costs = `Costs ${costOf(price)}`;
  const next = cancellingOf(price, now);
  if (!next) return costs;
  const cancel = next.amount === "" ? "free to cancel" : `${next.amount} to cancel`;
  return `${costs}; ${cancel} until ${moment(Date.parse(next.until), zone, now)}`;
}

/** Returns what it costs to cancel a lease, step by step, from now on. */
export function cancellationSteps(price: Price, zone: string, now: number): string[] {
  return (price.if_cancelled ?? [])
    .filter(({ until }) => Date.parse(until) > now)
    .map(({ until, amount }) => {
      const costs = isNothing(amount) ? "free" : money(amount, price.currency);
      return `until ${moment(Date.parse(until), zone, now)}: ${costs}`;
    });
}

/**
 * Returns how a part came about: "4 × host-a100, 17 h × 3.20 EUR × 1.25 = 272.00 EUR", and of energy "power, about
 * 14.4 kWh × 0.30 EUR = 4.32 EUR".
 */
export function partInWords(part: PricePart, currency: string): string {
  const factor = Number(part.factor) === 1 ? "" : ` × ${digitsOf(part.factor)}`;
  if (part.kwh !== undefined) {
    const price = `${money(part.per_kwh ?? "", currency)}${factor}`;
    return `${part.sku}, about ${digitsOf(part.kwh)} kWh × ${price} = ${money(part.amount, currency)}`;
  }
  const hours = Math.round(Number(part.hours) * 100) / 100;
  const each = `${hours.toLocaleString("en")} h × ${money(part.per_hour ?? "", currency)}${factor}`;
  return `${part.count} × ${part.sku}, ${each} = ${money(part.amount, currency)}`;
}

/** Returns what a change costs: "Then it costs 840.00 EUR in all: 120.00 EUR more."; null: nothing has a price. */
export function differenceInWords(price: Price | null | undefined): string | null {
  if (!price?.difference) return null;
  const { currency, difference } = price;
  const costs = `Then it costs ${costOf(price)} in all`;
  if (isNothing(difference)) return `${costs}, as before.`;
  const less = difference.startsWith("-");
  return `${costs}: ${money(less ? difference.slice(1) : difference, currency)} ${less ? "less" : "more"}.`;
}

/** True if a price is that of this time: it was found for an opening, of which another part may be chosen. */
export function isPriceOf(opening: { start_date: string; end_date: string }, start: number, end: number): boolean {
  const [begin, over] = [Date.parse(opening.start_date), Date.parse(opening.end_date)];
  return Math.abs(begin - start) < 60_000 && Math.abs(over - end) < 60_000;
}
