// SPDX-License-Identifier: Apache-2.0
/** How much of something: a bar in the colours of the pages. */

/** A bar; the number stands beside it. */
export function Bar({ share }: { share: number }) {
  return (
    <span class="bar-of" aria-hidden="true">
      <span style={{ width: `${Math.round(Math.min(1, Math.max(0, share)) * 100)}%` }} />
    </span>
  );
}
