// SPDX-License-Identifier: Apache-2.0
/** A list of leases that grows on demand and keeps itself fresh. */
import { useRef } from "preact/hooks";
import { type Listed, useLiveList } from "../../api/live.ts";
import type { Options } from "../../api/client.ts";
import type { Lease } from "../../api/types.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { More, useMore } from "../../parts/list.tsx";
import { LeaseTable, type Whose } from "./table.tsx";

const STEP = 50;

export interface LeaseList {
  /** The last answer; it stays while another filter is read, so that nothing jumps. */
  answer: Listed<Lease> | null;
  loading: boolean;
  error: unknown;
  again: () => void;
  /** Reads more. */
  more: () => void;
}

/** Reads the leases of a query of GET /v1/leases. */
export function useLeaseList(query: Options["query"]): LeaseList {
  const { wanted, more } = useMore(JSON.stringify(query), STEP);
  const watch = useLiveList<Lease>("v1/leases", "leases", query, wanted);
  const { data, error, loading } = watch.state.value;
  const kept = useRef<Listed<Lease> | null>(null);
  if (data) kept.current = data;
  return {
    answer: kept.current,
    loading,
    error,
    again: () => void watch.read(),
    more,
  };
}

/** Draws the list; `empty` is drawn if there is nothing in it. */
export function LeaseListView(props: { list: LeaseList; whose: Whose; empty: preact.ComponentChildren }) {
  const { list, whose, empty } = props;
  const { answer, loading, error, again, more } = list;
  const shown = answer?.items.length ?? 0;
  return (
    <>
      {error !== null && <Trouble error={error} retry={again} />}
      {!answer && loading && <Skeleton lines={6} />}
      {shown === 0 && answer && !loading && empty}
      {shown > 0 && (
        <>
          <LeaseTable leases={answer!.items} whose={whose} onChanged={again} />
          <More shown={shown} count={answer!.count} onMore={more} />
        </>
      )}
    </>
  );
}
