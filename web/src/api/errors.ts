// SPDX-License-Identifier: Apache-2.0
/** What a request can end with instead of an answer, and which sentence belongs beside which field. */
import { zone } from "../time/zone.ts";
import { inPageWords, withLabel } from "../words/refusal.ts";
import type { Fault } from "./types.ts";

/** The service answered, and refused. */
export class Refused extends Error {
  override readonly name = "Refused";
  constructor(
    readonly status: number,
    readonly faults: readonly Fault[],
    /** Seconds after which to try again, if the service said so. */
    readonly retryAfter: number | null = null,
    /** The whole body: refusals of /ui/session carry more than their faults. */
    readonly body: unknown = null,
    /** The page asks to sign in again, over whatever was refused. */
    readonly signIn = false,
  ) {
    super(faults.map((fault) => fault.detail).join(" ") || `The service answered ${status}.`);
  }

  /** Tells whether one of the faults has this code, written without its prefix ("reservation." by default). */
  has(code: string, prefix = "reservation"): boolean {
    return this.faults.some((fault) => fault.code === `${prefix}.${code}`);
  }

  /** Returns the data of the first fault that carries some under this code. */
  data(code: string): Fault["data"] {
    return this.faults.find((fault) => fault.code === `reservation.${code}`)?.data;
  }
}

/** No answer came: no network, the service is restarting, or a proxy gave up. */
export class Unreachable extends Error {
  override readonly name = "Unreachable";
}

/** Returns the faults of an answer's body, whichever shape it has. */
export function faultsOf(status: number, body: unknown): Fault[] {
  const errors = (body as { errors?: unknown } | null)?.errors;
  if (Array.isArray(errors) && errors.length > 0) return errors as Fault[];
  const old = body as { error_message?: unknown; error?: { message?: unknown } | string } | null;
  const nested = typeof old?.error === "object" ? old.error.message : old?.error;
  const detail = [old?.error_message, nested].find((text) => typeof text === "string");
  const fallback =
    status === 401
      ? "The service does not know you any more, so nothing was done. Say again who you are; what you typed is still here."
      : status >= 500
        ? `The service cannot answer now (${status}). Nothing that you typed is lost; try again in a moment.`
        : `The service refused (${status}).`;
  return [{ status, code: "", title: "", detail: (detail as string | undefined) ?? fallback }];
}

/** Tells whether what was to be changed is over, or is no more: no other try will do. */
export function isGone(error: unknown): boolean {
  return error instanceof Refused && (error.status === 404 || error.has("lease_ended"));
}

/** Sentences by the field that they belong to. */
export interface Sentences {
  /** By JSON pointer of the field, as in "/reservations/0/min". */
  fields: ReadonlyMap<string, string>;
  /** What belongs to no field. */
  others: readonly string[];
}

/**
 * Splits the faults of an error between the fields of a form.
 * A pointer that no field has goes to the longest known pointer above it, else to the others. `labels` are those of
 * fields, by their pointers, where the key in words is another one.
 */
export function sentencesOf(
  error: unknown,
  pointers: readonly string[],
  labels: ReadonlyMap<string, string> = new Map(),
): Sentences {
  const fields = new Map<string, string>();
  const others: string[] = [];
  if (!(error instanceof Refused)) return { fields, others: error ? [plain(error)] : [] };
  // Whose session has ended is asked to sign in again; after that nothing of it is left to say.
  if (error.status === 401 && error.signIn) return { fields, others };
  for (const fault of error.faults) {
    const pointer = nearest(fault.pointer, pointers);
    const { pointer: place = "" } = fault;
    const detail = inPageWords(withLabel(fault.detail, place, labels.get(place)), zone.value, Date.now());
    if (pointer === undefined) others.push(detail);
    else fields.set(pointer, [fields.get(pointer), detail].filter(Boolean).join(" "));
  }
  return { fields, others };
}

/** Returns what still holds of sentences about what was sent: of a field until it is changed, of the whole until any is. */
export function stillTrue(
  { fields, others }: Sentences,
  sent: Readonly<Record<string, unknown>>,
  now: Readonly<Record<string, unknown>>,
): Sentences {
  const isSame = (name: string) => sent[name] === now[name];
  return {
    fields: new Map([...fields].filter(([pointer]) => isSame(pointer.slice(1)))),
    others: Object.keys({ ...sent, ...now }).every(isSame) ? others : [],
  };
}

function nearest(pointer: string | undefined, known: readonly string[]): string | undefined {
  for (let at = pointer; at; at = at.slice(0, at.lastIndexOf("/"))) if (known.includes(at)) return at;
  return undefined;
}

/** Returns one sentence for any error. */
export function plain(error: unknown): string {
  if (error instanceof Error) return inPageWords(error.message, zone.value, Date.now());
  return String(error);
}
