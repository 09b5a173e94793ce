// SPDX-License-Identifier: Apache-2.0
/** From a JSON schema to the fields of a form. Pure; what a form has is what is sent. */
import type { Schema } from "../api/kinds.ts";
import type { Json, ResourceType } from "../api/types.ts";
import { nameInWords } from "../words/parameters.ts";

/** How a field is typed. */
export type Control =
  | "text"
  | "long"
  | "secret"
  | "base64"
  | "number"
  | "boolean"
  | "choice"
  | "requirement"
  /** One thing that may be named in several ways: by a word, by a reservation of the lease, by its id. */
  | "named"
  /** Several of them. */
  | "list"
  /** Names and texts. */
  | "pairs"
  /** YAML or JSON, pasted or from a file. */
  | "document"
  /** Texts by the name of their file. */
  | "files"
  /** An object with fields of its own. */
  | "object"
  | "json";

export interface FormField {
  name: string;
  label: string;
  hint: string;
  required: boolean;
  control: Control;
  /** What can be chosen, and what can be said in a word. */
  words: readonly Json[];
  /** Of a field that can refer to another reservation of the lease: its resource types. */
  refers: readonly ResourceType[];
  /** A thing that is named by its id can be typed; `wrap` is the key of the object that the id is sent in. */
  typed: boolean;
  wrap: string | null;
  /** What can be said in a word instead of a list. */
  instead: readonly Json[];
  /** When it can be changed for the last time, if not at any time. */
  changeable: "never" | "before-start" | null;
  /** The fields that it is given instead of. */
  insteadOf: readonly string[];
  /** Of an object: its fields. */
  fields: readonly FormField[];
  whole: boolean;
  least: number | null;
  most: number | null;
  initial: Json | undefined;
}

/** What a form has: a field that is not there was not filled in. */
export type Values = Readonly<Record<string, Json>>;

const LONG = 1024;

/** Returns the fields of the object that a schema describes, those that are needed first. */
export function fieldsOf(schema: Schema | null | undefined, without: readonly string[] = []): FormField[] {
  const needed = schema?.required ?? [];
  return Object.entries(schema?.properties ?? {})
    .filter(([name]) => !without.includes(name))
    .map(([name, one]) => fieldOf(name, one, needed.includes(name)))
    .sort((a, b) => Number(b.required) - Number(a.required));
}

function fieldOf(name: string, schema: Schema, required: boolean): FormField {
  const ways = waysOf(schema);
  const list = ways.find((way) => way.items);
  const named = list ? waysOf(list.items!) : ways;
  const words = ways.flatMap((way) => way.enum ?? []).filter((one) => one !== null);
  const number = named.find((way) => is(way, "integer") || is(way, "number"));
  const wrapped = named.map(wrapOf).find((key) => key !== null) ?? null;
  const control = controlOf(schema, ways);
  return {
    name,
    label: schema.title ?? nameInWords(name),
    hint: hintOf(schema),
    required,
    control,
    words: list ? named.flatMap((way) => way.enum ?? []) : words,
    refers: named.flatMap((way) => way["x-resource-types"] ?? []),
    typed: wrapped !== null || named.some((way) => is(way, "string") && !way.enum),
    wrap: wrapped,
    instead: list ? words : [],
    changeable: schema["x-changeable"] ?? null,
    insteadOf: schema["x-instead-of"] ?? [],
    fields: control === "object" ? fieldsOf(ways.find((way) => way.properties)) : [],
    whole: number !== undefined && !named.some((way) => is(way, "number")),
    least: number?.minimum ?? null,
    most: number?.maximum ?? null,
    initial: schema.default,
  };
}

/** Returns the labels of the fields and of those in them by their JSON pointers, which begin as the `place` of the object. */
export function labelsOf(fields: readonly FormField[], place = ""): Map<string, string> {
  return new Map(
    fields.flatMap(({ name, label, fields: inside }): [string, string][] => [
      [`${place}/${name}`, label],
      ...labelsOf(inside, `${place}/${name}`),
    ]),
  );
}

/** The ways in which a value can be written. */
function waysOf(schema: Schema): Schema[] {
  const ways = schema.anyOf ?? schema.oneOf;
  return ways ? ways.flatMap(waysOf) : [schema];
}

function is(schema: Schema, type: string): boolean {
  if (schema["x-resource-types"]) return false;
  return Array.isArray(schema.type) ? schema.type.includes(type) : schema.type === type;
}

/** The key of an object that holds one text only, such as {"uuid": "…"}. */
function wrapOf(schema: Schema): string | null {
  if (schema["x-resource-types"] || !is(schema, "object")) return null;
  const entries = Object.entries(schema.properties ?? {});
  const [key, value] = entries[0] ?? [];
  return entries.length === 1 && value && is(value, "string") ? key! : null;
}

function controlOf(schema: Schema, ways: readonly Schema[]): Control {
  if (schema.format === "requirement") return "requirement";
  if (schema.contentMediaType === "application/yaml") return "document";
  const some = (type: string) => ways.some((way) => is(way, type));
  if (ways.some((way) => way.items)) {
    const items = ways.find((way) => way.items)!.items!;
    const nameable = waysOf(items).some(
      (way) => way["x-resource-types"] || is(way, "string") || wrapOf(way) || way.enum,
    );
    return nameable ? "list" : "json";
  }
  if (ways.some((way) => way["x-resource-types"] || wrapOf(way) !== null)) return "named";
  if (ways.every((way) => way.enum || way.type === "null")) return "choice";
  if (some("object")) {
    const object = ways.find((way) => is(way, "object"))!;
    const values = object.additionalProperties;
    if (object.properties) return "object";
    if (typeof values === "object" && values.contentMediaType) return "files";
    return typeof values === "object" && !waysOf(values).some((way) => is(way, "object") || is(way, "array"))
      ? "pairs"
      : "json";
  }
  if (some("array")) return "json";
  if (some("boolean")) return "boolean";
  if (some("string")) {
    if (ways.some((way) => way.enum)) return "named";
    if (isBase64(schema)) return "base64";
    if (schema.writeOnly || schema.format === "password") return "secret";
    const [text] = ways.filter((way) => is(way, "string"));
    return (text?.maxLength ?? 0) > LONG ? "long" : "text";
  }
  return some("integer") || some("number") ? "number" : "json";
}

