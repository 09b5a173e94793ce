// SPDX-License-Identifier: Apache-2.0
/** Leases that are offered to the reader's project: what they have, and how they are accepted or declined. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { Refused, sentencesOf } from "../../api/errors.ts";
import { useLive } from "../../api/live.ts";
import { may, session } from "../../api/session.ts";
import type { Lease, Link, Transfer } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { Skeleton, SubmitActions, Trouble, When } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FormErrors } from "../../parts/field.tsx";
import { Rows } from "../../parts/list.tsx";
import { LeaseState } from "../../parts/state.tsx";
import { go, place, setParams } from "../../router.ts";
import { range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { lengthOf, whatOfLease } from "../../words/lease.ts";
import { takingMeans, whatOfOffer } from "../../words/transfer.ts";
import { Operation } from "./operation.tsx";

const MOST = 100;

interface Answer {
  transfers: Transfer[];
  links: Link[];
}

/** The list, if there are offers; `?offer=` names one, and `?do=` is what is done with it. */
export function Offers({ onTaken }: { onTaken: () => void }) {
  const watch = useLive<Answer>(may("blazar:transfers:get") ? "v1/transfers" : null, { limit: MOST }, 30);
  const { data, error } = watch?.state.value ?? { data: null, error: null };
  const { params } = place.value;
  const id = params.get("offer");
  const close = () => setParams({ offer: null, do: null });
  const declining = params.get("do") === "decline";
  const mayTake = may("blazar:transfers:accept");
  const mayDecline = may("blazar:transfers:decline");
  const mayAct = mayTake || mayDecline;
  const project = session.value?.project?.name ?? "the project";
  return (
    <>
      {error !== null && <Trouble error={error} retry={() => void watch?.read()} />}
      {data && data.transfers.length > 0 && (
        <section class="offers" aria-label="Offered leases">
          <h2>Offered to {project}</h2>
          <Rows heads={["Lease", "State", "What", "When", "Offer", ...(mayAct ? [""] : [])]}>
            {data.transfers.map((one) => (
              <Row key={one.lease.id} of={one} mayTake={mayTake} mayDecline={mayDecline} />
            ))}
          </Rows>
          {data.links.some((link) => link.rel === "next") && (
            <p class="hint">The {MOST} that expire first are shown.</p>
          )}
        </section>
      )}
      {id && (declining ? mayDecline : mayTake) && (
        <One
          key={id}
          id={id}
          declining={declining}
          onClose={close}
          onDeclined={() => {
            close();
            void watch?.read();
            onTaken();
          }}
        />
      )}
    </>
  );
}

function Row({ of, mayTake, mayDecline }: { of: Transfer; mayTake: boolean; mayDecline: boolean }) {
  const { lease } = of;
  return (
    <tr>
      <th scope="row">{lease.name}</th>
      <td>
        <LeaseState lease={lease} />
      </td>
      <td>{whatOfOffer(of)}</td>
      <td>
        {timesOf(lease)} <span class="muted">({lengthOf(lease)})</span>
      </td>
      <td>
        <From of={of} />
      </td>
      {(mayTake || mayDecline) && (
        <td class="actions">
          <span class="row row-actions">
            {mayTake && (
              <button
                type="button"
                class="small"
                aria-label={`Accept: ${lease.name}`}
                onClick={() => setParams({ offer: lease.id, do: null })}
              >
                Accept
              </button>
            )}
            {mayDecline && (
              <button
                type="button"
                class="small"
                aria-label={`Decline: ${lease.name}`}
                onClick={() => setParams({ offer: lease.id, do: "decline" })}
              >
                Decline
              </button>
            )}
          </span>
        </td>
      )}
    </tr>
  );
}

/** Who offers it, until when, and what they say. */
function From({ of }: { of: Transfer }) {
  const within = of.from_project_id === of.project_id;
  return (
    <>
      by {of.from_user_id}
      {!within && ` of ${of.from_project_id}`}, until{" "}
      <When at={Math.floor(Date.parse(of.expires_at) / 60_000) * 60_000} as="spoken" />
      {of.message && <p class="hint">“{of.message}”</p>}
    </>
  );
}

function timesOf(lease: Pick<Lease, "start_date" | "end_date">): string {
  return range(Date.parse(lease.start_date), Date.parse(lease.end_date), zone.value, present.value);
}

interface OneProps {
  id: string;
  declining: boolean;
  onClose: () => void;
  onDeclined: () => void;
}

/** One offer, read by itself: its tag makes sure that it is accepted as it was seen. */
function One({ id, declining, onClose, onDeclined }: OneProps) {
  const watch = useLive<{ transfer: Transfer }>(`v1/transfers/${encodeURIComponent(id)}`, {}, 15)!;
  const { data, error, etag } = watch.state.value;
  if (data && declining) return <DeclineDialog of={data.transfer} onClose={onClose} onDone={onDeclined} />;
  if (data) return <AcceptDialog of={data.transfer} etag={etag} onClose={onClose} onStale={() => void watch.read()} />;
  const gone = error instanceof Refused && error.status === 404;
  return (
    <Dialog title="An offered lease" onClose={onClose}>
      {gone && <p>The offer does not stand any more: it was accepted, declined or withdrawn, or its time was over.</p>}
      {error !== null && !gone && <Trouble error={error} retry={() => void watch.read()} />}
      {error === null && <Skeleton lines={4} />}
    </Dialog>
  );
}

interface AcceptProps {
  of: Transfer;
  etag: string | null;
  onClose: () => void;
  onStale: () => void;
}

function AcceptDialog({ of, etag, onClose, onStale }: AcceptProps) {
  return (
    <Operation<{ lease: Lease }>
      etag={etag}
      onClose={onClose}
      onStale={onStale}
      onDone={({ lease }) => go("lease", { id: lease.id })}
      title={`Accept ${of.lease.name}`}
      verb="Accept"
      doing="Accepting…"
      said={`${of.lease.name} is yours`}
      path={`v1/transfers/${of.lease.id}/accept`}
      body={{}}
      pointers={[]}
      outcome={({ lease }) => (
        <p class="preview">
          You get {whatOfLease(lease)}, {timesOf(lease)}.
        </p>
      )}
    >
      {() => (
        <>
          <Facts of={of} />
          <ul class="goes">
            {takingMeans(of).map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </>
      )}
    </Operation>
  );
}

/** What is offered, when, and by whom. */
export function Facts({ of }: { of: Transfer }) {
  return (
    <dl class="facts">
      <dt>What</dt>
      <dd>{whatOfOffer(of)}</dd>
      <dt>When</dt>
      <dd>
        {timesOf(of.lease)} ({lengthOf(of.lease)})
      </dd>
      <dt>State</dt>
      <dd>
        <LeaseState lease={of.lease} />
      </dd>
      <dt>Offered</dt>
      <dd>
        <From of={of} />
      </dd>
    </dl>
  );
}

function DeclineDialog({ of, onClose, onDone }: { of: Transfer; onClose: () => void; onDone: () => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const submit = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await request("POST", `v1/transfers/${of.lease.id}/decline`);
      note(`${of.lease.name} is declined`);
      onDone();
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`Decline ${of.lease.name}`}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <SubmitActions onClose={onClose} busy={busy} doing="Declining…">
          Decline
        </SubmitActions>
      }
    >
      <Facts of={of} />
      <p>The offer ends, and the lease stays with who has offered it. They can offer it again.</p>
      <FormErrors sentences={sentencesOf(error, []).others} />
    </Dialog>
  );
}
