// SPDX-License-Identifier: Apache-2.0
/** The figures of a report in rows, with their sum: hours of each measure, those of which there is nothing left out. */
import type { ComponentChildren } from "preact";
import { Bar } from "../../parts/bar.tsx";
import { type Sums, hoursOf, isLookedAt, percentOf } from "../../words/usage.ts";

interface Column {
  name: Exclude<keyof Sums, "leases">;
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
      {sum.leases !== null && (
        <td class="number" data-head="Leases">
          {isSum && overlapping ? "" : (sums.leases ?? 0).toLocaleString("en")}
        </td>
      )}
    </>
  );
  return (
    <div class="table-scroll">
      <table class="list stacked figures">
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
            {sum.leases !== null && <th scope="col">Leases</th>}
          </tr>
        </thead>
        <tbody>
          {figures.map(({ key, label, sums }) => (
            <tr key={key}>
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
