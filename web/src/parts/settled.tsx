// SPDX-License-Identifier: Apache-2.0
/** Which fields of a form show what the form does not have. While there are some, the form sends nothing. */
import { type Signal, signal } from "@preact/signals";
import { createContext } from "preact";
import { useContext, useId, useLayoutEffect, useMemo } from "preact/hooks";

/** The fields of one form that are half typed, emptied or out of order. */
export class Fields {
  readonly #open: Signal<ReadonlySet<string>> = signal(new Set());

  /** How many there are; what draws it is drawn again when that changes. */
  get unsettled(): number {
    return this.#open.value.size;
  }

  note(id: string, wrong: boolean): void {
    if (this.#open.peek().has(id) === wrong) return;
    const next = new Set(this.#open.peek());
    if (wrong) next.add(id);
    else next.delete(id);
    this.#open.value = next;
  }
}

const Around = createContext<Fields | null>(null);

/** Gives the fields in it to one form. */
export const FieldsOf = Around.Provider;

/** Returns the fields of a new form. */
export function useNewFields(): Fields {
  return useMemo(() => new Fields(), []);
}

/** Tells the form around it that a field shows what the form does not have. */
export function useUnsettled(wrong: boolean): void {
  const fields = useContext(Around);
  const id = useId();
  useLayoutEffect(() => {
    fields?.note(id, wrong);
  }, [fields, wrong]);
  useLayoutEffect(() => () => fields?.note(id, false), [fields]);
}

/** True if all fields of the form around it show what the form has. */
export function useSettled(): boolean {
  const fields = useContext(Around);
  return (fields?.unsettled ?? 0) === 0;
}