/** Said by its encoding, or at least to people. */
function isBase64({ contentEncoding, description = "" }: Schema): boolean {
  return contentEncoding === "base64" || description.startsWith("base64");
}

/** The description, where it says more than the kind of value. */
function hintOf(schema: Schema): string {
  if (isBase64(schema)) return "Any text; it is sent as base64.";
  const { title = "" } = schema;
  // What is for programs, which send nulls, texts and references as JSON.
  const description = (schema.description ?? "")
    .replace(/^null, or |, (or null|as YAML|such as [[{]).*$|; an object has .*$/gs, "")
    .replace(/^a whole number( from \d+)?; /, "");
  const plain =
    /^(an id|a whole number( from 1)?|one of |true, false|true or false|a requirement as|an? (text|name|list) of|"auto")/.test(
      description,
    );
  if (plain || description === "" || description.toLowerCase() === title.toLowerCase()) return "";
  return description.charAt(0).toUpperCase() + description.slice(1);
}

/** Returns the values that a new form has: what is needed, with a count of one. */
export function initialValues(schema: Schema | undefined): Values {
  const instead = fieldsOf(schema).filter((one) => one.insteadOf.length > 0);
  if (schema && instead.length > 0) {
    // "Whole ones, or units of one": most want whole ones, and one number says how many.
    const [first] = instead[0]!.insteadOf;
    return first ? { [first]: 1 } : {};
  }
  const values: Record<string, Json> = {};
  for (const name of ["min", "max", "amount"]) {
    const needed = schema?.required?.includes(name);
    if (schema?.properties?.[name] && (needed || (name !== "amount" && !schema.required?.includes("amount"))))
      values[name] = 1;
  }
  return values;
}

/** Of fields that are given instead of each other: the sets of them, one of which is filled in; none if there are none. */
export function setsOf(fields: readonly FormField[]): (readonly FormField[])[] {
  const other = fields.find(({ insteadOf }) => insteadOf.length > 0);
  const first = fields.filter(({ name }) => other?.insteadOf.includes(name));
  return other && first.length > 0 ? [first, [other]] : [];
}

/** Returns which of the sets is filled in; the first if none is. */
export function setIn(sets: readonly (readonly FormField[])[], values: Values): number {
  return Math.max(
    0,
    sets.findIndex((set) => set.some(({ name }) => name in values)),
  );
}

/** Returns the values with another one of the sets filled in: as many as there were. */
export function withSet(sets: readonly (readonly FormField[])[], index: number, values: Values): Values {
  const names = sets.flat().map(({ name }) => name);
  const count = names.map((name) => values[name]).find((one) => typeof one === "number") ?? 1;
  const rest = Object.fromEntries(Object.entries(values).filter(([name]) => !names.includes(name)));
  return { ...rest, [sets[index]![0]!.name]: count };
}

/** Returns the values that the schema knows. */
export function known(schema: Schema, values: Values): Values {
  return Object.fromEntries(Object.entries(values).filter(([name]) => schema.properties?.[name]));
}

/** Divides values into those that may stand in an address, and those that are too long or secret. */
export function parted(schema: Schema | undefined, values: Values): { open: Values; held: Values } {
  const closed = fieldsOf(schema)
    .filter(({ control }) => ["long", "secret", "base64", "document", "files", "json"].includes(control))
    .map(({ name }) => name);
  const pick = (wanted: boolean) =>
    Object.fromEntries(Object.entries(values).filter(([name]) => closed.includes(name) === wanted));
  return { open: pick(false), held: pick(true) };
}

/** Returns the first field that has to be filled in; null if nothing has to. */
export function missingField(schema: Schema, values: Values): FormField | null {
  return fieldsOf(schema).find((one) => one.required && !(one.name in values)) ?? null;
}

/**
 * Returns what is proposed for a field: the values that resources have there. For a new resource (`registering`: what is
 * known of those that the cloud has and that are not registered) that is what one of these would have, and what two
 * resources share: what one alone has, as its name or address, is registered already.
 */
export function proposalsOf(
  name: string,
  values: readonly { value: string | number; count: number }[],
  registering: readonly Values[] | undefined,
): string[] {
  if (registering === undefined) return values.map(({ value }) => String(value));
  const offered = registering.map((one) => one[name]).filter((one) => typeof one === "string");
  const shared = values.filter(({ count }) => count > 1).map(({ value }) => String(value));
  return [...new Set([...offered, ...shared])];
}

/** Returns the values with one changed; undefined takes it away. */
export function withValue(values: Values, name: string, value: Json | undefined): Values {
  const { [name]: _, ...rest } = values;
  return value === undefined ? rest : { ...rest, [name]: value };
}

/** Returns text as base64 of its UTF-8, and back; null if it is none. */
export function encoded(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)));
}

export function decoded(base64: string): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(atob(base64), (one) => one.charCodeAt(0)));
  } catch {
    return null;
  }
}
