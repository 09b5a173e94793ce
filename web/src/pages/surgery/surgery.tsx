// SPDX-License-Identifier: Apache-2.0
/** Surgery on a lease: another host for one of its own, two leases of one, one of two. What comes of it is shown first. */
import { useState } from "preact/hooks";
import { may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { Segments, Skeleton, Trouble } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Field } from "../../parts/field.tsx";
import { NumberInput } from "../../parts/number.tsx";
import { range, spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { nounOf, whatOf, whatOfLease } from "../../words/lease.ts";
import { type Cut, cutBody, hostsOf, shrinkBody, shrinkInWords, swapInWords } from "../../words/surgery.ts";
import { useMergeable } from "./mergeable.ts";
import { Operation } from "./operation.tsx";
import type { LeaseDialogProps } from "../leases/shared.tsx";

interface Answered {
  leases: Lease[];
}

/** What the operations have in common: the lease as it was seen, and what is done when it is another one. */
function operated({ lease, etag, onDone, onClose }: LeaseDialogProps) {
  const done = ({ leases }: Answered) => onDone(leases.find((one) => one.id === lease.id) ?? lease);
  return { etag, onClose, onDone: done };
}

/** Gives up a host of a reservation for another one. */
export function SwapDialog(props: LeaseDialogProps) {
  const { lease } = props;
  const hosts = hostsOf(lease);
  const [chosen, setChosen] = useState("");
  const [wanted, setWanted] = useState("");
  const one = hosts.find((host) => host.name === chosen);
  const names = may("blazar:leases:swap_to");
  const body = one ? { host: one.name, ...(wanted.trim() ? { for: wanted.trim() } : {}) } : null;
  return (
    <Operation<Answered>
      {...operated(props)}
      title={`Swap a host of ${lease.name}`}
      verb="Swap"
      doing="Swapping…"
      said="It has another host"
      path={`v1/leases/${lease.id}/reservations/${one?.reservation ?? hosts[0]?.reservation ?? ""}/swap`}
      body={body}
      pointers={["/host", "/for"]}
      outcome={({ leases }) => <p class="preview">{swapInWords(lease, leases[0] ?? lease)}</p>}
    >
      {(fields) => (
        <>
          <p class="muted">
            {lease.status === "PENDING"
              ? "It gets another one that meets what it asks for and is free for its whole time."
              : "Only a host without servers can be given up; nothing that runs is moved or deleted."}
          </p>
          <Field label="Give up" error={fields.get("/host")}>
            {(control) => (
              <select {...control} value={chosen} onChange={(event) => setChosen(event.currentTarget.value)}>
                <option value="">choose a host</option>
                {hosts.map((host) => (
                  <option key={host.name} value={host.name}>
                    {host.name}
                  </option>
                ))}
              </select>
            )}
          </Field>
          {names && (
            <Field label="Get instead" hint="A host by its name. Nothing: any that fits." error={fields.get("/for")}>
              {(control) => (
                <input
                  {...control}
                  autoComplete="off"
                  value={wanted}
                  onInput={(event) => setWanted(event.currentTarget.value)}
                />
              )}
            </Field>
          )}
        </>
      )}
    </Operation>
  );
}

/** Gives up hosts; the lease goes on with fewer. */
export function ShrinkDialog(props: LeaseDialogProps) {
  const { lease, etag, onDone, onClose } = props;
  const hosts = hostsOf(lease);
  const [given, setGiven] = useState<ReadonlySet<string>>(new Set());
  const put = (name: string, gone: boolean) => {
    const next = new Set(given);
    if (gone) next.add(name);
    else next.delete(name);
    setGiven(next);
  };
  return (
    <Operation<{ lease: Lease }>
      etag={etag}
      onClose={onClose}
      onDone={(answer) => onDone(answer.lease)}
      title={`Give up hosts of ${lease.name}`}
      verb="Give up"
      doing="Giving up…"
      said="It has fewer hosts"
      path={`v1/leases/${lease.id}`}
      method="PUT"
      body={shrinkBody(lease, given)}
      pointers={["/reservations"]}
      outcome={(answer) => <p class="preview">{shrinkInWords(lease, answer.lease)}</p>}
    >
      {(fields) => (
        <fieldset class="stack">
          <legend>Which hosts it gives up</legend>
          <p class="muted">
            {lease.status === "PENDING"
              ? "The lease keeps the others, and others may book these."
              : "Only hosts without servers can be given up; nothing that runs is moved or deleted."}
          </p>
          {hosts.map((host) => (
            <label class="check" key={host.name}>
              <input
                type="checkbox"
                checked={given.has(host.name)}
                onChange={(event) => put(host.name, event.currentTarget.checked)}
              />
              {host.name}
            </label>
          ))}
          {fields.get("/reservations") && <p class="field-error">{fields.get("/reservations")}</p>}
        </fieldset>
      )}
    </Operation>
  );
}

/** Makes two leases of one, by units or by time. */
export function SplitDialog(props: LeaseDialogProps) {
  const { lease } = props;
  const pending = lease.status === "PENDING";
  const onlyHosts = lease.reservations.every((one) => one.resource_type === "physical:host");
  const [by, setBy] = useState<"units" | "time">("units");
  const [cuts, setCuts] = useState<ReadonlyMap<string, Cut>>(new Map());
  const [at, setAt] = useState<number | null>(null);
  const [name, setName] = useState(`${lease.name} 2`.slice(0, 80));
  const parts = cutBody(lease, cuts);
  const named = name.trim() && name.trim() !== lease.name ? { name: name.trim() } : {};
  const asked =
    by === "time"
      ? at === null
        ? null
        : { at: toWire(at), ...named }
      : parts.length > 0
        ? { reservations: parts, ...named }
        : null;
  const put = (id: string, cut: Cut) => setCuts(new Map(cuts).set(id, cut));
  return (
    <Operation<Answered>
      {...operated(props)}
      title={`Split ${lease.name}`}
      verb="Split"
      doing="Splitting…"
      said={`${lease.name} is two leases now`}
      path={`v1/leases/${lease.id}/split`}
      body={asked}
      pointers={["/at", "/name", "/reservations"]}
      outcome={({ leases }) => <Leases leases={leases} />}
    >
      {(fields) => (
        <>
          {pending && onlyHosts && (
            <Segments
              label="How it is split"
              options={[
                { value: "units", text: "by hosts" },
                { value: "time", text: "by time" },
              ]}
              chosen={by}
              onChange={setBy}
            />
          )}
          {by === "time" ? (
            <>
              <p class="muted">Two leases on the same hosts. Servers of the first do not last into the second.</p>
              <DateTimeField
                label="The second begins"
                value={at}
                error={fields.get("/at")}
                wrong={outside(at, lease)}
                onChange={setAt}
              />
            </>
          ) : (
            <fieldset class="stack">
              <legend>What goes to the second lease</legend>
              {lease.reservations.map((one) => {
                const held = one.allocations.filter((part) => part.status !== "released").length;
                if (pending && one.resource_type === "physical:host" && held > 1) {
                  return (
                    <p class="row" key={one.id}>
                      <NumberInput
                        label={`How many go, of ${whatOf(one)}`}
                        value={Number(cuts.get(one.id) ?? 0)}
                        min={0}
                        max={held}
                        onChange={(count) => put(one.id, count)}
                      />
                      <span>
                        of {held} {nounOf(one.resource_type, held)}
                      </span>
                    </p>
                  );
                }
                return (
                  <label class="check" key={one.id}>
                    <input
                      type="checkbox"
                      checked={cuts.get(one.id) === true}
                      onChange={(event) => put(one.id, event.currentTarget.checked)}
                    />
                    {whatOf(one)}
                  </label>
                );
              })}
              {fields.get("/reservations") && <p class="field-error">{fields.get("/reservations")}</p>}
            </fieldset>
          )}
          <Field label="Name of the second" error={fields.get("/name")}>
            {(control) => (
              <input
                {...control}
                maxLength={80}
                autoComplete="off"
                value={name}
                onInput={(event) => setName(event.currentTarget.value)}
              />
            )}
          </Field>
        </>
      )}
    </Operation>
  );
}

/** Returns what is wrong with the time of a cut, as a sentence. */
function outside(at: number | null, { start_date, end_date }: Lease): string | undefined {
  const [start, end] = [Date.parse(start_date), Date.parse(end_date)];
  if (at === null || (at > start && at < end)) return undefined;
  return `It has to be within the lease: ${range(start, end, zone.value, present.value)}.`;
}

/** Makes one lease of two. */
export function MergeDialog(props: LeaseDialogProps) {
  const { lease } = props;
  const [other, setOther] = useState("");
  const { leases: others, error, again } = useMergeable(lease);
  return (
    <Operation<Answered>
      {...operated(props)}
      title={`Merge ${lease.name} with another lease`}
      verb="Merge"
      doing="Merging…"
      said={`${lease.name} has both now`}
      path={`v1/leases/${lease.id}/merge`}
      body={other ? { with: other } : null}
      pointers={["/with"]}
      outcome={({ leases }) => <Leases leases={leases} />}
    >
      {(fields) => (
        <>
          {!others && (error === null ? <Skeleton lines={2} /> : <Trouble error={error} retry={again} />)}
          {others?.length === 0 && (
            <p>No other lease of the project has the same dates, or begins where this one ends.</p>
          )}
          {others && others.length > 0 && (
            <Field
              label="Take over"
              hint="That lease ends with it; nothing is handed over again."
              error={fields.get("/with")}
            >
              {(control) => (
                <select {...control} value={other} onChange={(event) => setOther(event.currentTarget.value)}>
                  <option value="">choose a lease</option>
                  {others.map((one) => (
                    <option key={one.id} value={one.id}>
                      {one.name}: {whatOfLease(one)}
                      {one.start_date === lease.end_date &&
                        `, from ${spoken(Date.parse(one.start_date), zone.value, present.value)}`}
                    </option>
                  ))}
                </select>
              )}
            </Field>
          )}
        </>
      )}
    </Operation>
  );
}

/** Leases as they would be. */
function Leases({ leases }: { leases: readonly Lease[] }) {
  return (
    <ul class="stack outcome">
      {leases.map((one, index) => (
        <li key={index}>
          <strong>{one.name}</strong>: {whatOfLease(one)}
          <br />
          <span class="muted">
            {range(Date.parse(one.start_date), Date.parse(one.end_date), zone.value, present.value)}
          </span>
        </li>
      ))}
    </ul>
  );
}
