// SPDX-License-Identifier: Apache-2.0
/** What types with a sentence of their own have beside it. Pure. */
import type { ResourceType } from "../api/types.ts";
import type { Values } from "../forms/schema.ts";

/** What of a type with a sentence of its own stands beside the sentence. */
const BESIDE: Readonly<Record<string, readonly string[]>> = { "virtual:instance": ["ephemeral_gb", "extra_specs"] };

/** What a wish may have that no form asks for yet: it is kept as it is. */
const CARRIED: Readonly<Record<string, readonly string[]>> = { "physical:host": ["together", "spread"] };

/** Returns the names of the parameters that stand beside the sentence of a type. */
export function besideSentence(type: ResourceType): readonly string[] {
  return BESIDE[type] ?? [];
}

/** Returns those of some parameters that the sentence does not say and that ask for something. */
export function besideIn(type: ResourceType, given: object): Values {
  const asks = (value: unknown) =>
    typeof value === "object" && value !== null ? Object.keys(value).length > 0 : Boolean(value);
  const names = [...besideSentence(type), ...(CARRIED[type] ?? [])];
  const kept = Object.entries(given).filter(([name, value]) => names.includes(name) && asks(value));
  return Object.fromEntries(kept) as Values;
}
