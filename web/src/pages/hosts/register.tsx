// SPDX-License-Identifier: Apache-2.0
/** Registering hypervisors of the cloud, several at once. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { plain } from "../../api/errors.ts";
import { useLive } from "../../api/live.ts";
import type { Hypervisor } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Skeleton, Trouble } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { plural } from "../../time/format.ts";
import { type Pair, PropertyRows } from "../../forms/pairs.tsx";

/** Lists what is not registered; what was refused stays in the list with its reason. */
export function RegisterDialog({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const watch = useLive<{ hypervisors: Hypervisor[] }>("v1/hypervisors", { registered: false }, 60)!;
  const { data, error, loading } = watch.state.value;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [pairs, setPairs] = useState<Pair[]>([]);
  const [refused, setRefused] = useState<ReadonlyMap<string, string>>(new Map());
  const [busy, setBusy] = useState(false);
  const all = data?.hypervisors ?? [];
  const toggle = (name: string) => {
    const next = new Set(chosen);
    if (!next.delete(name)) next.add(name);
    setChosen(next);
  };
  const register = async () => {
    if (busy || chosen.size === 0) return;
    setBusy(true);
    const problems = new Map<string, string>();
    const properties = Object.fromEntries(
      pairs.filter(([name]) => name.trim() !== "").map(([name, value]) => [name.trim(), value]),
    );
    for (const name of chosen) {
      try {
        await request("POST", "v1/os-hosts", { body: { name, properties } });
      } catch (problem) {
        problems.set(name, plain(problem));
      }
    }
    setBusy(false);
    setRefused(problems);
    const done = chosen.size - problems.size;
    if (done > 0) note(`${plural(done, "host")} registered.`);
    if (problems.size === 0) onDone();
    else {
      setChosen(new Set(problems.keys()));
      void watch.read();
    }
  };
  // Not while hosts are being registered: opened again, it would offer them.
  const close = () => {
    if (busy) return;
    if (refused.size > 0) onDone();
    else onClose();
  };
  const actions = (
    <>
      <button type="button" disabled={busy} onClick={close}>
        {refused.size > 0 || all.length === 0 ? "Close" : "Cancel"}
      </button>
      {all.length > 0 && (
        <BusyButton type="submit" class="primary" busy={busy} doing="Registering…" disabled={chosen.size === 0}>
          {chosen.size === 0 ? "Register" : `Register ${plural(chosen.size, "host")}`}
        </BusyButton>
      )}
    </>
  );
  return (
    <Dialog title="Register hosts" wide onClose={close} onSubmit={() => void register()} actions={actions}>
      <p class="muted">Hypervisors of the cloud that are not registered. A host must have no servers.</p>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {loading && <Skeleton />}
      {data && all.length === 0 && <p>Every hypervisor of the cloud is registered.</p>}
      {all.length > 1 && (
        <label class="check">
          <input
            type="checkbox"
            checked={chosen.size === all.length}
            onChange={(event) =>
              setChosen(new Set(event.currentTarget.checked ? all.map((one) => one.hypervisor_hostname) : []))
            }
          />
          All {all.length}
        </label>
      )}
      <ul class="stack hypervisors">
        {all.map((one) => (
          <li key={one.id}>
            <label class="check">
              <input
                type="checkbox"
                checked={chosen.has(one.hypervisor_hostname)}
                onChange={() => toggle(one.hypervisor_hostname)}
              />
              <span>
                {one.hypervisor_hostname}{" "}
                <span class="muted">
                  {one.state}
                  {one.servers > 0 && `, has ${plural(one.servers, "server")}`}
                </span>
              </span>
            </label>
            {refused.get(one.hypervisor_hostname) && <p class="field-error">{refused.get(one.hypervisor_hostname)}</p>}
          </li>
        ))}
      </ul>
      {all.length > 0 && <PropertyRows pairs={pairs} onChange={setPairs} />}
    </Dialog>
  );
}
