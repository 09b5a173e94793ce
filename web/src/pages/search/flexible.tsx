// SPDX-License-Identifier: Apache-2.0
/** In the dialog that waits in line: what the request leaves open, its latest start and its shortest length. */
import { DateTimeField } from "../../parts/datetime.tsx";
import { LengthInput } from "../../parts/length.tsx";
import { useUnsettled } from "../../parts/settled.tsx";
import { spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import type { Flexible } from "../../words/booking.ts";
import { half, lengthInWords, lengthOf } from "../../words/length.ts";

interface FlexibleProps {
  value: Flexible;
  /** The whole length that is asked for, a duration. */
  length: string;
  /** The earliest start, and until when it waits. */
  first: number;
  until: number;
  errors: { latest: string | undefined; atLeast: string | undefined };
  onChange: (value: Flexible) => void;
}

/** Asks for both. */
export function FlexibleField({ value, length, first, until, errors, onChange }: FlexibleProps) {
  const { latest, atLeast } = value;
  const whole = lengthOf(length)?.seconds ?? 0;
  const least = lengthOf(atLeast ?? "")?.seconds ?? 0;
  useUnsettled(least > whole);
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={latest !== null}
          onChange={(event) =>
            onChange({ ...value, latest: event.currentTarget.checked ? Math.max(first, until) : null })
          }
        />
        It is of no use if it starts too late
      </label>
      {latest !== null && (
        <DateTimeField
          label="Start by"
          value={latest}
          wrong={
            latest < first - 60_000
              ? `That is before its earliest start, ${spoken(first, zone.value, present.value)}.`
              : undefined
          }
          error={errors.latest}
          // Emptied on the way to another one: the last one stays.
          onChange={(at) => at !== null && onChange({ ...value, latest: at })}
        />
      )}
      <div class="stack">
        <label class="check">
          <input
            type="checkbox"
            checked={atLeast !== null}
            onChange={(event) => onChange({ ...value, atLeast: event.currentTarget.checked ? half(length) : null })}
          />
          Less time will do, if it is sooner
        </label>
        {atLeast !== null && (
          <p class="row">
            <span>at least</span>
            <LengthInput
              label="At least"
              value={atLeast}
              wrong={errors.atLeast !== undefined || least > whole}
              onChange={(iso) => onChange({ ...value, atLeast: iso })}
            />
          </p>
        )}
        {atLeast !== null && (
          <p class={least > whole ? "field-error" : "hint"}>
            {least > whole
              ? `That is more than the ${lengthInWords(length)} that you ask for.`
              : `You get as long as is free at that start, up to ${lengthInWords(length)}.`}
          </p>
        )}
        {errors.atLeast && <p class="field-error">{errors.atLeast}</p>}
      </div>
    </>
  );
}
