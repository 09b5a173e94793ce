// SPDX-License-Identifier: Apache-2.0
/** A lease that its owner gives away: the offer, and the bar that says so until it is accepted or withdrawn. */
import { useId, useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { plain } from "../../api/errors.ts";
import { may, session } from "../../api/session.ts";
import type { Lease, TransferOffer } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Segments, When } from "../../parts/basics.tsx";
import { Field } from "../../parts/field.tsx";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { isPast } from "../../words/lease.ts";
import {
  type Gift,
  givingMeans,
  isStanding,
  offerBody,
  projectIdOf,
  takerInWords,
  uncheckedInWords,
} from "../../words/transfer.ts";
import { about } from "../../words/waiting.ts";
import { Operation } from "./operation.tsx";
import type { LeaseDialogProps } from "../leases/shared.tsx";

interface Offered {
  transfer: TransferOffer;
}

/** Offers a lease to another project, or to another user of its own. */
export function GiveDialog({ lease, etag, onDone, onClose }: LeaseDialogProps) {
  const projects = useId();
  const [gift, setGift] = useState<Gift>({ within: false, project: "", user: "", message: "" });
  const put = (change: Partial<Gift>) => setGift({ ...gift, ...change });
  const others = (session.value?.projects ?? []).filter((one) => one.id !== lease.project_id);
  const { within } = gift;
  return (
    <Operation<Offered>
      etag={etag}
      onClose={onClose}
      onDone={() => onDone(lease)}
      title={`Give ${lease.name} away`}
      verb="Offer it"
      doing="Offering…"
      said={`${lease.name} is offered`}
      path={`v1/leases/${lease.id}/transfer`}
      body={offerBody({ ...gift, project: projectIdOf(gift.project, others) })}
      pointers={["/project_id", "/user_id", "/message"]}
      outcome={({ transfer }) => (
        <p class="preview">
          It can go to {takerInWords(transfer, lease)}. The offer stands until{" "}
          {about(transfer.expires_at, zone.value, present.value)}, and nothing changes before it is accepted.{" "}
          {uncheckedInWords(transfer, lease, others)}
        </p>
      )}
    >
      {(fields) => (
        <>
          {lease.transfer && isStanding(lease.transfer, present.value) && (
            <p class="missing">It is offered to {takerInWords(lease.transfer, lease)}; this offer takes its place.</p>
          )}
          <Segments
            label="To whom"
            options={[
              { value: "project", text: "another project" },
              { value: "user", text: "another user of this project" },
            ]}
            chosen={within ? "user" : "project"}
            onChange={(to) => put({ within: to === "user" })}
          />
          {!within && (
            <Field
              label="Project"
              hint={
                <>
                  One of yours by its name; another one by its id, which <code>openstack project show NAME</code> tells
                  its members.
                </>
              }
              error={fields.get("/project_id")}
            >
              {(control) => (
                <>
                  <input
                    {...control}
                    autoComplete="off"
                    maxLength={255}
                    list={others.length > 0 ? projects : undefined}
                    value={gift.project}
                    onInput={(event) => put({ project: event.currentTarget.value })}
                  />
                  <datalist id={projects}>
                    {others.map((one) => (
                      <option key={one.id} value={one.name} />
                    ))}
                  </datalist>
                </>
              )}
            </Field>
          )}
          <Field
            label={within ? "User" : "Only to the user"}
            hint={
              within
                ? "The id of a member of the project: its menu at the top shows everybody their own."
                : "An id. Nothing: any member of the project may accept."
            }
            error={fields.get("/user_id")}
          >
            {(control) => (
              <input
                {...control}
                autoComplete="off"
                maxLength={255}
                value={gift.user}
                onInput={(event) => put({ user: event.currentTarget.value })}
              />
            )}
          </Field>
          <Field label="Message" hint="Whoever may accept it reads it." error={fields.get("/message")}>
            {(control) => (
              <input
                {...control}
                autoComplete="off"
                maxLength={255}
                value={gift.message}
                onInput={(event) => put({ message: event.currentTarget.value })}
              />
            )}
          </Field>
          <ul class="goes">
            {givingMeans(within).map((one) => (
              <li key={one}>{one}</li>
            ))}
          </ul>
        </>
      )}
    </Operation>
  );
}

/** That a lease is offered, to whom and until when, with what withdraws it. */
export function OfferBar({ lease, onDone }: { lease: Lease; onDone: (lease: Lease) => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { transfer } = lease;
  if (!transfer || isPast(lease)) return null;
  const standing = isStanding(transfer, present.value);
  const withdraw = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await request("DELETE", `v1/leases/${lease.id}/transfer`);
      note(`${lease.name} stays yours`);
      onDone(lease);
    } catch (refused) {
      setError(refused);
    }
    setBusy(false);
  };
  return (
    <section class="banner offer" aria-label="Offered to somebody else">
      <div class="offer-text">
        <p>
          It {standing ? "is" : "was"} offered to {takerInWords(transfer, lease)} until{" "}
          <When at={Math.floor(Date.parse(transfer.expires_at) / 60_000) * 60_000} as="spoken" />.{" "}
          {standing ? "Until it is accepted, nothing changes." : "Nobody has accepted it, so it stays yours."}
        </p>
        {transfer.message && <p class="muted">“{transfer.message}”</p>}
        {error !== null && (
          <p class="field-error" role="alert">
            {plain(error)}
          </p>
        )}
      </div>
      {standing && may("blazar:leases:transfer") && (
        <BusyButton type="button" busy={busy} doing="Withdrawing…" onClick={() => void withdraw()}>
          Withdraw the offer
        </BusyButton>
      )}
    </section>
  );
}
