// SPDX-License-Identifier: Apache-2.0
/** Find a time: a sentence to fill in, what is free, and openings to book. */
import { Plus } from "lucide";
import { useEffect, useRef, useState } from "preact/hooks";
import { useAsked } from "../../api/ask.ts";
import { usePriceLists } from "../../api/billing.ts";
import { sentencesOf } from "../../api/errors.ts";
import { emptyKinds, kinds, kindsRead, parametersOf } from "../../api/kinds.ts";
import { loadEmptyKinds } from "../../api/load-kinds.ts";
import { info, may } from "../../api/session.ts";
import type { Availability, Opening } from "../../api/types.ts";
import { type Values, fieldsOf, initialValues, known, labelsOf, parted } from "../../forms/schema.ts";
import { FieldsOf, useNewFields } from "../../parts/settled.tsx";
import { announce } from "../../parts/announce.tsx";
import { Empty, PageHead, Skeleton } from "../../parts/basics.tsx";
import { FormErrors } from "../../parts/field.tsx";
import { Icon } from "../../parts/icon.tsx";
import { StateMark } from "../../parts/state.tsx";
import { place, setParams } from "../../router.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { firstFit } from "../../words/booking.ts";
import {
  type Question,
  applied,
  bodyOf,
  lengthInWords,
  lengthOf,
  type Want,
  bySchema,
  missingOf,
  paramsOf,
  questionOf,
} from "../../words/question.ts";
import { withUsualStarts } from "../../words/offers.ts";
import { referables, withoutWant } from "../../words/references.ts";
import { WAITING_MEANS, shortageOf } from "../../words/waiting.ts";
import { BudgetLines } from "../spending/budget-line.tsx";
import { BookDialog, type BookProps } from "./booking.tsx";
import { Alternatives, Limits, Openings, Why, answerInWords } from "./openings.tsx";
import { ShortageNote } from "./shortage.tsx";
import { Strip, isMeasured } from "./strip.tsx";
import { RoomOffer, mayMakeRoom } from "./room.tsx";
import { WantSentence, newOf } from "./want.tsx";
import { AHEAD, WhenSentence, aheadInWords } from "./when.tsx";

/** The home page. */
export function FindPage() {
  const { question, ask } = useQuestion();
  const waits = !kindsRead.value && question.wants.some((want) => bySchema(want.type));
  const asked = useAsked<{ availability: Availability }>(
    "v1/availability",
    waits ? null : bodyOf(question, zone.value, 8, parametersOf),
  );
  // What is on the page is read while the next answer is awaited; only the answer to what the fields ask is booked.
  const found = asked.data?.availability ?? null;
  const fields = useNewFields();
  const lists = usePriceLists();
  const [booked, setBooked] = useState<Omit<BookProps, "onClose" | "onTake"> | null>(null);
  const book = (opening: Opening | null) => {
    const marked = (place.value.params.get("marked") ?? "").split(",").filter(Boolean);
    // Where nothing is free there is no opening to tell by.
    const listed = (lists?.state.value.data?.price_lists.length ?? 0) > 0;
    const priced = opening === null ? listed : (found?.openings.some(({ price }) => Boolean(price)) ?? false);
    const promising = found?.openings[0]?.price ?? null;
    setBooked({ opening, question, fits: firstFit(found), promising, marked, priced });
    if (!opening) setParams({ book: "wait" });
  };
  // What was refused is not what half typed fields show.
  const { errors, others } = split(fields.unsettled > 0 ? null : asked.error, question);
  const listed = opened(question, found);
  useEffect(() => {
    if (found) announce(answerInWords(listed));
  }, [found === null, listed[0]?.start_date, listed.length]);
  useBookAtOnce(found, book);
  // Nobody waits for this: it is asked once the first answer is there.
  useEffect(() => {
    if (found && kinds.value.length > 0 && emptyKinds.value === null) void loadEmptyKinds();
  }, [found === null, kindsRead.value]);
  // A form of which nothing is known cannot be filled in.
  const types = info.value?.resource_types?.filter((one) => !bySchema(one) || parametersOf(one)) ?? ["physical:host"];
  return (
    <FieldsOf value={fields}>
      <PageHead title="Find a time" lead="Say what you need and for how long. What is free is below." />
      <form class="card find" aria-label="What you need" onSubmit={(event) => event.preventDefault()}>
        {question.wants.map((want, index) => (
          <WantSentence
            key={index}
            want={want}
            types={types}
            lead={index === 0 ? "I need" : "and"}
            errors={errors[index] ?? new Map()}
            others={referables(question, index)}
            onChange={(changed) =>
              ask({ ...question, wants: question.wants.map((old, at) => (at === index ? changed : old)) })
            }
            onRemove={question.wants.length > 1 ? () => ask(withoutWant(question, index)) : undefined}
          />
        ))}
        <WhenSentence question={question} onChange={ask} />
        <button
          type="button"
          class="quiet small add-want"
          onClick={() => ask({ ...question, wants: [...question.wants, newOf(otherType(question, types))] })}
        >
          <Icon of={Plus} size={16} /> Together with something else
        </button>
        <FormErrors sentences={others} />
      </form>
      <div class="free-now">
        {question.wants
          .filter((want) => missingOf(want, parametersOf) === null && isMeasured(want))
          .map((want, index) => (
            <Strip
              key={index}
              want={want}
              from={question.exactly?.start ?? question.from}
              to={horizon(question, found)}
              openings={listed}
              onPick={(from) =>
                ask({ ...question, exactly: null, from: from <= present.value ? null : from, to: null })
              }
              onDraw={(exactly) => ask({ ...question, exactly })}
            />
          ))}
      </div>
      <Results
        question={question}
        found={asked.last && { ...asked.last.availability, openings: opened(question, asked.last.availability) }}
        current={found !== null && fields.unsettled === 0}
        loading={asked.loading}
        failed={asked.error !== null}
        ask={ask}
        onBook={book}
      />
      {booked && (
        <BookDialog
          {...booked}
          onTake={(one) => {
            setBooked(null);
            ask(taken(booked.question, one));
          }}
          onClose={() => {
            setBooked(null);
            setParams({ book: null });
          }}
        />
      )}
    </FieldsOf>
  );
}

