// SPDX-License-Identifier: Apache-2.0
/** What types with a sentence of their own have beside it. Pure. */
import type { ResourceType } from "../api/types.ts";
import type { Values } from "../forms/schema.ts";

/** What of a type with a sentence of its own stands beside the sentence. */
const BESIDE: Readonly<Record<string, readonly string[]>> = {
  "virtual:instance": ["ephemeral_gb", "extra_specs", "gpus", "gpu_model"],
  "physical:host": ["together", "spread", "lend_beyond"],
};

/** Numbers of which 0 asks for something, too. */
const FROM_ZERO: readonly string[] = ["lend_beyond"];

/** Returns the names of the parameters that stand beside the sentence of a type. */
export function besideSentence(type: ResourceType): readonly string[] {
  return BESIDE[type] ?? [];
}

/** Returns those of some parameters that the sentence does not say and that ask for something. */
export function besideIn(type: ResourceType, given: object): Values {
  const asks = (name: string, value: unknown) =>
    typeof value === "object" && value !== null
      ? Object.keys(value).length > 0
      : Boolean(value) || (value === 0 && FROM_ZERO.includes(name));
  const names = besideSentence(type);
  const kept = Object.entries(given).filter(([name, value]) => names.includes(name) && asks(name, value));
  return Object.fromEntries(kept) as Values;
}
