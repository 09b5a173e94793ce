// SPDX-License-Identifier: Apache-2.0
/** In the dialog that books, behind "More": when it starts, how often it recurs, what happens at the end. */
import { useRef } from "preact/hooks";
import { parametersOf } from "../../api/kinds.ts";
import { info, may } from "../../api/session.ts";
import type { BeforeEnd } from "../../api/types.ts";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Field } from "../../parts/field.tsx";
import { KeepsField } from "../../parts/keeps.tsx";
import { MostField } from "../../parts/most.tsx";
import { RemindersField } from "../../parts/reminders.tsx";
import { moment, spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import {
  type Booking,
  type Plan,
  type Subject,
  boundsPrice,
  lengthAsked,
  mayKeep,
  misplaced,
} from "../../words/booking.ts";
import { endChoices, reminders } from "../../words/endings.ts";
import { endInWords, whatOf } from "../../words/lease.ts";
import { wishOf } from "../../words/question.ts";
import { FlexibleField } from "./flexible.tsx";
import { HeldField, KindField, MoreField, TriesField } from "./kinds.tsx";
import { RepeatField } from "./repeat.tsx";

const FIVE_MINUTES = 300_000;

interface DetailProps {
  subject: Subject;
  form: Booking;
  plan: Plan;
  /** Things have prices. */
  priced: boolean;
  errors: ReadonlyMap<string, string>;
  edit: (part: Partial<Booking>) => void;
}

/** All of it; it opens by itself if something in it was refused. */
export function DetailFields(props: DetailProps) {
  const { subject, form, plan, errors, edit } = props;
  const box = useRef<HTMLDetailsElement>(null);
  // What comes from a lease that is booked again is seen.
  const again = useRef(form.reminders.length > 0).current;
  const refused = [...errors.keys()].some((one) => !["/name", "/wait", "/end_date"].includes(one));
  if (refused && box.current) box.current.open = true;
  const waits = plan.way === "waits";
  const mostHeld = Math.min(plan.holdable, Math.floor((info.value?.confirm_within_seconds ?? 0) / 60));
  const placed = !waits && !subject.question.exactly && subject.last - subject.first >= FIVE_MINUTES;
  return (
    <details class="more-fields" ref={box} open={again}>
      <summary>More</summary>
      <div class="stack roomy">
        {placed && (
          <DateTimeField
            label={`Start (any time until ${spoken(subject.last, zone.value, present.value)})`}
            value={form.start}
            error={errors.get("/start_date")}
            wrong={misplaced(subject, form.start, zone.value, present.value)}
            onChange={(start) => edit({ start })}
          />
        )}
        {waits ? <WaitingDetails {...props} /> : <PlacedDetails {...props} />}
        {props.priced && boundsPrice(plan) && (
          <MostField
            label={waits ? "May cost at most" : "Each may cost at most"}
            hint={waits ? "It goes on waiting while its start would cost more." : "One that costs more is not booked."}
            value={form.most}
            error={errors.get("/max_price")}
            onChange={(most) => edit({ most })}
          />
        )}
        <EndFields {...props} />
        <RemindersField
          value={form.reminders}
          dates={waits ? { start: null, end: null } : { ...plan, recurs: plan.way === "recurs" }}
          errors={errors}
          onChange={(reminders) => edit({ reminders })}
        />
        {mayKeep(subject, plan) && <KeepsField keeps={form.keeps} onChange={(keeps) => edit({ keeps })} />}
        {mostHeld > 0 && (
          <HeldField
            held={form.held}
            most={mostHeld}
            error={errors.get("/confirm_within")}
            onChange={(held) => edit({ held })}
          />
        )}
        {plan.way !== "recurs" && (
          <MoreField
            more={form.more}
            end={waits ? null : plan.end}
            length={subject.question.exactly ? "P1D" : subject.question.length}
            error={errors.get("/extend_if_free")}
            onChange={(more) => edit({ more })}
          />
        )}
      </div>
    </details>
  );
}

function WaitingDetails({ subject, form, plan, errors, edit }: DetailProps) {
  return (
    <>
      <FlexibleField
        value={form.flexible}
        length={lengthAsked(subject)}
        first={plan.start}
        until={form.patience ?? plan.start}
        errors={{ latest: errors.get("/wait/latest"), atLeast: errors.get("/wait/at_least") }}
        onChange={(flexible) => edit({ flexible })}
      />
      <TriesField
        tries={form.tries}
        error={errors.get("/wait/tries") ?? errors.get("/kind")}
        onChange={(tries) => edit({ tries })}
      />
    </>
  );
}

function PlacedDetails({ form, plan, errors, edit }: DetailProps) {
  return (
    <>
      {plan.atOnce && plan.way !== "recurs" && (
        <KindField kind={form.kind} error={errors.get("/kind")} onChange={(kind) => edit({ kind })} />
      )}
      {plan.way !== "immediate" && may("blazar:series:post") && (
        <RepeatField
          repeat={form.repeat}
          start={plan.start}
          errors={{ rule: errors.get("/rule"), start: errors.get("/start") }}
          onChange={(repeat) => edit({ repeat })}
        />
      )}
    </>
  );
}

/** What happens at the end to each reservation, and the reminder. */
function EndFields({ subject, form, plan, errors, edit }: DetailProps) {
  const { wants } = subject.question;
  const { ends, remind } = form;
  const put = (index: number, end: BeforeEnd) => edit({ ends: ends.map((old, at) => (at === index ? end : old)) });
  return (
    <>
      {wants.map(
        (want, index) =>
          want.type !== "virtual:floatingip" && (
            <Field
              key={index}
              label={wants.length > 1 ? `At the end of the ${whatOf(wishOf(want))}` : "At the end"}
              hint={ends[index] === "default" ? endHint(want.type) : undefined}
            >
              {(control) => (
                <select
                  {...control}
                  value={ends[index]}
                  onChange={(event) => put(index, event.currentTarget.value as BeforeEnd)}
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
        error={errors.get("/before_end_date")}
        hint={plan.way === "waits" ? undefined : remindHint(plan.end, remind)}
      >
        {(control) => (
          <select {...control} value={remind} onChange={(event) => edit({ remind: event.currentTarget.value })}>
            {reminders(subject.length, info.value?.before_end?.lead_seconds ?? 3600).map((one) => (
              <option key={one.value} value={one.value}>
                {one.text}
              </option>
            ))}
          </select>
        )}
      </Field>
    </>
  );
}

function endHint(type: string): string {
  return `Here ${endInWords(info.value?.before_end?.default ?? "notification", type)}.`;
}

function remindHint(end: number, remind: string): string {
  const lead = remind === "" ? (info.value?.before_end?.lead_seconds ?? 3600) * 1000 : null;
  return lead === null ? "" : `${moment(end - lead, zone.value, present.value)}`;
}
