// SPDX-License-Identifier: Apache-2.0
/** Free, promised and out of use over time, and the projects with most of it. */
import { ChevronLeft, ChevronRight } from "lucide";
import { now as serviceNow } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import type { Capacity, ResourceType } from "../../api/types.ts";
import { Bar } from "../../parts/bar.tsx";
import { Segments, Skeleton, Trouble } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icon.tsx";
import { hrefOf, place, setParams } from "../../router.ts";
import { range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { startOfDay, toWire, zone } from "../../time/zone.ts";
import { sharedUnits } from "../../words/measure.ts";
import { CapacityChart } from "./chart.tsx";
import { EVERY_S, KindsNow, askedOf, countedOf, resourcesOf } from "./kinds.tsx";
import { busiest, nextStep } from "./sums.ts";

const RANGES = [
  { value: "week", text: "Week", days: 7, step: "PT1H" },
  { value: "month", text: "Month", days: 30, step: "PT4H" },
  { value: "quarter", text: "Quarter", days: 92, step: "PT12H" },
] as const;
/** So many ranges ahead, and back, can be looked at. */
const FURTHEST = 24;

/** The card; `type`, `range` and `ahead` (in ranges) are in the address. */
export function Usage() {
  const { params } = place.value;
  const type = params.get("type") ?? "physical:host";
  const length = RANGES.find((one) => one.value === params.get("range")) ?? RANGES[1];
  const wanted = Math.trunc(Number(params.get("ahead") ?? 0)) || 0;
  const ahead = Math.max(-FURTHEST, Math.min(FURTHEST, wanted));
  // At first a third of the range lies behind: planning needs what was, too.
  const from = startOfDay(serviceNow(), zone.value, ahead * length.days - Math.floor(length.days / 3));
  const to = startOfDay(from, zone.value, length.days);
  const span = { from: toWire(from), to: toWire(to), step: length.step };
  const query = { ...span, ...askedOf(type) };
  const all = useLive<{ capacity: Capacity }>("v1/capacity", query, 60)!;
  const projects = useLive<{ capacity: Capacity }>("v1/capacity", { ...query, group_by: "project_id" }, 300)!;
  const { data, error, loading } = all.state.value;
  const next = data ? nextStep(data.capacity, present.value) : null;
  const near = useLive<{ capacity: Capacity }>(
    next ? "v1/capacity" : null,
    { from: "now", to: toWire(next ?? 0), ...askedOf(type) },
    EVERY_S,
  );
  const step = (by: number) => setParams({ ahead: ahead + by === 0 ? null : ahead + by });
  return (
    <section class="card usage" aria-labelledby="usage">
      <div class="row spread">
        <h2 id="usage">Use over time</h2>
        <div class="row">
          <span class="muted">{range(from, to, zone.value, present.value)}</span>
          <button type="button" class="square small" aria-label={`The ${length.value} before`} onClick={() => step(-1)}>
            <Icon of={ChevronLeft} />
          </button>
          {ahead !== 0 && (
            <button type="button" class="small" onClick={() => setParams({ ahead: null })}>
              Today
            </button>
          )}
          <button type="button" class="square small" aria-label={`The next ${length.value}`} onClick={() => step(1)}>
            <Icon of={ChevronRight} />
          </button>
          <Segments
            label="Range"
            options={RANGES}
            chosen={length.value}
            onChange={(value) => setParams({ range: value === "month" ? null : value, ahead: null })}
          />
        </div>
      </div>
      <KindsNow chosen={type} onChange={(value) => setParams({ type: value === "physical:host" ? null : value })} />
      {error !== null && <Trouble error={error} retry={() => void all.read()} />}
      {loading && <Skeleton lines={6} />}
      {data?.capacity.series[0] && (
        <CapacityChart
          capacity={data.capacity}
          near={near?.state.value.data?.capacity ?? null}
          series={data.capacity.series[0]}
          zone={zone.value}
          now={present.value}
          noun={countedOf(type)}
        />
      )}
      {data && !data.capacity.series[0] && <p class="muted">There are no {resourcesOf(type)} to reserve.</p>}
      <Busiest all={data?.capacity ?? null} by={projects.state.value.data?.capacity ?? null} type={type} />
    </section>
  );
}

/** Who has most of it in the range, of all that can be had. */
function Busiest({ all, by, type }: { all: Capacity | null; by: Capacity | null; type: ResourceType }) {
  const noun = countedOf(type);
  const unit = sharedUnits(type)?.noun;
  const shares = all && by ? busiest(by, all) : [];
  if (shares.length === 0) return null;
  return (
    <>
      <h3>Busiest projects in this range</h3>
      <ul class="shares">
        {shares.slice(0, 8).map(({ project, hours, percent }) => (
          <li key={project}>
            <a href={hrefOf("all-leases", { project })}>{project}</a>
            <Bar share={percent / 100} />
            <span class="number muted" title={`of all hours of ${noun} in this range`}>
              {hours.toLocaleString("en")} {unit && `${unit} ×`} h, {percent === 0 ? "< 1" : percent} %
            </span>
          </li>
        ))}
      </ul>
      <p class="hint">Percent of all hours of {noun} in this range.</p>
    </>
  );
}
