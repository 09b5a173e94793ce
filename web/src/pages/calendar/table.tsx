// SPDX-License-Identifier: Apache-2.0
/** The calendar as a table: for screen readers, for printing, for finding text. */
import { useState } from "preact/hooks";
import type { Block, Group, Row } from "../../grid/layout.ts";
import { Rows } from "../../parts/list.tsx";
import { plural, range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { kindOf, kindOfType } from "../../api/kinds.ts";
import { hrefOf } from "../../router.ts";
import { resourceOf, sourceOf } from "./data.ts";
import { type Read, comingOf, saidOf, timesOf, whatOf } from "./words.ts";

const AT_ONCE = 100;
/** So many times of one resource are shown at once; a service that is booked by the hour has hundreds. */
const TIMES = 12;

interface Props {
  groups: readonly Group[];
  read: Read;
  /** Which time of it is listed. */
  seen: Read;
  /** The project whose leases are looked for: those of others are listed when one asks for them. */
  project: string | null;
}

/** Lists what of each resource is not free. The page scrolls, nothing in it does. */
export function CalendarTable({ groups, read, seen, project }: Props) {
  const [shown, setShown] = useState(AT_ONCE);
  const rows = groups.flatMap((group) => group.rows.map((row) => ({ group, row })));
  return (
    <div class="calendar-table">
      <p class="muted">
        {project === null ? "" : `Resources with leases of ${project}, without the times of others: `}
        {range(seen.from, seen.to, zone.value, present.value)}
      </p>
      <Rows heads={["Resource", "Group", "Not free"]}>
        {rows.slice(0, shown).map(({ group, row }) => (
          <tr key={row.key}>
            <th scope="row">
              <RowName row={row} />
              {row.detail && <span class="owner muted">{row.detail}</span>}
            </th>
            <td>
              <span>{group.name}</span>
            </td>
            <td class="wide">
              <Times row={row} read={read} seen={seen} />
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

/** Its name, which leads to its page for those who see names. */
function RowName({ row }: { row: Row }) {
  const { type = "", name = null, id = "" } = resourceOf(row) ?? {};
  const kind = kindOfType(type) ?? kindOf(type);
  if (name === null || !kind) return <span>{row.name}</span>;
  return <a href={hrefOf("resource", { kind: kind.name, id })}>{row.name}</a>;
}

/** One time: what has it, and when; a lease that the reader may see is a link. */
function Time({ block, read }: { block: Block; read: Read }) {
  const lease = sourceOf(block)?.block.lease_id;
  const what = whatOf(block, present.value);
  return (
    <>
      {lease ? <a href={hrefOf("lease", { id: lease })}>{what}</a> : what}:{" "}
      {timesOf(block, read, zone.value, present.value)[0]}
    </>
  );
}

function Times({ row, read, seen }: { row: Row; read: Read; seen: Read }) {
  const [all, setAll] = useState(false);
  const within = { blocks: comingOf(row, seen, present.value) };
  const { blocks, more, others } = saidOf(within, TIMES);
  const listed = all ? within.blocks.filter((one) => one.kind !== "cleaning") : blocks;
  if (listed.length === 0 && others === 0) return <>free all the time shown</>;
  return (
    <>
      <ul>
        {listed.map((block) => (
          <li key={`${block.key} ${block.start}`}>
            <Time block={block} read={read} />
          </li>
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
