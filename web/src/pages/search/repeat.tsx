// SPDX-License-Identifier: Apache-2.0
/** In the dialog that books: how often it recurs, and which of it fit. */
import { useAsked } from "../../api/ask.ts";
import { plain } from "../../api/errors.ts";
import type { Occurrence, Series } from "../../api/types.ts";
import { Instead } from "../../parts/basics.tsx";
import { useSettled } from "../../parts/settled.tsx";
import { DayField } from "../../parts/datetime.tsx";
import { Field } from "../../parts/field.tsx";
import { addDays, toWall, zone } from "../../time/zone.ts";
import {
  type Every,
  type FirstPart,
  type Repeat,
  firstFitting,
  firstInWords,
  fitInWords,
  repeats,
} from "../../words/series.ts";
import { Occurrences } from "../series/occurrences.tsx";

export interface RepeatProps {
  repeat: Repeat | null;
  /** The first start. */
  start: number;
  errors: { rule: string | undefined; start: string | undefined };
  onChange: (repeat: Repeat | null) => void;
}

/** Asks how often it recurs and until which day. */
export function RepeatField({ repeat, start, errors, onChange }: RepeatProps) {
  const wall = toWall(start, zone.value);
  const choose = (value: string) => {
    const until = repeat?.until ?? toWall(addDays(start, zone.value, 28), zone.value).slice(0, 10);
    onChange(value === "" ? null : { every: value as Every, until });
  };
  return (
    <>
      <Field label="Repeat" error={errors.start}>
        {(control) => (
          <select {...control} value={repeat?.every ?? ""} onChange={(event) => choose(event.currentTarget.value)}>
            <option value="">just once</option>
            {repeats(wall).map((one) => (
              <option key={one.value} value={one.value}>
                {one.text}
              </option>
            ))}
          </select>
        )}
      </Field>
      {repeat && (
        <DayField
          label="Until the day"
          error={errors.rule}
          wrong={repeat.until < wall.slice(0, 10) ? "That is before the first one." : undefined}
          value={repeat.until}
          // A day that is emptied on the way to another one: the last one stays.
          onChange={(until) => until && onChange({ ...repeat, until })}
        />
      )}
    </>
  );
}

/** Offers the first ones of a series, of which a later one does not fit. */
export function FirstOnes({ first, onUntil }: { first: FirstPart | null; onUntil: (day: string) => void }) {
  if (first === null) return null;
  return (
    <Instead>
      <button type="button" onClick={() => onUntil(first.until)}>
        {firstInWords(first)}
      </button>
    </Instead>
  );
}

/** Says which of a series fit, before it is booked. */
export function FitPreview(props: {
  /** What would be sent. */
  body: Record<string, unknown>;
  some: boolean;
  onSome: (some: boolean) => void;
  /** Takes the last day of those at the beginning that fit. */
  onUntil: (day: string) => void;
}) {
  const { body, some, onSome, onUntil } = props;
  // While a field shows what is no value, nothing is known of what it will be.
  const settled = useSettled();
  const asked = useAsked<{ series: Series }>("v1/series?dry_run=true", settled ? { ...body, fit: "as_many" } : null);
  const found: readonly Occurrence[] = asked.data?.series.occurrences ?? [];
  const unfit = found.filter((one) => one.state === "unfit");
  if (asked.error) return <p class="preview bad">{plain(asked.error)}</p>;
  if (found.length === 0) {
    return <p class="preview">{asked.loading ? "Looking which of it fit…" : ""}</p>;
  }
  return (
    <div class="stack">
      <p class={unfit.length > 0 ? "preview bad" : "preview"} role="status">
        {fitInWords(found)}
      </p>
      {unfit.length > 0 && (
        <>
          <details>
            <summary>Which do not</summary>
            <Occurrences occurrences={unfit} />
          </details>
          <label class="check">
            <input type="checkbox" checked={some} onChange={(event) => onSome(event.currentTarget.checked)} />
            Book those that fit
          </label>
          <FirstOnes first={firstFitting(found)} onUntil={onUntil} />
        </>
      )}
    </div>
  );
}
