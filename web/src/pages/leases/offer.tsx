// SPDX-License-Identifier: Apache-2.0
/** The offer of a later end to a lease that ends soon, taken with one click. */
import { useState } from "preact/hooks";
import { changeLease } from "../../api/change.ts";
import { plain } from "../../api/errors.ts";
import { type Offer, endsSoon, useOffer } from "../../api/offers.ts";
import { may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton } from "../../parts/basics.tsx";
import { relative, spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";

interface OfferProps {
  lease: Lease;
  etag?: string | null;
  onDone: (lease: Lease) => void;
  /** In a row of a table: one line of text. */
  brief?: boolean;
}

const THEN: Record<string, string> = {
  promised: "; then what it has is booked",
  limit: "; then a limit of your project is reached",
};
const NOT: Record<string, string> = {
  promised: "what it has is booked from then on",
  limit: "a limit of your project ends it there",
};

/** Says how far it can go on; nothing for a lease that does not end soon, or goes on by itself. */
export function ExtensionOffer({ lease, etag, onDone, brief = false }: OfferProps) {
  const now = present.value;
  const wanted = endsSoon(lease, now) && !lease.extend_if_free && may("blazar:leases:put");
  const offer = useOffer(lease, wanted);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  if (!wanted || (offer === null && !brief)) return null;
  const take = async ({ end }: Offer) => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const { data } = await changeLease(lease, etag ?? null, { end_date: toWire(end) });
      note(`${data.lease.name} ends ${spoken(Date.parse(data.lease.end_date), zone.value, present.value)}`);
      onDone(data.lease);
    } catch (refused) {
      setError(refused);
    }
    setBusy(false);
  };
  const ends = Date.parse(lease.end_date);
  const possible = offer && offer.end > ends ? offer : null;
  const until = possible && spoken(possible.end, zone.value, now);
  const button = possible && (
    <BusyButton
      type="button"
      class={brief ? "link" : ""}
      busy={busy}
      doing="Extending…"
      aria-label={`Extend until ${until}: ${lease.name}`}
      onClick={() => void take(possible)}
    >
      Extend until {until}
    </BusyButton>
  );
  const failed = error !== null && (
    <span class="field-error" role="alert">
      {plain(error)}
    </span>
  );
  if (brief) {
    return (
      <p class="hint offer">
        {failed || button || (offer && `It cannot go on: ${NOT[offer.limitedBy ?? ""] ?? "nothing is free then"}.`)}
      </p>
    );
  }
  const said = possible
    ? `It can go on until ${until}${THEN[possible.limitedBy ?? ""] ?? ""}.`
    : offer
      ? `It cannot go on: ${NOT[offer.limitedBy ?? ""] ?? "nothing is free then"}.`
      : "Looking how far it can go on…";
  return (
    <div class="banner offer" aria-busy={offer === undefined}>
      <p>
        It ends {relative(ends, now)}. {said} {failed}
      </p>
      {button}
    </div>
  );
}
