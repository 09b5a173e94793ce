// SPDX-License-Identifier: Apache-2.0
/** The second half of the sentence: for how long, and when. */
import { useEffect, useRef, useState } from "preact/hooks";
import { type Span, afterStart, disorder } from "../../forms/gate.ts";
import { DateTimeField } from "../../parts/datetime.tsx";
import { LengthInput } from "../../parts/length.tsx";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { usualStarts } from "../../words/offers.ts";
import { lengthInWords, lengthOf, type Question } from "../../words/question.ts";

type Mode = "soon" | "from" | "exactly";
/** How far ahead one may search, as durations. */
export const AHEAD: readonly string[] = ["P7D", "P30D", "P90D", "P365D"];

/** Returns "30 days" or "a year". */
export function aheadInWords(one: string): string {
  return one === "P365D" ? "a year" : lengthInWords(one);
}
const HOUR = 3_600_000;

/** "for 3 days, as soon as possible, searching 30 days ahead". */
export function WhenSentence({ question, onChange }: { question: Question; onChange: (question: Question) => void }) {
  const mode: Mode = question.exactly ? "exactly" : question.from === null ? "soon" : "from";
  const length = (lengthOf(question.length)?.seconds ?? 86_400) * 1000;
  const nextHour = Math.ceil(present.value / HOUR) * HOUR;
  const choose = (chosen: Mode) => {
    const begin = question.exactly?.start ?? question.from ?? nextHour;
    if (chosen === "soon") onChange({ ...question, exactly: null, from: null, to: null });
    else if (chosen === "from") onChange({ ...question, exactly: null, from: begin, to: null });
    else onChange({ ...question, exactly: { start: begin, end: question.exactly?.end ?? begin + length } });
  };
  return (
    <div class="want">
      <div class="sentence">
        {!question.exactly && (
          <>
            <span>for</span>
            <LengthInput
              label="For how long"
              value={question.length}
              onChange={(value) => onChange({ ...question, length: value })}
            />
          </>
        )}
        <select aria-label="When" value={mode} onChange={(event) => choose(event.currentTarget.value as Mode)}>
          <option value="soon">as soon as possible</option>
          <option value="from">not before a date</option>
          <option value="exactly">exactly from … to …</option>
        </select>
        {!question.exactly && (
          <span class="pair">
            <span>within</span>
            <Ahead question={question} onChange={onChange} />
          </span>
        )}
      </div>
      {mode !== "exactly" && <Usual question={question} onChange={onChange} />}
      {mode === "from" && (
        <div class="sentence dates">
          <DateTimeField
            label="Not before"
            value={question.from}
            onChange={(from) => from !== null && onChange({ ...question, from })}
          />
        </div>
      )}
      {question.exactly && <Window question={question} exactly={question.exactly} onChange={onChange} />}
    </div>
  );
}

/** Both dates, as they are typed: the question has them only while the end is after the start. */
function Window(props: {
  question: Question;
  exactly: { start: number; end: number };
  onChange: (question: Question) => void;
}) {
  const { question, exactly, onChange } = props;
  const [span, setSpan] = useState<Span>(exactly);
  // Other dates than those that were typed, as after "back": these are shown.
  useEffect(() => setSpan(exactly), [exactly.start, exactly.end]);
  const entered = useRef<Span>(exactly);
  const put = (next: Span) => {
    setSpan(next);
    const { start, end } = next;
    if (start !== null && end !== null && end > start) onChange({ ...question, exactly: { start, end } });
  };
  return (
    <div class="sentence dates">
      <DateTimeField
        label="Start"
        value={span.start}
        onEnter={() => {
          entered.current = span;
        }}
        onLeave={() => {
          const next = afterStart(span, entered.current);
          if (next !== span) put(next);
        }}
        onChange={(start) => put({ ...span, start })}
      />
      <DateTimeField label="End" value={span.end} wrong={disorder(span)} onChange={(end) => put({ ...span, end })} />
    </div>
  );
}

/** Starts that people often ask for, each a click. */
function Usual({ question, onChange }: { question: Question; onChange: (question: Question) => void }) {
  const starts = usualStarts(present.value, zone.value);
  const choose = (from: number | null) => onChange({ ...question, exactly: null, from, to: null });
  return (
    <fieldset class="chips usual">
      <legend class="visually-hidden">Search from</legend>
      <button type="button" class="chip" aria-pressed={question.from === null} onClick={() => choose(null)}>
        now
      </button>
      {starts.map(({ text, at }) => (
        <button key={text} type="button" class="chip" aria-pressed={question.from === at} onClick={() => choose(at)}>
          {text}
        </button>
      ))}
    </fieldset>
  );
}

function Ahead({ question, onChange }: { question: Question; onChange: (question: Question) => void }) {
  const choices = [...new Set([...AHEAD, ...(question.to === null ? [question.within] : [])])];
  return (
    <select
      aria-label="How far ahead to search"
      value={question.to === null ? question.within : "to"}
      onChange={(event) => onChange({ ...question, within: event.currentTarget.value, to: null })}
    >
      {choices
        .sort((a, b) => (lengthOf(a)?.seconds ?? 0) - (lengthOf(b)?.seconds ?? 0))
        .map((one) => (
          <option key={one} value={one}>
            {aheadInWords(one)}
          </option>
        ))}
      {question.to !== null && <option value="to">{new Date(question.to).toISOString().slice(0, 10)}</option>}
    </select>
  );
}
