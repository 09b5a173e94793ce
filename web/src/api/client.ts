// SPDX-License-Identifier: Apache-2.0
/** Requests to the service: headers of microversion 1.1, refusals as values, the state of the connection. */
import { signal } from "@preact/signals";
import { Refused, Unreachable, faultsOf } from "./errors.ts";
import { type Session, identityHeaders, noticeEnd, session } from "./session.ts";
import type { Link } from "./types.ts";

/** The folder that the pages come from ends with /ui/; the service's root is above it, whatever the prefix. */
const PAGES = new URL(".", import.meta.url);
const ROOT = new URL("..", PAGES);
const VERSION = "reservation 1.1";
const PATIENCE_MS = 30_000;

/** Since when no answer has come; null while all is well. */
export const lostSince = signal<Date | null>(null);
/** How far the service's clock is ahead of the browser's, in milliseconds. */
export const clockAhead = signal(0);

export interface Options {
  /** A list is sent as the same parameter several times. */
  query?: Record<string, string | number | boolean | readonly string[] | undefined> | undefined;
  body?: unknown;
  /** Sent as If-None-Match: a 304 gives `data: null`. */
  known?: string | undefined;
  /** Sent as If-Match: a stale change is refused with 412. */
  ifMatch?: string | undefined;
  /** Sent as Idempotency-Key. */
  key?: string;
  /** The answer is a text of this type instead of JSON. */
  accept?: "text/csv";
  /** How long an answer is waited for. */
  patienceMs?: number;
  signal?: AbortSignal | undefined;
  /** Who asks, if it is not who is signed in by now. */
  as?: Session;
}

export interface Answer<T> {
  status: number;
  /** Null after 204 and 304. */
  data: T;
  etag: string | null;
}

/** Returns the service's address of a path such as "v1/leases". */
export function address(path: string, query: Options["query"] = {}): URL {
  const url = new URL(path, ROOT);
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined) url.searchParams.append(name, String(one));
    }
  }
  return url;
}

/** Sends one request; raises Refused or Unreachable. */
export async function request<T>(method: string, path: string | URL, options: Options = {}): Promise<Answer<T>> {
  const url = typeof path === "string" ? address(path, options.query) : path;
  const headers: Record<string, string> = {
    Accept: options.accept ?? "application/json",
    "OpenStack-API-Version": VERSION,
  };
  Object.assign(headers, identityHeaders(method, url.pathname, options.as ?? session.value));
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  if (options.known) headers["If-None-Match"] = options.known;
  if (options.ifMatch) headers["If-Match"] = options.ifMatch;
  if (options.key) headers["Idempotency-Key"] = `"${options.key}"`;
  const limit = AbortSignal.timeout(options.patienceMs ?? PATIENCE_MS);
  const init: RequestInit = {
    method,
    headers,
    cache: "no-store", // The tags are ours: a 304 must reach us.
    credentials: "same-origin",
    redirect: "error",
    signal: options.signal ? AbortSignal.any([options.signal, limit]) : limit,
  };
  if (options.body !== undefined) init.body = JSON.stringify(options.body);
  let response: Response;
  let text: string;
  try {
    response = await fetch(url, init);
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    lostSince.value ??= new Date();
    throw new Unreachable("The service does not answer. What you typed is kept; it is tried again by itself.");
  }
  lostSince.value = null;
  noteClock(response.headers.get("Date"));
  return answered<T>(response, text);
}

function answered<T>(response: Response, text: string): Answer<T> {
  const isTable = response.headers.get("Content-Type")?.startsWith("text/csv") ?? false;
  const data = isTable ? text : parsed(text);
  if (response.ok || response.status === 304) {
    return { status: response.status, data: data as T, etag: response.headers.get("ETag") };
  }
  const wait = Number(response.headers.get("Retry-After") ?? Number.NaN);
  const signIn = response.status === 401 && session.value?.mode === "keystone";
  const faults = faultsOf(response.status, data);
  const error = new Refused(response.status, faults, Number.isNaN(wait) ? null : wait, data, signIn);
  noticeEnd(error);
  throw error;
}

function parsed(text: string): unknown {
  if (text === "") return null;
  try {
    return JSON.parse(text);
  } catch {
    return null; // A proxy's page: the status says all that can be said.
  }
}

function noteClock(date: string | null): void {
  if (date === null) return;
  const ahead = Date.parse(date) + 500 - Date.now();
  // The header has whole seconds; less than that is noise.
  if (!Number.isNaN(ahead) && Math.abs(ahead - clockAhead.value) > 1500) clockAhead.value = ahead;
}

/** Returns the present by the service's clock, in milliseconds since 1970. */
export function now(): number {
  return Date.now() + clockAhead.value;
}

/** Reads every page of a list; `key` is the name of the list in the answer. At most `most` items. */
export async function readAll<T>(path: string, key: string, query: Options["query"], most = 5000): Promise<T[]> {
  const items: T[] = [];
  let next: URL | null = address(path, query);
  while (next && items.length < most) {
    const answer: Answer<Record<string, unknown>> = await request("GET", next);
    items.push(...((answer.data[key] ?? []) as T[]));
    next = nextPage(answer.data.links as Link[] | undefined, next);
  }
  return items;
}

/** Returns the address of the next page; only its query is taken, so that a proxy's name does not matter. */
export function nextPage(links: Link[] | undefined, here: URL): URL | null {
  const href = links?.find((link) => link.rel === "next")?.href;
  if (!href) return null;
  const url = new URL(here);
  url.search = new URL(href, here).search;
  return url;
}

/**
 * Sends a POST that must not be done twice: one key for all attempts of one intention.
 * It is sent again after lost answers, 429, 5xx, contention and while the first is still in progress.
 */
export async function postOnce<T>(
  path: string,
  body: unknown,
  key: string,
  { attempts = 5, patienceMs = PATIENCE_MS }: { attempts?: number; patienceMs?: number } = {},
): Promise<Answer<T>> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await request<T>("POST", path, { body, key, patienceMs });
    } catch (error) {
      if (attempt === attempts || !worthAnother(error)) throw error;
      const wait = error instanceof Refused && error.retryAfter !== null ? error.retryAfter : Math.min(attempt, 4);
      await new Promise((resolve) => setTimeout(resolve, wait * 1000));
    }
  }
}

function worthAnother(error: unknown): boolean {
  if (error instanceof Unreachable) return true;
  if (!(error instanceof Refused)) return false;
  return error.status === 429 || error.status >= 500 || error.has("contention") || error.has("request_in_progress");
}

/** Returns a new key for one intention of the user. */
export function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
