// SPDX-License-Identifier: Apache-2.0
/** The calendar as a table: for screen readers, for printing, for finding text. */
import { useState } from "preact/hooks";
import type { Group, Row } from "../../grid/layout.ts";
import { Rows } from "../../parts/list.tsx";
import { plural, range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { type Read, saidOf, sayRow } from "./words.ts";

const AT_ONCE = 100;
/** So many times of one resource are shown at once; a service that is booked by the hour has hundreds. */
const TIMES = 12;

interface Props {
  groups: readonly Group[];
  read: Read;
  /** The project whose leases are looked for: those of others are listed when one asks for them. */
  project: string | null;
}

/** Lists what of each resource is not free. The page scrolls, nothing in it does. */
export function CalendarTable({ groups, read, project }: Props) {
  const [shown, setShown] = useState(AT_ONCE);
  const rows = groups.flatMap((group) => group.rows.map((row) => ({ group, row })));
  return (
    <div class="calendar-table">
      <p class="muted">
        {project === null ? "" : `Resources with leases of ${project}, without the times of others: `}
        {range(read.from, read.to, zone.value, present.value)}
      </p>
      <Rows heads={["Resource", "Group", "Not free"]}>
        {rows.slice(0, shown).map(({ group, row }) => (
          <tr key={row.key}>
            <th scope="row">
              <span>{row.name}</span>
              {row.detail && <span class="owner muted">{row.detail}</span>}
            </th>
            <td>
              <span>{group.name}</span>
            </td>
            <td class="wide">
              <Times row={row} read={read} />
            </td>
          </tr>
        ))}
      </Rows>
      {rows.length > shown && (
        <button type="button" class="quiet more" onClick={() => setShown(shown + AT_ONCE)}>
          Show {Math.min(AT_ONCE, rows.length - shown)} more of {rows.length}
        </button>
      )}
    </div>
  );
}

function Times({ row, read }: { row: Row; read: Read }) {
  const [all, setAll] = useState(false);
  const { blocks, more, others } = saidOf(row, TIMES);
  const sentences = sayRow(all ? row : { blocks }, present.value, zone.value, read);
  if (sentences.length === 0 && others === 0) return <>free all the time shown</>;
  return (
    <>
      <ul>
        {sentences.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      {!all && more + others > 0 && (
        <button type="button" class="link" aria-label={`Show all times of ${row.name}`} onClick={() => setAll(true)}>
          and {[more > 0 && plural(more, "more time"), others > 0 && `${others} of others`].filter(Boolean).join(", ")}
        </button>
      )}
    </>
  );
}
