// SPDX-License-Identifier: Apache-2.0
/** What hosts drew and emitted, in words. Pure. */
import type { LeaseEnergy, UnbookedEnergy, UnbookedPart } from "../api/reports.ts";
import { hoursOf, thousandsOf } from "./usage.ts";

const SOURCES: Readonly<Record<NonNullable<LeaseEnergy["source"]>, string>> = {
  measured: "measured",
  rated: "by the data sheets of the hosts, not measured",
  mixed: "measured in part, else by the data sheets of the hosts",
};

/** Returns grams of CO2e: "840 g CO₂e", "12.5 kg CO₂e". */
export function carbonOf(grams: number): string {
  if (grams < 1000) return `${grams} g CO₂e`;
  return `${thousandsOf(grams)} kg CO₂e`;
}

/** Returns "12.5 kWh, 4.2 kg CO₂e"; what is not known is left out. */
export function energyInWords(wattHours: number | null, grams: number | null): string {
  const parts = [
    ...(wattHours === null ? [] : [`${thousandsOf(wattHours)} kWh`]),
    ...(grams === null ? [] : [carbonOf(grams)]),
  ];
  return parts.join(", ");
}

/** Returns how the energy of a lease is known, and what is not in it, in sentences. */
export function energyNotes({
  source,
  unknown_seconds: unknown,
  resource_seconds: all,
  carbon,
}: LeaseEnergy): string[] {
  const notes = source === null ? [] : [`The energy is ${SOURCES[source]}.`];
  if (unknown > 0 && all > 0)
    notes.push(`Of ${Math.round((100 * unknown) / all)} % of the hosts' time nothing is known.`);
  if (carbon) {
    if (carbon.estimated) notes.push("The carbon of some hours is estimated by the days before.");
    if (!carbon.complete) notes.push("The carbon of some hours, or hosts, is not known and not in the sum.");
    if (!carbon.embodied_complete) notes.push("What it took to make the hosts is not known of all of them.");
  }
  return notes;
}

/** Returns how clean it was: "97 g CO₂e for each hour of a host (SCI)"; "" if that is not known. */
export function sciInWords({ carbon }: Pick<LeaseEnergy, "carbon">): string {
  if (!carbon || carbon.sci_mg === null || !carbon.complete) return "";
  return `${carbonOf(Math.round(carbon.sci_mg / 1000))} for each hour of a host (SCI)`;
}

/** Returns what hosts drew that no lease had in all parts of a period; null if one of them is not told. */
export function sumUnbooked(parts: readonly (UnbookedEnergy | null | undefined)[]): UnbookedEnergy | null {
  if (parts.length === 0 || parts.some((part) => !part)) return null;
  const known = parts as readonly UnbookedEnergy[];
  return { idle: sumParts(known.map(({ idle }) => idle)), asleep: sumParts(known.map(({ asleep }) => asleep)) };
}

function sumParts(parts: readonly UnbookedPart[]): UnbookedPart {
  const sources = new Set(parts.flatMap(({ source }) => source ?? []));
  return {
    resource_seconds: parts.reduce((sum, part) => sum + part.resource_seconds, 0),
    energy_wh: sumOf(parts.map((part) => part.energy_wh)),
    source: sources.size > 1 ? "mixed" : ([...sources][0] ?? null),
    unknown_seconds: parts.reduce((sum, part) => sum + part.unknown_seconds, 0),
    gco2: sumOf(parts.map((part) => part.gco2)),
  };
}

function sumOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : known.reduce((sum, value) => sum + value, 0);
}

/** Returns what hosts drew that no lease had: "idle for 96 h: 12.5 kWh, 4.2 kg CO₂e"; "" if they had no such time. */
export function unbookedInWords(
  { resource_seconds: all, energy_wh, source, gco2 }: UnbookedPart,
  state: string,
): string {
  if (all === 0) return "";
  const drawn = source === null ? "what they drew is not known" : energyInWords(energy_wh, gco2);
  return `${state} for ${hoursOf(all)} h: ${drawn}`;
}

/** Returns how that is known, and what is not in it, in sentences. */
export function unbookedNotes({ idle, asleep }: UnbookedEnergy): string[] {
  const notes = idle.source === null ? [] : [`What idle hosts drew is ${SOURCES[idle.source]}.`];
  const unknown = idle.unknown_seconds + asleep.unknown_seconds;
  if (unknown > 0) notes.push(`Of ${hoursOf(unknown)} h of hosts nothing is known: they are not in the sums.`);
  return notes;
}
