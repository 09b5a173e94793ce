// SPDX-License-Identifier: Apache-2.0
/** Asks what a lease shall tell its user, and when. */
import { present } from "../time/now.ts";
import { zone } from "../time/zone.ts";
import {
  LONGEST_TEXT,
  MOST_REMINDERS,
  SIDES,
  type Side,
  type Wish,
  distanceOf,
  newWish,
  placed,
  sideOf,
  timeInWords,
} from "../words/reminders.ts";
import { LengthInput } from "./length.tsx";

/** How the service begins a sentence about one of them; here it stands beside it. */
const NUMBERED = /^reminders\[\d+\](\.\w+)? /i;

interface Props {
  value: readonly Wish[];
  /** Sentences by pointer, of which those below "/reminders" are ours. */
  errors: ReadonlyMap<string, string>;
  onChange: (wishes: readonly Wish[]) => void;
}

/** Returns the pointers at which the service may find something wrong. */
export function reminderPointers(wishes: readonly Wish[]): string[] {
  return ["/reminders", ...wishes.map((_, index) => `/reminders/${index}`)];
}

/** A line for each reminder, and a button for one more. */
export function RemindersField({ value, errors, onChange }: Props) {
  const put = (index: number, wish: Wish) => onChange(value.map((old, at) => (at === index ? wish : old)));
  return (
    <fieldset class="part">
      <legend>Tell me by my subscriptions and calendar</legend>
      {value.map((wish, index) => (
        <div class="stack" key={index}>
          <WishLine
            wish={wish}
            label={`Reminder ${index + 1}`}
            error={errors.get(`/reminders/${index}`)?.replace(NUMBERED, "It ")}
            onChange={(changed) => put(index, changed)}
            onRemove={() => onChange(value.filter((_, at) => at !== index))}
          />
        </div>
      ))}
      {errors.get("/reminders") && <p class="field-error">{errors.get("/reminders")}</p>}
      {value.length < MOST_REMINDERS && (
        <p>
          <button type="button" class="link" onClick={() => onChange([...value, newWish()])}>
            Add a reminder
          </button>
        </p>
      )}
    </fieldset>
  );
}

interface LineProps {
  wish: Wish;
  label: string;
  error: string | undefined;
  onChange: (wish: Wish) => void;
  onRemove: () => void;
}

function WishLine({ wish, label, error, onChange, onRemove }: LineProps) {
  const side = sideOf(wish);
  return (
    <>
      <div class="row">
        {side === null ? (
          <span>{timeInWords(wish, zone.value, present.value)}</span>
        ) : (
          <>
            <LengthInput
              label={label}
              value={distanceOf(wish)}
              wrong={error !== undefined}
              onChange={(distance) => onChange(placed(wish, side, distance))}
            />
            <select
              aria-label={`${label}: before or after`}
              value={side}
              onChange={(event) => onChange(placed(wish, event.currentTarget.value as Side, distanceOf(wish)))}
            >
              {SIDES.map((one) => (
                <option key={one} value={one}>
                  {one}
                </option>
              ))}
            </select>
          </>
        )}
        <button type="button" class="quiet small" aria-label={`Remove ${label.toLowerCase()}`} onClick={onRemove}>
          Remove
        </button>
      </div>
      <input
        type="text"
        aria-label={`${label}: what to tell`}
        placeholder="what to tell, such as: copy the results"
        maxLength={LONGEST_TEXT}
        value={wish.text}
        onInput={(event) => onChange({ ...wish, text: event.currentTarget.value })}
      />
      {error && <p class="field-error">{error}</p>}
    </>
  );
}
