// SPDX-License-Identifier: Apache-2.0
/** One resource of any kind: what it is, its state, and who has it when. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { type Kind, kindOf, kindsRead } from "../../api/kinds.ts";
import { useLive } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import type { Resource } from "../../api/types.ts";
import { Empty, PageHead, Skeleton, Trouble, When } from "../../parts/basics.tsx";
import { go, hrefOf, place } from "../../router.ts";
import { LeasesOf } from "./leases.tsx";
import { attributeInWords, capacityInWords } from "../../words/values.ts";
import { HistoryOf } from "../history/of-object.tsx";
import { calendarOf } from "../hosts/table.tsx";
import { PowerLine, type PowerOfHosts, usePowerOf } from "../hosts/power.tsx";
import { Properties, type ResourceAction, ResourceActions, ResourceDialog, nameOf } from "./table.tsx";
import { type Promises, ResourceState, usePromised } from "./state.tsx";

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
  const promises = usePromised(
    kind.resource_types.find((one) => one.startsWith("physical:")) ?? kind.resource_types[0]!,
    id,
  );
  const power = usePowerOf(kind.name, id);
  const [open, setOpen] = useState<ResourceAction | null>(null);
  if (loading) return <Skeleton lines={6} />;
  if (!data) return <Trouble error={error} retry={() => void watch.read()} />;
  const { resource } = data;
  const name = nameOf(resource);
  const type = kind.resource_types[0]!;
  const operator = kind.name === "host" && may("blazar:resources:get_private", "host");
  const all = operator ? hrefOf("hosts") : hrefOf("resources", { kind: kind.name });
  return (
    <>
      <PageHead
        title={name}
        lead={
          <>
            <a href={all}>All {kind.nouns}</a> ·{" "}
            <a
              href={
                kind.name === "host" && resource.name
                  ? calendarOf(resource.name)
                  : hrefOf("calendar", { type: type === "flavor:instance" ? null : type })
              }
            >
              Calendar
            </a>
          </>
        }
      >
        <ResourceActions resource={resource} power={power} onOpen={setOpen} />
      </PageHead>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      <section class="card">
        {power.error !== null && <Trouble error={power.error} />}
        <Facts resource={resource} kind={kind} promises={promises} power={power} />
      </section>
      <LeasesOf resource={resource} />
      {may("blazar:resources:get_private", kind.name) && (
        <HistoryOf type="resource" id={`${kind.name}/${resource.id}`} />
      )}
      {open && (
        <ResourceDialog
          what={open}
          resource={resource}
          noun={kind.noun}
          power={power}
          onDone={() => {
            setOpen(null);
            power.again();
            if (open === "delete") go("resources", { kind: kind.name });
            else void watch.read();
          }}
          onClose={() => setOpen(null)}
        />
      )}
    </>
  );
}

function Facts(props: { resource: Resource; kind: Kind; promises: Promises; power: PowerOfHosts }) {
  const { resource, kind, promises, power } = props;
  const its = power.hosts.get(resource.id);
  const capacity = capacityInWords(resource.capacity);
  const rows = Object.entries(resource.attributes)
    .map(([name, value]) => attributeInWords(kind.attributes[name]?.title ?? name, value))
    .filter((one) => one !== null);
  return (
    <dl class="facts">
      <dt>State</dt>
      <dd>
        <ResourceState of={resource} promises={promises} />
        {its && <PowerLine host={its} />}
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
