// SPDX-License-Identifier: Apache-2.0
/** Changes a lease: name, dates, numbers, what happens at the end. Only what differs is sent. */
import { useEffect, useRef, useState } from "preact/hooks";
import { Changed, changeLease } from "../../api/change.ts";
import { sentencesOf } from "../../api/errors.ts";
import { parametersOf } from "../../api/kinds.ts";
import { info } from "../../api/session.ts";
import type { BeforeEnd, Lease, Reservation } from "../../api/types.ts";
import { disorder } from "../../forms/gate.ts";
import { SchemaFields } from "../../forms/schema-fields.tsx";
import { type FormField, fieldsOf as schemaFields, labelsOf, setIn, setsOf } from "../../forms/schema.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { NumberInput } from "../../parts/number.tsx";
import { RemindersField, reminderPointers } from "../../parts/reminders.tsx";
import { endChoices } from "../../words/endings.ts";
import { capital, sentence } from "../../words/events.ts";
import type { Fit } from "../../words/fits.ts";
import { nounOf, whatOf } from "../../words/lease.ts";
import {
  type Form,
  type Part,
  changeOf,
  datesOf,
  formOf,
  parametersIn,
  rebased,
  reminderOf,
  withOffer,
} from "../../words/lease-change.ts";
import { bySchema } from "../../words/question.ts";
import { wishesOf } from "../../words/reminders.ts";
import { Granted } from "./cost.tsx";
import { hasBegun } from "./end-now.tsx";
import { FixedFields, isChangeable } from "./fields.tsx";
import { Fits, windowOf } from "./fits.tsx";
import { ChangedNote, type LeaseDialogProps, useAttempt } from "./shared.tsx";

const DAY = 86_400_000;

