// SPDX-License-Identifier: Apache-2.0
/** One resource of any kind: what it is, its state, and who has it when. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { type Kind, kindOf, kindsRead } from "../api/kinds.ts";
import { useLive } from "../api/live.ts";
import { may } from "../api/session.ts";
import type { Resource } from "../api/types.ts";
import { Empty, PageHead, Skeleton, Trouble, When } from "../parts/basics.tsx";
import { go, hrefOf, place } from "../router.ts";
import { range } from "../time/format.ts";
import { present } from "../time/now.ts";
import { zone } from "../time/zone.ts";
import { attributeInWords, capacityInWords } from "../words/values.ts";
import { Properties, type ResourceAction, ResourceActions, ResourceDialog, nameOf } from "./resources/table.tsx";
import { ResourceState, usePromised } from "./resources/state.tsx";

interface Promised {
  id: string;
  lease_id: string;
  start_date: string;
  end_date: string;
}

/** The page. */
export function ResourcePage() {
  const { params } = place.value;
  const kind = kindOf(params.get("kind") ?? "");
  const id = params.get("id") ?? "";
  if (!kind && !kindsRead.value) return <Skeleton lines={6} />;
  if (!kind) {
    const all = (
      <a class="button primary" href={hrefOf("resources")}>
        All resources
      </a>
    );
    return (
      <Empty title="There is no such kind of resource" action={all}>
        The address may be an old one.
      </Empty>
    );
  }
  return <One key={`${kind.name} ${id}`} kind={kind} id={id} />;
}

function One({ kind, id }: { kind: Kind; id: string }) {
  const path = `v1/resources/${encodeURIComponent(kind.name)}/${encodeURIComponent(id)}`;
  const watch = useLive<{ resource: Resource }>(path)!;
  const { data, error, loading } = watch.state.value;
  const until = usePromised(kind.resource_types.find((one) => one.startsWith("physical:")) ?? kind.resource_types[0]!);
  const [open, setOpen] = useState<ResourceAction | null>(null);
  if (loading) return <Skeleton lines={6} />;
  if (!data) return <Trouble error={error} retry={() => void watch.read()} />;
  const { resource } = data;
  const name = nameOf(resource);
  const type = kind.resource_types[0]!;
  return (
    <>
      <PageHead
        title={name}
        lead={
          <>
            <a href={hrefOf("resources", { kind: kind.name })}>All {kind.nouns}</a> ·{" "}
            <a href={hrefOf("calendar", { type: type === "flavor:instance" ? null : type })}>Calendar</a>
          </>
        }
      >
        <ResourceActions resource={resource} onOpen={setOpen} />
      </PageHead>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      <section class="card">
        <Facts resource={resource} kind={kind} until={until.get(resource.id)} />
      </section>
      {may("blazar:resources:get_allocations") && <Promises path={path} />}
      {open && (
        <ResourceDialog
          what={open}
          resource={resource}
          noun={kind.noun}
          onDone={() => {
            setOpen(null);
            if (open === "delete") go("resources", { kind: kind.name });
            else void watch.read();
          }}
          onClose={() => setOpen(null)}
        />
      )}
    </>
  );
}

function Facts({ resource, kind, until }: { resource: Resource; kind: Kind; until: string | null | undefined }) {
  const capacity = capacityInWords(resource.capacity);
  const rows = Object.entries(resource.attributes)
    .map(([name, value]) => attributeInWords(kind.attributes[name]?.title ?? name, value))
    .filter((one) => one !== null);
  return (
    <dl class="facts">
      <dt>State</dt>
      <dd>
        <ResourceState of={resource} until={until} />
      </dd>
      {rows.map(({ name, text }) => (
        <Fragment key={name}>
          <dt>{name}</dt>
          <dd class="long">{text}</dd>
        </Fragment>
      ))}
      {capacity.length > 0 && (
        <>
          <dt>Can be reserved</dt>
          <dd>{capacity.join(", ")}</dd>
        </>
      )}
      {(Object.keys(resource.properties).length > 0 || resource.authorized_projects) && (
        <>
          <dt>Properties</dt>
          <dd>
            <Properties of={resource} />
          </dd>
        </>
      )}
      {resource.created_at && (
        <>
          <dt>Registered</dt>
          <dd>
            <When at={resource.created_at} as="spoken" />
          </dd>
        </>
      )}
      {resource.label && resource.name !== resource.label && (
        <>
          <dt>Label</dt>
          <dd>
            <code>{resource.label}</code> <span class="muted">how projects see it</span>
          </dd>
        </>
      )}
    </dl>
  );
}

/** The leases that have it, now and later. */
function Promises({ path }: { path: string }) {
  const watch = useLive<{ allocation: { reservations: Promised[] } }>(`${path}/allocations`, {}, 30)!;
  const { data, error } = watch.state.value;
  const all = data?.allocation.reservations ?? [];
  return (
    <section class="card">
      <h2>Promised</h2>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {data && all.length === 0 && <p class="muted">No lease has it, now or later.</p>}
      <ul class="stack">
        {all.map((one) => (
          <li key={one.id}>
            <a href={hrefOf("lease", { id: one.lease_id })}>
              {range(Date.parse(one.start_date), Date.parse(one.end_date), zone.value, present.value)}
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}
