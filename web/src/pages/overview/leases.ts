// SPDX-License-Identifier: Apache-2.0
/** The lists of leases that the overview counts. */
import { useRef } from "preact/hooks";
import { type Listed, useLiveList } from "../../api/live.ts";
import type { Lease } from "../../api/types.ts";
import type { Params } from "../../router.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { LISTS, queryOf } from "../../words/all-leases.ts";

/** What of a lease the overview reads. */
const FIELDS = "name,status,start_date,end_date,project_id,conditions,usage,release_at,wait";

export interface Counted {
  /** The first of the list and how many are in it; null until it is read. */
  data: Listed<Lease> | null;
  error: unknown;
  again: () => void;
  /** What in the address of "All leases" gives the same list. */
  to: Params;
}

/** Reads the first leases of a list, and how many there are. */
export function useLeases(list: keyof typeof LISTS, shown: number): Counted {
  const to = LISTS[list];
  const query = { ...queryOf(new URLSearchParams(to), present.value, zone.value), fields: FIELDS };
  const watch = useLiveList<Lease>("v1/leases", "leases", query, shown, 20);
  const { data, error } = watch.state.value;
  // As time goes on the question changes; the last answer stays until the next one is there.
  const kept = useRef<Listed<Lease> | null>(null);
  if (data) kept.current = data;
  return { data: kept.current, error, again: () => void watch.read(), to };
}
