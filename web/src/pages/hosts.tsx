// SPDX-License-Identifier: Apache-2.0
/** For operators: hosts, their state and properties; registering, disabling, restricting. */
import { useState } from "preact/hooks";
import { useLive } from "../api/live.ts";
import { may } from "../api/session.ts";
import type { Host, Link } from "../api/types.ts";
import { Chips, Empty, PageHead, Skeleton, Trouble } from "../parts/basics.tsx";
import { Search } from "../parts/search.tsx";
import { place, setParams } from "../router.ts";
import { RegisterDialog } from "./hosts/register.tsx";
import { type HostAction, HostTable } from "./hosts/table.tsx";
import { FeedsDialog } from "./lease/feeds.tsx";
import { DeleteDialog, DisableDialog, EditDialog, subjectOfHost } from "./resources/dialogs.tsx";

const CONDITIONS = [
  { value: "ok", text: "in use" },
  { value: "disabled", text: "disabled" },
  { value: "failed", text: "failed" },
] as const;
type Condition = (typeof CONDITIONS)[number]["value"];
type Open = { kind: HostAction; id: string } | { kind: "register" } | null;

/** The page. */
export function HostsPage() {
  const { params } = place.value;
  const condition = params.get("condition") as Condition | null;
  const text = params.get("text") ?? "";
  const query: Record<string, string | number | boolean> = { limit: 1000, with_count: true };
  if (condition) query.condition = condition;
  if (text.length >= 2) query.text = text;
  const watch = useLive<{ hosts: Host[]; count?: number; links: Link[] }>("v1/os-hosts", query, 30)!;
  const { data, error, loading } = watch.state.value;
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  const done = () => {
    close();
    void watch.read();
  };
  const chosen = open && open.kind !== "register" ? data?.hosts.find((host) => host.id === open.id) : undefined;
  const register = may("blazar:oshosts:post") && (
    <button type="button" class="primary" onClick={() => setOpen({ kind: "register" })}>
      Register hosts
    </button>
  );
  return (
    <>
      <PageHead title="Hosts" lead="What can be reserved as whole hosts, and carries reserved servers.">
        {register}
      </PageHead>
      <div class="row filters">
        <Search name="text" label="Name" least={2} />
        <Chips
          label="Condition"
          options={CONDITIONS}
          chosen={condition ? [condition] : []}
          onChange={(next) => setParams({ condition: next.find((one) => one !== condition) ?? null })}
        />
      </div>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {loading && <Skeleton lines={8} />}
      {data?.hosts.length === 0 && (
        <Empty
          title={condition || text ? "No host matches" : "No host is registered"}
          action={condition || text ? undefined : register}
        >
          {condition || text ? "" : "Register some of the cloud's hypervisors, so that users can reserve them."}
        </Empty>
      )}
      {data && data.hosts.length > 0 && <HostTable hosts={data.hosts} onOpen={(kind, id) => setOpen({ kind, id })} />}
      {open?.kind === "register" && <RegisterDialog onDone={done} onClose={close} />}
      {open?.kind === "edit" && chosen && <EditDialog subject={subjectOfHost(chosen)} onDone={done} onClose={close} />}
      {open?.kind === "disable" && chosen && (
        <DisableDialog subject={subjectOfHost(chosen)} onDone={done} onClose={close} />
      )}
      {open?.kind === "delete" && chosen && (
        <DeleteDialog subject={subjectOfHost(chosen)} onDone={done} onClose={close} />
      )}
      {open?.kind === "feed" && chosen && (
        <FeedsDialog resource={{ label: chosen.label, name: chosen.hypervisor_hostname }} onClose={close} />
      )}
    </>
  );
}