/** The dialog. */
export function ChangeDialog(props: LeaseDialogProps & { proposed?: Pick<Form, "start" | "end"> }) {
  const { lease, etag, proposed, onDone, onClose } = props;
  const attempt = useAttempt(lease, etag);
  const { seen } = attempt;
  const [form, setForm] = useState<Form>(() => ({ ...formOf(lease), ...datesOf(proposed) }));
  const over = useRef(lease);
  useEffect(() => {
    if (seen === over.current) return;
    const old = over.current;
    over.current = seen;
    setForm((typed) => rebased(typed, old, seen));
  }, [seen]);
  const put = (part: Partial<Form>) => setForm({ ...form, ...part });
  const putPart = (id: string, part: Partial<Part>) =>
    put({ parts: form.parts.map((old) => (old.id === id ? { ...old, ...part } : old)) });
  const begun = hasBegun(seen);
  const change = changeOf(form, seen);
  const nothing = Object.keys(change).length === 0;
  const sent = change.reminders ?? [];
  const pointers = [
    "/name",
    "/start_date",
    "/end_date",
    "/before_end_date",
    "/extend_if_free",
    ...reminderPointers(sent),
  ];
  const whole = (change.reservations ?? []).map((_, index) => `/reservations/${index}`);
  const refused = attempt.error instanceof Changed ? null : attempt.error;
  const named = (change.reservations ?? []).flatMap((part, index) =>
    Object.keys(part).map((name) => `/reservations/${index}/${name}`),
  );
  const labels = (change.reservations ?? []).flatMap(({ id }, index) => {
    const type = seen.reservations.find((one) => one.id === id)?.resource_type;
    return type && bySchema(type) ? [...labelsOf(schemaFields(parametersOf(type)), `/reservations/${index}`)] : [];
  });
  const { fields, others } = sentencesOf(refused, [...pointers, ...whole, ...named], new Map(labels));
  const sentencesFor = (id: string) => {
    const index = change.reservations?.findIndex((one) => one.id === id) ?? -1;
    const start = `/reservations/${index}`;
    const own = [...fields].filter(([pointer]) => pointer === start || pointer.startsWith(`${start}/`));
    return new Map(own.map(([pointer, sentence]) => [pointer.slice(start.length), sentence]));
  };
  const take = (offer: Fit) => {
    attempt.edited();
    setForm(withOffer(form, offer));
  };
  const submit = () => {
    if (nothing) return onClose();
    void attempt.run(async (known, tag) => {
      const { data } = await changeLease(known, tag, changeOf(form, known));
      note(`${data.lease.name} was changed`);
      onDone(data.lease);
    });
  };
  return (
    <Dialog
      title={`Change ${seen.name}`}
      onClose={onClose}
      onSubmit={submit}
      onEdit={attempt.edited}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {attempt.gone ? "Close" : "Cancel"}
          </button>
          {!attempt.gone && (
            <BusyButton type="submit" class="primary" busy={attempt.busy} doing="Changing…">
              Change
            </BusyButton>
          )}
        </>
      }
    >
      <Field label="Name" error={fields.get("/name")}>
        {(control) => (
          <input
            {...control}
            type="text"
            maxLength={80}
            value={form.name}
            onInput={(event) => put({ name: event.currentTarget.value })}
          />
        )}
      </Field>
      {!begun && (
        <DateTimeField
          label="Start"
          value={form.start}
          error={fields.get("/start_date")}
          onChange={(start) => put({ start })}
        />
      )}
      <DateTimeField
        label="End"
        value={form.end}
        error={fields.get("/end_date")}
        wrong={disorder({ start: begun ? Date.parse(seen.start_date) : form.start, end: form.end })}
        onChange={(end) => put({ end })}
      />
      <DateTimeField
        label={form.parts.some((part) => part.beforeEnd === "snapshot") ? "Begin with the images" : "Remind me"}
        value={reminderOf(form, seen, info.value?.before_end?.lead_seconds ?? 3600)}
        optional={seen.before_end_date === null}
        error={fields.get("/before_end_date")}
        onChange={(remind) => put({ remind, remindFollows: false })}
      />
      <GoesOnField
        value={form.goesOn}
        proposed={form.end === null ? null : form.end + Math.max(DAY, form.end - (form.start ?? form.end))}
        reason={seen.extend_if_free?.reason ?? null}
        error={fields.get("/extend_if_free")}
        onChange={(goesOn) => put({ goesOn })}
      />
      <RemindersField
        value={form.reminders}
        dates={{ start: begun ? Date.parse(seen.start_date) : form.start, end: form.end }}
        known={wishesOf(seen)}
        errors={fields}
        onChange={(reminders) => put({ reminders })}
      />
      {seen.reservations.map((one) => {
        const part = form.parts.find(({ id }) => id === one.id);
        if (!part) return null;
        return (
          <PartFields
            key={one.id}
            reservation={one}
            part={part}
            errors={sentencesFor(one.id)}
            lease={seen}
            onChange={(changed) => putPart(one.id, changed)}
          />
        );
      })}
      <Fits lease={seen} change={refused ? null : change} yes="This fits." onOffer={take} />
      <ChangedNote error={attempt.error} />
      <FormErrors sentences={others} />
      <Granted error={refused} lease={seen} window={windowOf(seen, change)} onTake={take} />
    </Dialog>
  );
}

/** Whether it goes on by itself, and up to when. */
function GoesOnField(props: {
  value: number | null;
  /** What is filled in first. */
  proposed: number | null;
  /** Why it did not go on so far. */
  reason: string | null;
  error: string | undefined;
  onChange: (until: number | null) => void;
}) {
  const { value, proposed, reason, error, onChange } = props;
  // A field that is emptied to type another date must not be gone.
  const [on, setOn] = useState(value !== null);
  useEffect(() => {
    if (value !== null) setOn(true);
  }, [value]);
  return (
    <div class="stack">
      <label class="check">
        <input
          type="checkbox"
          checked={on}
          onChange={(event) => {
            setOn(event.currentTarget.checked);
            onChange(event.currentTarget.checked ? proposed : null);
          }}
        />
        Keep it as long as nobody else wants it
      </label>
      {on && <DateTimeField label="But not after" value={value} error={error} onChange={onChange} />}
      {on && reason && <p class="hint">Not so far: {sentence(reason)}</p>}
      {!on && error && <p class="field-error">{error}</p>}
    </div>
  );
}

/** Returns how many hosts of a reservation are in use, which it keeps until its end; others can be changed to fewer. */
function heldBy({ resource_type: type, allocations, max }: Reservation, begun: boolean): number {
  return begun && type === "physical:host" ? Math.min(allocations.length, max ?? allocations.length) : 0;
}

