// SPDX-License-Identifier: Apache-2.0
/** In the dialog that books: what it costs, how that comes about, and what would be granted where it is too much. */
import { TriangleAlert } from "lucide";
import { Fragment } from "preact";
import { useRef } from "preact/hooks";
import { useAsked } from "../../api/ask.ts";
import { Refused } from "../../api/errors.ts";
import type { Lease, Opening, Price } from "../../api/types.ts";
import { Instead } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icon.tsx";
import { useSettled } from "../../parts/settled.tsx";
import { spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import {
  type Booking,
  type Plan,
  type Subject,
  cut,
  leaseBody,
  newBooking,
  planOf,
  subjectOf,
} from "../../words/booking.ts";
import { type Fit, cheaperOf, grantedOf, shortened } from "../../words/fits.ts";
import { money } from "../../words/money.ts";
import { costOf, isPriceOf, partInWords, priceInWords } from "../../words/price.ts";
import type { Question } from "../../words/question.ts";
import { withinSentence } from "../../words/refusal.ts";
import { alternativeInWords, windowOf } from "./told.ts";

export interface Cost {
  /** Null: it has none, or it is not known yet. */
  price: Price | null;
  /** Of what waits: the start for which that is, in milliseconds; null: that of the plan. */
  at: number | null;
  /** Why it would be refused. */
  error: unknown;
  /** Asks once more, as after a refusal. */
  again: () => void;
}

interface Offered {
  opening: Opening | null;
  /** Things have prices; that of a later start is not known before it is asked for. */
  priced: boolean;
  /** Of what waits: what the first start that is known to fit costs. */
  promising?: Price | null;
  /** How often it is asked again, in seconds. */
  every?: number;
}

/** Returns what a plan costs: at first as the opening says, then as the service says of just what would be booked. */
export function useCost(
  subject: Subject,
  form: Booking,
  plan: Plan,
  { opening, priced, promising = null, every = 60 }: Offered,
): Cost {
  const settled = useSettled();
  // What waits has no price yet: that of the first start that is known to fit is told.
  const waits = plan.way === "waits";
  const at = waits && promising !== null ? subject.fits : null;
  const asks = priced && !waits;
  // A name costs nothing, and is not asked for at each of its letters.
  // The first of a series is never "now", and lasts whole minutes.
  const recurs = plan.way === "recurs";
  const dates = { atOnce: plan.atOnce && !recurs, end: recurs ? cut(plan.end) : plan.end };
  const body = {
    ...leaseBody(subject, form, { ...plan, way: "books", ...dates, name: "price" }, zone.value),
    reminders: [],
  };
  const asked = useAsked<{ lease: Lease }>("v1/leases?dry_run=true", asks && settled ? body : null, every);
  const found = asked.data?.lease.price;
  const known = asks && opening !== null && isPriceOf(opening, plan.start, plan.end) ? (opening.price ?? null) : null;
  const price = found === undefined ? (asked.error === null ? known : null) : found;
  return { price: waits ? promising : price, at, error: asked.error, again: asked.again };
}

/** The line of the summary; of a series it is the price of the first. */
export function PriceLine({ cost, plan, priced }: { cost: Cost; plan: Plan; priced: boolean }) {
  const text = priceOfPlan(cost, plan, priced);
  return (
    <>
      {text !== null && <br />}
      {text}
      <BeyondLimits error={cost.error} />
    </>
  );
}

function priceOfPlan({ price, at }: Cost, plan: Plan, priced: boolean): string | null {
  if (plan.way === "waits" && priced && at === null) return "What it costs is known once it has a start";
  if (price === null) return null;
  const costs = costOf(price);
  if (plan.way === "recurs") return `The first of them costs ${costs}`;
  if (at === null) return priceInWords(price, zone.value, present.value);
  return `Costs ${costs} if it begins ${spoken(at, zone.value, present.value)}; at another start it may cost more or less`;
}

/** Beside an opening: what a later start of it costs, or why that would be refused; the service tells only of the first. */
export function LaterCost({ question, opening }: { question: Question; opening: Opening }) {
  const opened = useRef(present.value).current;
  const subject = subjectOf(question, opening, windowOf(opening), opened);
  const form = newBooking(subject);
  const plan = planOf(subject, form, zone.value, present.value);
  const { price, error } = useCost(subject, form, plan, { opening, priced: true, every: 600 });
  if (price !== null) return ` · costs ${costOf(price)}`;
  return <BeyondLimits error={error} />;
}

/** What limits object to in a plan that is looked at. */
export function BeyondLimits({ error }: { error: unknown }) {
  if (!(error instanceof Refused && error.has("limit_exceeded"))) return null;
  return error.faults.map(({ detail }) => (
    <Fragment key={detail}>
      <br />
      <WouldBeRefused text={detail} />
    </Fragment>
  ));
}

/** What limits object to in an opening. */
export function WouldBeRefused({ text }: { text: string }) {
  return (
    <span class="refusal">
      <Icon of={TriangleAlert} size={16} /> Would be refused: {withinSentence(text, zone.value, present.value)}
    </span>
  );
}

/** How the price comes about. */
export function PriceParts({ price }: { price: Price | null }) {
  const { parts = [], fee = "0", currency = "" } = price ?? {};
  if (parts.length === 0) return null;
  return (
    <details class="price-parts">
      <summary>How the price comes about</summary>
      <ul>
        {parts.map((one, index) => (
          <li key={index}>{partInWords(one, currency)}</li>
        ))}
        {Number(fee) !== 0 && <li>fee {money(fee, currency)}</li>}
      </ul>
    </details>
  );
}

interface AffordableProps {
  error: unknown;
  question: Question;
  plan: Plan;
  onTake: (fit: Fit) => void;
}

/** After a refusal for the price or a limit: what would be granted, each a click. */
export function Affordable({ error, question, plan, onTake }: AffordableProps) {
  const fits = fitsOf(error, question, plan);
  if (fits.length === 0) return null;
  const currency = error instanceof Refused ? error.data("price_exceeds_maximum")?.currency : undefined;
  return (
    <Instead>
      {fits.map((one) => (
        <button key={one.change} type="button" onClick={() => onTake(one)}>
          {alternativeInWords(one, question)}
          {one.price !== undefined && ` (${money(one.price, one.currency ?? String(currency ?? ""))})`}
        </button>
      ))}
    </Instead>
  );
}

function fitsOf(error: unknown, question: Question, plan: Plan): Fit[] {
  if (!(error instanceof Refused)) return [];
  const told = error.has("price_exceeds_maximum")
    ? cheaperOf(error.data("price_exceeds_maximum"))
    : error.has("limit_exceeded")
      ? grantedOf(error.data("limit_exceeded"), plan, question.wants.length === 1)
      : [];
  return plan.atOnce ? told.map(shortened) : told;
}
