// SPDX-License-Identifier: Apache-2.0
/** The filters of a list: beside each other; on phones behind a button, so that the list is seen first. */
import { SlidersHorizontal } from "lucide";
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";
import { Icon } from "./icon.tsx";

/** `active`: how many filters are on, which the button tells. */
export function Filters({ active, children }: { active: number; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <div class={open ? "filters-box open" : "filters-box"}>
      <button
        type="button"
        class="filters-button"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
      >
        <Icon of={SlidersHorizontal} /> {active > 0 ? `Filters (${active})` : "Filters"}
      </button>
      <div id={id} class="row filters">
        {children}
      </div>
    </div>
  );
}

/** A choice of one, whose value is in the address. */
export function Choose<T extends string>(props: {
  label: string;
  options: readonly { value: T; text: string }[];
  chosen: T;
  onChange: (chosen: T) => void;
}) {
  const { label, options, chosen, onChange } = props;
  return (
    <label class="choose">
      <span>{label}</span>
      <select value={chosen} onChange={(event) => onChange(event.currentTarget.value as T)}>
        {options.map(({ value, text }) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

/** Says what words of a filter mean, for those who ask. */
export function Meanings({ of }: { of: readonly { value: string; text: string; meaning: string }[] }) {
  return (
    <details class="meanings">
      <summary>What these words mean</summary>
      <dl class="facts">
        {of.map(({ value, text, meaning }) => (
          <div key={value} class="meaning">
            <dt>{text}</dt>
            <dd>{meaning}</dd>
          </div>
        ))}
      </dl>
    </details>
  );
}
