// SPDX-License-Identifier: Apache-2.0
/** Registering a resource of any kind, by the form that its kind describes. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { type Watch, useLive } from "../../api/live.ts";
import { sentencesOf, stillTrue } from "../../api/errors.ts";
import type { Kind } from "../../api/kinds.ts";
import { may } from "../../api/session.ts";
import type { Candidate, Json, Resource } from "../../api/types.ts";
import { SchemaFields } from "../../forms/schema-fields.tsx";
import { type Values, fieldsOf, labelsOf } from "../../forms/schema.ts";
import { note } from "../../parts/announce.tsx";
import { Skeleton, SubmitActions, Trouble } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { go } from "../../router.ts";

/** What is taken out of use is changed later, in a dialog of its own; projects are typed as elsewhere. */
const ELSEWHERE = ["disabled", "authorized_projects"];

/** Pools and addresses of two regions may have one id. */
const keyOf = ({ id, region = "" }: Candidate) => `${region} ${id}`;

type CandidatesWatch = Watch<{ candidates: Candidate[] }>;

/** What the cloud has and is not registered, to choose from; what is chosen fills the fields. */
function Candidates(props: { kind: Kind; watch: CandidatesWatch; onChoose: (values: Values) => void }) {
  const { kind, watch, onChoose } = props;
  const { data, error } = watch.state.value;
  if (error !== null) return <Trouble error={error} retry={() => void watch.read()} />;
  if (!data) return <Skeleton lines={1} />;
  if (data.candidates.length === 0) return <p class="muted">The cloud has no other {kind.nouns} to register.</p>;
  return (
    <Field label={`What the cloud has (${data.candidates.length})`} hint="Choose one to fill in what is known of it.">
      {(control) => (
        <select
          {...control}
          onChange={({ currentTarget: { value } }) => {
            const chosen = data.candidates.find((one) => keyOf(one) === value);
            if (chosen) onChoose(chosen.registration ?? {});
          }}
        >
          <option value="">choose a {kind.noun}</option>
          {data.candidates.map((one) => (
            <option key={keyOf(one)} value={keyOf(one)}>
              {one.region === undefined ? one.name : `${one.name} (${one.region})`}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Proposes projects that have leases; those that are typed already stand before each. */
function KnownProjects({ id, typed }: { id: string; typed: string }) {
  const query = { fields: "project_id", sort_key: "created_at", sort_dir: "desc", limit: 500 };
  const watch = useLive<{ leases: { project_id: string }[] }>(
    may("blazar:calendar:get_owners") ? "v1/leases" : null,
    query,
    300,
  );
  const known = new Set(watch?.state.value.data?.leases.map(({ project_id }) => project_id));
  const before = typed.includes(",") ? `${typed.slice(0, typed.lastIndexOf(",") + 1)} ` : "";
  return (
    <datalist id={id}>
      {[...known].sort().map((project) => (
        <option key={project} value={before + project} />
      ))}
    </datalist>
  );
}

/** Shows the new resource when it is registered; what was typed stays if it is refused. */
export function RegisterDialog({ kind, onClose }: { kind: Kind; onClose: () => void }) {
  const fields = fieldsOf(kind.registration, ELSEWHERE);
  const [values, setValues] = useState<Values>({});
  const [projects, setProjects] = useState("");
  const [busy, setBusy] = useState(false);
  const [refused, setRefused] = useState<{ error: unknown; typed: Values } | null>(null);
  const path = `v1/resources/${encodeURIComponent(kind.name)}/candidates`;
  const offers: CandidatesWatch | null = useLive(kind.has_candidates ? path : null, { registered: false }, 120);
  const registering = (offers?.state.value.data?.candidates ?? []).map((one) => one.registration ?? {});
  const typed: Values = { ...values, authorized_projects: projects };
  const pointers = ["/authorized_projects", ...fields.map(({ name }) => `/${name}`)];
  const said = sentencesOf(refused?.error, pointers, labelsOf(fields));
  const errors = stillTrue(said, refused?.typed ?? {}, typed);
  const submit = async () => {
    if (busy) return;
    setBusy(true);
    setRefused(null);
    const body: Record<string, Json> = { ...values };
    const listed = projects.split(/[\s,]+/).filter(Boolean);
    if (listed.length > 0) body.authorized_projects = listed;
    try {
      const path = `v1/resources/${encodeURIComponent(kind.name)}`;
      const { data } = await request<{ resource: Resource }>("POST", path, { body });
      note(`${data.resource.name ?? data.resource.id} is registered.`);
      // Who comes back to the list finds no form that is empty.
      onClose();
      go("resource", { kind: kind.name, id: data.resource.id });
    } catch (problem) {
      setRefused({ error: problem, typed });
      setBusy(false);
    }
  };
  const actions = (
    <SubmitActions onClose={onClose} busy={busy} doing="Registering…">
      Register
    </SubmitActions>
  );
  return (
    <Dialog title={`Register a ${kind.noun}`} onClose={onClose} onSubmit={() => void submit()} actions={actions}>
      {offers && <Candidates kind={kind} watch={offers} onChoose={setValues} />}
      <SchemaFields
        fields={fields}
        values={values}
        onChange={setValues}
        errors={errors.fields}
        type={kind.resource_types[0]}
        registering={registering}
      />
      <Field
        label="Only for these projects (optional)"
        hint="Ids, separated by commas. Nothing: every project may reserve it."
        error={errors.fields.get("/authorized_projects")}
      >
        {(control) => (
          <>
            <input
              {...control}
              list={`${control.id}-projects`}
              value={projects}
              onInput={(event) => setProjects(event.currentTarget.value)}
            />
            <KnownProjects id={`${control.id}-projects`} typed={projects} />
          </>
        )}
      </Field>
      <FormErrors sentences={errors.others} />
    </Dialog>
  );
}
