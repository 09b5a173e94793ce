// SPDX-License-Identifier: Apache-2.0
/** What "Find a time" asks: between the address bar, the form and the API. Pure; an address that makes no sense gives the defaults. */
import type { Json, Requirement, ResourceType, Wish } from "../api/types.ts";
import { type Values, missingField } from "../forms/schema.ts";
import type { Schema } from "../api/kinds.ts";
import { besideIn } from "./beside.ts";
import { IN_SENTENCES, nounOf } from "./lease.ts";
import { inIso, lengthOf } from "./length.ts";
import { counted, instant, list, object, whole } from "./reading.ts";

export { type Length, type Unit, isoOf, lengthInWords, lengthOf } from "./length.ts";

export type Sign = "==" | "!=" | ">=" | "<=" | ">" | "<";
const SIGNS: readonly string[] = ["==", "!=", ">=", "<=", ">", "<"];

/** One part of a requirement that the chooser can show: a property, a sign and a value. */
export interface Condition {
  name: string;
  sign: Sign;
  value: string | number;
}

/** One reservation as the form has it. */
export interface Want {
  type: ResourceType;
  /** The least that is needed; for all types but whole hosts also the most. */
  count: number;
  /** Whole hosts only: take as many as are free up to this. */
  most: number | null;
  conditions: readonly Condition[];
  /** Parts that the chooser cannot show, such as ["or", …]; they are kept. */
  others: readonly Requirement[];
  vcpus: number;
  memory_mb: number;
  disk_gb: number;
  flavor: string;
  network: string;
  /** Servers together (true), apart (false), wherever there is room (null). */
  affinity: boolean | null;
  /** "" for any. */
  region: string;
  /** Parameters as their schema describes them: all of a type without a sentence of its own, else those beside it. */
  values: Values;
}

export interface Question {
  wants: readonly Want[];
  /** ISO duration. */
  length: string;
  /** Not before this instant; null: as soon as possible. */
  from: number | null;
  /** How long to search: an ISO duration from the beginning. */
  within: string;
  /** The last instant of an end; null: as `within` says. */
  to: number | null;
  /** Exactly this window; null: any. */
  exactly: { start: number; end: number } | null;
}

export const DEFAULT_LENGTH = "P1D";
export const DEFAULT_WITHIN = "P30D";

/** Returns a reservation of one resource of a type, with no requirement. */
export function newWant(type: ResourceType): Want {
  return {
    type,
    count: 1,
    most: null,
    conditions: [],
    others: [],
    vcpus: 2,
    memory_mb: 4096,
    disk_gb: 20,
    flavor: "",
    network: "",
    affinity: null,
    region: "",
    values: {},
  };
}

/** Tells whether the form of a type is made of its schema. */
export function bySchema(type: ResourceType): boolean {
  return !IN_SENTENCES.includes(type);
}

/** Returns the reservation as the API takes it. */
export function wishOf(want: Want): Wish {
  const wish = parametersOf(want);
  return want.region ? { ...wish, region: want.region } : wish;
}

function parametersOf(want: Want): Wish {
  switch (want.type) {
    case "physical:host":
      return {
        resource_type: want.type,
        min: want.count,
        max: Math.max(want.most ?? want.count, want.count),
        ...besideIn(want.type, want.values),
        resource_properties: requirementOf(want),
      };
    case "virtual:instance":
      return {
        resource_type: want.type,
        amount: want.count,
        vcpus: want.vcpus,
        memory_mb: want.memory_mb,
        disk_gb: want.disk_gb,
        ...besideIn(want.type, want.values),
        affinity: want.affinity,
        resource_properties: requirementOf(want),
      };
    case "flavor:instance":
      return { resource_type: want.type, amount: want.count, flavor_id: want.flavor, affinity: want.affinity };
    case "virtual:floatingip":
      return { resource_type: want.type, amount: want.count, network_id: want.network };
    default:
      return { ...want.values, resource_type: want.type };
  }
}

