// SPDX-License-Identifier: Apache-2.0
/** Asks what a lease shall tell its user, and when. */
import { useId } from "preact/hooks";
import { present } from "../time/now.ts";
import { zone } from "../time/zone.ts";
import {
  type Dates,
  LONGEST_TEXT,
  MOST_REMINDERS,
  SIDES,
  type Side,
  type Wish,
  distanceOf,
  newWish,
  noteOf,
  placed,
  sentOf,
  sideOf,
  timeInWords,
} from "../words/reminders.ts";
import { LengthInput } from "./length.tsx";

/** How the service begins a sentence about one of them; here it stands beside it. */
const NUMBERED = /^reminders\[\d+\](\.\w+)? /i;

interface Props {
  value: readonly Wish[];
  dates: Dates;
  /** Those that are there already: they stay, however late they are. */
  known?: readonly Wish[];
  /** Sentences by pointer, of which those below "/reminders" are ours. */
  errors: ReadonlyMap<string, string>;
  onChange: (wishes: readonly Wish[]) => void;
}

/** Returns the pointers at which the service may find something wrong. */
export function reminderPointers(wishes: readonly Wish[]): string[] {
  return ["/reminders", ...wishes.map((_, index) => `/reminders/${index}`)];
}

/** A line for each reminder, and a button for one more. */
export function RemindersField({ value, dates, known = [], errors, onChange }: Props) {
  const put = (index: number, wish: Wish) => onChange(value.map((old, at) => (at === index ? wish : old)));
  // Lines that are not sent have no number there.
  const errorOf = (index: number) =>
    sentOf(value.slice(index, index + 1)).length > 0
      ? errors.get(`/reminders/${sentOf(value.slice(0, index)).length}`)?.replace(NUMBERED, "It ")
      : undefined;
  return (
    <fieldset class="part">
      <legend>Tell me by my subscriptions and calendar</legend>
      {value.map((wish, index) => (
        <WishLine
          key={index}
          wish={wish}
          label={`Reminder ${index + 1}`}
          note={noteOf(wish, dates, known, zone.value, present.value)}
          error={errorOf(index)}
          onChange={(changed) => put(index, changed)}
          onRemove={() => onChange(value.filter((_, at) => at !== index))}
        />
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
  /** What the page knows itself stands there from the start on: below it nothing moves when the form is sent. */
  note: ReturnType<typeof noteOf>;
  error: string | undefined;
  onChange: (wish: Wish) => void;
  onRemove: () => void;
}

function WishLine({ wish, label, note, error, onChange, onRemove }: LineProps) {
  const side = sideOf(wish);
  const id = useId();
  const wrong = error !== undefined || note?.wrong === true;
  const text = note?.wrong ? note.text : (error ?? note?.text);
  return (
    <fieldset class="stack" aria-label={label} aria-describedby={text ? id : undefined}>
      <div class="row">
        {side === null ? (
          <span>{timeInWords(wish, zone.value, present.value)}</span>
        ) : (
          <>
            <LengthInput
              label={label}
              value={distanceOf(wish)}
              wrong={wrong}
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
      {text && (
        <p class={wrong ? "field-error" : "hint"} id={id}>
          {text}
        </p>
      )}
    </fieldset>
  );
}
