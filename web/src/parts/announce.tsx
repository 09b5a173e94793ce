// SPDX-License-Identifier: Apache-2.0
/** One polite live region for the whole page, and short notes at its lower edge. */
import { signal } from "@preact/signals";

const spoken = signal("");
const notes = signal<readonly Note[]>([]);

interface Note {
  id: number;
  text: string;
}

let next = 1;

/** Lets a screen reader say a sentence when it has time. */
export function announce(text: string): void {
  spoken.value = text;
}

/** Shows a sentence for some seconds, and says it. */
export function note(text: string): void {
  const id = next++;
  notes.value = [...notes.value.slice(-2), { id, text }];
  announce(text);
  setTimeout(() => {
    notes.value = notes.value.filter((one) => one.id !== id);
  }, 6000);
}

/** The region; once in the page. */
export function Announcements() {
  return (
    <>
      <div class="visually-hidden" aria-live="polite" role="status">
        {spoken.value}
      </div>
      <div class="notes" aria-hidden="true">
        {notes.value.map((one) => (
          <p class="note" key={one.id}>
            {one.text}
          </p>
        ))}
      </div>
    </>
  );
}
