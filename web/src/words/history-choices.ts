// SPDX-License-Identifier: Apache-2.0
/** What the page of history has to choose from: types of objects, and what may have been done to each. Pure. */
import { capital } from "./events.ts";

export interface Choice {
  value: string;
  text: string;
}

/** The types of objects; `operators`: they belong to no project. */
export const TYPES: readonly (Choice & { operators?: boolean })[] = [
  { value: "", text: "anything" },
  { value: "lease", text: "leases" },
  { value: "series", text: "series" },
  { value: "feed", text: "feeds" },
  { value: "subscription", text: "subscriptions" },
  { value: "budget", text: "budgets" },
  { value: "server", text: "preemptible servers" },
  { value: "resource", text: "resources", operators: true },
  { value: "property", text: "properties", operators: true },
  { value: "maintenance", text: "maintenance", operators: true },
  { value: "price_list", text: "price lists", operators: true },
  { value: "rule", text: "rules", operators: true },
  { value: "charge", text: "charges" },
  { value: "service", text: "configuration", operators: true },
];

const OF_LEASES: readonly string[] = [
  ...["created", "waiting", "promised", "advanced", "changed", "extended", "split", "merged", "swapped", "offered"],
  ...[
    "withdrawn",
    "declined",
    "transferred",
    "moved",
    "started",
    "before_end",
    "maintenance",
    "reminded",
    "unused_warning",
    "kept",
    "confirmed",
    "lapsed",
  ],
  ...["held", "let_go", "released", "degraded", "healed", "failed", "timed_out", "refused", "deleted", "ended"],
  ...["retried", "claim_ended", "given_up", "cleaned_up"],
];

const OF_TYPES: Readonly<Record<string, readonly string[]>> = {
  lease: OF_LEASES,
  series: ["created", "changed", "deleted", "ended", "failed"],
  feed: ["created", "deleted"],
  subscription: ["created", "changed", "deleted", "disabled", "retried", "given_up"],
  resource: ["registered", "changed", "disabled", "enabled", "failed", "recovered", "removed"],
  property: ["changed"],
  maintenance: ["created", "changed", "started", "ended", "deleted"],
  price_list: ["created"],
  rule: ["created", "changed", "deleted"],
  charge: ["created"],
  budget: ["reached"],
  server: ["before_end", "kept"],
  service: ["configured"],
};

const WORDS: Readonly<Record<string, string>> = {
  lapsed: "Deleted, as nobody confirmed it",
  waiting: "Put in line",
  before_end: "Warned of its end",
  maintenance: "Told of maintenance",
  unused_warning: "Told that nobody uses it",
};

/** Returns what may have been done to a type of object ("": to any); what the address says is among it. */
export function verbsOf(type: string, chosen: string): Choice[] {
  const known = OF_TYPES[type] ?? [...new Set(Object.values(OF_TYPES).flat())];
  const verbs = chosen === "" || known.includes(chosen) ? known : [...known, chosen];
  const choices = verbs.map((value) => ({ value, text: WORDS[value] ?? capital(value.replaceAll("_", " ")) }));
  return [{ value: "", text: "anything" }, ...choices];
}
