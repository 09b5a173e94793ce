// SPDX-License-Identifier: Apache-2.0
/** Answers that keep themselves fresh: read again every few seconds with their tag, at once when the page is looked at. */
import { type ReadonlySignal, type Signal, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { type Options, request } from "./client.ts";
import { session } from "./session.ts";

export interface Live<T> {
  /** The last answer; it stays while a newer one is read or refused. */
  data: T | null;
  etag: string | null;
  error: unknown;
  loading: boolean;
}

const EMPTY = { data: null, etag: null, error: null, loading: true };

/** One GET that is repeated. */
export class Watch<T> {
  readonly #state: Signal<Live<T>> = signal<Live<T>>(EMPTY);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #stop = new AbortController();

  constructor(
    readonly path: string,
    readonly query: Options["query"],
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
      const answer = await request<T>("GET", this.path, { query: this.query, known: etag ?? undefined, signal: stop });
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
  const watch = useMemo(() => (path === null ? null : new Watch<T>(path, query, everySeconds)), [asked, everySeconds]);
  useEffect(() => {
    watch?.start();
    return () => watch?.stop();
  }, [watch, session.value]);
  return watch;
}
