// SPDX-License-Identifier: Apache-2.0
/** Parameters of a reservation as they are: all of them on its page, and those that a change leaves alone. */
import { parametersOf } from "../../api/kinds.ts";
import type { Lease, Reservation, ResourceType } from "../../api/types.ts";
import { fieldsOf as schemaFields } from "../../forms/schema.ts";
import { plural } from "../../time/format.ts";
import { nounOf, whatOf } from "../../words/lease.ts";
import { type Shown, fieldsOf } from "../../words/parameters.ts";
import { hasBegun } from "./end-now.tsx";

/** Names and values; with `linked` a reference leads to the other reservation. */
export function ReservationFields(props: { lease: Lease; fields: readonly Shown[]; linked?: boolean }) {
  const { lease, fields, linked = false } = props;
  if (fields.length === 0) return null;
  return (
    <dl class="reservation-fields">
      {fields.map(({ name, values, document: text }) => (
        <div key={name}>
          <dt>{name}</dt>
          {text !== undefined && (
            <dd>
              <details>
                <summary>{plural(text.trim().split("\n").length, "line")}</summary>
                <pre class="document-text">{text}</pre>
              </details>
            </dd>
          )}
          {(text === undefined ? values : []).map((one) => (
            <dd key={one.text}>
              <Value lease={lease} linked={linked} {...one} />
            </dd>
          ))}
        </div>
      ))}
    </dl>
  );
}

function Value({ lease, text, to, linked }: { lease: Lease; text: string; to?: string; linked: boolean }) {
  const other = to && lease.reservations.find((one) => one.id === to);
  if (!other || !linked) return <span class="value">{other ? whatOf(other) : text}</span>;
  return (
    <button type="button" class="link" onClick={() => document.getElementById(`reservation-${to}`)?.focus()}>
      {whatOf(other)}
    </button>
  );
}

/** Tells whether a parameter can be changed of a lease that has begun, or not yet. */
export function isChangeable(type: ResourceType, name: string, begun: boolean): boolean {
  const when = parametersOf(type)?.properties?.[name]?.["x-changeable"];
  return when === undefined || (when === "before-start" && !begun);
}

/** What a change leaves alone, with a sentence that says so. */
export function FixedFields({ lease, reservation }: { lease: Lease; reservation: Reservation }) {
  const type = reservation.resource_type;
  const schema = parametersOf(type);
  const begun = hasBegun(lease);
  const names = schemaFields(schema).map(({ name }) => name);
  const fixed = names.filter((name) => !isChangeable(type, name, begun));
  if (fixed.length === 0) return null;
  const kept = Object.entries(reservation).filter(([name]) => name === "resource_type" || fixed.includes(name));
  const shown = fieldsOf(Object.fromEntries(kept) as unknown as Reservation, schema);
  return (
    <>
      {fixed.length === names.length ? (
        <p class="hint">
          Only the dates of this {nounOf(type, 1)} can be changed{shown.length > 0 && "; this stays as it is:"}
          {shown.length === 0 && "."}
        </p>
      ) : (
        shown.length > 0 && (
          <p class="hint">{begun ? "While it is in use, this stays as it is:" : "This stays as it is:"}</p>
        )
      )}
      <ReservationFields lease={lease} fields={shown} />
    </>
  );
}
