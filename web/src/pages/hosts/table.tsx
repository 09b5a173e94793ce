// SPDX-License-Identifier: Apache-2.0
/** Hosts in rows: their state, what they have, and what an operator can do with each. */
import { Ellipsis } from "lucide";
import { useState } from "preact/hooks";
import { now as serviceNow } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import type { CalendarPage, CalendarResource, Host } from "../../api/types.ts";
import { Menu } from "../../frame/menu.tsx";
import { When } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icon.tsx";
import { StateMark } from "../../parts/state.tsx";
import { hrefOf } from "../../router.ts";
import { spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { gib } from "../../words/lease.ts";

const HOUR = 3_600_000;
/** How many days ahead the table looks. */
const AHEAD = 30;

/** What can be opened for a host. */
export type HostAction = "edit" | "disable" | "delete" | "feed";

/** Until when a host is promised; null if that is beyond what was read. */
export type PromisedUntil = ReadonlyMap<string, string | null>;

/** Returns until when each host is promised now, as blocks up to `to` tell; hosts that are free now are missing. */
export function promisedUntil(resources: readonly CalendarResource[], now: number, to: number): PromisedUntil {
  const until = new Map<string, string | null>();
  for (const { id, blocks } of resources) {
    const current = blocks.find(
      ({ kind, start, end }) =>
        (kind === "lease" || kind === "mine" || kind === "other") &&
        Date.parse(start) <= now &&
        (end === null || Date.parse(end) > now),
    );
    // Blocks are cut at the range: one that reaches its end may go on.
    if (current) until.set(id, current.end !== null && Date.parse(current.end) < to ? current.end : null);
  }
  return until;
}

function usePromised(): PromisedUntil {
  const hour = Math.floor(serviceNow() / HOUR) * HOUR;
  const to = hour + AHEAD * 24 * HOUR;
  const query = { from: toWire(hour), to: toWire(to), limit: 1000, fields: "blocks" };
  const calendar = useLive<{ calendar: CalendarPage }>("v1/calendar", query, 60)!.state.value.data?.calendar;
  return promisedUntil(calendar?.resources ?? [], present.value, to);
}

/** Draws the table. */
export function HostTable({ hosts, onOpen }: { hosts: Host[]; onOpen: (what: HostAction, id: string) => void }) {
  const [shown, setShown] = useState(100);
  const until = usePromised();
  return (
    <>
      <div class="table-scroll">
        <table class="list stacked">
          <thead>
            <tr>
              <th scope="col">Host</th>
              <th scope="col">State</th>
              <th scope="col">Capacity</th>
              <th scope="col">Properties</th>
              <th scope="col">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {hosts.slice(0, shown).map((host) => (
              <Row key={host.id} host={host} until={until} open={(what) => onOpen(what, host.id)} />
            ))}
          </tbody>
        </table>
      </div>
      {hosts.length > shown && (
        <button type="button" class="quiet more" onClick={() => setShown(shown + 200)}>
          Show more of {hosts.length}
        </button>
      )}
    </>
  );
}

interface RowProps {
  host: Host;
  until: PromisedUntil;
  open: (what: HostAction) => void;
}

function Row({ host, until, open }: RowProps) {
  const name = host.hypervisor_hostname;
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf("calendar", { req: JSON.stringify(["==", "$hypervisor_hostname", name]) })}>{name}</a>
        <br />
        <span class="muted">{[host.availability_zone, host.label].filter(Boolean).join(" · ")}</span>
      </th>
      <td>
        <HostState host={host} until={until} />
      </td>
      <td class="nowrap">
        {host.capacity.VCPU ?? "?"} vCPU, <span class="muted">{gib(host.capacity.MEMORY_MB ?? 0)}</span>
      </td>
      <td>
        <ul class="properties">
          {Object.entries(host.properties).map(([key, value]) => (
            <li key={key}>
              {key} = {String(value)}
            </li>
          ))}
          {host.authorized_projects && <li>only for {host.authorized_projects.join(", ")}</li>}
        </ul>
      </td>
      <td class="actions">
        <RowActions host={host} open={open} />
      </td>
    </tr>
  );
}

function RowActions({ host, open }: { host: Host; open: RowProps["open"] }) {
  const name = host.hypervisor_hostname;
  const further: { what: HostAction; text: string }[] = [];
  if (may("blazar:feeds:post_resource")) further.push({ what: "feed", text: "Calendar link" });
  if (may("blazar:oshosts:delete")) further.push({ what: "delete", text: "Remove" });
  return (
    <span class="row row-actions">
      {may("blazar:oshosts:put") && (
        <>
          <button type="button" class="small" aria-label={`Edit ${name}`} onClick={() => open("edit")}>
            Edit
          </button>
          <button
            type="button"
            class="small"
            aria-label={`${host.disabled ? "Enable" : "Disable"} ${name}`}
            onClick={() => open("disable")}
          >
            {host.disabled ? "Enable" : "Disable"}
          </button>
        </>
      )}
      {further.length > 0 && (
        <Menu title={`More for ${name}`} label={<Icon of={Ellipsis} />}>
          {(close) => (
            <div class="choices">
              {further.map(({ what, text }) => (
                <button
                  key={what}
                  type="button"
                  onClick={() => {
                    close();
                    open(what);
                  }}
                >
                  {text}
                </button>
              ))}
            </div>
          )}
        </Menu>
      )}
    </span>
  );
}

function HostState({ host, until }: { host: Host; until: PromisedUntil }) {
  if (host.failure) {
    return (
      <span class="state state-failed">
        <StateMark mark="failed" />
        <span class="state-word">failed</span>
        <span class="state-next">
          {host.failure.reason}, <When at={host.failure.since} as="relative" />
        </span>
      </span>
    );
  }
  if (host.disabled) {
    const { reason, until: end } = host.disabled;
    return (
      <span class="state state-past">
        <StateMark mark="past" />
        <span class="state-word">disabled</span>
        <span class="state-next">
          {reason}
          {end && ` until ${spoken(Date.parse(end), zone.value, present.value)}`}
        </span>
      </span>
    );
  }
  const end = until.get(host.id);
  if (end === undefined) {
    return (
      <span class="state">
        <StateMark mark="waiting" />
        <span class="state-word">free</span>
      </span>
    );
  }
  return (
    <span class="state">
      <StateMark mark="active" />
      <span class="state-word">promised</span>
      <span class="state-next">
        {end ? `until ${spoken(Date.parse(end), zone.value, present.value)}` : `for ${AHEAD} days and more`}
      </span>
    </span>
  );
}
