// SPDX-License-Identifier: Apache-2.0
/** The question that asks for the same once more. */
import type { Lease, Reservation, Wish } from "../api/types.ts";
import { DEFAULT_WITHIN, isoOf, paramsOf, wantOf } from "./question.ts";

/** Returns the parameters of "Find a time" for what a lease has, for as long as it has it, as soon as possible. */
export function againParams(
  lease: Pick<Lease, "start_date" | "end_date" | "reservations">,
): Record<string, string | number | null> {
  const minutes = Math.max(1, Math.round((Date.parse(lease.end_date) - Date.parse(lease.start_date)) / 60_000));
  const length =
    minutes % 1440 === 0
      ? isoOf(minutes / 1440, "days")
      : minutes % 60 === 0
        ? isoOf(minutes / 60, "hours")
        : isoOf(minutes, "minutes");
  const wants = lease.reservations.map((one) => wantOf(wishAgain(one)));
  if (wants.length === 0) return {};
  return paramsOf({ wants, length, from: null, within: DEFAULT_WITHIN, to: null, exactly: null });
}

/** The flavor of a reservation of a flavor is one that was made for it: what it was made from is asked for by its size. */
function wishAgain(one: Reservation): Wish {
  if (one.resource_type !== "flavor:instance") return one;
  const { vcpus, memory_mb, disk_gb, amount, affinity } = one;
  return Object.fromEntries(
    Object.entries({ resource_type: "virtual:instance", amount, vcpus, memory_mb, disk_gb, affinity }).filter(
      ([, value]) => value !== undefined,
    ),
  ) as unknown as Wish;
}
