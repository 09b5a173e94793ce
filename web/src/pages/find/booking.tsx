// SPDX-License-Identifier: Apache-2.0
/** The dialog that books an opening. One key for all attempts, so that a lost answer never books twice. */
import { useRef, useState } from "preact/hooks";
import { newKey, postOnce } from "../../api/client.ts";
import { Refused, Unreachable, sentencesOf } from "../../api/errors.ts";
import { parametersOf } from "../../api/kinds.ts";
import { info, may } from "../../api/session.ts";
import type { BeforeEnd, Lease, LeaseKind, Opening, Series, WhyNot } from "../../api/types.ts";
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
import { type Question, bySchema, countOf, lengthInWords, lengthOf, wishOf } from "../../words/question.ts";
import { inIso } from "../../words/length.ts";
import { type Repeat, whenOf } from "../../words/series.ts";
import { endChoices, reminders } from "../../words/endings.ts";
import { FIXED, type Flexible, FlexibleField, flexibleBody } from "./flexible.tsx";
import { HandingOver, Instead, KindField, MoreField, PatienceField, TriesField } from "./kinds.tsx";
import { FitPreview, RepeatField } from "./repeat.tsx";
import { Why, cut, nowOr, windowOf } from "./openings.tsx";

const MINUTE = 60_000;
const FIVE_MINUTES = 5 * MINUTE;
const WEEK = 7 * 86_400_000;

/** How long an answer to a request for now or not at all may take, with what the service takes to return things. */
const HANDING_OVER_MS = 65_000;

export interface BookProps {
  question: Question;
  /** What is booked; null: it waits in line for its turn. */
  opening: Opening | null;
  onClose: () => void;
}

