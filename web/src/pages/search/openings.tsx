// SPDX-License-Identifier: Apache-2.0
/** The answer to the question: openings to book, or why there is none and what would fit instead. */
import { regions } from "../../api/kinds.ts";
import type { Alternative, Availability, Opening, Proof, Step, WhyNot } from "../../api/types.ts";
import { moment, plural, spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { cut } from "../../words/booking.ts";
import { inWords, nounOf } from "../../words/lease.ts";
import { money } from "../../words/money.ts";
import { costOf } from "../../words/price.ts";
import { foundInWords } from "../../words/offers.ts";
import { wakingInWords } from "../../words/power.ts";
import { movesInWords, proofInWords } from "../../words/proof.ts";
import { type Question, countOf, partAt } from "../../words/question.ts";
import { LaterCost, WouldBeRefused } from "./cost.tsx";
import { alternativeInWords, nowOr, windowOf } from "./told.ts";

const MINUTE = 60_000;

/** The openings, the first one with the page's main action. */
export function Openings(props: { question: Question; found: Availability; onBook: (opening: Opening) => void }) {
  const { question, found, onBook } = props;
  const bookable = found.openings.findIndex((one) => one.refusals.length === 0);
  const priced = found.openings.some(({ price }) => Boolean(price));
  return (
    <ol class="openings">
      {found.openings.map((opening, index) => (
        <li class="opening-item" key={opening.start_date}>
          <OpeningRow
            question={question}
            opening={opening}
            first={index === 0 || opening.last_start_date !== found.openings[0]?.last_start_date}
            main={index === bookable}
            priced={priced}
            onBook={() => onBook(opening)}
          />
        </li>
      ))}
    </ol>
  );
}

interface RowProps {
  question: Question;
  opening: Opening;
  /** Not a later start of the opening above it. */
  first: boolean;
  main: boolean;
  /** Openings have prices. */
  priced: boolean;
  onBook: () => void;
}

function OpeningRow({ question, opening, first, main, priced, onBook }: RowProps) {
  const here = zone.value;
  const now = present.value;
  const { start, end } = windowOf(opening);
  const last = cut(Date.parse(opening.last_start_date));
  const until = opening.open_until === null ? null : cut(Date.parse(opening.open_until));
  const counts = opening.reservations.map(({ count }, index) => foundInWords(question.wants[index], count, first));
  const more: string[] = [];
  for (const [index, { count }] of opening.reservations.entries())
    if (question.wants[index]?.type === "virtual:stack" && count > 1)
      more.push(`its ${count} servers, volumes and addresses`);
  // Where it is and how long it can go on was found out for the first start, and may be otherwise at another one.
  const places = first ? [...new Set(opening.reservations.map((one) => one.region).filter(Boolean))] : [];
  if (regions().length > 0 && places.length > 0) more.push(`in ${places.join(" and ")}`);
  if (first && until === null) more.push("free for longer than was searched");
  else if (first && until !== null && until - end >= 5 * MINUTE)
    more.push(`can go on until ${spoken(until, here, now)}`);
  if (opening.price) more.push(`costs ${costOf(opening.price)}`);
  if (first && !question.exactly && last - start >= 5 * MINUTE)
    more.push(`or start any time until ${spoken(last, here, now)}`);
  const window = `${nowOr(start)} until ${spoken(end, here, now)}`;
  return (
    <article class={opening.refusals.length > 0 ? "opening refused" : "opening"}>
      <div class="opening-text">
        <h3>
          <time dateTime={toWire(start)} title={`${moment(start, "UTC", now)} UTC`}>
            {nowOr(start)}
          </time>{" "}
          <span class="muted">until</span>{" "}
          <time dateTime={toWire(end)} title={`${moment(end, "UTC", now)} UTC`}>
            {spoken(end, here, now)}
          </time>
        </h3>
        <p class="muted">
          {[`You get ${counts.join(" and ")}`, ...more].join(" · ")}
          {priced && !opening.price && <LaterCost question={question} opening={opening} />}
        </p>
        {(opening.moves_others ?? 0) > 0 && <p class="hint">{movesInWords(opening.moves_others!)}</p>}
        {first && opening.waking && <p class="hint">{`${wakingInWords(opening.waking, here, now)}.`}</p>}
        {opening.refusals.map(({ message }) => (
          <p key={message}>
            <WouldBeRefused text={message} />
          </p>
        ))}
      </div>
      <button type="button" class={main ? "primary" : ""} aria-label={`Book ${window}`} onClick={onBook}>
        Book
      </button>
    </article>
  );
}

/** Why the first window does not fit: what each part of the requirement leaves, as bars that get shorter. */
export function Why(props: { question: Question; reasons: readonly WhyNot[]; proof?: Proof | null | undefined }) {
  const { question, reasons, proof } = props;
  return (
    <div class="why">
      {reasons.map((reason, index) => (
        <Reason key={index} question={question} reason={reason} />
      ))}
      {proof && <p class="hint">{proofInWords(proof, zone.value, present.value)}</p>}
    </div>
  );
}

function Reason({ question, reason }: { question: Question; reason: WhyNot }) {
  const index = Number(reason.pointer.split("/")[2] ?? 0);
  const type = question.wants[index]?.type ?? "physical:host";
  const begin = nowOr(Date.parse(reason.window.start_date));
  const most = Math.max(1, ...reason.steps.map((step) => step.remaining));
  // What a stack takes is of several types: the service's own words say of which this part is.
  const words = type === "virtual:stack" ? reason.message.split("; ").map((one) => one.replace(/^\d+ /, "")) : [];
  return (
    <div class="reason">
      <p>
        {words.length > 0 && "A part of the stack does not fit: "}
        <strong>{reason.free}</strong> of {words.length > 0 ? reason.asked : countOf(reason.asked, type)}{" "}
        {reason.free === 1 ? "is" : "are"} free {begin === "now" ? begin : `from ${begin} on`}, for the whole time.
      </p>
      <ol class="funnel">
        {reason.steps.map((step, at) => (
          <li key={`${step.code}${step.pointer ?? ""}`}>
            <span class="funnel-bar" style={{ width: `${(step.remaining / most) * 100}%` }} aria-hidden="true" />
            <span class="number funnel-count">{step.remaining}</span>
            <span>{stepInWords(step, question, type, words[at])}</span>
          </li>
        ))}
      </ol>
    </div>
  );
}

/** Why a step takes some away. */
const LEFT_OUT: Record<string, string> = {
  cells: "of NUMA cells that do not suit such servers",
  cards: "of cards that such servers cannot be sure to get",
  disabled: "out of use",
  failed: "broken",
  too_small: "too small",
  promised: "booked for a part of that time",
  affinity: "not where the servers may run together",
  topology: "not where they may lie to each other",
  other_reservations: "taken by the other parts of this lease",
  in_use: "in use and booked by others then",
  no_substitute: "no replacement for what must stay",
};

/**
 * Returns what a step of a reason says: "with gpu = A100", "without 3 that are booked for a part of that time; enough are
 * free again from Thursday 14:00".
 */
export function stepInWords(step: Step, question: Question, type: string, words?: string): string {
  switch (step.code) {
    case "registered":
      return `${words ?? nounOf(type, step.remaining)} for your project`;
    case "requirement":
      return words ?? `with ${inWords([partAt(question, step.pointer ?? "")]) || "what you ask for"}`;
    case "traits":
      return "with the traits that are needed";
    default: {
      const why = LEFT_OUT[step.code] ?? step.code.replaceAll("_", " ");
      // Not when all of them are free again.
      const until = step.until ? `; enough are free again from ${nowOr(Date.parse(step.until))}` : "";
      const removed = step.removed ?? 0;
      return `without ${removed > 0 ? `${removed} that ${removed === 1 ? "is" : "are"}` : "those that are"} ${why}${until}`;
    }
  }
}

/** What would fit instead: each a click. */
export function Alternatives(props: {
  question: Question;
  alternatives: readonly Alternative[];
  onTake: (alternative: Alternative) => void;
}) {
  if (props.alternatives.length === 0) return null;
  return (
    <div class="alternatives">
      <h3>What would fit</h3>
      <ul>
        {props.alternatives.map((one) => (
          <li key={one.change}>
            <button type="button" onClick={() => props.onTake(one)}>
              {alternativeInWords(one, props.question)}
              {one.price !== undefined && `, costs ${money(one.price, one.currency ?? "")}`}
            </button>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** What an answer does not say: what was not searched or not asked. */
export function Limits({ found }: { found: Availability }) {
  const sentences: string[] = [];
  if (!found.complete) {
    sentences.push(
      `The search was ended at ${moment(Date.parse(found.searched_until), zone.value, present.value)}: it took too long.`,
    );
  }
  if (found.not_checked.length > 0) sentences.push("A limit that another service keeps is asked only when you book.");
  if (sentences.length === 0) return null;
  return <p class="hint">{sentences.join(" ")}</p>;
}

/** Returns a sentence for a screen reader about the openings that are listed. */
export function answerInWords(listed: readonly Pick<Opening, "start_date">[]): string {
  const [first] = listed;
  if (!first) return "Nothing fits.";
  return `${plural(listed.length, "opening")}, the first ${nowOr(Date.parse(first.start_date))}.`;
}
