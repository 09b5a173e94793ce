// SPDX-License-Identifier: Apache-2.0
/** Price lists, budgets, statements and charges as they are on the wire. Amounts are decimals of the currency. */
import type { Options } from "./client.ts";
import { type Watch, useLive } from "./live.ts";
import { may } from "./session.ts";
import type { Instant, Json, Requirement } from "./types.ts";

/** What one of a measure costs by the hour, or energy by the kilowatt-hour, if the resource meets the requirement. */
export interface PriceEntry {
  sku: string;
  measure: string;
  per_hour?: string;
  per_kwh?: string;
  requirement?: Requirement;
}

/** A price list as it is published. */
export interface PriceDocument {
  [key: string]: Json | undefined | PriceEntry[];
  currency: string;
  decimals: number;
  valid_from: Instant;
  time_zone: string;
  prices: PriceEntry[];
  fee?: string;
}

export interface PriceListHead {
  version: number;
  published_at: Instant;
  valid_from: Instant;
  /** That of all lists. */
  currency: string;
  /** For operators. */
  published_by: string | null;
}

export interface PriceList extends PriceListHead {
  content: PriceDocument;
}

/** What a list changes; texts are JSON. Null: there was none. */
export interface PriceChange {
  field: string;
  before: string | null;
  after: string | null;
}

/** The answer to a list that is published, or would be. */
export interface Publication {
  price_list: PriceList;
  changes: PriceChange[];
  /** Skus without a price, while prices until the list begins have them. */
  left_out: string[];
  /** Versions that were published ahead, and never hold for what is booked after this one. */
  replaced: number[];
  /** Skus whose price no resource has now. */
  unmatched: string[];
  /** Null: nothing was charged then, or the list is published. */
  last_month: PriceComparison | null;
}

/** What leases were charged for a month, as "2030-04", and what they would have been by a new list. */
export interface PriceComparison {
  month: string;
  currency: string;
  amount: string;
  new_amount: string;
  leases: number;
  /** Whether these are all leases. */
  is_whole: boolean;
}

export interface Budget {
  project_id: string;
  /** What is counted, as "host" or a currency; null: an external service counts. */
  measure: string | null;
  unit: "hours" | "money";
  period: { start: Instant; end: Instant } | null;
  limit: string | null;
  used: string | null;
  held: string | null;
  left: string | null;
  source: "configuration" | "unified_limits" | "external_service";
}

export type ChargeCategory =
  | "usage"
  | "fee"
  | "rounding_up"
  | "early_return"
  | "cancellation"
  | "free"
  | "adjustment"
  | "correction"
  | "energy";
export type ChargeStatus = "used" | "unused" | "late" | "lost";

export interface StatementTotal {
  category: ChargeCategory;
  status: ChargeStatus;
  sku: string | null;
  count: number;
  resource_seconds: number;
  amount: string;
  energy_wh?: number | null;
  gco2?: number | null;
}

export interface Statement {
  id: string;
  project_id: string;
  month: string;
  period: { start: Instant; end: Instant };
  /** Open: more may be charged in this month. */
  state: "open" | "final";
  currency: string;
  amount: string;
  rounding: string;
  /** Watt-hours and grams of CO2e; null: none are recorded. */
  energy_wh?: number | null;
  gco2?: number | null;
  totals: StatementTotal[];
}

/** A line of the ledger. It never changes. */
export interface Charge {
  id: number;
  lease_id: string;
  lease_name: string | null;
  project_id: string;
  user_id: string;
  month: string;
  category: ChargeCategory;
  status: ChargeStatus;
  sku: string | null;
  from: Instant;
  to: Instant;
  resource_seconds: number;
  unit_price: string;
  factor: string;
  amount: string;
  currency: string;
  price_list: number | null;
  corrects: number | null;
  reason: string | null;
  at: Instant;
  energy_wh?: number | null;
  gco2?: number | null;
}

export const PRICE_LISTS = "v1/price-lists";
const EVERY_S = 300;

/** Watches the heads of the price lists, oldest first; null: the caller may not see them. */
export function usePriceLists(): Watch<{ price_lists: PriceListHead[] }> | null {
  return useLive(may("blazar:price_lists:get") ? PRICE_LISTS : null, {}, EVERY_S);
}

/** Returns the currency of all prices; "" while nothing is known to have one. */
export function useCurrency(): string {
  return usePriceLists()?.state.value.data?.price_lists.at(-1)?.currency ?? "";
}

/** Watches budgets: by default those of the own project; null: the caller may not see them. */
export function useBudgets(query: Options["query"] = {}): Watch<{ budgets: Budget[] }> | null {
  return useLive(may("blazar:budgets:get") ? "v1/budgets" : null, query, EVERY_S / 5);
}
