// SPDX-License-Identifier: Apache-2.0
/** Resources of every kind: what can be reserved; for operators also registering and changing it. */
import { useState } from "preact/hooks";
import { type Kind, kinds, kindsRead, regions } from "../../api/kinds.ts";
import { useLiveList } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import type { Resource } from "../../api/types.ts";
import { Chips, Empty, PageHead, Skeleton, Trouble } from "../../parts/basics.tsx";
import { opened } from "../../parts/opened.ts";
import { More, useMore } from "../../parts/list.tsx";
import { Search } from "../../parts/search.tsx";
import { hrefOf, place, setParams } from "../../router.ts";
import { HostList } from "../hosts/list.tsx";
import { PoolSummary, usePower } from "../hosts/power.tsx";
import { RegisterDialog } from "./register.tsx";
import { type ResourceAction, ResourceDialog, ResourceTable } from "./table.tsx";

const CONDITIONS = [
  { value: "ok", text: "in service" },
  { value: "disabled", text: "disabled" },
  { value: "failed", text: "failed" },
] as const;

/** The page. */
export function ResourcesPage() {
  const wanted = place.value.params.get("kind");
  // Whole hosts are what every cloud has.
  const named = (name: string | null) => kinds.value.find((one) => one.name === name);
  const kind = named(wanted) ?? named("host") ?? kinds.value[0];
  return (
    <>
      <PageHead title="Resources" lead="What this cloud has to reserve, of every kind.">
        {kind && <Register kind={kind} />}
      </PageHead>
      {kinds.value.length === 0 &&
        (kindsRead.value ? (
          <Empty
            title="The kinds of resources could not be read"
            action={
              <button type="button" onClick={() => window.location.reload()}>
                Try again
              </button>
            }
          />
        ) : (
          <Skeleton lines={6} />
        ))}
      {kinds.value.length > 1 && kind && (
        <div class="row filters">
          <Chips
            label="Kind"
            options={kinds.value.map((one) => ({ value: one.name, text: one.nouns }))}
            chosen={[kind.name]}
            onChange={(names) => {
              const name = names.find((one) => one !== kind.name) ?? kind.name;
              setParams({ kind: name, condition: null, text: null, region: null, maintenance: null });
            }}
          />
        </div>
      )}
      {kind && (ofHosts(kind) ? <HostList empty={<NoHosts />} /> : <List key={kind.name} kind={kind} />)}
    </>
  );
}

/** True where operators see the one list of hosts, with all that they can do. */
function ofHosts(kind: Kind): boolean {
  return kind.name === "host" && may("blazar:resources:get_private", "host");
}

function NoHosts() {
  return <Empty title="There are no hosts yet">What is registered, users can reserve.</Empty>;
}

function Register({ kind }: { kind: Kind }) {
  const [open, setOpen] = opened("register");
  if (!may("blazar:resources:post", kind.name) || !kind.registration) return null;
  if (kind.name === "host") {
    // Hosts have a page of their own, which offers the hypervisors of the cloud.
    return may("blazar:resources:get_private", "host") ? (
      <a class="button" href={hrefOf("hosts", { register: 1 })}>
        Register hosts
      </a>
    ) : null;
  }
  return (
    <>
      <button type="button" class="primary" onClick={() => setOpen(true)}>
        Register a {kind.noun}
      </button>
      {open && <RegisterDialog kind={kind} onClose={() => setOpen(false)} />}
    </>
  );
}

function List({ kind }: { kind: Kind }) {
  const { params } = place.value;
  const operator = may("blazar:resources:get_private", kind.name);
  const condition = params.get("condition");
  const text = params.get("text") ?? "";
  const region = params.get("region");
  const query: Record<string, string | number | boolean> = {};
  if (operator && condition) query.condition = condition;
  if (text) query.text = text;
  if (region) query.requirement = JSON.stringify(["==", "$region", region]);
  const { wanted, more } = useMore(JSON.stringify(query), 100);
  const watch = useLiveList<Resource>(`v1/resources/${kind.name}`, "resources", query, wanted, 30);
  const { data, error, loading } = watch.state.value;
  const power = usePower(kind.name);
  const [open, setOpen] = useState<{ what: ResourceAction; id: string } | null>(null);
  const chosen = open && data?.items.find((one) => one.id === open.id);
  const filtered = Boolean(condition || text || region);
  return (
    <>
      {kind.name === "volume" && <PoolSummary power={power} />}
      <div class="row filters">
        <Search name="text" label="Name" />
        {operator && (
          <Chips
            label="Condition"
            options={CONDITIONS}
            chosen={CONDITIONS.map((one) => one.value).filter((one) => one === condition)}
            onChange={(next) => setParams({ condition: next.find((one) => one !== condition) ?? null })}
          />
        )}
        <Regions chosen={region} />
      </div>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {loading && <Skeleton lines={6} />}
      {data?.items.length === 0 && (
        <Empty title={filtered ? `No ${kind.noun} matches` : `There are no ${kind.nouns} yet`}>
          {filtered
            ? ""
            : operator
              ? "What is registered here, users can reserve."
              : "The operator of this cloud has to register some first."}
        </Empty>
      )}
      {data && data.items.length > 0 && (
        <>
          {power.error !== null && <Trouble error={power.error} />}
          <ResourceTable
            kind={kind}
            resources={data.items}
            power={power}
            onOpen={(what, id) => setOpen({ what, id })}
          />
          <More shown={data.items.length} count={data.count} onMore={more} />
        </>
      )}
      {open && chosen && (
        <ResourceDialog
          what={open.what}
          resource={chosen}
          noun={kind.noun}
          power={power}
          onDone={() => {
            setOpen(null);
            void watch.read();
            power.again();
          }}
          onClose={() => setOpen(null)}
        />
      )}
    </>
  );
}

/** Which region is looked at, if there is more than one. */
function Regions({ chosen }: { chosen: string | null }) {
  const offered = [...new Set([...regions(), ...(chosen ? [chosen] : [])])];
  if (offered.length === 0) return null;
  return (
    <label class="choose">
      <span>Region</span>
      <select value={chosen ?? ""} onChange={(event) => setParams({ region: event.currentTarget.value })}>
        <option value="">all</option>
        {offered.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}
