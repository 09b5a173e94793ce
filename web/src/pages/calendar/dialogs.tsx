// SPDX-License-Identifier: Apache-2.0
/** What opens over the calendar: the card, a block's dialog, booking what was marked, moving an end. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import type { Json, Lease } from "../../api/types.ts";
import type { Pointed } from "../../grid/board.ts";
import type { Block, Row } from "../../grid/layout.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { LeaseState } from "../../parts/state.tsx";
import { hrefOf } from "../../router.ts";
import { relative } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { ENABLED_LATER, sourceOf } from "./data.ts";
import { type Read, codeInWords, timesOf, whatOf } from "./words.ts";

/** The card beside what the pointer or the focus is on. The grid's cell says the same to screen readers. */
export function Card({ pointed, read }: { pointed: Pointed; read: Read }) {
  const { row, block, start, end, box } = pointed;
  const card = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const shown = card.current;
    if (!shown) return;
    const below = box.bottom + 8 + shown.offsetHeight < window.innerHeight;
    shown.style.top = `${below ? box.bottom + 8 : box.top - 8 - shown.offsetHeight}px`;
    shown.style.left = `${Math.max(8, Math.min(Math.max(box.left, 230), window.innerWidth - shown.offsetWidth - 8))}px`;
  }, [pointed]);
  const source = block ? sourceOf(block)?.block : undefined;
  const [when, long] = timesOf(pointed, read, zone.value, present.value);
  return (
    <div ref={card} class="grid-card" aria-hidden="true">
      <strong>{block ? whatOf(block, present.value) : "Free"}</strong>
      <span>{when}</span>
      <span class="muted">
        {long}
        {block && end < read.to && end > present.value && start <= present.value
          ? `, ends ${relative(end, present.value)}`
          : ""}
      </span>
      {source?.user_id && (
        <span>
          {source.user_id} of {source.project_id}
        </span>
      )}
      <span class="muted">{[row.name, row.detail].filter(Boolean).join(" · ")}</span>
    </div>
  );
}

/** What one may do with a block. */
export function BlockDialog({
  row,
  block,
  read,
  onExtend,
  onMove,
  onClose,
}: {
  row: Row;
  block: Block;
  read: Read;
  onExtend: () => void;
  onMove: () => void;
  onClose: () => void;
}) {
  const source = sourceOf(block);
  const lease = source?.block.lease_id;
  const [when, long] = timesOf(block, read, zone.value, present.value);
  const dates = { start_date: toWire(block.start), end_date: toWire(block.end) };
  const actions = lease && (
    <>
      {block.movable && (
        <button type="button" onClick={onExtend}>
          Extend…
        </button>
      )}
      {block.startMovable && (
        <button type="button" onClick={onMove}>
          Move…
        </button>
      )}
      <a class="button primary" href={hrefOf("lease", { id: lease })}>
        Open the lease
      </a>
    </>
  );
  return (
    <Dialog title={source?.block.name ?? whatOf(block, present.value)} onClose={onClose} actions={actions}>
      <dl class="facts">
        {source?.block.status && (
          <>
            <dt>State</dt>
            <dd>
              <LeaseState lease={{ status: source.block.status, ...dates }} />
            </dd>
          </>
        )}
        <dt>When</dt>
        <dd>
          {when} <span class="muted">({long})</span>
        </dd>
        <dt>On</dt>
        <dd>
          {row.name} <span class="muted">{row.detail}</span>
        </dd>
        {source?.block.project_id && (
          <>
            <dt>For</dt>
            <dd>
              {source.block.user_id} of {source.block.project_id}
            </dd>
          </>
        )}
        {source?.block.code && (
          <>
            <dt>Why</dt>
            <dd>{source.block.reason ?? codeInWords(source.block.code)}</dd>
          </>
        )}
      </dl>
      {block.kind === "other" && (
        <p class="muted">Others have reserved it then. Who, is not shown to other projects.</p>
      )}
      {source?.block.code === ENABLED_LATER && (
        <p class="muted">
          It is disabled until then. No lease of this time can be booked before it is enabled, which happens by itself
          at that date; an operator can enable it earlier.
        </p>
      )}
    </Dialog>
  );
}

/** Reads the lease of a block before a dialog about it opens. */
export function ReadLease(props: {
  block: Block;
  title: string;
  onClose: () => void;
  children: (found: { lease: Lease; etag: string | null }) => ComponentChildren;
}) {
  const { block, title, onClose, children } = props;
  const id = sourceOf(block)?.block.lease_id ?? "";
  const [found, setFound] = useState<{ lease: Lease; etag: string | null } | null>(null);
  const [error, setError] = useState<unknown>(null);
  useEffect(() => {
    const stop = new AbortController();
    request<{ lease: Lease }>("GET", `v1/leases/${id}`, { signal: stop.signal }).then(
      ({ data, etag }) => setFound({ lease: data.lease, etag }),
      (problem) => !stop.signal.aborted && setError(problem),
    );
    return () => stop.abort();
  }, [id]);
  if (found) return <>{children(found)}</>;
  return (
    <Dialog title={title} onClose={onClose}>
      {error ? <Trouble error={error} /> : <Skeleton lines={2} />}
    </Dialog>
  );
}

/** Returns the requirement of what was marked: its group's value and the page's filter. */
export function requirementOf(filter: Json[], by: string, value: string): Json[] {
  const own: Json[] = by && value ? ["==", `$${by}`, value] : [];
  const parts = [filter, own].filter((one) => one.length > 0);
  return parts.length > 1 ? ["and", ...parts] : (parts[0] ?? []);
}
