// SPDX-License-Identifier: Apache-2.0
/** What was done to a lease and by whom, the latest first; read when it is opened. */
import { useEffect, useRef, useState } from "preact/hooks";
import { useLive } from "../../api/live.ts";
import { info, may } from "../../api/session.ts";
import type { HistoryEntry, Lease, Link, Resource } from "../../api/types.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { place, setParams } from "../../router.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { type Names, toldOf, unnamedHosts } from "../../words/history.ts";
import { Entry } from "../history/entries.tsx";

const PAGE = 20;
/** So many names are looked up. */
const NAMES = 50;
/** The service cuts longer pages. */
const MOST = 1000;

/** The part of the page; `?history=1` opens it. */
export function History({ lease }: { lease: Lease }) {
  if (!may("blazar:leases:get_history")) return null;
  const open = place.value.params.has("history");
  return (
    <details
      class="card history"
      open={open}
      onToggle={(event) => {
        const now = event.currentTarget.open;
        if (now !== place.value.params.has("history")) setParams({ history: now ? 1 : null });
      }}
    >
      <summary>What was done to it, and by whom</summary>
      {open && <Entries lease={lease} />}
    </details>
  );
}

interface Answer {
  history: HistoryEntry[];
  links: Link[];
}

/** The names of hosts that the lease does not have any more, for who may see them. */
function useNames(history: readonly HistoryEntry[], lease: Lease): Names {
  const ids = may("blazar:resources:get_private", "host") ? unnamedHosts(history, lease).slice(0, NAMES) : [];
  const query = { label: `in:${ids.join(",")}`, fields: "label,name", limit: NAMES };
  const watch = useLive<{ resources: Resource[] }>(ids.length > 0 ? "v1/resources/host" : null, query, 300);
  const found = watch?.state.value.data?.resources ?? [];
  return new Map(found.flatMap(({ label, name }) => (label && name ? [[label, name] as const] : [])));
}

function Entries({ lease }: { lease: Lease }) {
  const [size, setSize] = useState(PAGE);
  const watch = useLive<Answer>(`v1/leases/${lease.id}/history`, { limit: size, sort_dir: "desc" }, 60)!;
  const { data, error } = watch.state.value;
  // It grows with each revision of the lease, which the page watches.
  const read = useRef(lease.revision);
  useEffect(() => {
    if (read.current !== lease.revision) void watch.read();
    read.current = lease.revision;
  }, [lease.revision]);
  // The entries stay while more of them are read, so that nothing jumps.
  const kept = useRef<Answer | null>(null);
  if (data) kept.current = data;
  const answer = kept.current;
  const more = answer?.links.some((link) => link.rel === "next");
  const me = info.value?.user_id;
  const names = useNames(answer?.history ?? [], lease);
  return (
    <>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {!answer && error === null && <Skeleton lines={4} />}
      {answer?.history.length === 0 && <p class="muted">Nothing was done to it since histories are kept.</p>}
      {answer && answer.history.length > 0 && (
        <ol aria-label="What was done to it">
          {answer.history.map((entry) => {
            const told = toldOf(entry, lease, me, zone.value, present.value, names);
            return <Entry key={told.id} told={told} />;
          })}
        </ol>
      )}
      {more && size < MOST && (
        <button type="button" class="small" onClick={() => setSize(size < 5 * PAGE ? size + PAGE : MOST)}>
          Show earlier ones
        </button>
      )}
      {more && size >= MOST && <p class="hint">The latest {MOST} are shown; `blazar lease history` shows all.</p>}
    </>
  );
}
