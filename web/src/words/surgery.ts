// SPDX-License-Identifier: Apache-2.0
/** Splitting, merging and swapping, between the forms, the API and words. Pure. */
import type { Lease } from "../api/types.ts";
import { listed, resourceName } from "./use.ts";

/** What of a reservation goes to the second lease: all of it, or so many of its hosts. */
export type Cut = boolean | number;

/** True of a lease that can be operated on. */
export function isOperable({ status }: Pick<Lease, "status">): boolean {
  return status === "PENDING" || status === "ACTIVE";
}

/** Returns the whole hosts of a lease, as they are shown, with the reservations that have them. */
export function hostsOf(lease: Pick<Lease, "reservations">): { name: string; reservation: string }[] {
  return lease.reservations
    .filter((one) => one.resource_type === "physical:host")
    .flatMap((one) =>
      one.allocations
        .filter((part) => part.status !== "released")
        .map((part) => ({ name: resourceName(part), reservation: one.id })),
    );
}

/** Returns what is sent of a split by units. */
export function cutBody(
  lease: Pick<Lease, "reservations">,
  cuts: ReadonlyMap<string, Cut>,
): { id: string; count?: number }[] {
  return lease.reservations.flatMap((one) => {
    const cut = cuts.get(one.id);
    if (cut === undefined || cut === false || cut === 0) return [];
    const held = one.allocations.filter((part) => part.status !== "released").length;
    return [cut === true || cut >= held ? { id: one.id } : { id: one.id, count: cut }];
  });
}

/** Tells whether something would be left of a lease of which a part becomes a second one. */
export function maySplit({ status, reservations }: Pick<Lease, "status" | "reservations">): boolean {
  if (reservations.length > 1) return true;
  // Before the start hosts can be divided, by number or by time; after it whole reservations go.
  return status === "PENDING" && reservations.every((one) => one.resource_type === "physical:host");
}

/** Tells whether the windows of two leases of a project allow to merge them; the rest the service says. */
export function mayMerge(lease: Lease, other: Lease): boolean {
  if (other.id === lease.id || other.project_id !== lease.project_id || !isOperable(other)) return false;
  const same = other.start_date === lease.start_date && other.end_date === lease.end_date;
  return (same && other.status === lease.status) || (other.start_date === lease.end_date && other.status === "PENDING");
}

/**
 * Returns the two questions for the leases of which `mayMerge` is true: those of the same dates, with the lease itself
 * among them, and those that begin where it ends.
 */
export function mergeQueries(lease: Lease): { same: Record<string, string>; after: Record<string, string> } {
  const of = { project_id: lease.project_id, fields: "name,status,project_id,start_date,end_date,reservations" };
  return {
    same: { ...of, status: lease.status, start_date: lease.start_date, end_date: lease.end_date },
    after: { ...of, status: "PENDING", start_date: lease.end_date },
  };
}

/** Returns what a swap does: "It gives up cn1, and gets cn3." */
export function swapInWords(before: Pick<Lease, "reservations">, after: Pick<Lease, "reservations">): string {
  const had = hostsOf(before).map((one) => one.name);
  const has = hostsOf(after).map((one) => one.name);
  const gone = had.filter((name) => !has.includes(name));
  const got = has.filter((name) => !had.includes(name));
  if (got.length === 0) return "It keeps its hosts.";
  return `It gives up ${listed(gone)}, and gets ${listed(got)}.`;
}

/** Returns what is sent to give up hosts, by reservation; null for none. */
export function shrinkBody(
  lease: Pick<Lease, "reservations">,
  given: ReadonlySet<string>,
): { reservations: { id: string; give_up: string[] }[] } | null {
  const gone = new Map<string, string[]>();
  for (const { name, reservation } of hostsOf(lease)) {
    if (given.has(name)) gone.set(reservation, [...(gone.get(reservation) ?? []), name]);
  }
  return gone.size === 0 ? null : { reservations: [...gone].map(([id, give_up]) => ({ id, give_up })) };
}

/** Returns what is left: "It gives up cn1, and keeps 2 hosts." */
export function shrinkInWords(before: Pick<Lease, "reservations">, after: Pick<Lease, "reservations">): string {
  const has = hostsOf(after).map((one) => one.name);
  const gone = hostsOf(before)
    .map((one) => one.name)
    .filter((name) => !has.includes(name));
  return `It gives up ${listed(gone)}, and keeps ${has.length} ${has.length === 1 ? "host" : "hosts"}.`;
}
