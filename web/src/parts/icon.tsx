// SPDX-License-Identifier: Apache-2.0
/** Icons of Lucide; only those that are imported are in the bundle. */
import type { IconNode } from "lucide";
import { h } from "preact";

/** Draws an icon beside a text that says the same; for an icon alone give its button an aria-label. */
export function Icon({ of, size = 18 }: { of: IconNode; size?: number }) {
  return (
    <svg
      class="icon"
      aria-hidden="true"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="2"
      stroke-linecap="round"
      stroke-linejoin="round"
    >
      {of.map(([tag, attributes]) => h(tag, attributes))}
    </svg>
  );
}
