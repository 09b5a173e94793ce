// SPDX-License-Identifier: Apache-2.0
/** A number that may be half typed: only what makes sense is told to the form, which sends nothing meanwhile. */
import { useEffect, useState } from "preact/hooks";
import { useUnsettled } from "./settled.tsx";
import type { ControlProps } from "./field.tsx";

export interface NumberProps {
  value: number;
  onChange: (value: number) => void;
  /** What a screen reader says, if there is no label of a field. */
  label?: string;
  min?: number;
  max?: number;
  /** Parts of one that may be typed; 1 by default. */
  step?: number;
  control?: ControlProps;
  wrong?: boolean;
}

const PAUSE_MS = 900;

/** What is typed stays while it is no number yet, and is marked; left so, the field shows what the form has. */
export function NumberInput({
  value,
  onChange,
  label,
  min = 1,
  max = 1_000_000,
  step = 1,
  control,
  wrong,
}: NumberProps) {
  const [typed, setTyped] = useState(String(value));
  const [said, setSaid] = useState(false);
  useEffect(() => setTyped((old) => (Number(old) === value ? old : String(value))), [value]);
  const fits = (text: string) => {
    const number = Number(text);
    return text.trim() !== "" && number >= min && number <= max && Number.isInteger(number / step);
  };
  const bad = !fits(typed);
  useUnsettled(bad);
  useEffect(() => {
    setSaid(false);
    if (!bad) return;
    const timer = setTimeout(() => setSaid(true), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [bad, typed]);
  const sentence = `A${step === 1 ? " whole" : ""} number from ${min} to ${max}.`;
  return (
    <>
      <input
        {...control}
        type="number"
        inputMode={step === 1 ? "numeric" : "decimal"}
        aria-label={label}
        min={min}
        max={max}
        step={step}
        value={typed}
        aria-invalid={bad || wrong ? true : undefined}
        title={bad ? sentence : undefined}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setTyped(text);
          if (fits(text)) onChange(Number(text));
        }}
        onBlur={() => bad && setTyped(String(value))}
      />
      {bad && said && (
        <span class="field-error" role="alert">
          {sentence}
        </span>
      )}
    </>
  );
}
