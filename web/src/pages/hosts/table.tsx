// SPDX-License-Identifier: Apache-2.0
/** Hosts in rows: their state, what they have, and what an operator can do with each. */
import { Ellipsis } from "lucide";
import { may } from "../../api/session.ts";
import type { Host } from "../../api/types.ts";
import { Menu } from "../../parts/menu.tsx";
import { Icon } from "../../parts/icon.tsx";
import { Rows } from "../../parts/list.tsx";
import { go, hrefOf } from "../../router.ts";
import { gib } from "../../words/lease.ts";
import { type Promises, ResourceState } from "../resources/state.tsx";
import { PowerButtons, PowerLine, type PowerOfHosts } from "./power.tsx";

/** What can be opened for a host. */
export type HostAction = "edit" | "disable" | "delete" | "feed" | "switch";

/** Draws the table. */
export function HostTable({
  hosts,
  promises,
  power,
  onOpen,
}: {
  hosts: readonly Host[];
  promises: Promises;
  power: PowerOfHosts;
  onOpen: (what: HostAction, id: string) => void;
}) {
  return (
    <Rows heads={["Host", "State", "Capacity", "Properties", ""]}>
      {hosts.map((host) => (
        <Row key={host.id} host={host} promises={promises} power={power} open={(what) => onOpen(what, host.id)} />
      ))}
    </Rows>
  );
}

/** Returns the address of the calendar of one host. */
export function calendarOf(name: string): string {
  return hrefOf("calendar", { req: JSON.stringify(["==", "$hypervisor_hostname", name]) });
}

interface RowProps {
  host: Host;
  promises: Promises;
  power: PowerOfHosts;
  open: (what: HostAction) => void;
}

function Row({ host, promises, power, open }: RowProps) {
  const name = host.name;
  const its = power.hosts.get(host.id);
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf("resource", { kind: "host", id: host.id })}>{name}</a>
        <span class="owner muted">{[host.attributes.availability_zone, host.label].filter(Boolean).join(" · ")}</span>
      </th>
      <td>
        <ResourceState of={host} promises={promises} />
        {its && <PowerLine host={its} />}
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
        <RowActions host={host} power={power} open={open} />
      </td>
    </tr>
  );
}

function RowActions({ host, power, open }: Omit<RowProps, "promises">) {
  const name = host.name;
  const its = power.hosts.get(host.id);
  const further: { what: HostAction; text: string }[] = [];
  const plans = may("blazar:maintenances:post");
  if (may("blazar:feeds:post_resource")) further.push({ what: "feed", text: "Calendar link" });
  if (may("blazar:resources:delete", "host")) further.push({ what: "delete", text: "Remove" });
  return (
    <span class="row row-actions">
      {may("blazar:resources:put", "host") && (
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
      {(further.length > 0 || plans) && (
        <Menu title={`More for ${name}`} label={<Icon of={Ellipsis} />}>
          {(close) => (
            <div class="choices">
              {plans && (
                <button type="button" onClick={() => go("maintenance", { do: "plan", hosts: host.id })}>
                  Plan maintenance
                </button>
              )}
              <a class="button quiet" href={calendarOf(name)}>
                Calendar
              </a>
              {its && <PowerButtons host={its} power={power} close={close} onSwitch={() => open("switch")} />}
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
