// SPDX-License-Identifier: Apache-2.0
/** The list of hosts for operators, with its filters and what can be done with each; the one that there is of them. */
import { useState } from "preact/hooks";
import { type Listed, useLiveList } from "../../api/live.ts";
import type { Host } from "../../api/types.ts";
import { Chips, Empty, Skeleton, Trouble } from "../../parts/basics.tsx";
import { Filters } from "../../parts/filters.tsx";
import { More, useMore } from "../../parts/list.tsx";
import { Search } from "../../parts/search.tsx";
import { place, setParams } from "../../router.ts";
import { FeedsDialog } from "../feeds.tsx";
import { maintenanceToday } from "../overview/hosts.ts";
import { DeleteDialog, DisableDialog, EditDialog, subjectOf } from "../resources/dialogs.tsx";
import { usePromised } from "../resources/state.tsx";
import { PowerSummary, pathOf, usePower } from "./power.tsx";
import { SwitchDialog } from "./switch.tsx";
import { type HostAction, HostTable } from "./table.tsx";

const CONDITIONS = [
  { value: "ok", text: "in service" },
  { value: "failed", text: "failed" },
  { value: "disabled", text: "disabled" },
  { value: "disabled_without_end", text: "disabled without a date" },
] as const;

/** Returns the hosts for which a condition holds. */
function only(list: Listed<Host>, keeps: (host: Host) => boolean): Listed<Host> {
  const items = list.items.filter(keeps);
  return { items, count: items.length };
}

/** Draws it; `empty` is shown where no host is registered. */
export function HostList({ empty }: { empty: preact.ComponentChildren }) {
  const { params } = place.value;
  const condition = CONDITIONS.find(({ value }) => value === params.get("condition"))?.value;
  const closed = params.get("maintenance") === "today";
  const text = params.get("text") ?? "";
  const query: Record<string, string | number | boolean> = closed ? maintenanceToday() : {};
  if (condition) query.condition = condition;
  if (text.length >= 2) query.text = text;
  const { wanted, more } = useMore(JSON.stringify(query), 100);
  const promisedNow = params.get("use") === "promised";
  const asleepNow = params.get("power") === "asleep";
  const promises = usePromised("physical:host");
  const power = usePower();
  // The service does not tell by these: of all hosts those are kept that a lease has, or that are not awake.
  const watch = useLiveList<Host>(
    "v1/resources/host",
    "resources",
    query,
    promisedNow || asleepNow ? Number.POSITIVE_INFINITY : wanted,
    30,
  );
  const { error, loading: reading } = watch.state.value;
  const keeps = ({ id }: Host) =>
    (!promisedNow || promises.until.has(id)) && (!asleepNow || (power.hosts.get(id)?.state ?? "on") !== "on");
  const all = watch.state.value.data;
  const data = all && (promisedNow || asleepNow ? only(all, keeps) : all);
  const loading = reading || (promisedNow && promises.loading);
  const [open, setOpen] = useState<{ kind: HostAction; id: string } | null>(null);
  const close = () => setOpen(null);
  const done = () => {
    close();
    void watch.read();
  };
  const active =
    Number(condition !== undefined) + Number(closed) + Number(promisedNow) + Number(asleepNow) + Number(text !== "");
  const chosen = open && data?.items.find((host) => host.id === open.id);
  const subject = chosen && { subject: subjectOf(chosen, "host"), onDone: done, onClose: close };
  return (
    <>
      <PowerSummary power={power} />
      <Filters active={active}>
        <Search name="text" label="Name" least={2} />
        <Chips
          label="Condition"
          options={CONDITIONS}
          chosen={condition ? [condition] : []}
          onChange={(next) => setParams({ condition: next.find((one) => one !== condition) ?? null })}
        />
        <Chips
          label="Maintenance"
          options={[{ value: "today", text: "in maintenance today" }]}
          chosen={closed ? ["today"] : []}
          onChange={(next) => setParams({ maintenance: next[0] ?? null })}
        />
        <Chips
          label="Use"
          options={[{ value: "promised", text: "promised now" }]}
          chosen={promisedNow ? ["promised"] : []}
          onChange={(next) => setParams({ use: next[0] ?? null })}
        />
        {(power.report?.mode === "on" || asleepNow) && (
          <Chips
            label="Power"
            options={[{ value: "asleep", text: "not awake" }]}
            chosen={asleepNow ? ["asleep"] : []}
            onChange={(next) => setParams({ power: next[0] ?? null })}
          />
        )}
      </Filters>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {loading && <Skeleton lines={8} />}
      {!loading && data?.items.length === 0 && (active > 0 ? <Empty title="No host matches" /> : empty)}
      {data && data.items.length > 0 && (
        <>
          <HostTable
            hosts={data.items}
            promises={promises}
            power={power}
            onOpen={(kind, id) => setOpen({ kind, id })}
          />
          <More shown={data.items.length} count={data.count} onMore={more} />
        </>
      )}
      {subject && open.kind === "edit" && <EditDialog {...subject} />}
      {subject && open.kind === "disable" && <DisableDialog {...subject} />}
      {subject && open.kind === "delete" && <DeleteDialog {...subject} />}
      {open?.kind === "switch" && power.hosts.has(open.id) && (
        <SwitchDialog
          kind="host"
          host={power.hosts.get(open.id)!}
          path={pathOf("host", open.id)}
          onDone={() => {
            close();
            power.again();
          }}
          onClose={close}
        />
      )}
      {open?.kind === "feed" && chosen && (
        <FeedsDialog resource={{ label: chosen.label, name: chosen.name }} onClose={close} />
      )}
    </>
  );
}