interface ResultsProps {
  question: Question;
  /** The last answer. */
  found: Availability | null;
  /** It is the answer to what all fields show; else it is dimmed, and nothing in it can be pressed. */
  current: boolean;
  loading: boolean;
  failed: boolean;
  ask: (question: Question) => void;
  /** Null: it waits in line. */
  onBook: (opening: Opening | null) => void;
}

function Results({ question, found, current, loading, failed, ask, onBook }: ResultsProps) {
  const missing = question.wants.map((want) => missingOf(want, parametersOf)).find((one) => one !== null);
  if (missing) {
    const own = missing === "flavor" || missing === "network";
    return (
      <Empty title={own ? `Which ${missing}?` : `Still needed: ${missing}`}>
        {own ? `Name the ${missing} above` : "Fill it in above"}; then openings are searched.
      </Empty>
    );
  }
  if (failed) return null;
  if (!found) return <Skeleton lines={5} />;
  const none = found.openings.length === 0;
  const first = found.openings[0];
  const late = first !== undefined && found.reasons.length > 0;
  const typeAt = (index: number) => question.wants[index]?.type;
  const short = first === undefined ? shortageOf(found.reasons, typeAt) : null;
  const never = short !== null && short.away.length === 0;
  return (
    <section class={current ? "results" : "results waiting"} aria-busy={loading} aria-label="What fits">
      <fieldset class="plain" disabled={!current}>
        <h2>{headline(question, none)}</h2>
        <BudgetLines
          at={first ? Date.parse(first.start_date) : present.value}
          end={first ? Date.parse(first.end_date) : null}
          types={question.wants.map(({ type }) => type)}
        />
        {none && <Why question={question} reasons={found.reasons} proof={found.proof} />}
        {none && (
          <Alternatives
            question={question}
            alternatives={found.alternatives}
            onTake={(one) => ask(taken(question, one))}
          />
        )}
        {/* What is free may be beyond a limit of the project. */}
        {!late && first !== undefined && first.refusals.length > 0 && (
          <Alternatives
            question={question}
            alternatives={found.alternatives}
            onTake={(one) => ask(taken(question, one))}
          />
        )}
        {none && short === null && <Further question={question} ask={ask} alone={found.alternatives.length === 0} />}
        <div class="openings-and-line">
          {!none && <Openings question={question} found={found} onBook={onBook} />}
          {short !== null && <ShortageNote short={short} want={question.wants[short.index]!} />}
          {isLate(question, first) && may("blazar:leases:post") && (
            <div class="stack">
              {!never && <Line onWait={() => onBook(null)} />}
              {/* Hosts that can be emptied are none of those that anybody can wait for. */}
              {mayMakeRoom(question) && <RoomOffer question={question} />}
            </div>
          )}
        </div>
        {late && (
          <details class="why-not">
            <summary>Why not {question.from === null ? "now" : "at once"}?</summary>
            <Why question={question} reasons={found.reasons} proof={found.proof} />
            <Alternatives
              question={question}
              alternatives={found.alternatives.filter((one) => one.change !== "time")}
              onTake={(one) => ask(taken(question, one))}
            />
          </details>
        )}
        <Limits found={found} />
      </fieldset>
    </section>
  );
}

/** The openings that are offered: of one that may start at any time for days, usual later starts, too. */
function opened(question: Question, found: Availability | null): Opening[] {
  if (!found) return [];
  if (question.exactly) return [...found.openings];
  return withUsualStarts(found.openings, question.length, zone.value, present.value);
}

/** True if nothing fits when it is asked for. */
function isLate(question: Question, first: Opening | undefined): boolean {
  if (!first || question.exactly) return !first;
  return Date.parse(first.start_date) > Math.max(question.from ?? 0, present.value) + 60_000;
}

/** Instead of asking again and again. */
function Line({ onWait }: { onWait: () => void }) {
  return (
    <section class="card line-offer" aria-label="Wait in line">
      <h3>
        <StateMark mark="waiting" /> Or wait in line
      </h3>
      <p>{WAITING_MEANS}</p>
      <button type="button" onClick={onWait}>
        Wait in line…
      </button>
    </section>
  );
}

