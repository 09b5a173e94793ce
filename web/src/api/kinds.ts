// SPDX-License-Identifier: Apache-2.0
/** The kinds of resources that the service has: their words and the schemas of what is sent. */
import { signal } from "@preact/signals";
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
  /** The rules that let the caller do something with its resources. */
  allowed: readonly string[];
  registration: Schema | null;
  attributes: Readonly<Record<string, Schema>>;
  parameters: Readonly<Record<ResourceType, Schema>>;
}

/** All kinds; none until they are read, and for callers who may not see them. */
export const kinds = signal<readonly Kind[]>([]);

/** False until it is known which kinds there are: a question about them waits for their schemas. */
export const kindsRead = signal(false);

/** The names of kinds of which nothing is registered that the caller may reserve; null while that is not known. */
export const emptyKinds = signal<ReadonlySet<string> | null>(null);

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
