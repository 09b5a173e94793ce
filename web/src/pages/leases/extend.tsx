// SPDX-License-Identifier: Apache-2.0
/** Moves the end of a lease: proposes how far it can go, and tells before it is sent whether an end fits. */
import { useEffect, useState } from "preact/hooks";
import { useAsked } from "../../api/ask.ts";
import { Changed, changeLease } from "../../api/change.ts";
import { plain, sentencesOf } from "../../api/errors.ts";
import type { Availability } from "../../api/types.ts";
import { disorder } from "../../forms/gate.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FormErrors } from "../../parts/field.tsx";
import { duration, moment, spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { addDays, toWire, zone } from "../../time/zone.ts";
import { withinSentence } from "../../words/refusal.ts";
import { CostOfChange, GrantedEnd } from "./cost.tsx";
import { Fits } from "./fits.tsx";
import { ChangedNote, type LeaseDialogProps, useAttempt } from "./shared.tsx";

const MINUTE = 60_000;
const HOUR = 3_600_000;
const USUAL = "+ 1 day";
interface Answer {
  availability: Availability;
}

/** Asks for another end. `proposedEnd` (milliseconds) is filled in, as after a drag in the calendar. */
export function ExtendDialog(props: LeaseDialogProps & { proposedEnd?: number | undefined }) {
  const { lease, onDone, onClose } = props;
  const attempt = useAttempt(lease, props.etag);
  const ends = Date.parse(attempt.seen.end_date);
  const [chosen, setChosen] = useState<number | null>(props.proposedEnd ?? null);
  const far = useAsked<Answer>("v1/availability", { lease_id: lease.id, explain: false, alternatives: false });
  const extension = far.data?.availability.extension ?? null;
  const most = extension?.open_until ? Math.floor(Date.parse(extension.open_until) / MINUTE) * MINUTE : null;
  const steps = stepsOf(ends, most, extension !== null);
  useEffect(() => {
    // The first proposal is a usual one; as far as possible is never chosen for the user.
    if (chosen === null && extension) setChosen((steps.find((step) => step.text === USUAL) ?? steps[0])?.at ?? null);
  }, [extension === null]);
  const later = chosen !== null && chosen > ends;
  const earlier = chosen !== null && chosen < ends;
  const words = earlier ? { title: "Shorten", doing: "Shortening…" } : { title: "Extend", doing: "Extending…" };
  const refused = attempt.error instanceof Changed ? null : attempt.error;
  const { fields, others } = sentencesOf(refused, ["/end_date"]);
  const wrong = wrongEnd(chosen, ends, Date.parse(attempt.seen.start_date));
  const here = zone.value;
  const submit = () => {
    if (!later && !earlier) return;
    void attempt.run(async (seen, etag) => {
      const { data } = await changeLease(seen, etag, { end_date: toWire(chosen) });
      note(`${data.lease.name} ends ${spoken(Date.parse(data.lease.end_date), here, present.value)}`);
      onDone(data.lease);
    });
  };
  return (
    <Dialog
      title={`${words.title} ${attempt.seen.name}`}
      onClose={onClose}
      onSubmit={submit}
      onEdit={attempt.edited}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {attempt.gone ? "Close" : "Cancel"}
          </button>
          {!attempt.gone && (
            <BusyButton type="submit" class="primary" busy={attempt.busy} doing={words.doing}>
              {(later || earlier) && wrong === undefined
                ? `${words.title} until ${spoken(chosen, here, present.value)}`
                : words.title}
            </BusyButton>
          )}
        </>
      }
    >
      <p>
        It ends <strong>{spoken(ends, here, present.value)}</strong>. {farInWords(extension, ends, most, far.error)}
      </p>
      {steps.length > 0 && (
        <fieldset class="chips">
          <legend class="visually-hidden">By how much</legend>
          {steps.map((step) => (
            <button
              key={step.text}
              type="button"
              class="chip"
              aria-pressed={chosen === step.at}
              onClick={() => {
                attempt.edited();
                setChosen(step.at);
              }}
            >
              {step.text}
            </button>
          ))}
        </fieldset>
      )}
      <DateTimeField
        label="New end"
        value={chosen}
        onChange={setChosen}
        error={fields.get("/end_date")}
        wrong={wrong}
      />
      {earlier && wrong === undefined ? (
        <>
          <p class="preview">Others can book what becomes free. What runs then is ended with the lease.</p>
          <CostOfChange lease={attempt.seen} change={refused ? null : { end_date: toWire(chosen) }} />
        </>
      ) : (
        <Fits
          lease={attempt.seen}
          change={later && !refused ? { end_date: toWire(chosen) } : null}
          yes={later ? `This fits: ${duration(chosen - ends)} longer.` : ""}
          onTake={setChosen}
        />
      )}
      <ChangedNote error={attempt.error} />
      <FormErrors sentences={others} />
      <GrantedEnd
        error={refused}
        lease={attempt.seen}
        onTake={(end) => {
          attempt.edited();
          setChosen(end);
        }}
      />
    </Dialog>
  );
}

/** Returns what is wrong with a new end, as a sentence. */
function wrongEnd(chosen: number | null, ends: number, starts: number): string | undefined {
  if (chosen === ends) return "Choose an end other than the present one.";
  return disorder({ start: starts, end: chosen });
}

function stepsOf(ends: number, most: number | null, known: boolean): { text: string; at: number }[] {
  if (!known) return [];
  const here = zone.value;
  const usual = [
    { text: "+ 2 h", at: ends + 2 * HOUR },
    { text: USUAL, at: addDays(ends, here, 1) },
    { text: "+ 3 days", at: addDays(ends, here, 3) },
    { text: "+ 1 week", at: addDays(ends, here, 7) },
  ].filter((step) => most === null || step.at <= most);
  if (most !== null && most > ends && !usual.some((step) => step.at === most)) {
    usual.push({ text: `as far as possible (${moment(most, here, present.value)})`, at: most });
  }
  return usual;
}

function farInWords(extension: Availability["extension"], ends: number, most: number | null, error: unknown): string {
  if (error) return plain(error);
  if (!extension) return "Looking how far it can go…";
  const refused = extension.refusals.map((one) => withinSentence(one.message, zone.value, present.value)).join("; ");
  if (most === null) return `It can go on for as long as can be searched.${refused ? ` ${refused}.` : ""}`;
  if (most <= ends) {
    const why: Record<string, string> = {
      promised: "what it has is booked from then on",
      limit: refused || "a limit of your project ends it there",
      range: "it goes as far as can be searched",
    };
    return `It cannot go on: ${why[extension.limited_by ?? ""] ?? "nothing is free then"}.`;
  }
  const until = spoken(most, zone.value, present.value);
  switch (extension.limited_by) {
    case "promised":
      return `It can go on until ${until}; then what it has is booked.`;
    case "limit":
      return `It can go on until ${until}; then a limit is reached${refused ? `: ${refused}` : ""}.`;
    default:
      return `It can go on at least until ${until}.`;
  }
}