/** Returns the form of a reservation of the API. */
export function wantOf(wish: Wish): Want {
  const least = counted(wish.min ?? wish.amount) ?? 1;
  const most = counted(wish.max);
  const parts = [wish.hypervisor_properties, wish.resource_properties].flatMap(partsOf);
  const conditions = parts.map(conditionOf);
  const region = typeof wish.region === "string" ? wish.region : "";
  const blank = { ...newWant(wish.resource_type), region };
  if (bySchema(wish.resource_type)) {
    const given = Object.entries(wish).filter(
      ([name, value]) => name !== "resource_type" && name !== "region" && value !== undefined,
    );
    return { ...blank, count: least, values: Object.fromEntries(given) as Values };
  }
  return {
    ...blank,
    count: least,
    most: most !== null && most > least ? most : null,
    conditions: conditions.filter((one): one is Condition => one !== null),
    others: parts.filter((_, index) => conditions[index] === null),
    vcpus: counted(wish.vcpus) ?? blank.vcpus,
    memory_mb: counted(wish.memory_mb) ?? blank.memory_mb,
    disk_gb: whole(wish.disk_gb, 0) ?? blank.disk_gb,
    flavor: wish.flavor_id ?? "",
    network: wish.network_id ?? "",
    affinity: wish.affinity ?? null,
    values: besideIn(wish.resource_type, wish),
  };
}

/** Returns the requirement of a form, [] if it has none. */
export function requirementOf(want: Pick<Want, "conditions" | "others">): Requirement {
  const parts: Requirement[] = [
    ...want.conditions.map((one): Requirement => [one.sign, `$${one.name}`, one.value]),
    ...want.others.map((one) => [...one]),
  ];
  return parts.length > 1 ? ["and", ...parts] : (parts[0] ?? []);
}

/** Returns what a reservation requires of resources, whatever its form; [] for nothing. */
export function wishedOf(want: Want): Requirement {
  if (!bySchema(want.type)) return requirementOf(want);
  const own = want.values.resource_properties;
  return Array.isArray(own) ? own : [];
}

/** Returns a requirement as a form has it. */
export function partsFrom(requirement: Requirement | undefined): Pick<Want, "conditions" | "others"> {
  const parts = partsOf(requirement);
  const conditions = parts.map(conditionOf);
  return {
    conditions: conditions.filter((one): one is Condition => one !== null),
    others: parts.filter((_, index) => conditions[index] === null),
  };
}

/** Returns the parts of an outermost "and". */
function partsOf(requirement: Requirement | undefined): Requirement[] {
  if (!Array.isArray(requirement) || requirement.length === 0) return [];
  if (requirement[0] !== "and") return [requirement];
  return requirement.slice(1).flatMap((one) => partsOf(Array.isArray(one) ? one : undefined));
}

function conditionOf(part: Requirement): Condition | null {
  const [sign, name, value] = part;
  if (part.length !== 3 || typeof sign !== "string" || !SIGNS.includes(sign) || typeof name !== "string") return null;
  if (!name.startsWith("$") || (typeof value !== "string" && typeof value !== "number")) return null;
  return { sign: sign as Sign, name: name.slice(1), value };
}

/** Returns the question that an address asks. `now` bounds nothing: windows that have begun are refused by the service. */
export function questionOf(params: URLSearchParams): Question {
  const first = wishOfParams(params);
  const start = instant(params.get("start"));
  const end = instant(params.get("end"));
  return {
    wants: [first, ...furtherWishes(params.get("also"))].map(wantOf),
    length: lengthOf(params.get("for") ?? "") ? params.get("for")! : DEFAULT_LENGTH,
    from: instant(params.get("from")),
    within: lengthOf(params.get("within") ?? "") ? params.get("within")! : DEFAULT_WITHIN,
    to: instant(params.get("to")),
    exactly: start !== null && end !== null && end > start ? { start, end } : null,
  };
}

