// SPDX-License-Identifier: Apache-2.0
/** The state of a lease: a shape, a colour and words. */
import { present } from "../time/now.ts";
import { zone } from "../time/zone.ts";
import { type Mark, type Stateful, stateOf } from "../words/lease.ts";
import { estimateOf } from "../words/waiting.ts";

/** The shape alone; words stand beside it. */
export function StateMark({ mark }: { mark: Mark }) {
  return <span class={`mark mark-${mark}`} aria-hidden="true" />;
}

/** Shape, word, and what happens next if that is known; `means` is the tooltip of that. */
export function Phase(props: { mark: Mark; word: string; next?: string; means?: string | undefined }) {
  const { mark, word, next = "", means } = props;
  return (
    <span class={`state state-${mark}`}>
      <StateMark mark={mark} />
      <span class="state-word">{word}</span>
      {next && (
        <span class="state-next" title={means}>
          {next}
        </span>
      )}
    </span>
  );
}

/** The state of a lease. */
export function LeaseState({ lease, brief }: { lease: Stateful; brief?: boolean }) {
  const { mark, word, next } = stateOf(lease, present.value, zone.value);
  return <Phase mark={mark} word={word} next={brief ? "" : next} means={estimateOf(lease)} />;
}
