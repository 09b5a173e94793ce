// SPDX-License-Identifier: Apache-2.0
/** Registering hypervisors of the cloud, several at once. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { plain } from "../../api/errors.ts";
import { useLive } from "../../api/live.ts";
import type { Candidate } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Skeleton, Trouble } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { plural } from "../../time/format.ts";
import { type Pair, PropertyRows } from "../../forms/pairs.tsx";

/** Lists what is not registered; what was refused stays in the list with its reason. */
export function RegisterDialog({ onDone, onClose }: { onDone: () => void; onClose: () => void }) {
  const watch = useLive<{ candidates: Candidate[] }>("v1/resources/host/candidates", { registered: false }, 60)!;
  const { data, error, loading } = watch.state.value;
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [pairs, setPairs] = useState<Pair[]>([]);
  const [refused, setRefused] = useState<ReadonlyMap<string, string>>(new Map());
  const [busy, setBusy] = useState(false);
  const all = data?.candidates ?? [];
  const toggle = (id: string) => {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    setChosen(next);
  };
  const register = async () => {
    if (busy || chosen.size === 0) return;
    setBusy(true);
    const problems = new Map<string, string>();
    const properties = Object.fromEntries(
      pairs.filter(([name]) => name.trim() !== "").map(([name, value]) => [name.trim(), value]),
    );
    const wanted = all.filter((one) => chosen.has(one.id));
    for (const { id, name, registration = { name } } of wanted) {
      try {
        await request("POST", "v1/resources/host", { body: { ...registration, properties } });
      } catch (problem) {
        problems.set(id, plain(problem));
      }
    }
    setBusy(false);
    setRefused(problems);
    const done = wanted.length - problems.size;
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
            onChange={(event) => setChosen(new Set(event.currentTarget.checked ? all.map((one) => one.id) : []))}
          />
          All {all.length}
        </label>
      )}
      <ul class="stack hypervisors">
        {all.map((one) => (
          <li key={one.id}>
            <label class="check">
              <input type="checkbox" checked={chosen.has(one.id)} onChange={() => toggle(one.id)} />
              <span>
                {one.name}{" "}
                <span class="muted">
                  {one.state}
                  {one.servers > 0 && `, has ${plural(one.servers, "server")}`}
                </span>
              </span>
            </label>
            {refused.get(one.id) && <p class="field-error">{refused.get(one.id)}</p>}
          </li>
        ))}
      </ul>
      {all.length > 0 && <PropertyRows pairs={pairs} onChange={setPairs} />}
    </Dialog>
  );
}
