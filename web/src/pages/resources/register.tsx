// SPDX-License-Identifier: Apache-2.0
/** Registering a resource of any kind, by the form that its kind describes. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { sentencesOf } from "../../api/errors.ts";
import type { Kind } from "../../api/kinds.ts";
import type { Json, Resource } from "../../api/types.ts";
import { SchemaFields } from "../../forms/schema-fields.tsx";
import { type Values, fieldsOf } from "../../forms/schema.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { go } from "../../router.ts";

/** What is taken out of use is changed later, in a dialog of its own; projects are typed as elsewhere. */
const ELSEWHERE = ["disabled", "authorized_projects"];

/** Shows the new resource when it is registered; what was typed stays if it is refused. */
export function RegisterDialog({ kind, onClose }: { kind: Kind; onClose: () => void }) {
  const fields = fieldsOf(kind.registration, ELSEWHERE);
  const [values, setValues] = useState<Values>({});
  const [projects, setProjects] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const errors = sentencesOf(error, ["/authorized_projects", ...fields.map(({ name }) => `/${name}`)]);
  const submit = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    const body: Record<string, Json> = { ...values };
    const listed = projects.split(/[\s,]+/).filter(Boolean);
    if (listed.length > 0) body.authorized_projects = listed;
    try {
      const path = `v1/resources/${encodeURIComponent(kind.name)}`;
      const { data } = await request<{ resource: Resource }>("POST", path, { body });
      note(`${data.resource.name ?? data.resource.id} is registered.`);
      go("resource", { kind: kind.name, id: data.resource.id });
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  const actions = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <BusyButton type="submit" class="primary" busy={busy} doing="Registering…">
        Register
      </BusyButton>
    </>
  );
  return (
    <Dialog title={`Register a ${kind.noun}`} onClose={onClose} onSubmit={() => void submit()} actions={actions}>
      <SchemaFields fields={fields} values={values} onChange={setValues} errors={errors.fields} />
      <Field
        label="Only for these projects (optional)"
        hint="Ids, separated by commas. Nothing: every project may reserve it."
        error={errors.fields.get("/authorized_projects")}
      >
        {(control) => (
          <input {...control} value={projects} onInput={(event) => setProjects(event.currentTarget.value)} />
        )}
      </Field>
      <FormErrors sentences={errors.others} />
    </Dialog>
  );
}
