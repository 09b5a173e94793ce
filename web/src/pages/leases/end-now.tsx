// SPDX-License-Identifier: Apache-2.0
/** Ends or deletes a lease, after it has said what goes. */
import { Changed, changeLease, deleteLease } from "../../api/change.ts";
import { sentencesOf } from "../../api/errors.ts";
import { may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, When } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FormErrors } from "../../parts/field.tsx";
import { isInLine, whatOf } from "../../words/lease.ts";
import { goesWith } from "../../words/use.ts";
import { ordinal } from "../../words/waiting.ts";
import { CostOfChange, CostOfDeletion } from "./cost.tsx";
import { ChangedNote, type LeaseDialogProps, useAttempt } from "./shared.tsx";

/** True for a lease that has begun, whose servers may run. */
export function hasBegun(lease: Pick<Lease, "status">): boolean {
  return !["PENDING", "CREATING", "IN_PROGRESS", "WAITING", "TIMED_OUT", "ERROR", "TERMINATED"].includes(lease.status);
}

/** Returns what ends a lease, as on its button. */
export function endingOf(lease: Pick<Lease, "status">): string {
  if (lease.status === "WAITING") return "Leave the line";
  if (lease.status === "TIMED_OUT") return "Remove";
  return hasBegun(lease) ? "End now" : "Delete";
}

/** Tells whether the caller may end a lease: that of one that has begun is a change of it, otherwise a deletion. */
export function mayEnd(lease: Pick<Lease, "status">): boolean {
  return may(hasBegun(lease) ? "blazar:leases:put" : "blazar:leases:delete");
}

const END_NOW = { end_date: "now" };

/** A lease that runs is ended now and stays in the history; one that has not begun is deleted. */
export function EndNowDialog({ lease, etag, onDone, onClose }: LeaseDialogProps) {
  const attempt = useAttempt(lease, etag);
  const { seen } = attempt;
  const begun = hasBegun(seen);
  const verb = endingOf(seen);
  const waits = isInLine(seen);
  const submit = () =>
    void attempt.run(async (known, tag) => {
      if (begun) {
        const { data } = await changeLease(known, tag, END_NOW);
        note(`${known.name} is being ended`);
        onDone(data.lease);
        return;
      }
      await deleteLease(known, tag);
      note(known.status === "WAITING" ? `${known.name} has left the line` : `${known.name} was deleted`);
      const left = known.status === "WAITING" ? { end_reason: "left_line" as const } : {};
      onDone({ ...known, ...left, deleted_at: new Date().toISOString() });
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
            {attempt.gone ? "Close" : seen.status === "WAITING" ? "Stay in line" : "Keep it"}
          </button>
          {!attempt.gone && (
            <BusyButton
              type="submit"
              class="danger"
              busy={attempt.busy}
              doing={begun ? "Ending…" : seen.status === "WAITING" ? "Leaving…" : "Deleting…"}
            >
              {verb}
            </BusyButton>
          )}
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
      ) : waits ? (
        <p>
          {seen.status === "WAITING"
            ? `It has nothing yet. Its place is given up${seen.wait?.position ? `, the ${ordinal(seen.wait.position)} in line` : ""}: who asks again begins at the end.`
            : "It has nothing. It stays among the past leases."}
        </p>
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
      {begun ? <CostOfChange lease={seen} change={END_NOW} /> : <CostOfDeletion lease={seen} />}
      <ChangedNote error={attempt.error} />
      <FormErrors sentences={others} />
    </Dialog>
  );
}
