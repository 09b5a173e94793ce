// SPDX-License-Identifier: Apache-2.0
/** The calendar as a table: for screen readers, for printing, for finding text. */
import { useState } from "preact/hooks";
import type { Group } from "../../grid/layout.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { sayRow } from "./words.ts";

const AT_ONCE = 100;

/** Lists what of each resource is not free. */
export function CalendarTable({ groups }: { groups: readonly Group[] }) {
  const [shown, setShown] = useState(AT_ONCE);
  const rows = groups.flatMap((group) => group.rows.map((row) => ({ group, row })));
  return (
    <div class="table-scroll calendar-table">
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Resource</th>
            <th scope="col">Group</th>
            <th scope="col">Not free</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, shown).map(({ group, row }) => {
            const sentences = sayRow(row, present.value, zone.value);
            return (
              <tr key={row.key}>
                <th scope="row">
                  {row.name}
                  <br />
                  <span class="muted">{row.detail}</span>
                </th>
                <td>{group.name}</td>
                <td>
                  {sentences.length === 0 ? (
                    "free all the time shown"
                  ) : (
                    <ul>
                      {sentences.map((sentence) => (
                        <li key={sentence}>{sentence}</li>
                      ))}
                    </ul>
                  )}
                </td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {rows.length > shown && (
        <button type="button" class="quiet" onClick={() => setShown(shown + AT_ONCE)}>
          Show {Math.min(AT_ONCE, rows.length - shown)} more of {rows.length}
        </button>
      )}
    </div>
  );
}
