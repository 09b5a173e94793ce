// SPDX-License-Identifier: Apache-2.0
/** What was reserved: what was got, how to use it, what is missing. */
import { parametersOf, regions } from "../../api/kinds.ts";
import type { Lease, Reservation } from "../../api/types.ts";
import { Copy, When } from "../../parts/basics.tsx";
import { isInLine, isPast, nounOf, whatOf } from "../../words/lease.ts";
import { fieldsOf } from "../../words/parameters.ts";
import { allocationInWords, commandsOf, resourceName } from "../../words/use.ts";
import { endInWords } from "../../words/lease.ts";
import { sentence } from "../../words/events.ts";
import { ReservationFields } from "./fields.tsx";

/** All reservations of a lease, one card each. */
export function Reservations({ lease }: { lease: Lease }) {
  if (lease.reservations.length === 0) {
    return (
      <section class="card">
        <h2>Nothing is reserved</h2>
        <p class="muted">This lease has no reservations; it only marks a time.</p>
      </section>
    );
  }
  return (
    <>
      {lease.reservations.map((one) => (
        <ReservationCard key={one.id} lease={lease} reservation={one} />
      ))}
    </>
  );
}

function ReservationCard({ lease, reservation }: { lease: Lease; reservation: Reservation }) {
  const past = isPast(lease) || lease.status === "TIMED_OUT";
  return (
    <section class="card reservation" id={`reservation-${reservation.id}`} tabIndex={-1}>
      <h2>{sentence(whatOf(reservation)).replace(/\.$/, "")}</h2>
      {reservation.children ? (
        <Children parts={reservation.children} past={past} />
      ) : (
        <Got reservation={reservation} past={past} waits={lease.status === "WAITING"} />
      )}
      <ReservationFields lease={lease} fields={fieldsOf(reservation, parametersOf(reservation.resource_type))} linked />
      {reservation.region && regions().length > 0 && <p class="muted">In the region {reservation.region}.</p>}
      {reservation.missing_resources && !past && <p class="missing">Not all of it is there; the reason is above.</p>}
      {reservation.resources_changed && !past && (
        <p class="missing">Something that failed was replaced before the start.</p>
      )}
      {!past && <Gone reservation={reservation} />}
      {!past && <Use lease={lease} reservation={reservation} />}
      {!past && <p class="muted">At the end {endInWords(reservation.before_end, reservation.resource_type)}.</p>}
    </section>
  );
}

/** What it is made of, and where that is. */
function Children({ parts, past }: { parts: readonly Reservation[]; past: boolean }) {
  if (parts.length === 0) return null;
  return (
    <ul class="made-of" aria-label="Made of">
      {parts.map((one) => (
        <li key={one.id}>
          {whatOf(one)}
          {one.missing_resources && !past && <span class="missing"> Not all of it is there.</span>}
          <Got reservation={one} past={past} />
        </li>
      ))}
    </ul>
  );
}

/** What users have deleted of what it has made. */
function Gone({ reservation }: { reservation: Reservation }) {
  const gone = (reservation.made ?? []).filter((one) => one.deleted_at !== null);
  if (gone.length === 0) return null;
  return (
    <ul class="missing" aria-label="Deleted meanwhile">
      {gone.map((one) => (
        <li key={one.id}>
          The {nounOf(reservation.resource_type, 1)} <code>{one.id}</code> was deleted, which was first seen{" "}
          <When at={one.deleted_at!} as="spoken" />; it is not made again.
        </li>
      ))}
    </ul>
  );
}

function Got({ reservation, past, waits = false }: { reservation: Reservation; past: boolean; waits?: boolean }) {
  const { allocations, use } = reservation;
  const noun = nounOf(reservation.resource_type === "physical:host" ? "physical:host" : reservation.resource_type);
  if (reservation.resource_type === "virtual:floatingip" && use.addresses.length > 0) {
    return <Names label={past ? "Had" : "Addresses"} names={use.addresses} />;
  }
  if (allocations.length === 0) {
    const none = waits ? `Its ${noun} are chosen at its turn.` : "Nothing is chosen yet.";
    return <p class="muted">{past ? `It had no ${noun}.` : none}</p>;
  }
  const shared = reservation.resource_type.endsWith(":instance");
  return (
    <ul class="got" aria-label={shared ? "On the hosts" : `The ${noun}`}>
      {allocations.map((one) => (
        <li key={one.resource.id} class={`got-${one.status}`}>
          <code title={one.resource.name ? one.resource.id : undefined}>{resourceName(one)}</code>
          {allocationInWords(one).slice(resourceName(one).length)}
        </li>
      ))}
    </ul>
  );
}

function Names({ label, names }: { label: string; names: readonly string[] }) {
  return (
    <ul class="got" aria-label={label}>
      {names.map((name) => (
        <li key={name}>
          <code>{name}</code>
        </li>
      ))}
    </ul>
  );
}

function Use({ lease, reservation }: { lease: Lease; reservation: Reservation }) {
  // What waits cannot be used for days, and nobody knows for how many.
  if (isInLine(lease) || lease.status === "IN_PROGRESS") return null;
  const commands = commandsOf(reservation, lease);
  // A failed start has to be mended first.
  if (commands.length === 0 || lease.status === "ERROR" || reservation.status === "error") return null;
  const active = lease.status === "ACTIVE" || lease.status === "UPDATING";
  return (
    <div class="use">
      {commands.map((one) => (
        <div key={one.text}>
          <p>
            {active ? "To" : "From the start on, to"} {one.does}:
          </p>
          <Copy text={one.text} label={`the command to ${one.does}`} />
        </div>
      ))}
    </div>
  );
}
