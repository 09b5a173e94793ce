// SPDX-License-Identifier: Apache-2.0
/** Asks what something may cost at most, where things have prices. */
import { Field } from "./field.tsx";

interface MostProps {
  label: string;
  hint: string;
  value: string;
  error: string | undefined;
  onChange: (most: string) => void;
}

/** An amount as it is typed, in the currency of the price lists; nothing is any price. */
export function MostField({ label, hint, value, error, onChange }: MostProps) {
  return (
    <Field label={label} hint={hint} error={error}>
      {(control) => (
        <input
          {...control}
          type="text"
          inputMode="decimal"
          maxLength={17}
          autoComplete="off"
          placeholder="any price"
          value={value}
          onInput={(event) => onChange(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}
