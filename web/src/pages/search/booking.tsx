// SPDX-License-Identifier: Apache-2.0
/** The dialog that books an opening: a name will do; the rest is behind "More". */
import { useEffect, useRef, useState } from "preact/hooks";
import { Refused, Unreachable, sentencesOf } from "../../api/errors.ts";
import type { Alternative, Opening, Price, WhyNot } from "../../api/types.ts";
import { BusyButton } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { hrefOf, place } from "../../router.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import {
  type Booking,
  type Plan,
  boundsPrice,
  cut,
  impatience,
  newBooking,
  patienceFrom,
  planInWords,
  planOf,
  seriesBody,
  subjectOf,
} from "../../words/booking.ts";
import { whatOf } from "../../words/lease.ts";
import { type Question, wishOf } from "../../words/question.ts";
import { fromAddress } from "../../words/reminders.ts";
import { beforeOf } from "../../words/waiting.ts";
import { wakingInWords } from "../../words/power.ts";
import { BudgetLines } from "../spending/budget-line.tsx";
import { Affordable, PriceLine, PriceParts, useCost } from "./cost.tsx";
import { DetailFields } from "./details.tsx";
import { HandingOver, Instead, PatienceField } from "./kinds.tsx";
import { Why } from "./openings.tsx";
import { reminderPointers } from "../../parts/reminders.tsx";
import { FitPreview } from "./repeat.tsx";
import { useSending } from "./sending.ts";
import { windowOf } from "./told.ts";

export interface BookProps {
  question: Question;
  /** What is booked; null: it waits in line for its turn. */
  opening: Opening | null;
  /** Of what waits: the first start that the page knows to fit; null if it knows none. */
  fits: number | null;
  /** What that start costs. */
  promising: Price | null;
  /** The names of what was marked in the calendar; a lease that has others says so. */
  marked: readonly string[];
  /** Openings have prices. */
  priced: boolean;
  /** Something else is asked for. */
  onTake: (alternative: Alternative) => void;
  onClose: () => void;
}

const POINTERS = [
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
  "/wait/tries",
  "/extend_if_free",
  "/confirm_within",
];

const WORDS: Record<Plan["way"], { title: string; doing: string; verb: string }> = {
  waits: { title: "Wait in line", doing: "Asking…", verb: "Wait in line" },
  recurs: { title: "Book a series", doing: "Booking…", verb: "Book the series" },
  immediate: { title: "Book", doing: "Handing over…", verb: "Get it now" },
  books: { title: "Book", doing: "Booking…", verb: "Book" },
};

