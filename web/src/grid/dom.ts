// SPDX-License-Identifier: Apache-2.0
/** Sizes and small helpers that the parts of the grid share. */

/** Height of a line in pixels. */
export const LINE = 30;
/** Height of the header in pixels. */
export const HEADER = 46;
/** Between a preview and its text, in pixels. */
const EDGE = 8;

/** Makes an element with a class. */
export function element(tag: string, className: string): HTMLElement {
  const made = document.createElement(tag);
  if (className) made.className = className;
  return made;
}

/** Places an element across. */
export function placed(one: HTMLElement, left: number, width?: number): HTMLElement {
  one.style.left = `${left}px`;
  if (width !== undefined) one.style.width = `${width}px`;
  return one;
}

/**
 * Moves the text of a preview into what is seen: it may be longer than what it is about, and that may be cut at an edge.
 * `left` is where the preview begins, and `from` to `to` what is seen, in pixels of the same origin.
 */
export function shiftInto(left: number, width: number, from: number, to: number): number {
  return Math.max(from, Math.min(Math.max(left, from), to - width)) - left;
}

/** Puts the text of a preview where all of it is seen. */
export function keepInSight(text: HTMLElement, left: number, box: HTMLElement, names: number): void {
  const [from, to] = [box.scrollLeft + names + EDGE, box.scrollLeft + box.clientWidth - EDGE];
  text.style.maxWidth = `${to - from}px`;
  text.style.left = `${shiftInto(left + EDGE, text.offsetWidth, from, to)}px`;
}

const waiting = new Map<HTMLElement, () => void>();
let asked = false;
const idle: (work: () => void) => void = globalThis.requestIdleCallback ?? ((work) => setTimeout(work, 50));

/** Does a piece of work on an element when the browser is idle, or when `nowFor` is called; the last one given counts. */
export function whenIdle(one: HTMLElement, work: () => void): void {
  waiting.set(one, work);
  if (asked) return;
  asked = true;
  idle(workSome);
}

/** Does at once what waits for an element. */
export function nowFor(one: HTMLElement): void {
  waiting.get(one)?.();
  waiting.delete(one);
}

function workSome(): void {
  const until = performance.now() + 6;
  for (const [one, work] of waiting) {
    waiting.delete(one);
    // Elements that were scrolled away need no sentence.
    if (one.isConnected) work();
    if (performance.now() > until) break;
  }
  asked = waiting.size > 0;
  if (asked) idle(workSome);
}
