// SPDX-License-Identifier: Apache-2.0
/** Questions that are POSTs: asked shortly after the last keystroke, and now and then again while the page is looked at. */
import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "./client.ts";
import { Refused } from "./errors.ts";
import { session } from "./session.ts";
import { type Answered, answerTo } from "../forms/gate.ts";

export interface Asked<T> {
  /** The answer to just what is asked now; null while it is awaited. */
  data: T | null;
  /** The last answer, to what was asked before while a newer one is awaited: to be read, not to be acted on. */
  last: T | null;
  /** The refusal of what is asked now. */
  error: unknown;
  /** True while the answer to the present question is awaited. */
  loading: boolean;
  /** Asks once more, at once. */
  again: () => void;
}

const PAUSE_MS = 250;
const NOTHING = { of: null, data: null, error: null };

/** Asks `body` at `path`; null asks nothing. An answer to an older question is never given as one to the present one. */
export function useAsked<T>(
  path: string,
  body: unknown,
  everySeconds = 60,
  method: "POST" | "PUT" | "PATCH" = "POST",
): Asked<T> {
  const sent = body === null ? null : JSON.stringify(body);
  const question = sent === null ? null : `${method} ${path} ${sent}`;
  const [state, setState] = useState<Answered<T>>(NOTHING);
  const [turn, setTurn] = useState(0);
  const asked = useRef<string | null>(null);
  useEffect(() => {
    if (question === null || sent === null) {
      asked.current = null;
      setState(NOTHING);
      return;
    }
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout>;
    const ask = async () => {
      clearTimeout(timer);
      asked.current = question;
      let wait = everySeconds;
      try {
        const answer = await request<T>(method, path, { body: JSON.parse(sent), signal: stop.signal });
        setState({ data: answer.data, error: null, of: question });
      } catch (error) {
        if (stop.signal.aborted) return;
        // Nothing was found out: what is known already stays, if it is about the same.
        setState((old) => ({ data: old.of === question ? old.data : null, error, of: question }));
        if (error instanceof Refused && error.retryAfter !== null) wait = Math.max(1, error.retryAfter);
        else if (!(error instanceof Refused)) wait = 5;
      }
      if (!stop.signal.aborted && !document.hidden) timer = setTimeout(() => void ask(), wait * 1000);
    };
    // The first question and "again" do not wait for further keystrokes.
    timer = setTimeout(() => void ask(), asked.current === null || asked.current === question ? 0 : PAUSE_MS);
    const looked = () => {
      if (!document.hidden) void ask();
    };
    document.addEventListener("visibilitychange", looked);
    return () => {
      stop.abort();
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", looked);
    };
  }, [question, turn, everySeconds, session.value]);
  const answer = answerTo(question, state);
  return {
    data: answer?.data ?? null,
    last: question === null ? null : state.data,
    error: answer?.error ?? null,
    loading: question !== null && answer === null,
    again: () => setTurn((old) => old + 1),
  };
}
