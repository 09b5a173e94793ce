// SPDX-License-Identifier: Apache-2.0
/** What needs an operator's attention: hosts and leases that are not as they should be, each number with its list. */
import type { ComponentChildren } from "preact";
import { type Listed, useLive, useLiveList } from "../../api/live.ts";
import type { Maintenance, Outcome } from "../../api/maintenance.ts";
import { may } from "../../api/session.ts";
import type { Host, Lease } from "../../api/types.ts";
import { Skeleton, Trouble, When } from "../../parts/basics.tsx";
import { StateMark } from "../../parts/state.tsx";
import { type Params, hrefOf } from "../../router.ts";
import { plural } from "../../time/format.ts";
import type { Mark } from "../../words/lease.ts";
import { conditionInWords } from "../../words/lease.ts";
import { outcomePhase } from "../../words/maintenance.ts";
import { type Troubles, troublesOf } from "./hosts.ts";
import { useLeases } from "./leases.ts";

const SHOWN = 3;
/** What becomes of leases that a window will disturb. */
const KEEPS_HOSTS: readonly Outcome[] = ["needs_other_time", "partly_moved", "active", "partly_migrated"];
/** The next of the windows are looked at, each by a request of its own. */
const WINDOWS = 5;
const HOST_FIELDS = "name,failure,disabled";

/** Reads the first of the hosts with some trouble, and how many there are; null for who may not see them. */
function useHosts(trouble: Troubles): Listed<Host> | null {
  const query = { ...troublesOf(trouble), fields: HOST_FIELDS };
  return useLiveList<Host>("v1/resources/host", "resources", query, SHOWN, 30).state.value.data;
}

/** The card. */
export function Attention() {
  const failed = useLeases("failed", SHOWN);
  const lateStart = useLeases("lateStart", SHOWN);
  const lateEnd = useLeases("lateEnd", SHOWN);
  const degraded = useLeases("degraded", SHOWN);
  const all = [failed, lateStart, lateEnd, degraded];
  const error = all.find((one) => one.error !== null);
  if (error) return <Trouble error={error.error} retry={error.again} />;
  if (all.some((one) => one.data === null)) return <Skeleton lines={4} />;
  const leases = (list: Listed<Lease>, to: Params, mark: Mark, words: [string, string]) => (
    <Line
      count={list.count}
      mark={mark}
      words={words}
      to={hrefOf("all-leases", to)}
      shown={list.items.map((lease) => ({
        id: lease.id,
        name: lease.name,
        href: hrefOf("lease", { id: lease.id }),
        why: lease.conditions[0] ? conditionInWords(lease.conditions[0]) : lease.project_id,
      }))}
    />
  );
  const found = all.reduce((sum, one) => sum + one.data!.count, 0);
  return (
    <section class="card attention" aria-labelledby="attention">
      <h2 id="attention">Needs attention</h2>
      {may("blazar:resources:get_private", "host") ? <Hosts none={found === 0} /> : found === 0 && <Fine />}
      <ul class="attention-lines">
        {leases(failed.data!, failed.to, "failed", ["lease has failed", "leases have failed"])}
        {leases(lateStart.data!, lateStart.to, "changing", ["lease should have started", "leases should have started"])}
        {leases(lateEnd.data!, lateEnd.to, "changing", ["lease should have ended", "leases should have ended"])}
        {leases(degraded.data!, degraded.to, "degraded", ["lease is degraded", "leases are degraded"])}
      </ul>
      {may("blazar:maintenances:get") && <Windows />}
    </section>
  );
}

/** Leases that a maintenance window meets although it is known of: nothing else was free, or they have started. */
function Windows() {
  const query = { status: "in:PLANNED,STARTING,ACTIVE", limit: 200 };
  const { data } = useLive<{ maintenances: Maintenance[] }>("v1/maintenances", query, 60)!.state.value;
  if (!data || data.maintenances.length === 0) return null;
  const next = [...data.maintenances].sort((a, b) => Date.parse(a.start_date) - Date.parse(b.start_date));
  return (
    <ul class="attention-lines">
      {next.slice(0, WINDOWS).map(({ id }) => (
        <Met key={id} id={id} />
      ))}
    </ul>
  );
}

function Met({ id }: { id: string }) {
  const { data } = useLive<{ maintenance: Maintenance }>(`v1/maintenances/${id}`, {}, 60)!.state.value;
  if (!data) return null;
  const { name, leases = [] } = data.maintenance;
  const met = leases.filter(({ outcome }) => KEEPS_HOSTS.includes(outcome));
  return (
    <Line
      count={met.length}
      mark="changing"
      words={[`lease keeps hosts in the maintenance ${name}`, `leases keep hosts in the maintenance ${name}`]}
      to={hrefOf("maintenance", { id })}
      shown={met.slice(0, SHOWN).map((lease) => ({
        id: lease.lease_id,
        name: lease.name,
        href: hrefOf("lease", { id: lease.lease_id }),
        why: outcomePhase(lease.outcome).word,
      }))}
    />
  );
}

function Fine() {
  return <p class="muted">Nothing failed, late, degraded or out of use.</p>;
}

function Hosts({ none }: { none: boolean }) {
  const failed = useHosts("failed");
  const disabled = useHosts("disabled");
  const maintenance = useHosts("maintenance");
  if (!failed || !disabled || !maintenance) return <Skeleton lines={2} />;
  if (none && failed.count + disabled.count + maintenance.count === 0) return <Fine />;
  const lines = (list: Listed<Host>, to: Params, mark: Mark, words: [string, string], why: (host: Host) => unknown) => (
    <Line
      count={list.count}
      mark={mark}
      words={words}
      to={hrefOf("hosts", to)}
      shown={list.items.map((host) => ({
        id: host.id,
        name: host.name,
        href: hrefOf("resource", { kind: "host", id: host.id }),
        why: why(host) as ComponentChildren,
      }))}
    />
  );
  return (
    <ul class="attention-lines">
      {lines(failed, { condition: "failed" }, "failed", ["host has failed", "hosts have failed"], (host) => (
        <>
          {host.failure?.reason}, <When at={host.failure?.since ?? 0} as="relative" />
        </>
      ))}
      {lines(
        disabled,
        { condition: "disabled_without_end" },
        "past",
        ["host is disabled without a date", "hosts are disabled without a date"],
        (host) => host.disabled?.reason ?? "no reason is given",
      )}
      {lines(
        maintenance,
        { maintenance: "today" },
        "changing",
        ["host is in maintenance today", "hosts are in maintenance today"],
        () => null,
      )}
    </ul>
  );
}

interface LineProps {
  count: number;
  mark: Mark;
  /** For one and for more. */
  words: [string, string];
  /** The list of all that is counted. */
  to: string;
  shown: readonly { id: string; name: string; href: string; why: ComponentChildren }[];
}

/** One number, which leads to its list, and the first of it; nothing if there is none. */
function Line({ count, mark, words, to, shown }: LineProps) {
  if (count === 0) return null;
  return (
    <li>
      <p class="attention-count">
        <StateMark mark={mark} />
        <a href={to}>{plural(count, ...words)}</a>
      </p>
      <ul>
        {shown.map(({ id, name, href, why }) => (
          <li key={id}>
            <a href={href}>{name}</a> <span class="muted">{why}</span>
          </li>
        ))}
        {count > shown.length && <li class="muted">and {count - shown.length} more</li>}
      </ul>
    </li>
  );
}
