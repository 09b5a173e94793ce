// SPDX-License-Identifier: Apache-2.0
/** The figures of a report in rows, with their sum: hours of each measure, those of which there is nothing left out. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { Bar } from "../../parts/bar.tsx";
import { carbonOf } from "../../words/energy.ts";
import { type Sums, hoursOf, isLookedAt, thousandsOf, percentOf } from "../../words/usage.ts";

interface Column {
  name: Exclude<keyof Sums, "leases" | "energy" | "carbon">;
  head: string;
}

const USE: readonly Column[] = [
  { name: "used", head: "Used" },
  { name: "idle", head: "Idle" },
  { name: "unseen", head: "Not looked at" },
];
const BESIDE: readonly Column[] = [
  { name: "returned", head: "Given back early" },
  { name: "overrun", head: "Beyond the end" },
  { name: "lost", head: "Lost to failures" },
];

/** On a phone each row is a card: of more than so many some are shown. */
const FOLDED_FROM = 10;
const SHOWN_FOLDED = 7;

export interface Figure {
  key: string;
  label: ComponentChildren;
  sums: Sums;
}

interface FiguresProps {
  /** What the rows are, such as "Week". */
  head: string;
  /** Names the table. */
  title: string;
  figures: readonly Figure[];
  sum: Sums;
  /** A lease is in several rows: their numbers have no sum. */
  overlapping?: boolean;
  /** Draws how much of the sum each is. */
  shares?: boolean;
}

/** The table; where it is wider than its room, each row is a card. */
export function Figures({ head, title, figures, sum, overlapping = false, shares = false }: FiguresProps) {
  const [open, setOpen] = useState(false);
  const folded = figures.length > FOLDED_FROM && !open;
  // Days are in their order, and the last ones matter; shares begin with the largest.
  const isFurther = (index: number) => (shares ? index >= SHOWN_FOLDED : index < figures.length - SHOWN_FOLDED);
  const columns = [...(isLookedAt(sum) ? USE : []), ...BESIDE.filter(({ name }) => sum[name] > 0)];
  const cells = (sums: Sums, isSum = false) => (
    <>
      <td class="number" data-head="Reserved">
        {hoursOf(sums.reserved)}
      </td>
      {columns.map(({ name, head: text }) => (
        <td class="number" key={name} data-head={text} title={percentOf(sums[name], sums.reserved)}>
          {hoursOf(sums[name])}
        </td>
      ))}
      {sum.energy !== null && (
        <td class="number" data-head="kWh" title={sums.carbon === null ? "" : carbonOf(sums.carbon)}>
          {sums.energy === null ? "" : thousandsOf(sums.energy)}
        </td>
      )}
      {sum.leases !== null && (
        <td class="number" data-head="Leases">
          {isSum && overlapping ? "" : (sums.leases ?? 0).toLocaleString("en")}
        </td>
      )}
    </>
  );
  return (
    <div class="table-scroll">
      {folded && (
        <button type="button" class="unfold" onClick={() => setOpen(true)}>
          Show all {figures.length}, not only the {shares ? "first" : "last"} {SHOWN_FOLDED}
        </button>
      )}
      <table class={folded ? "list stacked figures folded" : "list stacked figures"}>
        <caption class="visually-hidden">{title}, in hours</caption>
        <thead>
          <tr>
            <th scope="col">{head}</th>
            <th scope="col">Reserved</th>
            {columns.map((column) => (
              <th scope="col" key={column.name}>
                {column.head}
              </th>
            ))}
            {sum.energy !== null && (
              <th
                scope="col"
                title="Of hosts: as recorded, else by their rated power at half of their load; and what that emitted"
              >
                kWh
              </th>
            )}
            {sum.leases !== null && <th scope="col">Leases</th>}
          </tr>
        </thead>
        <tbody>
          {figures.map(({ key, label, sums }, index) => (
            <tr key={key} class={isFurther(index) ? "further" : ""}>
              <th scope="row">
                {label}
                {shares && <Bar share={sums.reserved / Math.max(1, sum.reserved)} />}
              </th>
              {cells(sums)}
            </tr>
          ))}
        </tbody>
        <tfoot>
          <tr>
            <th scope="row">Sum</th>
            {cells(sum, true)}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}
