// SPDX-License-Identifier: Apache-2.0
/** Reads the journal: the newest entries again and again, earlier ones when they are asked for. */
import { useEffect, useRef, useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { useLive } from "../../api/live.ts";
import type { JournalEntry, Link } from "../../api/types.ts";
import { type Read, withEarlier, withNewest } from "../../words/history.ts";

/** Entries that are shown at most: more do not help, a shorter period does. */
export const MOST = 1000;

interface Answer {
  history: JournalEntry[];
  links: Link[];
}

const NOTHING: Read = { entries: [], next: false };

const readOf = ({ history, links }: Answer): Read => ({
  entries: history,
  next: links.some((link) => link.rel === "next"),
});

export interface Journal {
  /** Null: nothing is read yet. */
  entries: readonly JournalEntry[] | null;
  more: boolean;
  busy: boolean;
  error: unknown;
  readEarlier: () => void;
  retry: () => void;
}

/** Watches the entries that a question is about; it begins again with another question. */
export function useJournal(query: Record<string, string | undefined>, page: number, everySeconds = 10): Journal {
  const asked = JSON.stringify(query);
  const watch = useLive<Answer>("v1/history", { ...query, sort_dir: "desc", limit: page }, everySeconds)!;
  const { data, error } = watch.state.value;
  const known = useRef<{ asked: string; read: Read }>({ asked, read: NOTHING });
  const [state, setState] = useState<{ busy: boolean; error: unknown }>({ busy: false, error: null });
  const [, draw] = useState(0);
  if (known.current.asked !== asked) known.current = { asked, read: NOTHING };
  if (data) known.current.read = withNewest(known.current.read, readOf(data));
  useEffect(() => setState({ busy: false, error: null }), [asked]);
  const { read } = known.current;
  const readEarlier = async () => {
    const last = read.entries.at(-1);
    if (!last || state.busy) return;
    setState({ busy: true, error: null });
    try {
      const limit = Math.min(Math.max(page, read.entries.length), MOST - read.entries.length);
      const options = { query: { ...query, sort_dir: "desc", limit, marker: last.id } };
      const answer = await request<Answer>("GET", "v1/history", options);
      if (known.current.asked === asked) known.current.read = withEarlier(known.current.read, readOf(answer.data));
      setState({ busy: false, error: null });
      draw((count) => count + 1);
    } catch (refused) {
      setState({ busy: false, error: refused });
    }
  };
  return {
    entries: data || read.entries.length > 0 ? read.entries.slice(0, MOST) : null,
    more: read.next,
    busy: state.busy,
    error: error ?? state.error,
    readEarlier: () => void readEarlier(),
    retry: () => void watch.read(),
  };
}
