// SPDX-License-Identifier: Apache-2.0
/** Changing one host: properties and projects, out of use and back, removing it. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import type { Host } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, When } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { toWire } from "../../time/zone.ts";
import { type Pair, PropertyRows, changesOf } from "./properties.tsx";

interface Props {
  host: Host;
  onDone: () => void;
  onClose: () => void;
}

/** Sends changes of a host, only if it is still as it was shown; returns what to run and what went wrong. */
function useChange(host: Host, onDone: () => void) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = async (body: object, said: string) => {
    setBusy(true);
    setError(null);
    try {
      const { data, etag } = await request<{ host: Host }>("GET", `v1/os-hosts/${host.id}`);
      if (data.host.updated_at !== host.updated_at) {
        throw new Error(
          "Somebody else has changed this host since you opened it. Close this and look at what it is now.",
        );
      }
      await request("PUT", `v1/os-hosts/${host.id}`, { body, ifMatch: etag ?? undefined });
      note(said);
      onDone();
    } catch (problem) {
      setError(
        problem instanceof Refused && problem.status === 412
          ? new Error("Somebody else is changing this host; try again.")
          : problem,
      );
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, send };
}

/** Properties, and which projects may reserve it. */
export function HostDialog({ host, onDone, onClose }: Props) {
  const [pairs, setPairs] = useState<Pair[]>(
    Object.entries(host.properties).map(([name, value]) => [name, String(value)]),
  );
  const [projects, setProjects] = useState((host.authorized_projects ?? []).join(", "));
  const { busy, error, send } = useChange(host, onDone);
  const pointers = ["/authorized_projects", ...pairs.map(([name]) => `/properties/${name}`)];
  const { fields, others } = sentencesOf(error, pointers);
  const save = () => {
    const listed = projects.split(/[\s,]+/).filter(Boolean);
    const body = {
      properties: changesOf(host.properties, pairs),
      authorized_projects: listed.length > 0 ? listed : null,
    };
    void send(body, `${host.hypervisor_hostname} is changed.`);
  };
  const actions = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <BusyButton type="submit" class="primary" busy={busy} doing="Saving…">
        Save
      </BusyButton>
    </>
  );
  return (
    <Dialog title={host.hypervisor_hostname} onClose={onClose} onSubmit={save} actions={actions}>
      <PropertyRows pairs={pairs} onChange={setPairs} errors={fields} />
      <Field
        label="Only for these projects"
        hint="Ids, separated by commas. Nothing: every project may reserve it."
        error={fields.get("/authorized_projects")}
      >
        {(control) => (
          <input {...control} value={projects} onInput={(event) => setProjects(event.currentTarget.value)} />
        )}
      </Field>
      <FormErrors sentences={others} />
    </Dialog>
  );
}

/** Takes a host out of use with a reason, or back into use. */
export function DisableDialog({ host, onDone, onClose }: Props) {
  const [reason, setReason] = useState("");
  const [until, setUntil] = useState<number | null>(null);
  const { busy, error, send } = useChange(host, onDone);
  const { fields, others } = sentencesOf(error, ["/disabled/reason", "/disabled/until"]);
  const off = host.disabled !== null;
  const save = () => {
    const disabled = off ? null : { reason: reason.trim() || null, until: until === null ? null : toWire(until) };
    void send({ disabled }, `${host.hypervisor_hostname} is ${off ? "enabled" : "disabled"}.`);
  };
  const actions = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <BusyButton type="submit" class="primary" busy={busy} doing="Saving…">
        {off ? "Enable" : "Disable"}
      </BusyButton>
    </>
  );
  return (
    <Dialog
      title={`${off ? "Enable" : "Disable"} ${host.hypervisor_hostname}`}
      onClose={onClose}
      onSubmit={save}
      actions={actions}
    >
      {off ? (
        <p>
          It is out of use{host.disabled?.reason ? `: ${host.disabled.reason}` : ""}
          {host.disabled?.since && (
            <>
              {" "}
              (since <When at={host.disabled.since} as="spoken" />)
            </>
          )}
          . Enabled, it can be reserved at once.
        </p>
      ) : (
        <>
          <p>It takes no new lease until it is enabled. Leases that have it keep it while it works.</p>
          <Field
            label="Reason"
            hint="Operators see it in the calendar; users see that it is out of use."
            error={fields.get("/disabled/reason")}
          >
            {(control) => (
              <input
                {...control}
                value={reason}
                placeholder="fan replaced"
                onInput={(event) => setReason(event.currentTarget.value)}
              />
            )}
          </Field>
          <DateTimeField
            label="Until (it is enabled by itself then)"
            value={until}
            onChange={setUntil}
            error={fields.get("/disabled/until")}
          />
        </>
      )}
      <FormErrors sentences={others} />
    </Dialog>
  );
}

/** Gives a host back to the cloud. */
export function DeleteDialog({ host, onDone, onClose }: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const remove = async () => {
    setBusy(true);
    try {
      await request("DELETE", `v1/os-hosts/${host.id}`);
      note(`${host.hypervisor_hostname} is no longer registered.`);
      onDone();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  const actions = (
    <>
      <button type="button" onClick={onClose}>
        Keep it
      </button>
      <BusyButton type="submit" class="danger" busy={busy} doing="Removing…">
        Remove {host.hypervisor_hostname}
      </BusyButton>
    </>
  );
  return (
    <Dialog
      title={`Remove ${host.hypervisor_hostname}?`}
      onClose={onClose}
      onSubmit={() => void remove()}
      actions={actions}
    >
      <p>
        It can no longer be reserved, and returns to the hosts that everybody uses. Its{" "}
        {Object.keys(host.properties).length} properties are forgotten. A host with present or future leases cannot be
        removed.
      </p>
      <FormErrors sentences={sentencesOf(error, []).others} />
    </Dialog>
  );
}
