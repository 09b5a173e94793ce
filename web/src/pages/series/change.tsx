// SPDX-License-Identifier: Apache-2.0
/** The dialog that changes what recurs: all that is to come, or from one of them on. The list of what comes of it first. */
import { useRef, useState } from "preact/hooks";
import { useAsked } from "../../api/ask.ts";
import { request } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import type { Series, Wish } from "../../api/types.ts";
import { useNewFields } from "../../parts/settled.tsx";
import { note } from "../../parts/announce.tsx";
import { BusyButton } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { ClockField, DayField } from "../../parts/datetime.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { KeepsField } from "../../parts/keeps.tsx";
import { LengthInput } from "../../parts/length.tsx";
import { MostField } from "../../parts/most.tsx";
import { NumberInput } from "../../parts/number.tsx";
import { RemindersField, reminderPointers } from "../../parts/reminders.tsx";
import { spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { fromWall, shortName, zone } from "../../time/zone.ts";
import { capital } from "../../words/events.ts";
import { nounOf } from "../../words/lease.ts";
import { changeInWords, changeOf, formOf, scopeOf } from "../../words/series-change.ts";
import { type Every, firstFitting, firstGranted, repeats, ruleInWords } from "../../words/series.ts";
import { FirstOnes } from "../search/repeat.tsx";
import { Occurrences } from "./occurrences.tsx";

const POINTERS = ["/name", "/start", "/until_local", "/duration", "/rule", "/reservations", "/max_price", "/from"];

interface ChangeProps {
  series: Series;
  /** The first occurrence that changes; null: all that have not begun. */
  since: string | null;
  onDone: (series: Series) => void;
  onClose: () => void;
}

/** Asks what changes, says what comes of it, and changes it. */
export function ChangeSeriesDialog({ series, since, onDone, onClose }: ChangeProps) {
  const opened = useRef(present.value).current;
  const shown = useRef(formOf(series, since, opened)).current;
  const scope = scopeOf(series, since, opened);
  const [form, setForm] = useState(shown);
  const [changed, setChanged] = useState(false);
  const [some, setSome] = useState(series.fit === "as_many");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const edit = (part: Partial<typeof form>) => {
    setForm({ ...form, ...part });
    setError(null);
  };
  const change = changeOf(series, since, shown, form);
  const empty = Object.keys(change).length === 0;
  const all = { ...change, ...(changed ? { changed: true } : {}) };
  const path = `v1/series/${series.id}`;
  const inputs = useNewFields();
  const settled = inputs.unsettled === 0;
  const asked = useAsked<{ series: Series }>(
    `${path}?dry_run=true`,
    // While a field shows what is no value, nothing of it is known.
    empty || form.name.trim() === "" || !settled ? null : { ...all, fit: "as_many" },
    120,
    "PUT",
  );
  const found = asked.data?.series.occurrences ?? [];
  const first = found[0] ?? scope[0];
  const unfit = found.filter((one) => one.state === "unfit");
  const denied = error ?? asked.error;
  const granted = denied instanceof Refused ? firstGranted(denied.data("limit_exceeded")) : null;
  const { fields, others } = sentencesOf(denied, [...POINTERS, ...reminderPointers(form.reminders)]);
  const submit = async () => {
    if (busy || !settled) return;
    if (empty) return onClose();
    setBusy(true);
    setError(null);
    try {
      const { data } = await request<{ series: Series }>("PUT", path, {
        body: { ...all, ...(some || series.fit === "as_many" ? { fit: some ? "as_many" : "all" } : {}) },
      });
      note(`${data.series.name} is changed`);
      onDone(data.series);
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  const at = since === null ? null : fromWall(since.slice(0, 16), series.time_zone)?.at;
  const where = series.time_zone === zone.value ? undefined : `Times of day in ${shortName(series.time_zone)}.`;
  const wall = `${form.day}T${form.start}`;
  return (
    <Dialog
      title={at ? `Change ${series.name} from ${spoken(at, zone.value, opened)} on` : `Change all of ${series.name}`}
      wide
      fields={inputs}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <BusyButton
            type="submit"
            class="primary"
            busy={busy}
            doing="Changing…"
            disabled={!empty && asked.data === null}
          >
            Change
          </BusyButton>
        </>
      }
    >
      <p class="muted">
        {since === null
          ? "What has begun stays as it is."
          : "Those before stay as they are; the others become a series of their own."}
      </p>
      <Field label="Name" error={fields.get("/name") ?? (form.name.trim() === "" ? "Give it a name." : undefined)}>
        {(control) => (
          <input
            {...control}
            type="text"
            maxLength={80}
            value={form.name}
            onInput={(event) => edit({ name: event.currentTarget.value })}
          />
        )}
      </Field>
      <div class="row clocks">
        <DayField
          label="First day"
          error={fields.get("/start")}
          value={form.day}
          onChange={(day) => day && edit({ day })}
        />
        <ClockField label="From" hint={where} value={form.start} onChange={(start) => start && edit({ start })} />
        {form.end !== null && (
          <ClockField
            label="Until"
            error={fields.get("/until_local")}
            value={form.end}
            onChange={(end) => end && edit({ end })}
          />
        )}
      </div>
      {form.duration !== null && (
        <p class="row">
          <span>each for</span>
          <LengthInput
            label="How long each is"
            value={form.duration}
            wrong={fields.has("/duration")}
            onChange={(duration) => edit({ duration })}
          />
        </p>
      )}
      <Field label="Repeat" error={fields.get("/rule")}>
        {(control) => (
          <select
            {...control}
            value={form.every ?? ""}
            onChange={(event) => edit({ every: (event.currentTarget.value || null) as Every | null })}
          >
            <option value="">as it is: {ruleInWords(series.rule.replace(/;?(UNTIL|COUNT)=[^;]*/, ""))}</option>
            {repeats(wall).map((one) => (
              <option key={one.value} value={one.value}>
                {one.text}
              </option>
            ))}
          </select>
        )}
      </Field>
      <DayField
        label={form.until === "" ? "Until the day (it has no end)" : "Until the day"}
        optional={shown.until === ""}
        wrong={form.until !== "" && form.until < form.day ? "That is before the first day." : undefined}
        value={form.until}
        onChange={(until) => (until || shown.until === "") && edit({ until })}
      />
      {form.reservations.map((wish, index) => (
        <Count
          key={index}
          wish={wish}
          onChange={(next) =>
            edit({ reservations: form.reservations.map((old, place) => (place === index ? next : old)) })
          }
        />
      ))}
      {fields.get("/reservations") && <p class="field-error">{fields.get("/reservations")}</p>}
      <RemindersField
        value={form.reminders}
        dates={{ start: instantOf(first?.start_date), end: instantOf(first?.end_date), recurs: true }}
        known={shown.reminders}
        errors={fields}
        onChange={(reminders) => edit({ reminders })}
      />
      {form.reservations.some((one) => one.resource_type === "physical:host") && (
        <KeepsField keeps={form.keeps} onChange={(keeps) => edit({ keeps })} />
      )}
      {(shown.most !== "" || scope.some((one) => one.price)) && (
        <MostField
          label="Each may cost at most"
          hint="It counts for those that are booked newly."
          value={form.most}
          error={fields.get("/max_price")}
          onChange={(most) => edit({ most })}
        />
      )}
      {scope.some((one) => one.changed) && (
        <label class="check">
          <input type="checkbox" checked={changed} onChange={(event) => setChanged(event.currentTarget.checked)} />
          Change also those that were changed by themselves
        </label>
      )}
      {!empty && (
        <div class="stack" aria-busy={asked.loading}>
          <p class={unfit.length > 0 ? "preview bad" : "preview"} role="status">
            {asked.data ? changeInWords(scope, found) : asked.loading ? "Looking what comes of it…" : ""}
          </p>
          {"reservations" in change && <p class="hint">With other reservations all of them are booked newly.</p>}
          {found.length > 0 && (
            <details>
              <summary>{capital(unfit.length > 0 ? "which do not fit" : "all of them")}</summary>
              <Occurrences occurrences={unfit.length > 0 ? unfit : found} />
            </details>
          )}
          {unfit.length > 0 && (
            <label class="check">
              <input type="checkbox" checked={some} onChange={(event) => setSome(event.currentTarget.checked)} />
              Give up those that do not fit
            </label>
          )}
          <FirstOnes first={granted ?? firstFitting(found)} onUntil={(until) => edit({ until })} />
        </div>
      )}
      <FormErrors sentences={[fields.get("/from"), ...others].filter((one): one is string => Boolean(one))} />
    </Dialog>
  );
}

function instantOf(date: string | undefined): number | null {
  return date === undefined ? null : Date.parse(date);
}

/** How many are reserved. */
function Count({ wish, onChange }: { wish: Wish; onChange: (wish: Wish) => void }) {
  const least = wish.min ?? wish.amount;
  if (least === undefined) return null;
  const single = wish.max === undefined || wish.max === wish.min;
  const noun = nounOf(wish.resource_type, 2);
  const put = (count: number) => {
    if (wish.amount !== undefined) return onChange({ ...wish, amount: count });
    onChange({
      ...wish,
      min: count,
      ...(wish.max === undefined ? {} : { max: single ? count : Math.max(count, wish.max) }),
    });
  };
  return (
    <p class="row">
      <NumberInput label={`How many ${noun}`} value={least} max={100_000} onChange={put} />
      {!single && (
        <>
          <span>to</span>
          <NumberInput
            label={`Up to how many ${noun}`}
            value={wish.max ?? least}
            min={least}
            max={100_000}
            onChange={(max) => onChange({ ...wish, max })}
          />
        </>
      )}
      <span>{noun}</span>
    </p>
  );
}
