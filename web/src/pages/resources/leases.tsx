// SPDX-License-Identifier: Apache-2.0
/** Who has a resource, now and later, and who had it: its leases with project and user, as far as the reader sees them. */
import { useLiveList } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import type { Lease, Resource } from "../../api/types.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { More, Rows, useMore } from "../../parts/list.tsx";
import { LeaseState } from "../../parts/state.tsx";
import { hrefOf } from "../../router.ts";
import { range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { capacityInWords } from "../../words/values.ts";
import { zone } from "../../time/zone.ts";

/** Returns what of a resource the reservations of a lease have: "6 units"; "all of it" where nobody shares it. */
export function shareInWords({ reservations }: Pick<Lease, "reservations">, id: string): string {
  const sum: Record<string, number> = {};
  const of = reservations.flatMap(({ allocations }) => allocations).filter(({ resource }) => resource.id === id);
  for (const { used } of of) {
    if (!used) return "all of it";
    for (const [name, amount] of Object.entries(used)) sum[name] = (sum[name] ?? 0) + amount;
  }
  return capacityInWords(sum).join(", ") || (sum.UNIT === 1 ? "1 unit" : "");
}

const FIELDS = "name,status,degraded,start_date,end_date,deleted_at,project_id,user_id,end_reason,wait";

/** Draws both lists; members see leases of their project. */
export function LeasesOf({ resource }: { resource: Resource }) {
  const operator = may("blazar:calendar:get_owners");
  return (
    <>
      <Some
        resource={resource}
        past={false}
        title={operator ? "Who has it, now and later" : "Your project has it"}
        none={operator ? "No lease has it, now or later." : ""}
      />
      <Some resource={resource} past title={operator ? "Who had it" : "Your project had it"} none="" />
    </>
  );
}

function Some(props: { resource: Resource; past: boolean; title: string; none: string }) {
  const { resource, past, title, none } = props;
  const order = past
    ? { state: "past", sort_key: "end_date", sort_dir: "desc" }
    : { state: "current", sort_key: "start_date" };
  const shared = isShared(resource);
  const fields = shared ? `${FIELDS},reservations` : FIELDS;
  const query = { resource: resource.label ?? resource.id, fields, ...order };
  const { wanted, more } = useMore(JSON.stringify(query), 10);
  const watch = useLiveList<Lease>("v1/leases", "leases", query, wanted, 30);
  const { data, error, loading } = watch.state.value;
  if (data?.items.length === 0 && none === "") return null;
  return (
    <section class="resource-leases">
      <h2>{title}</h2>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {loading && <Skeleton lines={2} />}
      {data?.items.length === 0 && <p class="muted">{none}</p>}
      {data && data.items.length > 0 && (
        <>
          <Rows heads={["Lease", ...(shared ? ["Has of it"] : []), "Project and user", "State", "When"]}>
            {data.items.map((lease) => (
              <Row key={lease.id} lease={lease} share={shared ? shareInWords(lease, resource.id) : null} />
            ))}
          </Rows>
          <More shown={data.items.length} count={data.count} onMore={more} />
        </>
      )}
    </section>
  );
}

/** True of what several leases can have at once. */
function isShared({ capacity }: Resource): boolean {
  return capacityInWords(capacity).length > 0;
}

function Row({ lease, share }: { lease: Lease; share: string | null }) {
  const { id, name, project_id, user_id, start_date, end_date } = lease;
  const project = <span>{project_id}</span>;
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf("lease", { id })}>{name || "without a name"}</a>
      </th>
      {share !== null && <td>{share}</td>}
      <td>
        {may("blazar:calendar:get_owners") ? (
          <a href={hrefOf("all-leases", { project: project_id })}>{project_id}</a>
        ) : (
          project
        )}
        {may("blazar:calendar:get_owners") ? (
          <a class="owner" href={hrefOf("all-leases", { user: user_id })}>
            {user_id}
          </a>
        ) : (
          <span class="muted owner">{user_id}</span>
        )}
      </td>
      <td>
        <LeaseState lease={lease} />
      </td>
      <td>
        <span>{range(Date.parse(start_date), Date.parse(end_date), zone.value, present.value)}</span>
      </td>
    </tr>
  );
}
