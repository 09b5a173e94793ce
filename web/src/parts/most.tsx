// SPDX-License-Identifier: Apache-2.0
/** Asks what something may cost at most, where things have prices. */
import { useCurrency } from "../api/billing.ts";
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
  const currency = useCurrency();
  return (
    <Field label={currency === "" ? label : `${label} (${currency})`} hint={hint} error={error}>
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
