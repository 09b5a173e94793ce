// SPDX-License-Identifier: Apache-2.0
/** A list of leases that grows on demand and keeps itself fresh. */
import { useRef } from "preact/hooks";
import { type Listed, useLiveList } from "../../api/live.ts";
import type { Options } from "../../api/client.ts";
import type { Lease } from "../../api/types.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { More, useMore } from "../../parts/list.tsx";
import { place } from "../../router.ts";
import { LeaseTable, type Whose } from "./table.tsx";

const STEP = 50;

export interface LeaseList {
  /** The last answer; it stays while another filter is read, so that nothing jumps, but not if that is refused. */
  answer: Listed<Lease> | null;
  loading: boolean;
  error: unknown;
  again: () => void;
  /** Reads more. */
  more: () => void;
}

/** Reads the leases of a query of GET /v1/leases. */
export function useLeaseList(query: Options["query"]): LeaseList {
  const asked = JSON.stringify(query);
  // By the address: what is asked of now is another question each minute, and the list is as long as it was.
  const { wanted, more } = useMore(place.value.params.toString(), STEP);
  const watch = useLiveList<Lease>("v1/leases", "leases", query, wanted);
  const { data, error, loading } = watch.state.value;
  const kept = useRef<{ of: string; answer: Listed<Lease> } | null>(null);
  if (data) kept.current = { of: asked, answer: data };
  // What another filter has found is no answer to this one, where that was refused.
  const known = kept.current !== null && (error === null || kept.current.of === asked);
  return {
    answer: known ? kept.current!.answer : null,
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