function wishOfParams(params: URLSearchParams): Wish {
  const number = (name: string) => whole(params.get(name), 0) ?? undefined;
  const type = params.get("type") || "physical:host";
  const region = params.get("region") ?? undefined;
  if (bySchema(type)) return { ...object(params.get("with")), resource_type: type, ...(region ? { region } : {}) };
  const wish: Record<string, unknown> = {
    ...besideIn(type, object(params.get("with"))),
    resource_type: type,
    region,
    min: number("min"),
    max: number("max"),
    amount: number("amount"),
    vcpus: number("vcpus"),
    memory_mb: number("memory_mb"),
    disk_gb: number("disk_gb"),
    flavor_id: params.get("flavor") ?? undefined,
    network_id: params.get("network") ?? undefined,
    affinity: params.has("affinity") ? params.get("affinity") === "true" : null,
    resource_properties: list(params.get("req")),
  };
  return Object.fromEntries(Object.entries(wish).filter(([, value]) => value !== undefined)) as unknown as Wish;
}

function furtherWishes(text: string | null): Wish[] {
  return list(text).filter(
    (one): one is Json & Wish =>
      typeof one === "object" && one !== null && typeof (one as { resource_type?: unknown }).resource_type === "string",
  );
}

/** What the address of a type with a schema does not have. */
const NOTHING = Object.fromEntries(
  ["min", "max", "amount", "vcpus", "memory_mb", "disk_gb", "flavor", "network", "affinity", "req"].map((name) => [
    name,
    null,
  ]),
);

/** Returns the parameters of the address that asks a question; null takes one away. */
export function paramsOf(question: Question): Record<string, string | number | null> {
  const [first, ...further] = question.wants;
  const wish = wishOf(first!);
  const exactly = question.exactly;
  const own = bySchema(first!.type);
  const values = own ? first!.values : besideIn(first!.type, first!.values);
  const times = {
    for: exactly || question.length === DEFAULT_LENGTH ? null : question.length,
    from: exactly || question.from === null ? null : wire(question.from),
    within: exactly || question.within === DEFAULT_WITHIN ? null : question.within,
    to: exactly || question.to === null ? null : wire(question.to),
    start: exactly ? wire(exactly.start) : null,
    end: exactly ? wire(exactly.end) : null,
    also: further.length > 0 ? JSON.stringify(further.map(wishOf)) : null,
    with: Object.keys(values).length > 0 ? JSON.stringify(values) : null,
    type: first!.type === "physical:host" ? null : first!.type,
    region: first!.region || null,
  };
  if (own) return { ...NOTHING, ...times };
  const requirement = wish.resource_properties ?? [];
  return {
    ...times,
    min: wish.min ?? null,
    max: wish.max !== undefined && wish.max !== wish.min ? wish.max : null,
    amount: wish.amount ?? null,
    vcpus: wish.vcpus ?? null,
    memory_mb: wish.memory_mb ?? null,
    disk_gb: wish.disk_gb ?? null,
    flavor: wish.flavor_id ?? null,
    network: wish.network_id ?? null,
    affinity: wish.affinity === true || wish.affinity === false ? String(wish.affinity) : null,
    req: requirement.length > 0 ? JSON.stringify(requirement) : null,
  };
}

/** Finds the schema of the parameters of a type; undefined while it is not known. */
export type SchemaOf = (type: ResourceType) => Schema | undefined;

/** Returns the body of POST /v1/availability for a question; null if something needed is not filled in. */
export function bodyOf(
  question: Question,
  zone: string,
  limit = 8,
  schemaOf: SchemaOf = () => undefined,
): Record<string, unknown> | null {
  if (question.wants.some((want) => missingOf(want, schemaOf) !== null)) return null;
  const body = { reservations: question.wants.map(wishOf), limit, time_zone: zone };
  if (question.exactly) {
    return { ...body, start_date: wire(question.exactly.start), end_date: wire(question.exactly.end) };
  }
  return {
    ...body,
    duration: question.length,
    earliest: question.from === null ? "now" : wire(question.from),
    // A duration counts from the earliest start.
    latest: question.to === null ? `+${longer(question.within, question.length)}` : wire(question.to),
  };
}

