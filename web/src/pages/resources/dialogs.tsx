// SPDX-License-Identifier: Apache-2.0
/** Changing one resource: properties and projects, out of use and back, removing it. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import { useLiveList } from "../../api/live.ts";
import type { Host, Lease, Resource } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, SubmitActions, When } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { plural } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire } from "../../time/zone.ts";
import { type Pair, PropertyRows, changesOf } from "../../forms/pairs.tsx";

/** What is changed: a resource of any kind. */
export interface Subject extends Pick<Host, "kind" | "properties" | "disabled" | "authorized_projects" | "updated_at"> {
  /** Where it is served. */
  path: string;
  noun: string;
  name: string;
  /** By which leases that have it are found. */
  label: string;
}

/** Returns a resource to be changed, as an operator sees it. */
export function subjectOf(resource: Resource, noun: string): Subject {
  const { id, kind, properties, disabled = null, authorized_projects = null, updated_at = null } = resource;
  const path = `v1/resources/${encodeURIComponent(kind)}/${encodeURIComponent(id)}`;
  const name = resource.name ?? resource.label ?? id;
  return {
    kind,
    path,
    noun,
    name,
    label: resource.label ?? id,
    properties,
    disabled,
    authorized_projects,
    updated_at,
  };
}

interface Props {
  subject: Subject;
  onDone: () => void;
  onClose: () => void;
}

/** Sends changes, only if it is still as it was shown; returns what to run and what went wrong. */
function useChange(subject: Subject, onDone: () => void) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = async (body: object, said: string) => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const { data, etag } = await request<{ resource: Resource }>("GET", subject.path);
      if ((data.resource.updated_at ?? null) !== subject.updated_at) {
        throw new Error(
          `Somebody else has changed this ${subject.noun} since you opened it. Close this and look at what it is now.`,
        );
      }
      await request("PUT", subject.path, { body, ifMatch: etag ?? undefined });
      note(said);
      onDone();
    } catch (problem) {
      setError(
        problem instanceof Refused && problem.status === 412
          ? new Error(`Somebody else is changing this ${subject.noun}; try again.`)
          : problem,
      );
    } finally {
      setBusy(false);
    }
  };
  return { busy, error, send };
}

/** Properties, and which projects may reserve it. */
export function EditDialog({ subject, onDone, onClose }: Props) {
  const [pairs, setPairs] = useState<Pair[]>(
    Object.entries(subject.properties).map(([name, value]) => [name, String(value)]),
  );
  const [projects, setProjects] = useState((subject.authorized_projects ?? []).join(", "));
  const { busy, error, send } = useChange(subject, onDone);
  const pointers = ["/authorized_projects", ...pairs.map(([name]) => `/properties/${name}`)];
  const { fields, others } = sentencesOf(error, pointers);
  const save = () => {
    const listed = projects.split(/[\s,]+/).filter(Boolean);
    const body = {
      properties: changesOf(subject.properties, pairs),
      authorized_projects: listed.length > 0 ? listed : null,
    };
    void send(body, `${subject.name} is changed.`);
  };
  const actions = (
    <SubmitActions onClose={onClose} busy={busy} doing="Saving…">
      Save
    </SubmitActions>
  );
  return (
    <Dialog title={subject.name} onClose={onClose} onSubmit={save} actions={actions}>
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

/** Takes a resource out of use with a reason, or back into use. */
export function DisableDialog({ subject, onDone, onClose }: Props) {
  const [reason, setReason] = useState("");
  const [until, setUntil] = useState<number | null>(null);
  const { busy, error, send } = useChange(subject, onDone);
  const { fields, others } = sentencesOf(error, ["/disabled/reason", "/disabled/until"]);
  const off = subject.disabled !== null;
  const wrong =
    until !== null && until <= present.value ? "This has passed. Give a later time, or leave it empty." : undefined;
  const save = () => {
    const disabled = off ? null : { reason: reason.trim() || null, until: until === null ? null : toWire(until) };
    void send({ disabled }, `${subject.name} is ${off ? "enabled" : "disabled"}.`);
  };
  const actions = (
    <SubmitActions onClose={onClose} busy={busy} doing="Saving…">
      {off ? "Enable" : "Disable"}
    </SubmitActions>
  );
  return (
    <Dialog title={`${off ? "Enable" : "Disable"} ${subject.name}`} onClose={onClose} onSubmit={save} actions={actions}>
      {off ? (
        <p>
          It is out of use{subject.disabled?.reason ? `: ${subject.disabled.reason}` : ""}
          {subject.disabled?.since && (
            <>
              {" "}
              (since <When at={subject.disabled.since} as="spoken" />)
            </>
          )}
          . Enabled, it can be reserved at once.
        </p>
      ) : (
        <>
          <p>
            Until it is enabled nobody can book it, for later times neither: also not for times after the date below.
          </p>
          <Kept of={subject} />
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
            optional
            onChange={setUntil}
            wrong={wrong}
            error={fields.get("/disabled/until")}
          />
        </>
      )}
      <FormErrors sentences={others} />
    </Dialog>
  );
}

/** How many leases have it, now or later: they stay. */
function Kept({ of }: { of: Subject }) {
  const query = { resource: of.label, state: "current", fields: "name" };
  const { data } = useLiveList<Lease>("v1/leases", "leases", query, 1, 60).state.value;
  if (!data) return <p>Leases that have it keep it while it works.</p>;
  if (data.count === 0) return <p>No lease has it, now or later.</p>;
  return (
    <p>
      {plural(data.count, "lease has", "leases have")} it, now or later: {data.count === 1 ? "it keeps" : "they keep"}{" "}
      it while it works.{of.kind === "host" && " To have them moved, plan maintenance instead."}
    </p>
  );
}

/** Takes a resource away from reservations. */
export function DeleteDialog({ subject, onDone, onClose }: Props) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const remove = async () => {
    if (busy) return;
    setBusy(true);
    try {
      await request("DELETE", subject.path);
      note(`${subject.name} is no longer registered.`);
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
        Remove {subject.name}
      </BusyButton>
    </>
  );
  return (
    <Dialog title={`Remove ${subject.name}?`} onClose={onClose} onSubmit={() => void remove()} actions={actions}>
      <p>
        It can no longer be reserved{subject.noun === "host" && ", and returns to the hosts that everybody uses"}. Its{" "}
        {Object.keys(subject.properties).length} properties are forgotten. A {subject.noun} with present or future
        leases cannot be removed.
      </p>
      <FormErrors sentences={sentencesOf(error, []).others} />
    </Dialog>
  );
}
