// SPDX-License-Identifier: Apache-2.0
/** What is free now of each kind that the site has, to choose the one whose use is drawn. */
import { type Kind, kindOfType, kinds } from "../../api/kinds.ts";
import { useLive } from "../../api/live.ts";
import type { Capacity, ResourceType } from "../../api/types.ts";
import { Bar } from "../../parts/bar.tsx";
import { capital } from "../../words/events.ts";
import { nounOf } from "../../words/lease.ts";
import { sharedUnits } from "../../words/measure.ts";

/** How often what is said of now is read again. */
export const EVERY_S = 15;

/** Returns the word for resources that a type reserves: pools for volumes. */
export function resourcesOf(type: ResourceType): string {
  return kindOfType(type)?.nouns ?? nounOf(type);
}

/** Returns what of a type is asked of the capacity: how many resources, or how much of those that leases share. */
export function askedOf(type: ResourceType): Record<string, string> {
  const units = sharedUnits(type);
  return { resource_type: type, ...(units ? { measure: units.of } : {}) };
}

/** Returns what is counted of a type: "hosts", "GiB of volume pools". */
export function countedOf(type: ResourceType): string {
  const units = sharedUnits(type);
  return units ? `${units.noun} ${units.on} ${resourcesOf(type)}` : resourcesOf(type);
}

/** One button a kind; kinds without resources are left out. */
export function KindsNow(props: { chosen: ResourceType; onChange: (type: ResourceType) => void }) {
  const known = kinds.value.filter((one) => one.resource_types.length > 0);
  if (known.length < 2) return null;
  const sorted = [...known].sort((a, b) => Number(b.name === "host") - Number(a.name === "host"));
  return (
    <fieldset class="kinds-now">
      <legend class="visually-hidden">Kind of resource</legend>
      {sorted.map((kind) => (
        <KindNow key={kind.name} {...props} kind={kind} />
      ))}
    </fieldset>
  );
}

function KindNow(props: Parameters<typeof KindsNow>[0] & { kind: Kind }) {
  const { kind, chosen, onChange } = props;
  const whole: ResourceType = "physical:host";
  const type = kind.resource_types.includes(whole) ? whole : kind.resource_types[0]!;
  // From now, as at_start is what is free at this moment: a step has the fewest of all its time.
  const query = { from: "now", to: "+PT1H", step: "PT1H", ...askedOf(type) };
  const watch = useLive<{ capacity: Capacity }>("v1/capacity", query, EVERY_S)!;
  const series = watch.state.value.data?.capacity.series[0];
  if (!series?.at_start) return null;
  const { free, total } = series.at_start;
  if (Math.max(total, ...series.total) === 0) return null;
  const units = sharedUnits(type);
  return (
    <button type="button" aria-pressed={kind.resource_types.includes(chosen)} onClick={() => onChange(type)}>
      <span>{capital(kind.nouns)}</span>
      <strong>
        {free.toLocaleString("en")}{" "}
        <span class="muted">
          of {total.toLocaleString("en")} {units && `${units.noun} `}free
        </span>
      </strong>
      <Bar share={free / Math.max(1, total)} />
      <span class="muted">{Math.round((100 * free) / Math.max(1, total))} % free</span>
    </button>
  );
}