/** Returns the longer of two durations: a search must be able to hold what it searches. */
function longer(within: string, length: string): string {
  return (lengthOf(within)?.seconds ?? 0) > (lengthOf(length)?.seconds ?? 0) ? within : length;
}

/** Returns what has to be filled in before anything can be asked, in a word or two; null if nothing. */
export function missingOf(want: Want, schemaOf: SchemaOf = () => undefined): string | null {
  if (want.type === "flavor:instance" && want.flavor.trim() === "") return "flavor";
  if (want.type === "virtual:floatingip" && want.network.trim() === "") return "network";
  const schema = bySchema(want.type) ? schemaOf(want.type) : undefined;
  return schema ? (missingField(schema, want.values)?.label ?? null) : null;
}

/** An alternative of the service, put over the question. */
export function applied(
  question: Question,
  alternative: {
    change: string;
    start_date: string;
    end_date: string;
    reservations?: readonly { min?: number; max?: number; amount?: number }[];
    drop?: string;
  },
): Question {
  const start = Date.parse(alternative.start_date);
  const end = Date.parse(alternative.end_date);
  const exactly = question.exactly ? { start, end } : null;
  switch (alternative.change) {
    case "time":
      return exactly ? { ...question, exactly } : { ...question, from: start, to: null };
    case "count":
      return {
        ...question,
        wants: question.wants.map((want, index) => {
          const least = alternative.reservations?.[index]?.min ?? alternative.reservations?.[index]?.amount;
          return least ? counting(want, least) : want;
        }),
      };
    case "duration":
      return exactly
        ? { ...question, exactly }
        : { ...question, length: inIso((end - start) / 1000), from: question.from };
    case "requirement":
      return { ...question, wants: without(question.wants, alternative.drop ?? "") };
    default:
      return question;
  }
}

function counting(want: Want, count: number): Want {
  const counted = Object.keys(want.values)
    .filter((name) => name === "min" || name === "max" || name === "amount")
    .map((name) => [name, count]);
  return { ...want, count, most: null, values: { ...want.values, ...Object.fromEntries(counted) } };
}

/** Returns the reservations without the part of a requirement that a JSON pointer names. */
function without(wants: readonly Want[], pointer: string): Want[] {
  const [, , which, , part] = pointer.split("/");
  return wants.map((want, index) => {
    if (index !== Number(which)) return want;
    const parts = partsOf(wishedOf(want));
    // The first element of ["and", a, b] is the operator.
    const kept = part === undefined ? [] : parts.filter((_, at) => at !== Number(part) - 1);
    const left: Requirement = kept.length > 1 ? ["and", ...kept] : (kept[0] ?? []);
    if (bySchema(want.type)) return { ...want, values: { ...want.values, resource_properties: left } };
    return { ...want, ...partsFrom(left) };
  });
}

/** Returns the part of the requirements that a JSON pointer names, as the question has it; [] if there is none. */
export function partAt(question: Question, pointer: string): Requirement {
  const [, , which, , part] = pointer.split("/");
  const want = question.wants[Number(which)];
  if (!want) return [];
  const requirement = wishedOf(want);
  if (part === undefined || requirement[0] !== "and") return requirement;
  return partsOf(requirement)[Number(part) - 1] ?? [];
}

/** Returns "2 hosts" or "3 servers" for a number of a type. */
export function countOf(count: number, type: ResourceType): string {
  return `${count} ${nounOf(type, count)}`;
}

function wire(at: number): string {
  return `${new Date(at).toISOString().slice(0, 19)}Z`;
}
