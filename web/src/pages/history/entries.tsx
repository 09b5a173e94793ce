// SPDX-License-Identifier: Apache-2.0
/** Entries of histories, in words: what was done, by whom, when, and what that changed. */
import type { ComponentChildren } from "preact";
import { When } from "../../parts/basics.tsx";
import type { Told } from "../../words/history.ts";

/** One entry; `subject` is what it is about, where that is not said already. */
export function Entry({ told, subject }: { told: Told; subject?: ComponentChildren }) {
  const { at, what, who, lines } = told;
  return (
    <li>
      <p>
        <strong>{what}</strong>
        {subject && <>: {subject}</>} by {who}{" "}
        <span class="muted">
          <When at={at} />
        </span>
      </p>
      {lines.map((line, index) => (
        <p class="muted" key={index}>
          {line}
        </p>
      ))}
    </li>
  );
}
