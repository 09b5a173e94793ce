// SPDX-License-Identifier: Apache-2.0
/** For operators: maintenance windows; one with its leases; planning one. */
import { Refused } from "../../api/errors.ts";
import { useLive, useLiveList } from "../../api/live.ts";
import type { Maintenance } from "../../api/maintenance.ts";
import { may } from "../../api/session.ts";
import type { Link, NamedHost } from "../../api/types.ts";
import { Chips, Empty, PageHead, Skeleton, Trouble } from "../../parts/basics.tsx";
import { List } from "../../parts/list.tsx";
import { Phase } from "../../parts/state.tsx";
import { hrefOf, place, setParams } from "../../router.ts";
import { plural, range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { sentence } from "../../words/events.ts";
import { inWords } from "../../words/lease.ts";
import {
  hostsInWords,
  impactInWords,
  isGoingOn,
  isOver,
  lengthOfWindow,
  maintenanceState,
} from "../../words/maintenance.ts";
import { list } from "../../words/reading.ts";
import { HistoryOf } from "../history/of-object.tsx";
import { ChangeDialog, StopDialog } from "./dialogs.tsx";
import { Affected } from "./impact.tsx";
import { Plan, namesOf } from "./plan.tsx";

/** The pages: `?id=` names a window, `?do=plan` plans one; with an id `?do=` opens a dialog. */
export function MaintenancePage() {
  const { params } = place.value;
  const id = params.get("id");
  if (id) return <One key={id} id={id} />;
  return params.get("do") === "plan" && may("blazar:maintenances:post") ? <Planning /> : <All />;
}

function Planning() {
  const watch = useNamedHosts(120);
  const { data, error } = watch.state.value;
  if (!data) return error ? <Trouble error={error} retry={() => void watch.read()} /> : <Skeleton lines={8} />;
  return <Plan all={data.items} />;
}

/** Watches all hosts, however many, with their names. */
function useNamedHosts(everySeconds: number) {
  const query = { fields: "name" };
  return useLiveList<NamedHost>("v1/resources/host", "resources", query, Number.POSITIVE_INFINITY, everySeconds);
}

const OPEN = ["PLANNED", "STARTING", "ACTIVE", "ENDING"];

function All() {
  const past = place.value.params.get("past") !== null;
  const query = past ? { limit: 200 } : { status: `in:${OPEN.join(",")}`, limit: 200 };
  const watch = useLive<{ maintenances: Maintenance[]; links: Link[] }>("v1/maintenances", query, 20)!;
  const { data, error } = watch.state.value;
  const plan = may("blazar:maintenances:post") && (
    <a class="button primary" href={hrefOf("maintenance", { do: "plan" })}>
      Plan maintenance
    </a>
  );
  return (
    <>
      <PageHead title="Maintenance" lead="Hosts that are booked out for a time, and what that does to leases.">
        {plan}
      </PageHead>
      <div class="row filters">
        <Chips
          label="Which"
          options={[{ value: "past", text: "past ones, too" }]}
          chosen={past ? ["past"] : []}
          onChange={(chosen) => setParams({ past: chosen.length > 0 ? 1 : null })}
        />
      </div>
      <List
        heads={["Name", "State", "When", "Hosts"]}
        items={data && [...data.maintenances].sort(order)}
        error={error}
        retry={() => void watch.read()}
        empty={
          <Empty title={past ? "There were no maintenance windows" : "No maintenance is planned"} action={plan}>
            Plan maintenance to see first which leases it affects. Hosts return by themselves at its end.
          </Empty>
        }
        row={(one) => (
          <tr key={one.id}>
            <th scope="row">
              <a href={hrefOf("maintenance", { id: one.id })}>{one.name}</a>
              {one.reason && (
                <>
                  <br />
                  <span class="muted">{one.reason}</span>
                </>
              )}
            </th>
            <td>
              <Phase {...maintenanceState(one, present.value)} />
              {one.trouble && <p class="field-error">{sentence(one.trouble)}</p>}
            </td>
            <td>
              {timesOf(one)} <span class="muted">({lengthOfWindow(one)})</span>
            </td>
            <td>
              {plural(one.hosts.length, "host")} <span class="muted">{hostsInWords(one.hosts)}</span>
            </td>
          </tr>
        )}
      />
      {data?.links.some((link) => link.rel === "next") && <p class="hint">The last 200 are shown.</p>}
    </>
  );
}

/** What goes on and what is next first, what is over last. */
function order(a: Maintenance, b: Maintenance): number {
  const over = Number(isOver(a)) - Number(isOver(b));
  const times = Date.parse(a.start_date) - Date.parse(b.start_date);
  return over || (isOver(a) ? -times : times);
}

function timesOf(window: Maintenance): string {
  return range(Date.parse(window.start_date), Date.parse(window.end_date), zone.value, present.value);
}

function One({ id }: { id: string }) {
  const watch = useLive<{ maintenance: Maintenance }>(`v1/maintenances/${encodeURIComponent(id)}`, {}, 10)!;
  // Where leases are moved to has names, too.
  const hosts = useNamedHosts(300).state.value.data?.items ?? [];
  const { data, error, etag } = watch.state.value;
  const show = (doing: string | null) => setParams({ do: doing });
  if (!data && error instanceof Refused && [403, 404].includes(error.status)) {
    const action = (
      <a class="button primary" href={hrefOf("maintenance")}>
        Maintenance
      </a>
    );
    return (
      <Empty title="There is no such maintenance window" action={action}>
        Its address may be incomplete.
      </Empty>
    );
  }
  if (!data) return error ? <Trouble error={error} retry={() => void watch.read()} /> : <Skeleton lines={8} />;
  const { maintenance } = data;
  const nameOf = namesOf([...hosts, ...maintenance.hosts]);
  const leases = maintenance.leases ?? [];
  const doing = place.value.params.get("do");
  const over = isOver(maintenance);
  const ending = maintenance.status === "ENDING";
  const dialog = {
    maintenance,
    etag,
    nameOf,
    onClose: () => show(null),
    onDone: () => {
      show(null);
      void watch.read();
    },
  };
  return (
    <>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      <header class="lease-head">
        <div class="lease-title">
          <h1>{maintenance.name}</h1>
          <p>
            <Phase {...maintenanceState(maintenance, present.value)} />
          </p>
          <p class="muted">
            {timesOf(maintenance)} ({lengthOfWindow(maintenance)})
          </p>
          {maintenance.reason && <p>{maintenance.reason}</p>}
          {maintenance.trouble && <p class="missing">{sentence(maintenance.trouble)} It is tried again by itself.</p>}
        </div>
        {!over && !ending && (
          <div class="page-actions">
            {may("blazar:maintenances:update") && (
              <button type="button" class="primary" onClick={() => show("change")}>
                Change
              </button>
            )}
            {may(isGoingOn(maintenance) ? "blazar:maintenances:end" : "blazar:maintenances:delete") && (
              <button type="button" class="danger" onClick={() => show("stop")}>
                {isGoingOn(maintenance) ? "End now" : "Cancel the maintenance"}
              </button>
            )}
          </div>
        )}
      </header>
      <section class="card stack" aria-label="Hosts">
        <h2>{plural(maintenance.hosts.length, "host")}</h2>
        {maintenance.requirement && <p class="muted">chosen by {inWords([list(maintenance.requirement)])}</p>}
        <ul class="got">
          {maintenance.hosts.map((host) => (
            <li key={host.id}>
              {host.name}
              {host.servers !== null && (
                <span class="muted"> {host.servers === 0 ? "no servers" : plural(host.servers, "server")}</span>
              )}
            </li>
          ))}
        </ul>
        <p class="hint">
          {maintenance.disable_service
            ? "Its hosts are disabled in Nova meanwhile, and enabled at its end."
            : "Nova is not told; nobody can reserve the hosts meanwhile."}{" "}
          {maintenance.pending === "leave"
            ? "Leases are left where they are."
            : "Leases that have not started get other hosts where that is possible."}
        </p>
      </section>
      <h2 class="window-leases">Leases</h2>
      <p class="muted series-fit">{impactInWords(leases)}</p>
      <Affected leases={leases} nameOf={nameOf} opened />
      <HistoryOf type="maintenance" id={maintenance.id} />
      {doing === "change" && !over && <ChangeDialog {...dialog} />}
      {doing === "stop" && !over && <StopDialog {...dialog} />}
    </>
  );
}
