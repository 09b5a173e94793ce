// SPDX-License-Identifier: Apache-2.0
/** Fields for instants, days and times of day, in the words of the pages: 24 hours, the month as a word, the weekday beside. */
import { CalendarDays } from "lucide";
import { useRef, useState } from "preact/hooks";
import { formatted } from "../time/format.ts";
import { present } from "../time/now.ts";
import { readClock, readDay, readMoment, shownDay, shownMoment, stepped, weekdayAt } from "../time/typed.ts";
import { fromWall, offsetName, toWall, zone, zoneName } from "../time/zone.ts";
import { type ControlProps, Field } from "./field.tsx";
import { Icon } from "./icon.tsx";
import { type Typed, useTyped } from "./typed.tsx";

interface CommonProps {
  label: string;
  /** What the service has refused. */
  error?: string | undefined;
  /** What is wrong with it in this form, as a sentence; nothing is sent meanwhile. */
  wrong?: string | undefined;
  /** It may be left empty. */
  optional?: boolean;
}

export interface DateTimeProps extends CommonProps {
  /** Milliseconds; null: nothing typed yet. */
  value: number | null;
  /** Null: what is typed is no instant. */
  onChange: (at: number | null) => void;
  /** The field is entered, and left: typing in one moves no other, leaving it may. */
  onEnter?: () => void;
  onLeave?: () => void;
}

/** Asks for an instant, typed as a wall clock of the zone of the page; asks which one is meant where clocks are set back. */
export function DateTimeField(props: DateTimeProps) {
  const { label, value, onChange, error, wrong, optional, onEnter, onLeave } = props;
  const here = zone.value;
  const typed = useTyped<number>({
    value,
    show: (at) => shownMoment(at, here),
    read: (text) => {
      const found = readMoment(text, here, present.value);
      return found.problem === undefined ? { value: found.value.at } : found;
    },
    onChange,
    optional,
    wrong,
  });
  // A clock time that does not exist is shown as what is taken in its place; what was typed is said.
  const [skipped, setSkipped] = useState("");
  const type = (text: string) => {
    const found = readMoment(text, here, present.value);
    setSkipped(found.value?.gap ? (/\d{1,2}:\d{2}/.exec(text)?.[0] ?? "") : "");
    typed.type(text);
  };
  const meant = value === null ? null : fromWall(toWall(value, here), here);
  const choose = (day: string) => {
    const clock = value === null ? "09:00" : toWall(value, here).slice(11, 16);
    type(`${shownDay(day)} ${clock}`);
  };
  return (
    <div class="datetime">
      <Field
        label={label}
        error={error ?? typed.problem}
        hint={
          skipped
            ? `Clocks are set forward then: ${skipped} does not exist in ${zoneName.value}; an hour later is taken.`
            : [value === null ? "" : weekdayAt(value, here), zoneName.value].filter(Boolean).join(", ")
        }
      >
        {(control) => (
          <TextAndDay
            label={label}
            control={control}
            typed={{ ...typed, type }}
            day={value === null ? "" : toWall(value, here).slice(0, 10)}
            onDay={choose}
            onEnter={onEnter}
            onLeave={onLeave}
            onStep={(text, caret, up) =>
              value !== null && type(shownMoment(stepped(value, text, caret, up, here), here))
            }
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

export interface DayProps extends CommonProps {
  /** Such as "2026-12-01"; "": nothing typed yet. */
  value: string;
  /** "": what is typed is no day. */
  onChange: (day: string) => void;
}

/** Asks for a day. */
export function DayField({ label, value, onChange, error, wrong, optional = false }: DayProps) {
  const typed = useTyped<string>({
    value: value || null,
    show: shownDay,
    read: (text) => readDay(text, zone.value, present.value),
    onChange: (day) => onChange(day ?? ""),
    optional,
    wrong,
  });
  const at = Date.parse(`${value}T00:00:00Z`);
  // The last day may stay while another one is typed: its weekday is not that of what stands there.
  const weekday =
    value && readDay(typed.text, zone.value, present.value).value === value
      ? formatted(at, "UTC", "weekday")
      : undefined;
  const move = (up: boolean) =>
    value && typed.type(shownDay(new Date(at + (up ? 1 : -1) * 86_400_000).toISOString().slice(0, 10)));
  return (
    <Field label={label} error={error ?? typed.problem} hint={weekday}>
      {(control) => (
        <TextAndDay
          label={label}
          control={control}
          typed={typed}
          day={value}
          onDay={(day) => typed.type(shownDay(day))}
          onStep={(_text, _caret, up) => move(up)}
        />
      )}
    </Field>
  );
}

/** Asks for a time of day, such as "09:00". */
export function ClockField(props: Omit<DayProps, "optional"> & { hint?: string | undefined }) {
  const { label, value, onChange, error, wrong, hint } = props;
  const typed = useTyped<string>({
    value: value || null,
    show: (clock) => clock,
    read: readClock,
    onChange: (clock) => onChange(clock ?? ""),
    wrong,
  });
  return (
    <Field label={label} hint={hint} error={error ?? typed.problem}>
      {(control) => (
        <input
          {...control}
          type="text"
          class="clock"
          autoComplete="off"
          maxLength={8}
          value={typed.text}
          onInput={(event) => typed.type(event.currentTarget.value)}
          onBlur={typed.leave}
        />
      )}
    </Field>
  );
}

interface TextAndDayProps {
  label: string;
  control: ControlProps;
  typed: Typed;
  /** Marked in the month that the button opens. */
  day: string;
  onDay: (day: string) => void;
  onStep: (text: string, caret: number, up: boolean) => void;
  onEnter?: (() => void) | undefined;
  onLeave?: (() => void) | undefined;
}

/** The text, and beside it the browser's own month to choose a day of. */
function TextAndDay({ label, control, typed, day, onDay, onStep, onEnter, onLeave }: TextAndDayProps) {
  const month = useRef<HTMLInputElement>(null);
  return (
    <span class="moment-input">
      <input
        {...control}
        type="text"
        autoComplete="off"
        spellcheck={false}
        maxLength={60}
        value={typed.text}
        onFocus={onEnter}
        onInput={(event) => typed.type(event.currentTarget.value)}
        onBlur={() => {
          typed.leave();
          onLeave?.();
        }}
        onKeyDown={(event) => {
          if ((event.key !== "ArrowUp" && event.key !== "ArrowDown") || event.altKey) return;
          event.preventDefault();
          const { value, selectionStart } = event.currentTarget;
          onStep(value, selectionStart ?? 0, event.key === "ArrowUp");
        }}
      />
      <button
        type="button"
        class="quiet square"
        aria-label={`${label}: choose a day`}
        title="Choose a day"
        onClick={() => month.current?.showPicker()}
      >
        <Icon of={CalendarDays} />
      </button>
      <input
        ref={month}
        type="date"
        class="month-anchor"
        tabIndex={-1}
        aria-hidden="true"
        value={day}
        onChange={(event) => event.currentTarget.value && onDay(event.currentTarget.value)}
      />
    </span>
  );
}
