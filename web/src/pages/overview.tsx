// SPDX-License-Identifier: Apache-2.0
/** For operators: what happens now and in the next days, how much is free over time, who uses most. */
import type { ComponentChildren } from "preact";
import { now as serviceNow } from "../api/client.ts";
import { useLive } from "../api/live.ts";
import type { Capacity, Lease } from "../api/types.ts";
import { PageHead, Segments, Skeleton, Trouble, When } from "../parts/basics.tsx";
import { LeaseState } from "../parts/state.tsx";
import { type Params, hrefOf, place, setParams } from "../router.ts";
import { duration } from "../time/format.ts";
import { present } from "../time/now.ts";
import { startOfDay, toWire, zone } from "../time/zone.ts";
import { about, placeInWords, whyReleased } from "../words/waiting.ts";
import { CapacityChart } from "./overview/chart.tsx";
import { KindsNow, resourcesOf } from "./overview/kinds.tsx";
import { type Brief, busiest, sorted } from "./overview/sums.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const FIELDS =
  "name,status,degraded,start_date,end_date,deleted_at,project_id,user_id,conditions,usage,release_at,wait";

/** The page. */
export function OverviewPage() {
  // To the hour, so that the question stays the same from one reading to the next.
  const hour = Math.floor(serviceNow() / HOUR) * HOUR;
  const query = { from: toWire(hour), to: toWire(hour + 7 * DAY), fields: FIELDS, limit: 1000, sort_key: "start_date" };
  const leases = useLive<{ leases: Lease[] }>("v1/leases", query, 20)!;
  // Who has waited the longest is the first.
  const waiting = {
    status: "WAITING",
    fields: FIELDS,
    sort_key: "created_at",
    sort_dir: "asc",
    limit: SHOWN,
    with_count: true,
  };
  const line = useLive<Line>("v1/leases", waiting, 20)!.state.value.data;
  const { data, error, loading } = leases.state.value;
  return (
    <>
      <PageHead title="Overview" lead="What starts, ends and needs attention now and in the next 7 days." />
      {error !== null && <Trouble error={error} retry={() => void leases.read()} />}
      {loading ? <Skeleton lines={5} /> : data && <Week leases={data.leases} line={line} />}
      <Usage />
    </>
  );
}

interface Line {
  leases: Brief[];
  count?: number;
}

function Week({ leases, line }: { leases: Brief[]; line: Line | null }) {
  const now = present.value;
  const longest = line?.leases[0]?.wait;
  const { late, failed, degraded, starting, ending, released } = sorted(leases, present.value, 7 * DAY);
  return (
    <div class="tiles">
      <Tile
        title="Needs attention"
        leases={[...failed, ...late, ...degraded]}
        none="Nothing failed, late or degraded."
        urgent
      >
        {(lease) => lease.conditions?.[0]?.reason?.message ?? ""}
      </Tile>
      <Tile title="Starting" leases={starting} none="Nothing starts in the next 7 days.">
        {(lease) => <When at={lease.start_date} as="spoken" />}
      </Tile>
      <Tile title="Ending" leases={ending} none="Nothing ends in the next 7 days.">
        {(lease) => <When at={lease.end_date} as="spoken" />}
      </Tile>
      <Tile
        title="Waiting in line"
        leases={line?.leases ?? []}
        count={line?.count ?? 0}
        more={{ states: "WAITING" }}
        none="Nobody waits."
        lead={longest ? `The longest wait: ${duration(now - Date.parse(longest.queued_at))}.` : undefined}
      >
        {(lease) => lease.wait && placeInWords(lease.wait, zone.value, now)}
      </Tile>
      <Tile title="Will be released" leases={released} none="No lease is about to be released as unused.">
        {(lease) => (
          <>
            {about(lease.release_at!, zone.value, now)}: {whyReleased(lease.usage)}
          </>
        )}
      </Tile>
    </div>
  );
}

const SHOWN = 6;

