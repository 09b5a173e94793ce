// SPDX-License-Identifier: Apache-2.0
/** That hosts of a lease will be in maintenance, or are: its owner sees when, and what that means. */
import { useLive } from "../../api/live.ts";
import { info, may } from "../../api/session.ts";
import type { CalendarPage, Lease } from "../../api/types.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { isInLine, isPast } from "../../words/lease.ts";
import { affectedInWords, windowsOf } from "../../words/maintenance.ts";

/** So many may be asked for at once. */
const MOST = 50;
const MINUTE = 60_000;
const AROUND = 30 * 86_400_000;

/** Returns until when the calendar may be asked for, from an instant on; by the hour. */
function lastAsked(from: number): number {
  const { range_seconds = 0, range_ahead_seconds = 0 } = info.value?.bounds ?? {};
  const hour = Math.floor(present.value / (60 * MINUTE)) * 60 * MINUTE;
  return Math.min(from + range_seconds * 1000, hour + range_ahead_seconds * 1000);
}

/** A bar for each window that meets hosts of the lease. */
export function MaintenanceBars({ lease }: { lease: Lease }) {
  const held = lease.reservations.flatMap((one) => one.allocations).filter((one) => one.status !== "released");
  const hosts = [...new Set(held.filter((one) => one.resource.type === "host").map((one) => one.resource.id))];
  const start = Date.parse(lease.start_date);
  const end = Date.parse(lease.end_date);
  // Blocks are cut at the ends of what is asked for: windows begin before a lease. By the hour, so that it stays one question.
  const from = Math.max(start - AROUND, Math.floor(present.value / (60 * MINUTE)) * 60 * MINUTE);
  // Of a lease that lasts for years, the part that can be asked for: later windows are shown when they come nearer.
  const to = Math.min(end + AROUND, lastAsked(from));
  const current = hosts.length > 0 && from < Math.min(end, to) && !isPast(lease) && !isInLine(lease);
  const asks = current && may("blazar:calendar:get");
  const query = asks
    ? { resource: `in:${hosts.slice(0, MOST).join(",")}`, from: toWire(from), to: toWire(to), limit: MOST }
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
