// SPDX-License-Identifier: Apache-2.0
/** What is free now of each kind that the site has, to choose the one whose use is drawn. */
import { type Kind, kindOfType, kinds } from "../../api/kinds.ts";
import { useLive } from "../../api/live.ts";
import type { Capacity, ResourceType } from "../../api/types.ts";
import { Bar } from "../../parts/bar.tsx";
import { present } from "../../time/now.ts";
import { toWire } from "../../time/zone.ts";
import { capital } from "../../words/events.ts";
import { nounOf } from "../../words/lease.ts";
import { stepAt } from "./sums.ts";

const HOUR = 3_600_000;

/** Returns the word for resources that a type reserves: pools for volumes. */
export function resourcesOf(type: ResourceType): string {
  return kindOfType(type)?.nouns ?? nounOf(type);
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
  // To the hour, so that the question stays the same from one reading to the next.
  const hour = Math.floor(present.value / HOUR) * HOUR;
  const query = { from: toWire(hour), to: toWire(hour + HOUR), step: "PT5M", resource_type: type };
  const watch = useLive<{ capacity: Capacity }>("v1/capacity", query, 60)!;
  const capacity = watch.state.value.data?.capacity;
  const series = capacity?.series[0];
  if (!capacity || !series) return null;
  const at = stepAt(capacity, present.value);
  const [free, total] = [series.free[at] ?? 0, series.total[at] ?? 0];
  if (Math.max(...series.total) === 0) return null;
  return (
    <button type="button" aria-pressed={kind.resource_types.includes(chosen)} onClick={() => onChange(type)}>
      <span>{capital(kind.nouns)}</span>
      <strong>
        {free} <span class="muted">of {total} free</span>
      </strong>
      <Bar share={free / Math.max(1, total)} />
      <span class="muted">{Math.round((100 * free) / Math.max(1, total))} % free</span>
    </button>
  );
}
