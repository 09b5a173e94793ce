// SPDX-License-Identifier: Apache-2.0
/** For who may: hosts are emptied for a lease by moving servers of others. Whether that can be done is said first. */
import { useRef, useState } from "preact/hooks";
import { useAsked } from "../../api/ask.ts";
import { newKey, postOnce } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import { may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { StateMark } from "../../parts/state.tsx";
import { go } from "../../router.ts";
import { whatOf } from "../../words/lease.ts";
import { lengthInWords } from "../../words/length.ts";
import { type Question, countOf, wishOf } from "../../words/question.ts";

/** True of whole hosts, from now on, of any region: for these room can be made. */
export function mayMakeRoom(question: Question): boolean {
  const [want, ...more] = question.wants;
  const now = question.exactly === null && question.from === null;
  return (
    may("blazar:leases:best_effort") && now && more.length === 0 && want?.type === "physical:host" && want.region === ""
  );
}

/** The offer, beside the line. */
export function RoomOffer({ question }: { question: Question }) {
  const [open, setOpen] = useState(false);
  return (
    <section class="card line-offer" aria-label="Make room">
      <h3>
        <StateMark mark="changing" /> Or make room now
      </h3>
      <p>Servers of others are moved off hosts that were registered for it. Nothing is deleted, but moves are felt.</p>
      <button type="button" onClick={() => setOpen(true)}>
        Make room…
      </button>
      {open && <RoomDialog question={question} onClose={() => setOpen(false)} />}
    </section>
  );
}

function RoomDialog({ question, onClose }: { question: Question; onClose: () => void }) {
  const want = question.wants[0]!;
  const [name, setName] = useState(countOf(want.count, want.type));
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const key = useRef(newKey());
  const body = {
    name: name.trim(),
    kind: "best_effort",
    end_date: `+${question.length}`,
    reservations: [wishOf(want)],
  };
  const asked = useAsked<{ lease: Lease }>("v1/leases?dry_run=true", { ...body, name: "room" });
  const { fields, others } = sentencesOf(error ?? asked.error, ["/name"]);
  const submit = async () => {
    if (busy || !asked.data || name.trim() === "") return;
    setBusy(true);
    setError(null);
    try {
      const { data } = await postOnce<{ lease: Lease }>("v1/leases", body, key.current);
      note(
        data.lease.status === "IN_PROGRESS" ? `Room is being made: ${data.lease.name}` : `Booked: ${data.lease.name}`,
      );
      go("lease", { id: data.lease.id });
    } catch (refused) {
      if (refused instanceof Refused && refused.status < 500) key.current = newKey();
      setError(refused);
      setBusy(false);
    }
  };
  const possible = asked.data && !asked.loading;
  return (
    <Dialog
      title="Make room"
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <BusyButton
            type="submit"
            class="primary"
            busy={busy}
            doing="Asking…"
            disabled={!possible || name.trim() === ""}
          >
            Make room
          </BusyButton>
        </>
      }
    >
      <p class="summary">
        <strong>{whatOf(wishOf(want))}</strong>
        <br />
        as soon as its hosts are empty, for {lengthInWords(question.length)} from now on
      </p>
      <Field label="Name" error={fields.get("/name") ?? (name.trim() === "" ? "Give the lease a name." : undefined)}>
        {(control) => (
          <input {...control} maxLength={80} value={name} onInput={(event) => setName(event.currentTarget.value)} />
        )}
      </Field>
      <p class={asked.error ? "preview bad" : "preview"} role="status">
        {possible
          ? asked.data?.lease.status === "IN_PROGRESS"
            ? "Room can be made: servers of others are moved."
            : "There is room: hosts can be emptied, or are free."
          : asked.loading
            ? "Looking whether hosts can be emptied…"
            : "Room cannot be made."}
      </p>
      <FormErrors sentences={others} />
    </Dialog>
  );
}
