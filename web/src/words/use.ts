// SPDX-License-Identifier: Apache-2.0
/** What to type to use a reservation. */
import type { Allocation, Reservation } from "../api/types.ts";
import { HAS_SERVERS } from "./lease.ts";

export interface Command {
  /** What it does, as a phrase after "to". */
  does: string;
  text: string;
}

/** Returns the commands of a reservation; words in capitals are to be replaced. */
export function commandsOf(reservation: Reservation): Command[] {
  const { use } = reservation;
  switch (reservation.resource_type) {
    case "virtual:floatingip":
      return use.addresses.map((address) => ({
        does: `give ${address} to a server`,
        text: `openstack server add floating ip SERVER ${address}`,
      }));
    case "physical:host":
    case "virtual:instance":
    case "flavor:instance":
      return [{ does: "boot a server into it", text: bootLine(reservation) }];
    default:
      return [];
  }
}

function bootLine({ use }: Reservation): string {
  const hints = Object.entries(use.scheduler_hints).map(([name, value]) => `--hint ${name}=${value}`);
  if (use.server_group_id && !("group" in use.scheduler_hints)) hints.push(`--hint group=${use.server_group_id}`);
  return [
    "openstack server create",
    `--flavor ${use.flavor_id ?? "FLAVOR"}`,
    "--image IMAGE --network NETWORK",
    ...hints,
    "NAME",
  ].join(" ");
}

/** Returns the name of a resource that the reader may see: its own, else its label. */
export function resourceName({ resource }: Allocation): string {
  return resource.name ?? resource.label ?? resource.id;
}

const STATUS: Record<string, string> = { promised: "", in_use: "", failed: "failed", released: "given back" };

/** Returns what was got, as in "h-4kq2mz" or "h-7hd0aa (3)"; failed and returned ones say so. */
export function allocationInWords(allocation: Allocation): string {
  const name = allocation.count > 1 ? `${resourceName(allocation)} (${allocation.count})` : resourceName(allocation);
  const status = STATUS[allocation.status] ?? allocation.status.replaceAll("_", " ");
  return status ? `${name}: ${status}` : name;
}

/** Returns what goes when a lease ends, one sentence a reservation; names hosts and addresses. */
export function goesWith(reservation: Reservation): string {
  const held = reservation.allocations.filter((one) => one.status !== "released");
  const names = held.map(resourceName);
  if (reservation.resource_type === "virtual:floatingip") {
    const addresses = reservation.use.addresses.length > 0 ? reservation.use.addresses : names;
    return addresses.length > 0
      ? `The addresses ${listed(addresses)} are taken back.`
      : "The addresses are taken back.";
  }
  if (!HAS_SERVERS.includes(reservation.resource_type)) {
    return names.length > 0 ? `It is taken back: ${listed(names)}.` : "It is taken back.";
  }
  const where =
    reservation.resource_type === "virtual:server"
      ? "Its servers"
      : reservation.resource_type === "physical:host"
        ? names.length > 0
          ? `All servers on ${listed(names)}`
          : "All servers on its hosts"
        : `All servers of the flavor ${reservation.use.flavor_id ?? reservation.id}`;
  const verb =
    reservation.before_end === "migration"
      ? "are moved to other hosts; what cannot be moved is deleted"
      : "are deleted";
  const first = reservation.before_end === "snapshot" ? "; images of them are taken first" : "";
  return `${where} ${verb}${first}.`;
}

/** Returns "a", "a and b", "a, b and c", "a, b, c and 4 more". */
export function listed(names: readonly string[], most = 6): string {
  const shown = names.length > most ? [...names.slice(0, most - 1), `${names.length - most + 1} more`] : [...names];
  const last = shown.pop() ?? "";
  return shown.length > 0 ? `${shown.join(", ")} and ${last}` : last;
}
