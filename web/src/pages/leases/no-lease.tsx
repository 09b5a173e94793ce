// SPDX-License-Identifier: Apache-2.0
/** In the place of a lease that the reader may not see: that there is none, or that it is offered to the reader. */
import { Refused } from "../../api/errors.ts";
import { useLive } from "../../api/live.ts";
import { may, session } from "../../api/session.ts";
import type { Transfer } from "../../api/types.ts";
import { Empty, Skeleton, Trouble } from "../../parts/basics.tsx";
import { hrefOf } from "../../router.ts";
import { Facts } from "../surgery/offers.tsx";

interface NoLeaseProps {
  id: string | null;
  /** It was shown until now. */
  known: boolean;
}

/** Says what the reader may know of it; what was given away may be offered back. */
export function NoLease({ id, known }: NoLeaseProps) {
  const asked = id !== null && may("blazar:transfers:get");
  const watch = useLive<{ transfer: Transfer }>(asked ? `v1/transfers/${encodeURIComponent(id)}` : null, {}, 60);
  const { data = null, error = null } = watch?.state.value ?? {};
  const none = !asked || error instanceof Refused;
  if (data && !none) return <Offered of={data.transfer} />;
  if (!none)
    return error === null ? <Skeleton lines={8} /> : <Trouble error={error} retry={() => void watch?.read()} />;
  const project = session.value?.project;
  const action = (
    <a class="button primary" href={hrefOf("leases")}>
      My leases
    </a>
  );
  return known ? (
    <Empty title="There is no such lease any more" action={action}>
      It was deleted, or belongs to another project now.
    </Empty>
  ) : (
    <Empty title="There is no such lease" action={action}>
      It may belong to another project{project ? ` than ${project.name}` : ""}.
    </Empty>
  );
}

/** An offer that stands, and the ways to answer it. */
function Offered({ of }: { of: Transfer }) {
  const { id, name } = of.lease;
  const within = of.from_project_id === of.project_id;
  return (
    <section class="card" aria-label="Offered to you">
      <h1>{name || "Lease without a name"}</h1>
      <p>This lease is offered to {within || !session.value?.project ? "you" : session.value.project.name}.</p>
      <Facts of={of} />
      <div class="row">
        {may("blazar:transfers:accept") && (
          <a class="button primary" href={hrefOf("leases", { offer: id })}>
            Accept
          </a>
        )}
        {may("blazar:transfers:decline") && (
          <a class="button" href={hrefOf("leases", { offer: id, do: "decline" })}>
            Decline
          </a>
        )}
      </div>
    </section>
  );
}
