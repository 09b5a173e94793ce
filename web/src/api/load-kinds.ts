// SPDX-License-Identifier: Apache-2.0
/** Reads which kinds of resources the service has, and of which of them nothing is registered. */
import { batch } from "@preact/signals";
import { learnWords } from "../words/lease.ts";
import { request } from "./client.ts";
import { type Kind, emptyKinds, kinds, kindsRead } from "./kinds.ts";
import { type Session, allowedOn, may, session } from "./session.ts";

/** Reads the kinds for somebody whose rights are known. What fails leaves the pages with what they know themselves. */
export async function loadKinds(as: Session): Promise<void> {
  let read: readonly Kind[] = [];
  let allowed: ReadonlyMap<string, readonly string[]> = new Map();
  try {
    if (may("blazar:resources:get")) {
      read = (await request<{ kinds: Kind[] }>("GET", "v1/resources", { as })).data.kinds;
      allowed = new Map(read.map((one) => [one.name, one.allowed]));
      learnWords(read);
    }
  } catch {
    // The next sign-in reads them again; hosts and addresses are known without.
    read = kinds.value;
  }
  const { user, project } = session.value ?? {};
  // Somebody else has begun meanwhile, and reads them, too.
  if (user?.id !== as.user?.id || project?.id !== as.project?.id) return;
  batch(() => {
    kinds.value = read;
    allowedOn.value = allowed;
    kindsRead.value = true;
    emptyKinds.value = null;
  });
}

let emptyKindsStop = new AbortController();

/** Finds out of which kinds nothing is registered, one after the other: nobody waits for that. */
export async function loadEmptyKinds(): Promise<void> {
  const empty = new Set<string>();
  emptyKindsStop.abort();
  emptyKindsStop = new AbortController();
  const { signal } = emptyKindsStop;
  for (const { name } of kinds.value) {
    try {
      const query = { limit: 1, fields: "id" };
      const { data } = await request<{ resources: unknown[] }>("GET", `v1/resources/${name}`, { query, signal });
      if (data.resources.length === 0) empty.add(name);
    } catch {
      // Of a kind that cannot be listed nothing is said.
    }
    if (signal.aborted) return;
  }
  emptyKinds.value = empty;
}

/** Stops finding that out: the session goes on in another project, or ends. */
export function stopLoadingEmptyKinds(): void {
  emptyKindsStop.abort();
}
