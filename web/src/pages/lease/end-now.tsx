// SPDX-License-Identifier: Apache-2.0
/** Ends or deletes a lease, after it has said what goes. */
import { Changed, changeLease, deleteLease } from "../../api/change.ts";
import { sentencesOf } from "../../api/errors.ts";
import type { Lease } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, When } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FormErrors } from "../../parts/field.tsx";
import { whatOf } from "../../words/lease.ts";
import { goesWith } from "../../words/use.ts";
import { ChangedNote, type LeaseDialogProps, useAttempt } from "./shared.tsx";

/** True for a lease that has begun, whose servers may run. */
export function hasBegun(lease: Pick<Lease, "status">): boolean {
  return !["PENDING", "CREATING", "ERROR", "TERMINATED"].includes(lease.status);
}

/** A lease that runs is ended now and stays in the history; one that has not begun is deleted. */
export function EndNowDialog({ lease, etag, onDone, onClose }: LeaseDialogProps) {
  const attempt = useAttempt(lease, etag);
  const { seen } = attempt;
  const begun = hasBegun(seen);
  const verb = begun ? "End now" : "Delete";
  const submit = () =>
    void attempt.run(async (known, tag) => {
      if (begun) {
        const { data } = await changeLease(known, tag, { end_date: "now" });
        note(`${known.name} is being ended`);
        onDone(data.lease);
        return;
      }
      await deleteLease(known, tag);
      note(`${known.name} was deleted`);
      onDone({ ...known, deleted_at: new Date().toISOString() });
    });
  const { others } = sentencesOf(attempt.error instanceof Changed ? null : attempt.error, []);
  return (
    <Dialog
      title={`${verb}: ${seen.name}`}
      onClose={onClose}
      onSubmit={submit}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Keep it
          </button>
          <BusyButton type="submit" class="danger" busy={attempt.busy} doing={begun ? "Ending…" : "Deleting…"}>
            {verb}
          </BusyButton>
        </>
      }
    >
      {begun ? (
        <>
          <p>
            It would run until <When at={seen.end_date} as="spoken" />. If it ends now:
          </p>
          <ul class="goes">
            {seen.reservations.map((one) => (
              <li key={one.id}>{goesWith(one)}</li>
            ))}
            <li>Others can book what becomes free at once.</li>
          </ul>
          <p class="hint">What is deleted cannot be brought back.</p>
        </>
      ) : (
        <>
          <p>This gives back what was promised, so that others can book it:</p>
          <ul class="goes">
            {seen.reservations.map((one) => (
              <li key={one.id}>
                {whatOf(one)}, from <When at={seen.start_date} /> until <When at={seen.end_date} />
              </li>
            ))}
          </ul>
        </>
      )}
      <ChangedNote error={attempt.error} />
      <FormErrors sentences={others} />
    </Dialog>
  );
}
