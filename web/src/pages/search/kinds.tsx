// SPDX-License-Identifier: Apache-2.0
/** Parts of the dialog that books: when it is handed over, how long to wait, whether it goes on by itself. */
import { useEffect, useState } from "preact/hooks";
import { Refused } from "../../api/errors.ts";
import type { LeaseKind, WhyNot } from "../../api/types.ts";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Field } from "../../parts/field.tsx";
import { LengthInput } from "../../parts/length.tsx";
import { NumberInput } from "../../parts/number.tsx";
import { spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { lengthOf } from "../../words/question.ts";
import { WAITING_MEANS, beforeInWords, beforeOf, shortageOf } from "../../words/waiting.ts";

interface KindProps {
  kind: LeaseKind;
  error: string | undefined;
  onChange: (kind: LeaseKind) => void;
}

const KINDS: readonly { value: "scheduled" | "immediate"; text: string; hint: string }[] = [
  {
    value: "scheduled",
    text: "at its start; if that is late, it is tried again",
    hint: "It is booked at once, and handed over as soon as it is ready.",
  },
  {
    value: "immediate",
    text: "now or not at all",
    hint: "The answer comes when it can be used, within a minute. Otherwise it is refused, and nothing is left of it.",
  },
];

/** Asks when it is handed over. */
export function KindField({ kind, error, onChange }: KindProps) {
  return (
    <Field label="Handed over" error={error} hint={KINDS.find((one) => one.value === kind)?.hint}>
      {(control) => (
        <select {...control} value={kind} onChange={(event) => onChange(event.currentTarget.value as LeaseKind)}>
          {KINDS.map((one) => (
            <option key={one.value} value={one.value}>
              {one.text}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Asks until when it waits, and says what that means. */
export function PatienceField(props: {
  patience: number | null;
  error: string | undefined;
  wrong: string | undefined;
  onChange: (until: number | null) => void;
}) {
  const { patience, error, wrong, onChange } = props;
  return (
    <>
      <p class="hint">{WAITING_MEANS}</p>
      <DateTimeField
        label="Wait until"
        value={patience}
        error={error}
        wrong={wrong}
        // Without a date it would not wait: the last one stays.
        onChange={(at) => at !== null && onChange(at)}
      />
    </>
  );
}

/** Asks whether a lease is deleted unless somebody confirms it in time, and for how many minutes it is held. */
export function HeldField(props: {
  held: number | null;
  most: number;
  error: string | undefined;
  onChange: (minutes: number | null) => void;
}) {
  const { held, most, error, onChange } = props;
  return (
    <div class="stack">
      <label class="check">
        <input
          type="checkbox"
          checked={held !== null}
          onChange={(event) => onChange(event.currentTarget.checked ? Math.min(10, most) : null)}
        />
        Hold it: unless it is confirmed in time, it is deleted and costs nothing
      </label>
      {held !== null && (
        <p class="row">
          <span>for</span>
          <NumberInput label="Minutes to confirm it" value={Math.min(held, most)} max={most} onChange={onChange} />
          <span>minutes, {most} at most</span>
        </p>
      )}
      {error && <p class="field-error">{error}</p>}
    </div>
  );
}

/** Asks whether what could not be handed over at its turn is tried again, and how often. */
export function TriesField(props: {
  tries: number | null;
  error: string | undefined;
  onChange: (tries: number | null) => void;
}) {
  const { tries, error, onChange } = props;
  return (
    <div class="stack">
      <label class="check">
        <input
          type="checkbox"
          checked={tries !== null}
          onChange={(event) => onChange(event.currentTarget.checked ? 3 : null)}
        />
        Try again if it cannot be handed over at its turn
      </label>
      {tries !== null && (
        <p class="row">
          <span>at most</span>
          <NumberInput label="How many tries may fail" value={tries} max={100} onChange={onChange} />
          <span>failed {tries === 1 ? "try" : "tries"}</span>
        </p>
      )}
      {tries !== null && <p class="hint">It keeps its place in line.</p>}
      {error && <p class="field-error">{error}</p>}
    </div>
  );
}

/** Asks whether it goes on by itself after its end, and for how long at most. */
export function MoreField(props: {
  more: string | null;
  /** When it ends; null if that is not known yet. */
  end: number | null;
  /** How long it is, which is proposed. */
  length: string;
  error: string | undefined;
  onChange: (more: string | null) => void;
}) {
  const { more, end, length, error, onChange } = props;
  const seconds = lengthOf(more ?? "")?.seconds ?? 0;
  return (
    <div class="stack">
      <label class="check">
        <input
          type="checkbox"
          checked={more !== null}
          onChange={(event) => onChange(event.currentTarget.checked ? length : null)}
        />
        Keep it as long as nobody else wants it
      </label>
      {more !== null && (
        <p class="row">
          <span>for at most</span>
          <LengthInput label="Longer by at most" value={more} wrong={error !== undefined} onChange={onChange} />
          <span>more</span>
        </p>
      )}
      {more !== null && (
        <p class="hint">
          {end === null ? "It" : `Until ${spoken(end + seconds * 1000, zone.value, present.value)} at most: it`} is
          prolonged by itself shortly before its end, unless somebody else has booked what it has or waits for it.
        </p>
      )}
      {error && <p class="field-error">{error}</p>}
    </div>
  );
}

/** What to do instead after a refusal: a start that delays nobody, or to wait, each a click. */
export function Instead(props: {
  error: unknown;
  types: readonly string[];
  onStart: (at: number) => void;
  onWait: (() => void) | null;
}) {
  const { error, types, onStart, onWait } = props;
  if (!(error instanceof Refused)) return null;
  const others = error.has("others_wait");
  if (!others && !error.has("not_enough_resources")) return null;
  const reasons = (error.data("not_enough_resources")?.reasons ?? []) as unknown as WhyNot[];
  // What is out of use or broken comes back; more than there is never fits.
  const helps = shortageOf(reasons, (index) => types[index])?.away.length !== 0;
  const before = others ? beforeOf(error.data("others_wait")) : null;
  const { opening = null } = before ?? {};
  return (
    <div class="stack instead">
      {before && <p>{beforeInWords(before)}</p>}
      <p class="row">
        {opening !== null && (
          <button type="button" onClick={() => onStart(opening)}>
            Start {spoken(opening, zone.value, present.value)} instead
          </button>
        )}
        {onWait && helps && (
          <button type="button" onClick={onWait}>
            Wait in line
          </button>
        )}
      </p>
    </div>
  );
}

/** Said while a request for now or not at all is decided. */
export function HandingOver() {
  const [seconds, setSeconds] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => setSeconds((old) => old + 1), 1000);
    return () => clearInterval(timer);
  }, []);
  return (
    <div class="handing-over">
      <p role="status">It is being handed over. The answer comes within a minute.</p>
      <span class="handing-over-bar" aria-hidden="true" />
      <p class="hint number" aria-hidden="true">
        {seconds} s
      </p>
    </div>
  );
}
