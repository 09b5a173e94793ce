// SPDX-License-Identifier: Apache-2.0
/** Changing, ending and cancelling a maintenance window. */
import { useState } from "preact/hooks";
import { useAsked } from "../../api/ask.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import { type Impact, type Maintenance, type MaintenanceChange, actOn } from "../../api/maintenance.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, When } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { plural } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire } from "../../time/zone.ts";
import { hostsInWords, impactInWords, isGoingOn, isPainless } from "../../words/maintenance.ts";
import { Affected } from "./impact.tsx";
import { UntilField } from "./until.tsx";

interface Props {
  maintenance: Maintenance;
  etag: string | null;
  nameOf: (id: string) => string;
  onDone: () => void;
  onClose: () => void;
}

/** Asks for other times, shows what they would do, and changes the window. */
export function ChangeDialog({ maintenance, etag, nameOf, onDone, onClose }: Props) {
  const begun = isGoingOn(maintenance);
  const [name, setName] = useState(maintenance.name);
  const [start, setStart] = useState<number | null>(Date.parse(maintenance.start_date));
  const [end, setEnd] = useState<number | null>(Date.parse(maintenance.end_date));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const change: MaintenanceChange = {};
  if (name.trim() !== maintenance.name) change.name = name.trim();
  if (!begun && start !== null && toWire(start) !== maintenance.start_date) change.start_date = toWire(start);
  if (end !== null && toWire(end) !== maintenance.end_date) change.end_date = toWire(end);
  const times = "start_date" in change || "end_date" in change;
  const orderly = start !== null && end !== null && end > start;
  const preview = useAsked<{ impact: Impact }>(
    `v1/maintenances/${maintenance.id}?dry_run=true`,
    times && orderly ? change : null,
    60,
    "PATCH",
  );
  const impact = (!preview.loading && preview.data?.impact) || null;
  const { fields, others } = sentencesOf(error ?? preview.error, ["/name", "/start_date", "/end_date"]);
  const edited =
    <T,>(set: (value: T) => void) =>
    (value: T) => {
      set(value);
      setError(null);
    };
  const submit = async () => {
    if (busy || !orderly || (times && !impact)) return;
    if (Object.keys(change).length === 0) {
      onClose();
      return;
    }
    setBusy(true);
    setError(null);
    try {
      await actOn(maintenance, etag, "PATCH", "", impact ? { ...change, impact_id: impact.id } : change);
      note(`${name.trim()} is changed.`);
      onDone();
    } catch (refused) {
      setError(refused);
      if (refused instanceof Refused && refused.has("impact_changed")) preview.again();
      setBusy(false);
    }
  };
  const actions = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <BusyButton type="submit" class="primary" busy={busy} doing="Changing…" disabled={!orderly || (times && !impact)}>
        Change
      </BusyButton>
    </>
  );
  return (
    <Dialog
      title={`Change ${maintenance.name}`}
      wide
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={actions}
    >
      <Field label="Name" error={fields.get("/name")}>
        {(control) => (
          <input
            {...control}
            type="text"
            maxLength={80}
            value={name}
            onInput={(event) => edited(setName)(event.currentTarget.value)}
          />
        )}
      </Field>
      {begun ? (
        <p>
          It has begun: <When at={maintenance.start_date} />. Only its end can be changed.
        </p>
      ) : (
        <DateTimeField label="From" value={start} error={fields.get("/start_date")} onChange={edited(setStart)} />
      )}
      <UntilField start={start} end={end} error={fields.get("/end_date")} onChange={edited(setEnd)} />
      {times && orderly && (
        <div class="stack" aria-busy={preview.loading}>
          <p class={impact && !isPainless(impact.leases) ? "preview bad" : "preview"} role="status">
            {impact ? impactInWords(impact.leases) : preview.loading ? "Looking what it would do…" : ""}
          </p>
          {impact && <Affected leases={impact.leases} nameOf={nameOf} />}
        </div>
      )}
      <FormErrors sentences={others} />
    </Dialog>
  );
}

/** Ends a window that has begun, or cancels one that has not. */
export function StopDialog({ maintenance, etag, onDone, onClose }: Props) {
  const begun = isGoingOn(maintenance);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await (begun ? actOn(maintenance, etag, "POST", "/end") : actOn(maintenance, etag, "DELETE"));
      note(`${maintenance.name} is ${begun ? "ended" : "cancelled"}.`);
      onDone();
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  const verb = begun ? "End" : "Cancel";
  const hosts = plural(maintenance.hosts.length, "host");
  const returned = maintenance.disable_service ? " Those that this window has disabled in Nova are enabled." : "";
  return (
    <Dialog
      title={`${verb} the maintenance: ${maintenance.name}`}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Keep it
          </button>
          <BusyButton type="submit" class="danger" busy={busy} doing={begun ? "Ending…" : "Cancelling…"}>
            {verb} the maintenance
          </BusyButton>
        </>
      }
    >
      <p>
        {hosts} can be reserved again: {hostsInWords(maintenance.hosts)}.{begun ? returned : ""}
      </p>
      <p>
        Leases that were moved stay where they are.
        {begun && Date.parse(maintenance.end_date) > present.value && (
          <>
            {" "}
            It would have lasted until <When at={maintenance.end_date} as="spoken" />.
          </>
        )}
      </p>
      <FormErrors sentences={sentencesOf(error, []).others} />
    </Dialog>
  );
}
