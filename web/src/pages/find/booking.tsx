// SPDX-License-Identifier: Apache-2.0
/** The dialog that books an opening. One key for all attempts, so that a lost answer never books twice. */
import { useRef, useState } from "preact/hooks";
import { newKey, postOnce } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import { parametersOf } from "../../api/kinds.ts";
import { info } from "../../api/session.ts";
import type { BeforeEnd, Lease, Opening, WhyNot } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { go, hrefOf } from "../../router.ts";
import { duration, formatted, moment, range, spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { offsetName, toWire, zone, zoneName } from "../../time/zone.ts";
import { endInWords, whatOf } from "../../words/lease.ts";
import { type Question, bySchema, countOf, lengthInWords, wishOf } from "../../words/question.ts";
import { endChoices, reminders } from "../../words/endings.ts";
import { Why, cut, nowOr, windowOf } from "./openings.tsx";

const MINUTE = 60_000;

/** Asks for a name and what happens at the end, shows the summary, books, and goes to the lease. */
export function BookDialog(props: { question: Question; opening: Opening; onClose: () => void }) {
  const { question, opening, onClose } = props;
  const shown = windowOf(opening);
  const first = shown.start;
  const last = cut(Date.parse(opening.last_start_date));
  const length = shown.end - first;
  const [name, setName] = useState(() => nameOf(question, first));
  const [start, setStart] = useState<number | null>(cut(first));
  const [ends, setEnds] = useState<readonly BeforeEnd[]>(question.wants.map(() => "default"));
  const [remind, setRemind] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const key = useRef(newKey());
  const begins = start === null || start <= first ? first : start;
  const end = begins + length;
  const atOnce = begins <= present.value + MINUTE;
  const pointers = ["/name", "/start_date", "/end_date", "/before_end_date"];
  const { fields, others } = sentencesOf(error, pointers);
  const submit = async () => {
    if (busy) return;
    if (name.trim() === "") {
      setError(missingName());
      return;
    }
    setBusy(true);
    setError(null);
    const body: Record<string, unknown> = {
      name: name.trim(),
      start_date: atOnce ? "now" : toWire(begins),
      // Just what the summary says: the end does not move while the dialog is open.
      end_date: toWire(end),
      time_zone: zone.value,
      reservations: question.wants.map((want, index) => ({ ...wishOf(want), before_end: ends[index] ?? "default" })),
    };
    if (remind) body.before_end_date = `-${remind}`;
    try {
      const { data } = await postOnce<{ lease: Lease }>("v1/leases", body, key.current);
      note(`Booked: ${data.lease.name}`);
      go("lease", { id: data.lease.id });
    } catch (refused) {
      // A definite answer ends this attempt; after a lost one the key stays, whatever is changed.
      if (refused instanceof Refused && refused.status < 500 && !refused.has("request_in_progress"))
        key.current = newKey();
      setError(refused);
      setBusy(false);
    }
  };
  const actions = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <BusyButton type="submit" class="primary" busy={busy} doing="Booking…">
        Book
      </BusyButton>
    </>
  );
  return (
    <Dialog title="Book" onClose={onClose} actions={actions} onSubmit={() => void submit()}>
      <p class="summary">
        <strong>{question.wants.map((want) => whatOf(wishOf(want))).join(" and ")}</strong>
        <br />
        {atOnce ? `now – ${moment(end, zone.value, present.value)}` : range(begins, end, zone.value, present.value)}
        <span class="muted">
          {" "}
          ({question.exactly ? duration(length) : lengthInWords(question.length)}; {zoneName.value},{" "}
          {offsetName(end, zone.value)})
        </span>
      </p>
      <Field label="Name" error={fields.get("/name")} hint="So that you and your project know what it is for.">
        {(control) => (
          <input
            {...control}
            type="text"
            maxLength={80}
            autoComplete="off"
            autoFocus
            onFocus={(event) => event.currentTarget.select()}
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        )}
      </Field>
      {last - first >= 5 * MINUTE && !question.exactly && (
        <DateTimeField
          label={`Start (any time until ${spoken(last, zone.value, present.value)})`}
          value={start}
          min={first}
          error={fields.get("/start_date") ?? outside(start, first, last)}
          onChange={setStart}
        />
      )}
      {question.wants.map(
        (want, index) =>
          want.type !== "virtual:floatingip" && (
            <Field
              key={index}
              label={question.wants.length > 1 ? `At the end of the ${whatOf(wishOf(want))}` : "At the end"}
              hint={ends[index] === "default" ? endHint(want.type) : undefined}
            >
              {(control) => (
                <select
                  {...control}
                  value={ends[index]}
                  onChange={(event) =>
                    setEnds(ends.map((old, at) => (at === index ? (event.currentTarget.value as BeforeEnd) : old)))
                  }
                >
                  {endChoices(want.type, parametersOf(want.type)?.properties?.before_end?.enum).map((one) => (
                    <option key={one.value} value={one.value}>
                      {one.text}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          ),
      )}
      <Field
        label={ends.some((one) => one === "snapshot" || one === "migration") ? "Begin with that" : "Remind me"}
        error={fields.get("/before_end_date")}
        hint={remindHint(end, remind)}
      >
        {(control) => (
          <select {...control} value={remind} onChange={(event) => setRemind(event.currentTarget.value)}>
            {reminders(length, info.value?.before_end.lead_seconds ?? 3600).map((one) => (
              <option key={one.value} value={one.value}>
                {one.text}
              </option>
            ))}
          </select>
        )}
      </Field>
      <FormErrors sentences={[fields.get("/end_date"), ...others].filter((one): one is string => Boolean(one))} />
      <Refusal error={error} question={question} />
    </Dialog>
  );
}

/** Returns a name to begin with, such as "2 hosts on Thu 26 Nov"; typing replaces it. */
function nameOf(question: Question, start: number): string {
  const what = question.wants
    .map((want) => (bySchema(want.type) ? whatOf(wishOf(want)) : countOf(want.count, want.type)))
    .join(" and ");
  return `${what} on ${formatted(start, zone.value, "day")}`.slice(0, 80);
}

function missingName(): Refused {
  const detail = "Give the lease a name.";
  return new Refused(400, [{ status: 400, code: "reservation.missing_field", title: "", detail, pointer: "/name" }]);
}

function outside(start: number | null, first: number, last: number): string | undefined {
  if (start === null) return "Type a date and a time.";
  // What is typed has whole minutes.
  if (start < first - MINUTE || start > last)
    return `This opening is for starts from ${nowOr(first)} until ${spoken(last, zone.value, present.value)}.`;
  return undefined;
}

function endHint(type: string): string {
  return `Here ${endInWords(info.value?.before_end.default ?? "notification", type)}.`;
}

function remindHint(end: number, remind: string): string {
  const lead = remind === "" ? (info.value?.before_end.lead_seconds ?? 3600) * 1000 : null;
  return lead === null ? "" : `${moment(end - lead, zone.value, present.value)}`;
}

/** What a refusal says beyond its sentence: why, and that an earlier attempt may have been granted. */
function Refusal({ error, question }: { error: unknown; question: Question }) {
  if (!(error instanceof Refused)) return null;
  if (error.has("idempotency_key_reused")) {
    return (
      <p class="hint">
        An earlier attempt, whose answer was lost, has been booked with other values.{" "}
        <a href={hrefOf("leases")}>My leases</a> shows it.
      </p>
    );
  }
  const reasons = error.data("not_enough_resources")?.reasons as unknown as WhyNot[] | undefined;
  if (!reasons || reasons.length === 0) return null;
  return <Why question={question} reasons={reasons} />;
}
