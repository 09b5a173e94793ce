// SPDX-License-Identifier: Apache-2.0
/** That hosts of a lease will be in maintenance, or are: its owner sees when, and what that means. */
import { useLive } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import type { CalendarPage, Lease } from "../../api/types.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { isInLine, isPast } from "../../words/lease.ts";
import { affectedInWords, windowsOf } from "../../words/maintenance.ts";

/** So many may be asked for at once. */
const MOST = 50;
const MINUTE = 60_000;
const AROUND = 30 * 86_400_000;

/** A bar for each window that meets hosts of the lease. */
export function MaintenanceBars({ lease }: { lease: Lease }) {
  const held = lease.reservations.flatMap((one) => one.allocations).filter((one) => one.status !== "released");
  const hosts = [...new Set(held.filter((one) => one.resource.type === "host").map((one) => one.resource.id))];
  const start = Date.parse(lease.start_date);
  const end = Date.parse(lease.end_date);
  // Blocks are cut at the ends of what is asked for: windows begin before a lease. By the hour, so that it stays one question.
  const from = Math.max(start - AROUND, Math.floor(present.value / (60 * MINUTE)) * 60 * MINUTE);
  const asks = hosts.length > 0 && from < end && !isPast(lease) && !isInLine(lease) && may("blazar:calendar:get");
  const query = asks
    ? { resource: `in:${hosts.slice(0, MOST).join(",")}`, from: toWire(from), to: toWire(end + AROUND), limit: MOST }
    : {};
  const watch = useLive<{ calendar: CalendarPage }>(asks ? "v1/calendar" : null, query, 60);
  const found = windowsOf(watch?.state.value.data?.calendar.resources ?? [], {
    start: Math.max(start, present.value),
    end,
  });
  return (
    <>
      {found.map((one) => (
        <div key={`${one.start}${one.end}`} class="banner warning">
          <p>{affectedInWords(one, lease, zone.value, present.value)}</p>
        </div>
      ))}
    </>
  );
}
