// SPDX-License-Identifier: Apache-2.0
/** The zone in which times are shown, and the way between wall clocks and instants (milliseconds since 1970). */
import { computed, signal } from "@preact/signals";

const KEPT = "blazar.zone";

/** The browser's zone. */
export const homeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

/** The zone that the user has chosen; the browser's by default. */
export const zone = signal(kept() ?? homeZone);

/** The name of the zone as people say it, such as "Berlin" or "UTC". */
export const zoneName = computed(() => shortName(zone.value));

function kept(): string | null {
  try {
    const name = localStorage.getItem(KEPT);
    return name && isZone(name) ? name : null;
  } catch {
    return null;
  }
}

function isZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

/** Shows times in another zone from now on. */
export function chooseZone(name: string): void {
  zone.value = name;
  try {
    if (name === homeZone) localStorage.removeItem(KEPT);
    else localStorage.setItem(KEPT, name);
  } catch {
    // The browser forbids storage: the choice lives as long as the page.
  }
}

/** Returns "Buenos Aires" for "America/Argentina/Buenos_Aires". */
export function shortName(name: string): string {
  return name.slice(name.lastIndexOf("/") + 1).replaceAll("_", " ");
}

/** Returns all zones that the browser knows, UTC and its own first. */
export function allZones(): string[] {
  const known = Intl.supportedValuesOf("timeZone");
  return [...new Set([homeZone, "UTC", ...known])];
}

/** Loads Temporal if the browser has none. To be awaited before anything below is called. */
export async function loadTemporal(): Promise<void> {
  if (!("Temporal" in globalThis)) await import("temporal-polyfill/global");
}

/** Returns the wall clock of an instant, to the minute, as <input type="datetime-local"> writes it. */
export function toWall(at: number, name: string): string {
  const wall = Temporal.Instant.fromEpochMilliseconds(Math.round(at)).toZonedDateTimeISO(name).toPlainDateTime();
  return wall.toString({ smallestUnit: "minute" });
}

/** What a wall clock means: an instant, or two where the clock is set back, or the next one where it is set forward. */
export interface Meant {
  at: number;
  /** The second instant with the same wall clock, on the day when clocks are set back. */
  later: number | null;
  /** True if there is no such wall clock: it is the hour that is left out when clocks are set forward. */
  gap: boolean;
}

/** Returns the instants that a wall clock means; null if it is no date. */
export function fromWall(wall: string, name: string): Meant | null {
  let plain: Temporal.PlainDateTime;
  try {
    plain = Temporal.PlainDateTime.from(wall);
  } catch {
    return null;
  }
  const first = plain.toZonedDateTime(name, { disambiguation: "earlier" });
  const second = plain.toZonedDateTime(name, { disambiguation: "later" });
  if (first.epochMilliseconds === second.epochMilliseconds) {
    return { at: first.epochMilliseconds, later: null, gap: false };
  }
  const gap = !first.toPlainDateTime().equals(plain);
  // In a gap the offset before it counts (RFC 5545), which is the later of the two.
  if (gap) return { at: second.epochMilliseconds, later: null, gap: true };
  return { at: first.epochMilliseconds, later: second.epochMilliseconds, gap: false };
}

/** Returns an instant as the API takes it. */
export function toWire(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}

/** Returns the beginning of a day such as "2026-12-01" in the zone, or of the one `later` days after; null if it is none. */
export function startOfDate(day: string, name: string, later = 0): number | null {
  if (!/^\d{4}-\d\d-\d\d$/.test(day)) return null;
  try {
    return Temporal.PlainDate.from(day).add({ days: later }).toZonedDateTime(name).epochMilliseconds;
  } catch {
    return null;
  }
}

/** Returns the beginning of the day, in the zone, that lies `days` after the one of the instant. */
export function startOfDay(at: number, name: string, days = 0): number {
  const day = Temporal.Instant.fromEpochMilliseconds(Math.round(at))
    .toZonedDateTimeISO(name)
    .toPlainDate()
    .add({ days });
  return day.toZonedDateTime({ timeZone: name }).epochMilliseconds;
}

/** Returns the same wall clock of the zone, some days later. */
export function addDays(at: number, name: string, days: number): number {
  return Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(name).add({ days }).epochMilliseconds;
}

/** Returns the offset of the zone at an instant, such as "UTC+01:00". */
export function offsetName(at: number, name: string): string {
  const offset = Temporal.Instant.fromEpochMilliseconds(Math.round(at)).toZonedDateTimeISO(name).offset;
  return offset === "+00:00" ? "UTC" : `UTC${offset}`;
}
