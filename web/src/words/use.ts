// SPDX-License-Identifier: Apache-2.0
/** What to type to use a reservation. */
import type { Allocation, Json, Lease, Reservation } from "../api/types.ts";
import { HAS_SERVERS } from "./lease.ts";

export interface Command {
  /** What it does, as a phrase after "to". */
  does: string;
  text: string;
}

/** Returns the commands of a reservation of a lease; words in capitals are to be replaced. */
export function commandsOf(reservation: Reservation, lease?: Pick<Lease, "reservations">): Command[] {
  const { use } = reservation;
  // What another reservation of the lease has, nobody has to attach.
  if (lease?.reservations.some((one) => one.id !== reservation.id && refersTo(one, reservation.id))) return [];
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
    case "network":
      return use.network_id
        ? [
            {
              does: "boot a server on it",
              text: `openstack server create --flavor FLAVOR --image IMAGE --network ${use.network_id} NAME`,
            },
          ]
        : [];
    case "virtual:server":
      return idsIn(reservation, "server_ids").map((id) => ({
        does: "see the server and its addresses",
        text: `openstack server show ${id}`,
      }));
    case "virtual:volume":
      return idsIn(reservation, "volume_ids").map((id) => ({
        does: "give the volume to a server",
        text: `openstack server add volume SERVER ${id}`,
      }));
    case "virtual:stack":
      return idsIn(reservation, "stack_id").map((id) => ({
        does: "see what the stack has made",
        text: `openstack stack show ${id}`,
      }));
    default:
      return [];
  }
}

/** More of them are known by their ids alone. */
const MOST = 4;

function idsIn(reservation: Reservation, name: string): string[] {
  const value = (reservation as unknown as Record<string, Json>)[name];
  const gone = (reservation.made ?? []).filter((one) => one.deleted_at !== null).map((one) => one.id);
  const ids = (Array.isArray(value) ? value : [value]).filter(
    (one): one is string => typeof one === "string" && !gone.includes(one),
  );
  return ids.length <= MOST ? ids : [];
}

function refersTo(reservation: Reservation, id: string): boolean {
  return JSON.stringify(reservation).includes(`{"reservation":"${id}"}`);
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
  if (reservation.resource_type === "virtual:stack") return "The stack and all that is in it are deleted.";
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
