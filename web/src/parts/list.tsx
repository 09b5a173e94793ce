// SPDX-License-Identifier: Apache-2.0
/** Lists in rows: the table, and what stands in its place while there are no rows. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Skeleton, Trouble } from "./basics.tsx";

interface RowsProps {
  /** "": the column of actions, whose head is for screen readers. */
  heads: readonly string[];
  /** Rows: `tr` each. */
  children: ComponentChildren;
}

/** A table that becomes a stack of cards where there is no room for columns. */
export function Rows({ heads, children }: RowsProps) {
  return (
    <div class="table-scroll">
      <table class="list stacked">
        <thead>
          <tr>
            {heads.map((head) => (
              <th scope="col" key={head}>
                {head || <span class="visually-hidden">Actions</span>}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

interface ListProps<T> {
  heads: readonly string[];
  /** Null: they are not read yet. */
  items: readonly T[] | null;
  error: unknown;
  retry: () => void;
  /** Drawn instead of a table without rows. */
  empty: ComponentChildren;
  row: (item: T) => ComponentChildren;
}

/** What was read, in rows. */
export function List<T>({ heads, items, error, retry, empty, row }: ListProps<T>) {
  return (
    <>
      {error !== null && <Trouble error={error} retry={retry} />}
      {!items && error === null && <Skeleton lines={5} />}
      {items?.length === 0 && empty}
      {items && items.length > 0 && <Rows heads={heads}>{items.map(row)}</Rows>}
    </>
  );
}

/** Returns how much of a list is wanted, and what asks for more; another question begins at its beginning. */
export function useMore(asked: string, step: number): { wanted: number; more: () => void } {
  const [size, setSize] = useState({ asked, wanted: step });
  const wanted = size.asked === asked ? size.wanted : step;
  // The more there is, the larger the steps.
  return { wanted, more: () => setSize({ asked, wanted: wanted * 2 }) };
}

/** The foot of a list: how many of all are shown, and a button for more. */
export function More({ shown, count, onMore }: { shown: number; count: number; onMore: () => void }) {
  return (
    <p class="row list-foot">
      <span class="muted" role="status">
        {count > shown ? `${shown} of ${count}` : `${shown} in all`}
      </span>
      {count > shown && (
        <button type="button" class="small" onClick={onMore}>
          Show more
        </button>
      )}
    </p>
  );
}
