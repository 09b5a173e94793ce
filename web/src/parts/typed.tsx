// SPDX-License-Identifier: Apache-2.0
/** A text that is typed for a value: what is no value yet stays as it was typed, and is said once typing pauses. */
import { useEffect, useState } from "preact/hooks";
import { useUnsettled } from "./settled.tsx";

const PAUSE_MS = 900;

export interface TypedProps<T> {
  /** Null: nothing typed yet. */
  value: T | null;
  show: (value: T) => string;
  read: (text: string) => { value?: T | undefined; problem?: string | undefined };
  /** Null: what is typed is no value, or nothing. */
  onChange: (value: T | null) => void;
  /** It may be left empty. */
  optional?: boolean | undefined;
  /** What of a value is wrong in this form, as a sentence; nothing is sent meanwhile. */
  wrong?: string | undefined;
}

export interface Typed {
  /** What the control shows. */
  text: string;
  /** To be said beside the control; undefined while all is well or somebody types. */
  problem: string | undefined;
  type: (text: string) => void;
  /** To be called when the control is left: what was understood is shown as it was understood. */
  leave: () => void;
}

/** Keeps what is typed beside what it means. While it means nothing, the form around it sends nothing. */
export function useTyped<T>({ value, show, read, onChange, optional = false, wrong }: TypedProps<T>): Typed {
  const [typed, setTyped] = useState<string | null>(null);
  const [said, setSaid] = useState(false);
  const text = typed ?? (value === null ? "" : show(value));
  const empty = text.trim() === "";
  const found = empty && optional ? {} : read(text);
  const problem = found.problem ?? wrong;
  useUnsettled(problem !== undefined);
  // Another value than the one that was typed, as by a button: that is shown.
  useEffect(() => {
    if (typed === null || value === null) return;
    const meant = read(typed).value;
    if (meant === undefined || show(meant) !== show(value)) setTyped(null);
  }, [value === null ? null : show(value)]);
  useEffect(() => {
    if (said || typed === null) return;
    const timer = setTimeout(() => setSaid(true), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [said, typed]);
  // A field that nobody has typed in is not to blame for being empty; what the form proposed may be wrong at once.
  const shown = typed === null ? value !== null : said;
  return {
    text,
    problem: shown ? problem : undefined,
    type: (next) => {
      setTyped(next);
      setSaid(false);
      onChange(next.trim() === "" ? null : (read(next).value ?? null));
    },
    leave: () => {
      setSaid(true);
      if (found.problem === undefined) setTyped(null);
    },
  };
}
