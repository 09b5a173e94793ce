// SPDX-License-Identifier: Apache-2.0
/** By what a host, or a pool of volumes, is switched: a form for operators. There is never a secret in it. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { sentencesOf } from "../../api/errors.ts";
import type { HostPower } from "../../api/power.ts";
import { note } from "../../parts/announce.tsx";
import { SubmitActions } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { ADAPTERS, adaptersOf } from "../../words/power.ts";

const POINTERS = ["/adapter", "/target"];

/** Asks for adapter and target, and sets both together. */
export function SwitchDialog(props: {
  /** "host", or "volume" for pools. */
  kind: string;
  host: HostPower;
  path: string;
  onDone: () => void;
  onClose: () => void;
}) {
  const { kind, host, path, onDone, onClose } = props;
  const [adapter, setAdapter] = useState(host.adapter ?? "");
  const [target, setTarget] = useState(host.target ?? "");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { fields, others } = sentencesOf(error, POINTERS);
  const send = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const body = adapter === "" ? { adapter: null, target: null } : { adapter, target: target.trim() || null };
      await request("PUT", path, { body });
      note(adapter === "" ? `${host.name} has no switch any more` : `${host.name} has a switch`);
      onDone();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  const actions = (
    <SubmitActions onClose={onClose} busy={busy} doing="Saving…">
      Save
    </SubmitActions>
  );
  return (
    <Dialog
      title={`Power switch of ${host.name}`}
      onClose={onClose}
      actions={actions}
      onSubmit={() => void send()}
      onEdit={() => setError(null)}
    >
      <Field label="Switched by" error={fields.get("/adapter")} hint="Without a switch it never sleeps.">
        {(control) => (
          <select {...control} value={adapter} onChange={(event) => setAdapter(event.currentTarget.value)}>
            <option value="">nothing</option>
            {adaptersOf(kind).map((name) => (
              <option key={name} value={name}>
                {ADAPTERS[name]!.text}
              </option>
            ))}
          </select>
        )}
      </Field>
      {adapter !== "" && (
        <Field label="Target" error={fields.get("/target")} hint={ADAPTERS[adapter]?.hint}>
          {(control) => (
            <input
              {...control}
              type="text"
              value={target}
              maxLength={1024}
              spellcheck={false}
              autocomplete="off"
              required
              onInput={(event) => setTarget(event.currentTarget.value)}
            />
          )}
        </Field>
      )}
      <p class="hint">Passwords are in blazar.conf of the managers, never here.</p>
      <FormErrors sentences={others} />
    </Dialog>
  );
}
