// SPDX-License-Identifier: Apache-2.0
/** The bar of a lease that is deleted unless somebody confirms it, with the button that does. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { plain } from "../../api/errors.ts";
import { may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, When } from "../../parts/basics.tsx";

interface ConfirmProps {
  lease: Lease;
  onDone: (lease: Lease) => void;
}

/** By when a lease has to be confirmed; nothing of one that is firm, or gone. */
export function ConfirmBar({ lease, onDone }: ConfirmProps) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  if (!lease.confirm_by || lease.status !== "PENDING") return null;
  const confirm = async () => {
    setBusy(true);
    setError(null);
    try {
      const { data } = await request<{ lease: Lease }>("POST", `v1/leases/${lease.id}/confirm`);
      note(`${lease.name} is confirmed`);
      onDone(data.lease);
    } catch (refused) {
      setError(refused);
    }
    setBusy(false);
  };
  return (
    <div class="banner warning" role="status">
      <p>
        <strong>
          It is not confirmed yet, and deleted <When at={Date.parse(lease.confirm_by)} as="spoken" />.
        </strong>{" "}
        Until then it costs nothing, and cannot be changed.
        {error !== null && (
          <span class="field-error own-line" role="alert">
            {plain(error)}
          </span>
        )}
      </p>
      {may("blazar:leases:confirm") && (
        <div class="row">
          <BusyButton type="button" busy={busy} doing="Confirming…" onClick={() => void confirm()}>
            Confirm
          </BusyButton>
        </div>
      )}
    </div>
  );
}
