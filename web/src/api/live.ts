// SPDX-License-Identifier: Apache-2.0
/** Answers that keep themselves fresh: read again every few seconds with their tag, at once when the page is looked at. */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { type Answer, type Options, address, nextPage, request } from "./client.ts";
import { session } from "./session.ts";
import type { Link } from "./types.ts";

export interface Live<T> {
  /** The last answer; it stays while a newer one is read or refused. */
  data: T | null;
  etag: string | null;
  error: unknown;
  loading: boolean;
}

const EMPTY = { data: null, etag: null, error: null, loading: true };

/** Reads what is watched; what has the tag that is known is a 304. */
export type Ask<T> = (known: string | undefined, signal: AbortSignal) => Promise<Answer<T>>;

/** One question that is repeated. */
export class Watch<T> {
  readonly #state: Signal<Live<T>> = signal<Live<T>>(EMPTY);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stop = new AbortController();

  constructor(
    readonly ask: Ask<T>,
    readonly everySeconds: number,
  ) {}

  get state(): ReadonlySignal<Live<T>> {
    return this.#state;
  }

  /** Reads now and from then on. */
  start(): void {
    this.#stop = new AbortController();
    document.addEventListener("visibilitychange", this.#looked);
    void this.read();
  }

  stop(): void {
    this.#stop.abort();
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#looked);
  }

  /** Reads at once, as after a change of one's own. */
  async read(): Promise<void> {
    clearTimeout(this.#timer);
    const stop = this.#stop.signal;
    const { etag } = this.#state.value;
    try {
      const answer = await this.ask(etag ?? undefined, stop);
      const data = answer.status === 304 ? this.#state.value.data : answer.data;
      this.#set({ data, etag: answer.etag ?? etag, error: null, loading: false });
    } catch (error) {
      if (stop.aborted) return;
      this.#set({ ...this.#state.value, error, loading: false });
    }
    if (!stop.aborted && !document.hidden) this.#timer = setTimeout(() => void this.read(), this.everySeconds * 1000);
  }

  /** Puts an answer of one's own in the place of what was read, so that the page shows it at once. */
  put(data: T, etag: string | null): void {
    this.#set({ data, etag, error: null, loading: false });
  }

  #set(state: Live<T>): void {
    const old = this.#state.value;
    const same = old.data === state.data && old.error === state.error && old.loading === state.loading;
    if (!same || old.etag !== state.etag) this.#state.value = state;
  }

  #looked = (): void => {
    if (!document.hidden) void this.read();
  };
}

/**
 * Returns a Watch that lives as long as the component and the question stay the same. Null: nothing is asked.
 * Who has signed in again need not wait for the next turn.
 */
export function useLive<T>(path: string | null, query: Options["query"] = {}, everySeconds = 15): Watch<T> | null {
  const asked = path === null ? null : `${path}?${JSON.stringify(query)}`;
  const ask: Ask<T> | null =
    path === null ? null : (known, signal) => request<T>("GET", path, { query, known, signal });
  return useWatch(asked, ask, everySeconds);
}

/** Returns a Watch of what several requests answer together; `asked` is the whole question. */
export function useWatch<T>(asked: string | null, ask: Ask<T> | null, everySeconds: number): Watch<T> | null {
  const watch = useMemo(() => (ask === null ? null : new Watch<T>(ask, everySeconds)), [asked, everySeconds]);
  useEffect(() => {
    watch?.start();
    return () => watch?.stop();
  }, [watch, session.value]);
  return watch;
}

/** The beginning of a list, however many pages of the service it takes. */
export interface Listed<T> {
  items: readonly T[];
  /** How many there are in all. */
  count: number;
}

/** The service cuts longer pages. */
const PAGE = 1000;

type Body = Record<string, unknown> & { links: Link[] };
type Part = Answer<Body>;

/** What of the answer to a page is the list. */
type Of<T> = (body: Body) => { items: readonly T[]; count?: number | undefined };

/**
 * Watches the first `wanted` items of a list with their number in all, Infinity for the whole of it; `key` is the name
 * of the list in the answer, or finds it there.
 */
export function useLiveList<T>(
  path: string,
  key: string | Of<T>,
  query: Options["query"],
  wanted: number,
  everySeconds = 15,
): Watch<Listed<T>> {
  const asked = `${path}?${JSON.stringify(query)} ${wanted}`;
  const of: Of<T> =
    typeof key === "string"
      ? (body) => ({ items: (body[key] ?? []) as T[], count: body.count as number | undefined })
      : key;
  return useWatch<Listed<T>>(asked, pagesOf<T>(path, of, query, wanted), everySeconds)!;
}

function pagesOf<T>(path: string, of: Of<T>, query: Options["query"], wanted: number): Ask<Listed<T>> {
  let kept = new Map<string, Part>();
  let last: Answer<Listed<T>> | null = null;
  return async (_known, signal) => {
    const items: T[] = [];
    const now = new Map<string, Part>();
    let count: number | undefined;
    let changed = last === null;
    let next: URL | null = address(path, { ...query, with_count: true });
    while (next && items.length < wanted) {
      next.searchParams.set("limit", String(Math.min(PAGE, wanted - items.length)));
      const before = kept.get(next.href);
      const read: Part = await request("GET", next, { known: before?.etag ?? undefined, signal });
      const part: Part = read.status === 304 && before ? before : read;
      changed ||= part !== before;
      now.set(next.href, part);
      const list = of(part.data);
      items.push(...list.items);
      count ??= list.count;
      next = nextPage(part.data.links, next);
      next?.searchParams.delete("with_count");
    }
    kept = now;
    if (changed || !last) last = { status: 200, data: { items, count: count ?? items.length }, etag: null };
    return last;
  };
}
