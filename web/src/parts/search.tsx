// SPDX-License-Identifier: Apache-2.0
/** A field whose text goes into the address. */
import { useEffect, useId, useState } from "preact/hooks";
import { place, setParams } from "../router.ts";

const PAUSE_MS = 300;

export interface SearchProps {
  /** The parameter of the address. */
  name: string;
  label: string;
  /** Fewer letters are not searched for. */
  least?: number;
  /** What is proposed. */
  options?: readonly string[] | undefined;
}

/** Searches when typing pauses. */
export function Search({ name, label, least = 1, options }: SearchProps) {
  const id = useId();
  const there = place.value.params.get(name) ?? "";
  const [typed, setTyped] = useState(there);
  useEffect(() => setTyped((old) => (old.trim() === there ? old : there)), [there]);
  useEffect(() => {
    const wanted = typed.trim();
    if (wanted === there || (wanted !== "" && wanted.length < least)) return;
    const timer = setTimeout(() => setParams({ [name]: wanted }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <label class="choose">
      <span>{label}</span>
      <input
        type="search"
        maxLength={80}
        value={typed}
        list={options ? id : undefined}
        onInput={(event) => setTyped(event.currentTarget.value)}
      />
      {options && (
        <datalist id={id}>
          {options.map((one) => (
            <option key={one} value={one} />
          ))}
        </datalist>
      )}
    </label>
  );
}
