// SPDX-License-Identifier: Apache-2.0
/** A duration as a number and a unit. */
import { type Unit, isoOf, lengthOf } from "../words/question.ts";
import { NumberInput } from "./number.tsx";

/** Five years, as far as a length can be read: that of a lease that is booked again is one, too. */
const MOST: Record<Unit, number> = { minutes: 2_635_200, hours: 43_920, days: 1830, weeks: 261 };

const UNITS: readonly Unit[] = ["minutes", "hours", "days", "weeks"];

/** Asks for a duration; gives it as the API takes it, such as "P3D". */
export function LengthInput(props: { value: string; onChange: (iso: string) => void; label: string; wrong?: boolean }) {
  const { count, unit } = lengthOf(props.value) ?? { count: 1, unit: "days" as Unit };
  return (
    <span class="pair">
      <NumberInput
        value={count}
        max={MOST[unit]}
        label={`${props.label}: how many`}
        wrong={props.wrong ?? false}
        onChange={(value) => props.onChange(isoOf(value, unit))}
      />
      <select
        aria-label={`${props.label}: unit`}
        value={unit}
        onChange={(event) => props.onChange(isoOf(count, event.currentTarget.value as Unit))}
      >
        {UNITS.map((one) => (
          <option key={one} value={one}>
            {count === 1 ? one.slice(0, -1) : one}
          </option>
        ))}
      </select>
    </span>
  );
}
