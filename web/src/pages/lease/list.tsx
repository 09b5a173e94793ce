// SPDX-License-Identifier: Apache-2.0
/** A list of leases that grows on demand and keeps itself fresh. */
import { useRef, useState } from "preact/hooks";
import { useLive } from "../../api/live.ts";
import type { Lease, Link } from "../../api/types.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { LeaseTable, type Whose } from "./table.tsx";

const PAGE = 50;
/** The service cuts longer pages. */
const MOST = 1000;

interface Answer {
  leases: Lease[];
  count?: number;
  links: Link[];
}

export interface LeaseList {
  /** The last answer; it stays while another filter is read, so that nothing jumps. */
  answer: Answer | null;
  loading: boolean;
  error: unknown;
  again: () => void;
  /** Reads more; null if there is no more to be read. */
  more: (() => void) | null;
}

/** Reads the leases of a query of GET /v1/leases. */
export function useLeaseList(query: Record<string, string | number | boolean | undefined>): LeaseList {
  const [size, setSize] = useState(PAGE);
  const watch = useLive<Answer>("v1/leases", { ...query, limit: size, with_count: true }, 15)!;
  const { data, error, loading } = watch.state.value;
  const kept = useRef<Answer | null>(null);
  if (data) kept.current = data;
  const answer = kept.current;
  const further = answer?.links.some((link) => link.rel === "next") && size < MOST;
  return {
    answer,
    loading,
    error,
    again: () => void watch.read(),
    more: further ? () => setSize(Math.min(MOST, size + PAGE)) : null,
  };
}

/** Draws the list; `empty` is drawn if there is nothing in it. */
export function LeaseListView(props: { list: LeaseList; whose: Whose; empty: preact.ComponentChildren }) {
  const { list, whose, empty } = props;
  const { answer, loading, error, again, more } = list;
  const count = answer?.count ?? 0;
  const shown = answer?.leases.length ?? 0;
  return (
    <>
      {error !== null && <Trouble error={error} retry={again} />}
      {!answer && loading && <Skeleton lines={6} />}
      {shown === 0 && answer && !loading && empty}
      {shown > 0 && (
        <>
          <LeaseTable leases={answer!.leases} whose={whose} onChanged={again} />
          <p class="row list-foot">
            <span class="muted" role="status">
              {count > shown ? `${shown} of ${count}` : `${shown} in all`}
              {count > shown && !more && "; the filters above leave fewer"}
            </span>
            {more && (
              <button type="button" class="small" onClick={more}>
                Show more
              </button>
            )}
          </p>
        </>
      )}
    </>
  );
}
