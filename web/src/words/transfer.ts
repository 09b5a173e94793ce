// SPDX-License-Identifier: Apache-2.0
/** Leases that go to another project or user, in words. Pure. */
import type { Lease, Transfer, TransferOffer, Wish } from "../api/types.ts";
import { whatOf } from "./lease.ts";

/** What is asked of who gives a lease away. */
export interface Gift {
  /** To another user of its own project. */
  within: boolean;
  project: string;
  user: string;
  message: string;
}

/** Returns what is sent of an offer; null if it is not known yet who is to get it. */
export function offerBody({ within, project, user, message }: Gift): Record<string, string> | null {
  const to = { project_id: project.trim(), user_id: user.trim() };
  if (within ? to.user_id === "" : to.project_id === "") return null;
  return {
    ...(within ? {} : { project_id: to.project_id }),
    ...(to.user_id === "" ? {} : { user_id: to.user_id }),
    ...(message.trim() === "" ? {} : { message: message.trim() }),
  };
}

/** Returns the id of a project that is typed by its name, if it is one that the giver knows; else what was typed. */
export function projectIdOf(typed: string, known: readonly { id: string; name: string }[]): string {
  const text = typed.trim();
  const named = known.filter(({ name }) => name === text);
  return named.length === 1 ? named[0]!.id : text;
}

/** Tells whether an offer can still be accepted; the lease shows it after that, too. */
export function isStanding(offer: Pick<TransferOffer, "expires_at"> | null | undefined, now: number): boolean {
  return !!offer && Date.parse(offer.expires_at) > now;
}

/** Returns to whom a lease is offered: "the user bob of chemistry", "any member of chemistry". */
export function takerInWords(
  offer: Pick<TransferOffer, "project_id" | "user_id">,
  lease: Pick<Lease, "project_id">,
): string {
  const { project_id: project, user_id: user } = offer;
  if (user === null) return `any member of ${project}`;
  return project === lease.project_id ? `the user ${user}` : `the user ${user} of ${project}`;
}

/** Returns what is not known of who an offer is for: the service does not ask Keystone which projects there are; else null. */
export function uncheckedInWords(
  { project_id: project }: Pick<TransferOffer, "project_id">,
  lease: Pick<Lease, "project_id">,
  known: readonly { id: string }[],
): string | null {
  if (project === lease.project_id || known.some(({ id }) => id === project)) return null;
  return `Nobody has checked that there is a project ${project}: see that its id is right.`;
}

/** Returns what giving a lease away means, one sentence each. */
export function givingMeans(within: boolean): string[] {
  return [
    "It stays yours, with all rights, until it is accepted; until then you can withdraw the offer.",
    within
      ? "From then on it is theirs. The project keeps it."
      : "From then on it is theirs and counts for their project; yours does not see it any more.",
    "The offer ends by itself if nobody accepts it. When is said below, before you offer it, as soon as it is known to whom.",
  ];
}

/** Returns what an offered lease has: "2 hosts and 1 floating IP". */
export function whatOfOffer({ lease }: Pick<Transfer, "lease">): string {
  return lease.reservations
    .map(({ resource_type, parameters }) => whatOf({ ...parameters, resource_type } as Wish))
    .join(" and ");
}

/** Returns what accepting a lease means, one sentence each. */
export function takingMeans(offer: Transfer): string[] {
  const within = offer.project_id === offer.from_project_id;
  return [
    within
      ? "You become its user; what it has, its dates and its project stay."
      : "What it has and its dates stay. It counts for your project from then on, by its limits and quotas.",
    ...(offer.lease.status === "ACTIVE" && !within ? ["It is in use already; no servers come with it."] : []),
  ];
}
