// SPDX-License-Identifier: Apache-2.0
/** The question that asks for the same once more. */
import type { Json, Lease, Reservation, Wish } from "../api/types.ts";
import { SHOWN_ELSEWHERE } from "./parameters.ts";
import { DEFAULT_WITHIN, bySchema, isoOf, paramsOf, wantOf } from "./question.ts";
import { inAddress, wishesOf } from "./reminders.ts";

/** Returns the parameters of "Find a time" for what a lease has, for as long as it has it, as soon as possible. */
export function againParams(
  lease: Pick<Lease, "start_date" | "end_date" | "reservations" | "reminders">,
): Record<string, string | number | null> {
  const minutes = minutesOf(Date.parse(lease.end_date) - Date.parse(lease.start_date));
  const length =
    minutes % 1440 === 0
      ? isoOf(minutes / 1440, "days")
      : minutes % 60 === 0
        ? isoOf(minutes / 60, "hours")
        : isoOf(minutes, "minutes");
  const wants = lease.reservations.map((one) => wantOf(wishAgain(one, lease.reservations)));
  if (wants.length === 0) return {};
  const params = paramsOf({ wants, length, from: null, within: DEFAULT_WITHIN, to: null, exactly: null });
  return { ...params, remind: inAddress(wishesOf(lease)) };
}

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/**
 * Returns a length in minutes. What was booked for "now" begins at a second and ends with a minute: of a day that is
 * up to a minute more or less than was asked for, which is not what anybody wants again.
 */
function minutesOf(length: number): number {
  const hours = Math.round(length / HOUR);
  if (hours > 0 && Math.abs(length - hours * HOUR) <= MINUTE) return hours * 60;
  return Math.max(1, Math.round(length / MINUTE));
}

function wishAgain(one: Reservation, all: readonly Reservation[]): Wish {
  if (bySchema(one.resource_type)) {
    const asked = Object.entries(one).filter(([name, value]) => !SHOWN_ELSEWHERE.includes(name) && value !== null);
    const wish = Object.fromEntries(asked.map(([name, value]) => [name, byNumber(value as Json, all)]));
    return { ...wish, resource_type: one.resource_type };
  }
  // Which region it was, the calendar may have chosen: it chooses again.
  if (one.resource_type !== "flavor:instance") return { ...one, region: undefined } as unknown as Wish;
  const { resource_type, amount = 1, affinity = null } = one;
  return { resource_type, amount, affinity, flavor_id: sourceOf(one) };
}

/** Returns the flavor that was asked for; its own flavor is one that was made for the reservation. */
function sourceOf(one: Reservation): string {
  const source = JSON.parse(String(one.resource_properties || "{}")) as { id?: string };
  return source.id ?? "";
}

/** A reference by the id of a reservation of a lease, as one by its number in a new lease. */
function byNumber(value: Json, all: readonly Reservation[]): Json {
  if (Array.isArray(value)) return value.map((one) => byNumber(one, all));
  const id = typeof value === "object" && value !== null ? value.reservation : undefined;
  const number = all.findIndex((one) => one.id === id);
  return number < 0 ? value : { reservation: number };
}