interface PartProps {
  lease: Lease;
  reservation: Reservation;
  part: Part;
  /** Sentences by the pointer within the reservation. */
  errors: ReadonlyMap<string, string>;
  onChange: (part: Partial<Part>) => void;
}

function PartFields(props: PartProps) {
  const { lease, reservation, part, errors, onChange } = props;
  const type = reservation.resource_type;
  const noun = nounOf(type);
  const own = bySchema(type);
  const free = (name: string) => isChangeable(type, name, hasBegun(lease));
  const counted = !own && free(reservation.min === undefined ? "amount" : "min");
  // Of a type of which nothing is known, nothing is offered that might be refused.
  const unknown = own && !parametersOf(type);
  const ends = type !== "virtual:floatingip" && !unknown && free("before_end");
  const held = heldBy(reservation, hasBegun(lease));
  // Of whole hosts those without servers are given up in use, too.
  const gives = type === "physical:host";
  const bound = gives ? 1 : held;
  const error = own ? errors.get("") : [...errors.values()].join(" ") || undefined;
  return (
    <fieldset class="part">
      <legend>{capital(whatOf(reservation))}</legend>
      {own && <OwnFields {...props} />}
      {own && error && <p class="field-error">{error}</p>}
      {counted && (
        <Field
          label={reservation.min === undefined ? `How many ${noun}` : `How many ${noun}, from … to …`}
          hint={
            held > 1
              ? gives
                ? `${held} are in use. With fewer, those without servers are given up; to say which, use Give up hosts (under More).`
                : `${held} are in use: until its end it can only grow. To have fewer, end it; or split it (under More) and end the part that is not needed.`
              : undefined
          }
          error={error}
        >
          {(control) => (
            <span class="pair">
              <NumberInput
                control={control}
                min={Math.max(1, Math.min(bound, reservation.min ?? bound))}
                value={part.least}
                onChange={(least) => onChange({ least })}
              />
              {reservation.min !== undefined && (
                <>
                  <span>to</span>
                  <NumberInput
                    label="At most"
                    min={Math.max(part.least, bound)}
                    value={Math.max(part.least, part.most)}
                    onChange={(most) => onChange({ most })}
                  />
                </>
              )}
            </span>
          )}
        </Field>
      )}
      {ends && (
        <Field label="At the end">
          {(control) => (
            <select
              {...control}
              value={part.beforeEnd}
              onChange={(event) => onChange({ beforeEnd: event.currentTarget.value as BeforeEnd })}
            >
              {endChoices(type, parametersOf(type)?.properties?.before_end?.enum).map((choice) => (
                <option key={choice.value} value={choice.value}>
                  {choice.text}
                </option>
              ))}
            </select>
          )}
        </Field>
      )}
      {unknown && <p class="hint">Only the dates of this {nounOf(type, 1)} can be changed here.</p>}
      <FixedFields lease={lease} reservation={reservation} />
    </fieldset>
  );
}

/** The numbers of a type that its schema describes, and what else of it may be changed. */
function OwnFields({ lease, reservation, part, errors, onChange }: PartProps) {
  const type = reservation.resource_type;
  const known = schemaFields(parametersOf(type), ["before_end"]);
  const sets = setsOf(known);
  // What is counted in one way stays so: the fields for the other way are not offered.
  const instead = sets.filter((_, index) => index !== setIn(sets, parametersIn(reservation))).flat();
  const all = known.filter((one) => isChangeable(type, one.name, hasBegun(lease)) && !instead.includes(one));
  const numbers = all.filter((one) => one.control === "number");
  const rest = all.filter((one) => !numbers.includes(one));
  const others = lease.reservations
    .filter((one) => one.id !== reservation.id)
    .map((one) => ({ value: one.id, type: one.resource_type, text: whatOf(one) }));
  const shown = (some: readonly FormField[]) => (
    <SchemaFields
      fields={some}
      values={part.values}
      errors={errors}
      type={type}
      others={others}
      onChange={(values) => onChange({ values })}
    />
  );
  return (
    <>
      {shown(numbers)}
      {rest.length > 0 && (
        <details class="more-fields" open={rest.some(({ name }) => errors.has(`/${name}`))}>
          <summary>More about it</summary>
          <div class="stack roomy">{shown(rest)}</div>
        </details>
      )}
    </>
  );
}