/** Asks for a name and what happens at the end, shows the summary, books, and goes to the lease. */
export function BookDialog({ question, opening, onClose }: BookProps) {
  const opened = useRef(present.value).current;
  const shown = opening ? windowOf(opening) : unplaced(question, opened);
  const length = shown.end - shown.start;
  const [name, setName] = useState(() => nameOf(question, opening || question.exactly ? shown.start : null));
  const [ends, setEnds] = useState<readonly BeforeEnd[]>(question.wants.map(() => "default"));
  const [remind, setRemind] = useState("");
  const [kind, setKind] = useState<LeaseKind>("scheduled");
  const [patience, setPatience] = useState<number | null>(opening ? null : cut(opened + WEEK));
  const [tries, setTries] = useState<number | null>(null);
  const [flexible, setFlexible] = useState<Flexible>(FIXED);
  const [more, setMore] = useState<string | null>(null);
  // A refusal names a start that delays nobody: taken, it stands in the place of the opening's own.
  const [moved, setMoved] = useState<number | null>(null);
  const first = moved ?? shown.start;
  const last = moved ?? (opening ? cut(Date.parse(opening.last_start_date)) : first);
  const [start, setStart] = useState<number | null>(cut(first));
  const [repeat, setRepeat] = useState<Repeat | null>(null);
  const [some, setSome] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const key = useRef(newKey());
  const begins = start === null || start <= first ? first : start;
  const end = begins + length;
  const atOnce = begins <= present.value + MINUTE;
  const immediate = kind === "immediate" && atOnce && patience === null;
  const recurs = repeat !== null && patience === null && !immediate;
  // A series begins at a time of the clock that is still to come when it is sent.
  const firstOfAll = atOnce ? Math.ceil((opened + MINUTE) / FIVE_MINUTES) * FIVE_MINUTES : begins;
  const handingOver = busy && immediate;
  const pointers = [
    "/name",
    "/rule",
    "/start",
    "/kind",
    "/start_date",
    "/end_date",
    "/before_end_date",
    "/wait",
    "/wait/latest",
    "/wait/at_least",
    "/extend_if_free",
  ];
  // That others wait is said below, with what to do instead.
  const othersWait = error instanceof Refused && error.has("others_wait");
  const { fields, others } = sentencesOf(othersWait ? null : error, pointers);
  const reservations = () =>
    question.wants.map((want, index) => ({ ...wishOf(want), before_end: ends[index] ?? "default" }));
  const seriesBody = (): Record<string, unknown> => ({
    name: name.trim(),
    ...(repeat ? whenOf(repeat, firstOfAll, firstOfAll + length, zone.value) : {}),
    ...(remind ? { before_end_date: `-${remind}` } : {}),
    reservations: reservations(),
  });
  const submitSeries = async () => {
    try {
      const body = { ...seriesBody(), fit: some ? "as_many" : "all" };
      const { data } = await postOnce<{ series: Series }>("v1/series", body, key.current);
      note(`Booked: ${data.series.name}`);
      go("series", { id: data.series.id });
    } catch (refused) {
      failed(refused);
    }
  };
  // A definite answer ends this attempt; after a lost one the key stays, whatever is changed.
  const failed = (refused: unknown) => {
    if (refused instanceof Refused && refused.status < 500 && !refused.has("request_in_progress"))
      key.current = newKey();
    setError(refused);
    setBusy(false);
  };
  const submit = async () => {
    if (busy) return;
    if (name.trim() === "") {
      setError(missingName());
      return;
    }
    setBusy(true);
    setError(null);
    if (recurs) return await submitSeries();
    const body: Record<string, unknown> = {
      name: name.trim(),
      kind: patience !== null && tries !== null ? "retries" : immediate ? "immediate" : "scheduled",
      start_date: atOnce ? "now" : toWire(begins),
      // Just what the summary says: the end does not move while the dialog is open. Who waits gets the whole length.
      end_date: patience !== null && !question.exactly ? `+${question.length}` : toWire(end),
      time_zone: zone.value,
      reservations: reservations(),
    };
    if (remind) body.before_end_date = `-${remind}`;
    if (patience !== null) {
      const counted = tries === null ? {} : { tries };
      body.wait = { until: toWire(patience), ...counted, ...flexibleBody(flexible, toWire) };
    }
    if (more !== null) body.extend_if_free = { until: `+${more}` };
    try {
      // What was wanted at once is not asked for again later by itself.
      const once = immediate ? { attempts: 1, patienceMs: HANDING_OVER_MS } : {};
      const { data } = await postOnce<{ lease: Lease }>("v1/leases", body, key.current, once);
      const { lease } = data;
      note(lease.status === "WAITING" ? `In line: ${lease.name}` : `Booked: ${lease.name}`);
      go("lease", { id: lease.id });
    } catch (refused) {
      failed(refused);
    }
  };
  const changed = <T,>(set: (value: T) => void) => {
    return (value: T) => {
      setError(null);
      set(value);
    };
  };
  const waits = patience !== null;
  const words = waits
    ? { title: "Wait in line", doing: "Asking…", verb: "Wait in line" }
    : recurs
      ? { title: "Book a series", doing: "Booking…", verb: "Book the series" }
      : immediate
        ? { title: "Book", doing: "Handing over…", verb: "Get it now" }
        : { title: "Book", doing: "Booking…", verb: "Book" };
  const actions = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <BusyButton type="submit" class="primary" busy={busy} doing={words.doing}>
        {words.verb}
      </BusyButton>
    </>
  );
  return (
    <Dialog title={words.title} onClose={onClose} actions={actions} onSubmit={() => void submit()}>
      <p class="summary">
        <strong>{question.wants.map((want) => whatOf(wishOf(want))).join(" and ")}</strong>
        <br />
        {waits && !question.exactly
          ? `${question.from === null ? "as soon as it is your turn" : `from ${spoken(first, zone.value, present.value)} on, when it is your turn`}, for ${lengthInWords(question.length)}`
          : recurs
            ? `first ${range(firstOfAll, firstOfAll + length, zone.value, present.value)}`
            : atOnce
              ? `now – ${moment(end, zone.value, present.value)}`
              : range(begins, end, zone.value, present.value)}
        {(!waits || question.exactly) && (
          <span class="muted">
            {" "}
            ({question.exactly ? duration(length) : lengthInWords(question.length)}; {zoneName.value},{" "}
            {offsetName(end, zone.value)})
          </span>
        )}
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
      {waits && <PatienceField patience={patience} error={fields.get("/wait")} onChange={changed(setPatience)} />}
      {waits && (
        <FlexibleField
          value={flexible}
          length={question.exactly ? inIso(length / 1000) : question.length}
          first={first}
          until={patience}
          errors={{ latest: fields.get("/wait/latest"), atLeast: fields.get("/wait/at_least") }}
          onChange={changed(setFlexible)}
        />
      )}
      {waits && (
        <TriesField
          tries={tries}
          error={fields.get("/wait/tries") ?? fields.get("/kind")}
          onChange={changed(setTries)}
        />
      )}
      {atOnce && !waits && !recurs && <KindField kind={kind} error={fields.get("/kind")} onChange={changed(setKind)} />}
      {!waits && !immediate && may("blazar:series:post") && (
        <RepeatField
          repeat={repeat}
          start={firstOfAll}
          errors={{ rule: fields.get("/rule"), start: fields.get("/start") }}
          onChange={changed(setRepeat)}
        />
      )}
      {!waits && last - first >= 5 * MINUTE && !question.exactly && (
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
        hint={waits ? undefined : remindHint(end, remind)}
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
      {recurs && <FitPreview body={{ ...seriesBody(), name: "series" }} some={some} onSome={setSome} />}
      {!recurs && (
        <MoreField
          more={more}
          end={waits ? null : end}
          length={question.exactly ? "P1D" : question.length}
          error={fields.get("/extend_if_free")}
          onChange={changed(setMore)}
        />
      )}
      <FormErrors sentences={[fields.get("/end_date"), ...others].filter((one): one is string => Boolean(one))} />
      <Refusal error={error} question={question} />
      {immediate && isOpen(error) && (
        <p class="hint">
          <a href={hrefOf("leases")}>My leases</a> shows what has become of it.
        </p>
      )}
      <Instead
        error={error}
        onStart={(at) => {
          setMoved(at);
          setStart(at);
          setKind("scheduled");
          setPatience(null);
          setError(null);
        }}
        onWait={waits || recurs ? null : () => changed(setPatience)(cut(present.value + WEEK))}
      />
      {handingOver && <HandingOver />}
    </Dialog>
  );
}

/** True if it is not known what has become of a request. */
function isOpen(error: unknown): boolean {
  if (!(error instanceof Refused)) return error instanceof Unreachable;
  const by = error.faults[0]?.code ?? "";
  // A proxy that gave up has no code.
  return error.has("manager_unavailable") || error.has("request_in_progress") || (error.status >= 500 && by === "");
}

/** The window of what waits: the one that is asked for, or one from the earliest start on. */
function unplaced(question: Question, now: number): { start: number; end: number } {
  if (question.exactly) return question.exactly;
  const start = Math.max(question.from ?? now, now);
  return { start, end: start + (lengthOf(question.length)?.seconds ?? 86_400) * 1000 };
}

/** Returns a name to begin with, such as "2 hosts on Thu 26 Nov"; typing replaces it. */
function nameOf(question: Question, start: number | null): string {
  const what = question.wants
    .map((want) => (bySchema(want.type) ? whatOf(wishOf(want)) : countOf(want.count, want.type)))
    .join(" and ");
  return (start === null ? what : `${what} on ${formatted(start, zone.value, "day")}`).slice(0, 80);
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
