// SPDX-License-Identifier: Apache-2.0
/** A label, a control, and beside it what helps or what is wrong. */
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

/** To be spread over the control, so that the label, the hint and the error belong to it. */
export interface ControlProps {
  id: string;
  "aria-describedby"?: string;
  "aria-invalid"?: true;
}

export interface FieldProps {
  label: string;
  hint?: ComponentChildren;
  error?: string | undefined;
  children: (control: ControlProps) => ComponentChildren;
}

/** Draws one field of a form. */
export function Field({ label, hint, error, children }: FieldProps) {
  const id = useId();
  const described = [error ? `${id}-error` : "", hint ? `${id}-hint` : ""].filter(Boolean).join(" ");
  const control: ControlProps = { id };
  if (described) control["aria-describedby"] = described;
  if (error) control["aria-invalid"] = true;
  return (
    <div class={error ? "field wrong" : "field"}>
      <label for={id}>{label}</label>
      {children(control)}
      {error && (
        <p class="field-error" id={`${id}-error`}>
          {error}
        </p>
      )}
      {hint && (
        <p class="hint" id={`${id}-hint`}>
          {hint}
        </p>
      )}
    </div>
  );
}

/** Sentences that belong to no field, above the actions of a form. */
export function FormErrors({ sentences }: { sentences: readonly string[] }) {
  if (sentences.length === 0) return null;
  return (
    <div class="banner error" role="alert">
      {sentences.map((sentence) => (
        <p key={sentence}>{sentence}</p>
      ))}
    </div>
  );
}
