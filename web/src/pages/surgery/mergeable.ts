// SPDX-License-Identifier: Apache-2.0
/** Which leases a lease may be merged with. */
import { useLiveList } from "../../api/live.ts";
import type { Lease } from "../../api/types.ts";
import { mayMerge, mergeQueries } from "../../words/surgery.ts";

export interface Mergeable {
  /** Null until both answers are there. */
  leases: Lease[] | null;
  error: unknown;
  again: () => void;
}

/** Watches the leases whose dates allow to merge them with a lease, `most` of each kind. */
export function useMergeable(lease: Lease, most = Number.POSITIVE_INFINITY): Mergeable {
  const { same, after } = mergeQueries(lease);
  const watches = [
    useLiveList<Lease>("v1/leases", "leases", same, most, 60),
    useLiveList<Lease>("v1/leases", "leases", after, most, 60),
  ];
  const states = watches.map((watch) => watch.state.value);
  const found = states.flatMap(({ data }) => data?.items ?? []).filter((one) => mayMerge(lease, one));
  return {
    leases: states.every(({ data }) => data !== null) ? found : null,
    error: states.find(({ error }) => error !== null)?.error ?? null,
    again: () => {
      for (const watch of watches) void watch.read();
    },
  };
}