/** A search that found nothing may go on further ahead. */
function Further({ question, ask, alone }: { question: Question; ask: (question: Question) => void; alone: boolean }) {
  const searched = lengthOf(question.within)?.seconds ?? 0;
  const next = AHEAD.find((one) => (lengthOf(one)?.seconds ?? 0) > searched);
  const hint = alone && <p class="hint">Ask for less, for another time, or take away a property.</p>;
  if (question.exactly || !next) return hint || null;
  return (
    <div class="row">
      <button type="button" onClick={() => ask({ ...question, within: next, to: null })}>
        Search {aheadInWords(next)} ahead
      </button>
      {hint}
    </div>
  );
}

function headline(question: Question, none: boolean): string {
  if (question.exactly) return none ? "This time does not fit" : "This time is free";
  return none ? "Nothing fits in this time" : `Openings for ${lengthInWords(question.length)}`;
}

/** The alternative, over the question; a window that starts now is asked for as "now". */
function taken(question: Question, alternative: Availability["alternatives"][number]): Question {
  const next = applied(question, alternative);
  return next.from !== null && next.from <= present.value + 60_000 ? { ...next, from: null } : next;
}

/** Opens the dialog for the first opening, or to wait in line, if the address says so. */
function useBookAtOnce(found: Availability | null, open: (opening: Opening | null) => void): void {
  const done = useRef(false);
  useEffect(() => {
    if (done.current || !found || !place.value.params.has("book")) return;
    done.current = true;
    const first = found.openings[0];
    if (place.value.params.get("book") === "wait") open(null);
    else if (first) open(first);
    else setParams({ book: null });
  }, [found]);
}

/** The last instant of the strip: what is searched, but not so far that the first openings cannot be seen. */
function horizon(question: Question, found: Availability | null): number {
  const start = question.exactly?.start ?? question.from ?? present.value;
  const length = question.exactly
    ? question.exactly.end - question.exactly.start
    : (lengthOf(question.length)?.seconds ?? 0) * 1000;
  const within = question.to ?? start + (lengthOf(question.within)?.seconds ?? 0) * 1000;
  const shown = found?.openings.slice(0, 4).at(-1)?.end_date;
  const wished = Math.max(shown ? Date.parse(shown) : 0, start + 2 * length, start + 7 * 86_400_000);
  return question.exactly
    ? Math.max(start + 2 * length, start + 7 * 86_400_000)
    : Math.min(Math.max(within, start + length), wished * 1.0);
}

function otherType(question: Question, types: readonly string[]): string {
  const used = question.wants.map((want) => want.type);
  return (
    (used[0] === "virtual:floatingip" ? types[0] : types.find((type) => type === "virtual:floatingip")) ?? used[0]!
  );
}

/** The sentences of a refused question by reservation and by the path in it, and those of the rest. */
function split(error: unknown, question: Question): { errors: Map<string, string>[]; others: string[] } {
  const named = (want: Want) =>
    bySchema(want.type) ? Object.keys(parametersOf(want.type)?.properties ?? {}) : SENTENCE_FIELDS;
  const pointers = question.wants.flatMap((want, index) => named(want).map((name) => `/reservations/${index}/${name}`));
  const whole = question.wants.map((_, index) => `/reservations/${index}`);
  const labels = question.wants.flatMap(({ type }, index) => [
    ...labelsOf(bySchema(type) ? fieldsOf(parametersOf(type)) : [], `/reservations/${index}`),
  ]);
  const { fields, others } = sentencesOf(error, [...pointers, ...whole], new Map(labels));
  const errors = question.wants.map(() => new Map<string, string>());
  for (const [pointer, sentence] of fields) {
    const [, , index, name = ""] = pointer.split("/");
    errors[Number(index)]?.set(name, sentence);
  }
  return { errors, others: [...others] };
}

const SENTENCE_FIELDS = [
  "min",
  "max",
  "amount",
  "vcpus",
  "memory_mb",
  "disk_gb",
  "flavor_id",
  "network_id",
  "affinity",
  "resource_properties",
];

/** The question of the address, with what is too long or too secret to stand there. */
function useQuestion(): { question: Question; ask: (changed: Question) => void } {
  const [held, setHeld] = useState<readonly Values[]>([]);
  const asked = questionOf(place.value.params);
  const wants = asked.wants.map((want, index) => {
    const schema = bySchema(want.type) ? parametersOf(want.type) : undefined;
    if (!schema) return want;
    const open = Object.keys(want.values).length > 0 ? want.values : initialValues(schema);
    return { ...want, values: known(schema, { ...open, ...held[index] }) };
  });
  const ask = (changed: Question) => {
    const parts = changed.wants.map((want) => parted(parametersOf(want.type), want.values));
    setHeld(parts.map((one) => one.held));
    const open = changed.wants.map((want, index) => ({ ...want, values: parts[index]!.open }));
    setParams({ ...paramsOf({ ...changed, wants: open }), book: null });
  };
  return { question: { ...asked, wants }, ask };
}
