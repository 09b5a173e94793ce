// SPDX-License-Identifier: Apache-2.0
/** The kinds of resources that the service has: their words and the schemas of what is sent. */
import { batch, signal } from "@preact/signals";
import { request } from "./client.ts";
import { type Session, may } from "./session.ts";
import { learnWords } from "../words/lease.ts";
import type { Json, ResourceType } from "./types.ts";

/** What forms need of a JSON schema. */
export interface Schema {
  type?: string | readonly string[];
  title?: string;
  description?: string;
  enum?: readonly Json[];
  default?: Json;
  format?: string;
  writeOnly?: boolean;
  contentEncoding?: string;
  contentMediaType?: string;
  required?: readonly string[];
  properties?: Readonly<Record<string, Schema>>;
  additionalProperties?: boolean | Schema;
  items?: Schema;
  anyOf?: readonly Schema[];
  oneOf?: readonly Schema[];
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  "x-changeable"?: "never" | "before-start";
  /** It is given instead of these fields. */
  "x-instead-of"?: readonly string[];
  "x-resource-types"?: readonly ResourceType[];
}

export interface Kind {
  name: string;
  noun: string;
  nouns: string;
  resource_types: readonly ResourceType[];
  has_candidates: boolean;
  registration: Schema | null;
  attributes: Readonly<Record<string, Schema>>;
  parameters: Readonly<Record<ResourceType, Schema>>;
}

/** All kinds; none until they are read, and for callers who may not see them. */
export const kinds = signal<readonly Kind[]>([]);

/** False until it is known which kinds there are: a question about them waits for their schemas. */
export const kindsRead = signal(false);

/** Reads the kinds for somebody whose rights are known. What fails leaves the pages with what they know themselves. */
export async function loadKinds(as: Session): Promise<void> {
  let read: readonly Kind[] = [];
  try {
    if (may("blazar:resources:get")) {
      read = (await request<{ kinds: Kind[] }>("GET", "v1/resources", { as })).data.kinds;
      learnWords(read);
    }
  } catch {
    // The next sign-in reads them again; hosts and addresses are known without.
    read = kinds.value;
  }
  batch(() => {
    kinds.value = read;
    kindsRead.value = true;
    emptyKinds.value = null;
  });
}

/** The names of kinds of which nothing is registered that the caller may reserve; null while that is not known. */
export const emptyKinds = signal<ReadonlySet<string> | null>(null);

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

/** Tells whether there is nothing that a type could reserve. */
export function isEmpty(type: ResourceType): boolean {
  return emptyKinds.value?.has(kindOfType(type)?.name ?? "") ?? false;
}

/** Returns the kind of a name. */
export function kindOf(name: string): Kind | undefined {
  return kinds.value.find((one) => one.name === name);
}

/** Returns the kind whose resources a type reserves. */
export function kindOfType(type: ResourceType): Kind | undefined {
  return kinds.value.find((one) => one.resource_types.includes(type));
}

/** Returns the schema of the parameters of a type. */
export function parametersOf(type: ResourceType): Schema | undefined {
  return kindOfType(type)?.parameters[type];
}

/** Returns the regions that resources can lie in; none if there is only one. */
export function regions(): string[] {
  const named = kinds.value.flatMap((one) => one.registration?.properties?.region?.enum ?? []);
  const all = [...new Set(named.filter((one): one is string => typeof one === "string"))];
  return all.length > 1 ? all : [];
}