function Tile(props: {
  title: string;
  leases: Brief[];
  none: string;
  urgent?: boolean;
  /** Of all, if these are not all. */
  count?: number;
  /** Said before the list. */
  lead?: string | undefined;
  /** Where all of them are listed. */
  more?: Params;
  children: (lease: Brief) => ComponentChildren;
}) {
  const { title, leases, none, urgent, lead, more, children, count = leases.length } = props;
  return (
    <section class={urgent && leases.length > 0 ? "card tile urgent" : "card tile"}>
      <h2>
        {title} <span class="tile-count">{count}</span>
      </h2>
      {leases.length === 0 && <p class="muted">{none}</p>}
      {lead && <p>{lead}</p>}
      <ul>
        {leases.slice(0, SHOWN).map((lease) => (
          <li key={lease.id}>
            <a href={hrefOf("lease", { id: lease.id })}>{lease.name}</a> <span class="muted">{lease.project_id}</span>
            <div class="tile-detail">
              {urgent && <LeaseState lease={lease} brief />} {children(lease)}
            </div>
          </li>
        ))}
      </ul>
      {count > SHOWN && <a href={hrefOf("all-leases", more)}>All {count}</a>}
    </section>
  );
}

const RANGES = [
  { value: "week", text: "Week", days: 7, step: "PT1H" },
  { value: "month", text: "Month", days: 30, step: "PT4H" },
  { value: "quarter", text: "Quarter", days: 92, step: "PT12H" },
] as const;

/** Free, promised and out of use over time, and the projects with most of it. */
function Usage() {
  const { params } = place.value;
  const type = params.get("type") ?? "physical:host";
  const length = RANGES.find((one) => one.value === params.get("range")) ?? RANGES[1];
  // A third of the range lies behind: planning needs what was, too.
  const from = startOfDay(serviceNow(), zone.value, -Math.floor(length.days / 3));
  const to = startOfDay(from, zone.value, length.days);
  const span = { from: toWire(from), to: toWire(to), step: length.step };
  const query = { ...span, resource_type: type };
  const all = useLive<{ capacity: Capacity }>("v1/capacity", query, 60)!;
  const projects = useLive<{ capacity: Capacity }>("v1/capacity", { ...query, group_by: "project_id" }, 300)!.state
    .value;
  const { data, error, loading } = all.state.value;
  const shares = projects.data ? busiest(projects.data.capacity) : [];
  return (
    <section class="card usage" aria-labelledby="usage">
      <div class="row spread">
        <h2 id="usage">Use over time</h2>
        <Segments
          label="Range"
          options={RANGES}
          chosen={length.value}
          onChange={(value) => setParams({ range: value === "month" ? null : value })}
        />
      </div>
      <KindsNow
        query={span}
        chosen={type}
        onChange={(value) => setParams({ type: value === "physical:host" ? null : value })}
      />
      {error !== null && <Trouble error={error} retry={() => void all.read()} />}
      {loading && <Skeleton lines={6} />}
      {data?.capacity.series[0] && (
        <CapacityChart
          capacity={data.capacity}
          series={data.capacity.series[0]}
          zone={zone.value}
          now={present.value}
          noun={resourcesOf(type)}
        />
      )}
      {data && !data.capacity.series[0] && <p class="muted">There are no {resourcesOf(type)} to reserve.</p>}
      {shares.length > 0 && (
        <>
          <h3>Busiest projects in this range</h3>
          <ul class="shares">
            {shares.slice(0, 8).map((share) => (
              <li key={share.project}>
                <a href={hrefOf("all-leases", { project: share.project })}>{share.project}</a>
                <meter
                  min={0}
                  max={shares[0]!.hours}
                  value={share.hours}
                  aria-label={`${share.project}: ${share.hours} hours`}
                />
                <span class="number muted">{share.hours.toLocaleString("en")} h</span>
              </li>
            ))}
          </ul>
        </>
      )}
    </section>
  );
}
