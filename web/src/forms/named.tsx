// SPDX-License-Identifier: Apache-2.0
/** A thing that is named by a word, by another reservation of the lease, or by its id; and lists of them. */
import { Plus, X } from "lucide";
import { useState } from "preact/hooks";
import type { Json } from "../api/types.ts";
import type { ControlProps } from "../parts/field.tsx";
import { Icon } from "../parts/icon.tsx";
import type { Referable } from "../words/references.ts";
import type { FormField } from "./schema.ts";
import { useUnsettled } from "../parts/settled.tsx";

interface NamedProps {
  field: FormField;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  others: readonly Referable[];
  control?: ControlProps;
  /** What a screen reader says, if there is no label of a field. */
  label?: string;
}

const TYPED = "typed";

/** A choice, and beside it the id if that is what is chosen. */
export function NamedInput({ field, value, onChange, others, control, label }: NamedProps) {
  const choices = [
    ...field.words.map((word) => ({ value: word, text: String(word) })),
    ...others.map((one) => ({ value: { reservation: one.value } as Json, text: one.text })),
  ];
  const written = JSON.stringify(value);
  const chosen = choices.find((one) => JSON.stringify(one.value) === written);
  const id = chosen ? "" : idIn(value, field.wrap);
  const [typing, setTyping] = useState(id !== "");
  // "Another, by its id" without an id is nothing that could be sent.
  useUnsettled(choices.length > 0 && field.typed && !chosen && typing && id === "");
  const text = (
    <input
      {...(choices.length === 0 ? control : {})}
      type="text"
      autoComplete="off"
      aria-label={choices.length === 0 ? label : `${label ?? field.label}: id or name`}
      placeholder={field.wrap ? "id" : "id or name"}
      value={id}
      onInput={({ currentTarget: { value: typed } }) =>
        onChange(typed === "" ? undefined : field.wrap ? { [field.wrap]: typed } : typed)
      }
    />
  );
  if (choices.length === 0 && !field.typed) {
    return (
      <select {...control} aria-label={label} disabled>
        <option>add one to the lease first</option>
      </select>
    );
  }
  if (choices.length === 0) return text;
  return (
    <span class="pair">
      <select
        {...control}
        aria-label={label}
        value={chosen ? written : typing || id ? TYPED : ""}
        onChange={({ currentTarget: { value: picked } }) => {
          setTyping(picked === TYPED);
          onChange(picked === "" || picked === TYPED ? undefined : JSON.parse(picked));
        }}
      >
        <option value="">{field.required ? "choose" : "none of its own"}</option>
        {choices.map((one) => (
          <option key={one.text} value={JSON.stringify(one.value)}>
            {one.text}
          </option>
        ))}
        {field.typed && <option value={TYPED}>another, by its id</option>}
      </select>
      {field.typed && !chosen && (typing || id) && text}
    </span>
  );
}

/** Several things; or one word instead of them. */
export function ListField({ field, value, onChange, others }: NamedProps) {
  const given = Array.isArray(value) ? value : [];
  const [rows, setRows] = useState<readonly (Json | undefined)[]>(given);
  const word = !Array.isArray(value) && value !== undefined && value !== null ? value : null;
  const put = (changed: readonly (Json | undefined)[]) => {
    setRows(changed);
    const kept = changed.filter((one): one is Json => one !== undefined);
    onChange(kept.length > 0 ? kept : undefined);
  };
  const one = field.label.toLowerCase();
  const nameable = field.typed || others.length + field.words.length > 0;
  return (
    <fieldset class="stack">
      <legend>{field.required ? field.label : `${field.label} (optional)`}</legend>
      {field.hint && <p class="hint">{field.hint}</p>}
      {field.instead.length > 0 && (
        <select
          aria-label={field.label}
          value={word === null ? (rows.length > 0 ? "these" : "") : JSON.stringify(word)}
          onChange={({ currentTarget: { value: picked } }) => {
            if (picked === "these") put([undefined]);
            else {
              setRows([]);
              onChange(picked === "" ? undefined : JSON.parse(picked));
            }
          }}
        >
          <option value="">
            {field.initial === undefined || Array.isArray(field.initial)
              ? "as usual"
              : `as usual: ${String(field.initial)}`}
          </option>
          {field.instead.map((other) => (
            <option key={String(other)} value={JSON.stringify(other)}>
              {String(other)}
            </option>
          ))}
          <option value="these">these:</option>
        </select>
      )}
      {rows.map((row, index) => (
        <div class="property-row" key={index}>
          <NamedInput
            field={{ ...field, required: true }}
            value={row}
            others={others}
            label={`${field.label}, number ${index + 1}`}
            onChange={(changed) => put(rows.map((old, at) => (at === index ? changed : old)))}
          />
          <button
            type="button"
            class="quiet square small"
            aria-label={`Take number ${index + 1} of ${one} away`}
            onClick={() => put(rows.filter((_, at) => at !== index))}
          >
            <Icon of={X} size={15} />
          </button>
        </div>
      ))}
      {rows.length === 0 && !nameable && <p class="hint">Add some to the lease first.</p>}
      {nameable && (field.instead.length === 0 || rows.length > 0) && word === null && (
        <button
          type="button"
          class="small quiet"
          aria-label={`Add to ${one}`}
          onClick={() => put([...rows, undefined])}
        >
          <Icon of={Plus} /> Add
        </button>
      )}
    </fieldset>
  );
}

/** Returns the id that a value is, or that its object holds. */
function idIn(value: Json | undefined, wrap: string | null): string {
  if (typeof value === "string") return value;
  if (wrap && typeof value === "object" && value !== null && !Array.isArray(value)) {
    const id = value[wrap];
    return typeof id === "string" ? id : "";
  }
  return "";
}
