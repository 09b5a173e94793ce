// SPDX-License-Identifier: Apache-2.0
/** What others who get other hosts can do for a request, in the words of a page. Pure. */
import type { Proof } from "../api/types.ts";
import { plural, spoken } from "../time/format.ts";

/** Returns why a request has no room even if other leases get other hosts; it names nobody and no host. */
export function proofInWords(proof: Proof, zone: string, now: number): string {
  if (proof.code === "no_arrangement") return "However other leases get other hosts, none are free for all that time.";
  if (proof.code === "too_many_moves")
    return `It would fit if ${plural(proof.moves_others, "other lease")} got other hosts: more than may for one.`;
  if (proof.code !== "full_at") return "No way was found to give other leases other hosts for it; there may be one.";
  const { promised, hosts, asked } = proof;
  const when = spoken(Date.parse(proof.at), zone, now);
  const taken = `${promised} of the ${plural(hosts, "host")} that would do ${promised === 1 ? "is" : "are"} taken`;
  return `${taken} ${when}, and ${asked} more ${asked === 1 ? "is" : "are"} needed: giving other leases other hosts does not help.`;
}

/** Returns what an opening does to other leases. */
export function movesInWords(count: number): string {
  return `For it ${plural(count, "other lease")} that ${count === 1 ? "has" : "have"} not started ${count === 1 ? "gets" : "get"} other hosts of the same kind.`;
}
