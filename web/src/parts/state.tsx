// SPDX-License-Identifier: Apache-2.0
/** The state of a lease: a shape, a colour and words. */
import { present } from "../time/now.ts";
import { zone } from "../time/zone.ts";
import { type Mark, type Stateful, stateOf } from "../words/lease.ts";

/** The shape alone; words stand beside it. */
export function StateMark({ mark }: { mark: Mark }) {
  return <span class={`mark mark-${mark}`} aria-hidden="true" />;
}

/** Shape, word, and what happens next. */
export function LeaseState({ lease, brief }: { lease: Stateful; brief?: boolean }) {
  const state = stateOf(lease, present.value, zone.value);
  return (
    <span class={`state state-${state.mark}`}>
      <StateMark mark={state.mark} />
      <span class="state-word">{state.word}</span>
      {!brief && state.next && <span class="state-next">{state.next}</span>}
    </span>
  );
}
