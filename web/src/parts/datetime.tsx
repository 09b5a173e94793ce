// SPDX-License-Identifier: Apache-2.0
/** A field for an instant, typed as a wall clock of the zone of the page. */
import { useEffect, useState } from "preact/hooks";
import { fromWall, offsetName, toWall, zone, zoneName } from "../time/zone.ts";
import { Field } from "./field.tsx";

export interface DateTimeProps {
  label: string;
  /** Milliseconds; null: nothing typed yet. */
  value: number | null;
  onChange: (at: number | null) => void;
  error?: string | undefined;
  min?: number;
}

/** Asks which one is meant where clocks are set back; tells where they are set forward. */
export function DateTimeField({ label, value, onChange, error, min }: DateTimeProps) {
  const here = zone.value;
  const [typed, setTyped] = useState(value === null ? "" : toWall(value, here));
  useEffect(() => setTyped(value === null ? "" : toWall(value, here)), [value, here]);
  // A clock time that does not exist is shown as what is taken in its place; what was typed is said.
  const [skipped, setSkipped] = useState("");
  const meant = typed ? fromWall(typed, here) : null;
  const change = (text: string) => {
    const found = text ? fromWall(text, here) : null;
    setTyped(text);
    setSkipped(found?.gap ? text.slice(11, 16) : "");
    onChange(found?.at ?? null);
  };
  const hint = skipped
    ? `Clocks are set forward then: ${skipped} does not exist in ${zoneName.value}; an hour later is taken.`
    : zoneName.value;
  return (
    <div class="datetime">
      <Field label={label} error={error} hint={hint}>
        {(control) => (
          <input
            {...control}
            type="datetime-local"
            step={60}
            value={typed}
            {...(min === undefined ? {} : { min: toWall(min, here) })}
            onChange={(event) => change(event.currentTarget.value)}
          />
        )}
      </Field>
      {meant?.later && (
        <fieldset class="segments">
          <legend class="hint">Clocks are set back then: which of the two?</legend>
          {[meant.at, meant.later].map((at) => (
            <button key={at} type="button" aria-pressed={value === at} onClick={() => onChange(at)}>
              {offsetName(at, here)}
            </button>
          ))}
        </fieldset>
      )}
    </div>
  );
}
