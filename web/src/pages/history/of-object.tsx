// SPDX-License-Identifier: Apache-2.0
/** What was done to one object and by whom, on its page: read when it is opened. */
import { info, may } from "../../api/session.ts";
import { BusyButton, Skeleton, Trouble } from "../../parts/basics.tsx";
import { hrefOf, place, setParams } from "../../router.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { toldOf } from "../../words/history.ts";
import { Entry } from "./entries.tsx";
import { MOST, useJournal } from "./journal.ts";

const PAGE = 20;

interface Props {
  type: string;
  id: string;
}

/** The part of the page; `?history=1` opens it. */
export function HistoryOf({ type, id }: Props) {
  if (!may("blazar:history:get")) return null;
  const open = place.value.params.has("history");
  return (
    <details
      class="card history apart"
      open={open}
      onToggle={(event) => {
        const now = event.currentTarget.open;
        if (now !== place.value.params.has("history")) setParams({ history: now ? 1 : null });
      }}
    >
      <summary>What was done to it, and by whom</summary>
      {open && <Entries key={`${type} ${id}`} type={type} id={id} />}
    </details>
  );
}

function Entries({ type, id }: Props) {
  const { entries, more, busy, error, readEarlier, retry } = useJournal({ object_type: type, object_id: id }, PAGE);
  const me = info.value?.user_id;
  return (
    <>
      {error !== null && <Trouble error={error} retry={retry} />}
      {!entries && error === null && <Skeleton lines={4} />}
      {entries?.length === 0 && <p class="muted">Nothing was done to it since histories are kept.</p>}
      {entries && entries.length > 0 && (
        <ol aria-label="What was done to it">
          {entries.map((entry) => {
            const whose = { project_id: entry.project_id, reservations: [] };
            return <Entry key={entry.id} told={toldOf(entry, whose, me, zone.value, present.value)} />;
          })}
        </ol>
      )}
      {entries && more && entries.length < MOST && (
        <BusyButton type="button" class="small" busy={busy} doing="Reading…" onClick={readEarlier}>
          Show earlier ones
        </BusyButton>
      )}
      {entries && more && entries.length >= MOST && (
        <p class="hint">
          The latest {MOST} are shown; <a href={hrefOf("history", { type, object: id })}>History</a> has a choice of
          days.
        </p>
      )}
    </>
  );
}