/** Asks for a name and what happens at the end, shows the summary, books, and goes to the lease. */
export function BookDialog({ question, opening, fits, promising, marked, priced, onTake, onClose }: BookProps) {
  const opened = useRef(present.value).current;
  const [subject, setSubject] = useState(() =>
    subjectOf(question, opening, opening && windowOf(opening), opened, fits),
  );
  const [form, setForm] = useState<Booking>(() => newBooking(subject, fromAddress(place.value.params.get("remind"))));
  const { busy, error, setError, send } = useSending(marked);
  const edit = (part: Partial<Booking>) => {
    setError(null);
    setForm((old) => ({ ...old, ...part }));
  };
  const now = present.value;
  const plan = planOf(subject, form, zone.value, now);
  const { way } = plan;
  // That others wait is said below, with what to do instead.
  const othersWait = error instanceof Refused && error.has("others_wait");
  const later = othersWait ? (beforeOf(error.data("others_wait"))?.opening ?? null) : null;
  const pointers = [...POINTERS, ...(boundsPrice(plan) ? ["/max_price"] : []), ...reminderPointers(form.reminders)];
  const { fields, others } = sentencesOf(othersWait ? null : error, pointers);
  const fitting = way === "recurs" ? JSON.stringify(seriesBody(subject, form, plan, zone.value)) : null;
  const some = fitting !== null && form.some === fitting;
  const cost = useCost(subject, form, plan, { opening, priced, promising });
  useEffect(() => {
    // The price that was shown is not that of today any more.
    if (error instanceof Refused && (error.has("price_exceeds_maximum") || error.has("quote_lapsed"))) cost.again();
  }, [error]);
  // What waits has no price yet, and so no bound.
  const shown = way === "waits" ? null : cost.price;
  const words = WORDS[way];
  // Of a later start nothing is known; the first one waits as its opening says.
  const waking = way === "books" && plan.start < Date.parse(opening?.waking?.ready_at ?? "") ? opening?.waking : null;
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
    <Dialog
      title={words.title}
      onClose={onClose}
      actions={actions}
      onSubmit={() => void send(subject, form, plan, some, shown)}
    >
      <p class="summary">
        <strong>{question.wants.map((want) => whatOf(wishOf(want))).join(" and ")}</strong>
        <br />
        {planInWords(subject, plan, zone.value, now)}
        <PriceLine cost={cost} plan={plan} priced={priced} />
        {waking && (
          <>
            <br />
            {wakingInWords(waking, zone.value, now)}
          </>
        )}
      </p>
      <PriceParts price={cost.price} />
      {way !== "waits" && <BudgetLines at={plan.start} end={plan.end} types={question.wants.map(({ type }) => type)} />}
      <NameField plan={plan} form={form} error={fields.get("/name")} edit={edit} />
      {way === "waits" && (
        <PatienceField
          patience={form.patience}
          error={fields.get("/wait")}
          wrong={impatience(plan, form.patience, zone.value, now)}
          onChange={(patience) => edit({ patience })}
        />
      )}
      <DetailFields subject={subject} form={form} plan={plan} priced={priced} errors={fields} edit={edit} />
      {fitting !== null && (
        <FitPreview
          body={{ ...JSON.parse(fitting), name: "series" }}
          some={some}
          onSome={(wanted) => edit({ some: wanted ? fitting : null })}
          onUntil={(until) => form.repeat && edit({ repeat: { ...form.repeat, until } })}
        />
      )}
      <FormErrors sentences={[fields.get("/end_date"), ...others].filter((one): one is string => Boolean(one))} />
      <Refusal error={error} question={question} />
      <Affordable error={error} question={question} plan={plan} onTake={onTake} />
      {way === "immediate" && isOpen(error) && (
        <p class="hint">
          <a href={hrefOf("leases")}>My leases</a> shows what has become of it.
        </p>
      )}
      <Instead
        error={error}
        types={question.wants.map(({ type }) => type)}
        onStart={(at) => {
          // A refusal names a start that delays nobody: taken, it stands in the place of the opening's own.
          setSubject({ ...subject, first: at, last: at });
          edit({ start: cut(at), kind: "scheduled", patience: null });
        }}
        onWait={
          way === "waits" || way === "recurs"
            ? null
            : () => edit({ patience: patienceFrom({ first: plan.start, fits: later }, present.value) })
        }
      />
      {busy && way === "immediate" && <HandingOver />}
    </Dialog>
  );
}

interface NameProps {
  plan: Plan;
  form: Booking;
  error: string | undefined;
  edit: (part: Partial<Booking>) => void;
}

/** What is proposed follows what is booked, until something is typed. */
function NameField({ plan, form, error, edit }: NameProps) {
  return (
    <Field label="Name" error={error} hint="So that you and your project know what it is for.">
      {(control) => (
        <input
          {...control}
          type="text"
          maxLength={80}
          autoComplete="off"
          onFocus={(event) => event.currentTarget.select()}
          value={form.name ?? plan.name}
          onInput={(event) => edit({ name: event.currentTarget.value })}
        />
      )}
    </Field>
  );
}

/** True if it is not known what has become of a request. */
function isOpen(error: unknown): boolean {
  if (!(error instanceof Refused)) return error instanceof Unreachable;
  const by = error.faults[0]?.code ?? "";
  // A proxy that gave up has no code.
  return error.has("manager_unavailable") || error.has("request_in_progress") || (error.status >= 500 && by === "");
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
