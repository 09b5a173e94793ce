// SPDX-License-Identifier: Apache-2.0
/** Resources of a kind in rows: what they are, their state, and what an operator can do with each. */
import { Power } from "lucide";
import type { Kind } from "../../api/kinds.ts";
import { may } from "../../api/session.ts";
import type { Resource } from "../../api/types.ts";
import { Icon } from "../../parts/icon.tsx";
import { Rows } from "../../parts/list.tsx";
import { Menu } from "../../parts/menu.tsx";
import { hrefOf } from "../../router.ts";
import { attributeInWords, capacityInWords } from "../../words/values.ts";
import { PowerButtons, PowerLine, type PowerOfHosts, pathOf } from "../hosts/power.tsx";
import { SwitchDialog } from "../hosts/switch.tsx";
import { DeleteDialog, DisableDialog, EditDialog, subjectOf } from "./dialogs.tsx";
import { ResourceState, usePromised } from "./state.tsx";

export type ResourceAction = "edit" | "disable" | "delete" | "switch";

/** Returns what a resource is called by those who may not see its name. */
export function nameOf(resource: Resource): string {
  return resource.name ?? resource.label ?? resource.id;
}

/** Draws the table. */
export function ResourceTable(props: {
  kind: Kind;
  resources: readonly Resource[];
  power: PowerOfHosts;
  onOpen: (what: ResourceAction, id: string) => void;
}) {
  const { kind, resources, power, onOpen } = props;
  const promises = usePromised(
    kind.resource_types.find((one) => one.startsWith("physical:")) ?? kind.resource_types[0]!,
  );
  return (
    <Rows
      heads={["Name", "State", "What it is", "Properties", ...(may("blazar:resources:put", kind.name) ? [""] : [])]}
    >
      {resources.map((one) => (
        <tr key={one.id}>
          <th scope="row">
            <a href={hrefOf("resource", { kind: kind.name, id: one.id })}>{nameOf(one)}</a>
          </th>
          <td class="state-cell">
            <ResourceState of={one} promises={promises} />
            {power.hosts.has(one.id) && <PowerLine host={power.hosts.get(one.id)!} />}
          </td>
          <td>{whatIs(one).join(" · ")}</td>
          <td>
            <Properties of={one} />
          </td>
          {may("blazar:resources:put", kind.name) && (
            <td class="actions">
              <ResourceActions resource={one} power={power} onOpen={(what) => onOpen(what, one.id)} />
            </td>
          )}
        </tr>
      ))}
    </Rows>
  );
}

/** What the capacity says, too, or what the cloud notes for itself. */
const NOTED = [
  "vcpus",
  "memory_mb",
  "local_gb",
  "capacity",
  "gigabytes",
  "cpu_info",
  "hypervisor_type",
  "hypervisor_version",
  "service_name",
];

/** What the cloud says of it in short, without its name once more. */
function whatIs(resource: Resource): string[] {
  const said = Object.entries(resource.attributes)
    .filter(([name, value]) => !NOTED.includes(name) && value !== resource.name && String(value).length <= 40)
    .map(([name, value]) => attributeInWords(name, value))
    .filter((one) => one !== null)
    .map(({ name, text }) => `${name}: ${text}`);
  return [...capacityInWords(resource.capacity), ...said];
}

/** Properties as small marks; restricted ones say for whom. */
export function Properties({ of }: { of: Resource }) {
  const entries = Object.entries(of.properties);
  return (
    <ul class="properties">
      {entries.map(([key, value]) => (
        <li key={key}>
          {key} = {String(value)}
        </li>
      ))}
      {of.authorized_projects && <li>only for {of.authorized_projects.join(", ")}</li>}
    </ul>
  );
}

/** The buttons of one resource. */
export function ResourceActions(props: {
  resource: Resource;
  power?: PowerOfHosts;
  onOpen: (what: ResourceAction) => void;
}) {
  const { resource, power, onOpen } = props;
  const name = nameOf(resource);
  const its = power?.hosts.get(resource.id);
  const button = (what: ResourceAction, text: string) => (
    <button type="button" class="small" aria-label={`${text} ${name}`} onClick={() => onOpen(what)}>
      {text}
    </button>
  );
  return (
    <span class="row row-actions">
      {may("blazar:resources:put", resource.kind) && button("edit", "Edit")}
      {may("blazar:resources:put", resource.kind) && button("disable", resource.disabled ? "Enable" : "Disable")}
      {may("blazar:resources:delete", resource.kind) && button("delete", "Remove")}
      {its && power && (
        <Menu title={`Power of ${name}`} label={<Icon of={Power} />}>
          {(close) => (
            <div class="choices">
              <PowerButtons host={its} power={power} close={close} onSwitch={() => onOpen("switch")} />
            </div>
          )}
        </Menu>
      )}
    </span>
  );
}

/** The dialog of an action. */
export function ResourceDialog(props: {
  what: ResourceAction;
  resource: Resource;
  noun: string;
  power: PowerOfHosts;
  onDone: () => void;
  onClose: () => void;
}) {
  const { what, resource, noun, power, onDone, onClose } = props;
  const its = power.hosts.get(resource.id);
  const rest = { subject: subjectOf(resource, noun), onDone, onClose };
  switch (what) {
    case "edit":
      return <EditDialog {...rest} />;
    case "switch":
      return its ? (
        <SwitchDialog
          kind={resource.kind}
          host={its}
          path={pathOf(resource.kind, its.id)}
          onDone={onDone}
          onClose={onClose}
        />
      ) : null;
    case "disable":
      return <DisableDialog {...rest} />;
    default:
      return <DeleteDialog {...rest} />;
  }
}
