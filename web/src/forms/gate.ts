// SPDX-License-Identifier: Apache-2.0
/** Whether what a form shows may be acted on. Pure. All forms ask here, so that none does anything else than it shows. */

/** What the service has answered, with the question that it is an answer to. */
export interface Answered<T> {
  /** Null: nothing was answered yet. */
  of: string | null;
  data: T | null;
  error: unknown;
}

/** What a form shows at one moment. */
export interface Shown<T> {
  /** How many fields show what is no value: half typed, emptied, an end before the start. */
  unsettled: number;
  /** What its fields ask, as it is sent; null: something is missing. */
  question: string | null;
  answered: Answered<T>;
}

/** Returns the answer to a question; null if what was answered last is about another one. */
export function answerTo<T>(question: string | null, answered: Answered<T>): Answered<T> | null {
  return question !== null && answered.of === question ? answered : null;
}

/** Returns the answer that may be acted on: that to just what all fields show. */
export function actionable<T>({ unsettled, question, answered }: Shown<T>): T | null {
  return unsettled > 0 ? null : (answerTo(question, answered)?.data ?? null);
}

/** Two instants of which the second is to be later; null: what is typed is none. */
export interface Span {
  start: number | null;
  end: number | null;
}

/** Returns what is wrong with the order of two instants, as a sentence beside the end; undefined if nothing is. */
export function disorder({ start, end }: Span): string | undefined {
  if (start === null || end === null || end > start) return undefined;
  return "The end has to be after the start.";
}

/** Returns the instants once the field of the start is left: as long as it was before, wherever it starts. */
export function keptLength(now: Span, before: Span): Span {
  if (now.start === null || now.end !== before.end || before.start === null || before.end === null) return now;
  if (now.start === before.start || before.end <= before.start) return now;
  return { start: now.start, end: now.start + (before.end - before.start) };
}

/** Returns the instants once the field of the start is left: a start beyond the end takes it along, as long as it was before. */
export function afterStart(now: Span, before: Span): Span {
  const { start, end } = now;
  if (start === null || end === null || end > start) return now;
  if (before.start === null || before.end === null || before.end <= before.start) return now;
  return { start, end: start + (before.end - before.start) };
}
