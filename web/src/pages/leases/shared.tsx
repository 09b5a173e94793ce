// SPDX-License-Identifier: Apache-2.0
/** What the dialogs of a lease have in common: the lease as it was seen, and what happens if it has changed meanwhile. */
import { useState } from "preact/hooks";
import { Changed } from "../../api/change.ts";
import { isGone } from "../../api/errors.ts";
import type { Lease } from "../../api/types.ts";
import { moment } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";

export interface LeaseDialogProps {
  /** The lease as the page shows it. */
  lease: Lease;
  /** Its tag, if it is known; else the lease is read before it is changed. */
  etag?: string | null | undefined;
  onDone: (lease: Lease) => void;
  onClose: () => void;
}

export interface Attempt {
  seen: Lease;
  etag: string | null;
  busy: boolean;
  error: unknown;
  /** The lease is over or is no more: there is nothing to send. */
  gone: boolean;
  /** What was typed meanwhile is no longer what was refused. */
  edited: () => void;
  /** Runs a change of the lease as it was last seen. */
  run: (act: (seen: Lease, etag: string | null) => Promise<void>) => Promise<void>;
}

/** Keeps the lease as the user has seen it: after a Changed the newer one counts as seen, since the dialog shows it. */
export function useAttempt(lease: Lease, etag: string | null | undefined): Attempt {
  const [seen, setSeen] = useState({ lease, etag: etag ?? null });
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const run: Attempt["run"] = async (act) => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      await act(seen.lease, seen.etag);
    } catch (problem) {
      if (problem instanceof Changed) setSeen({ lease: problem.lease, etag: problem.etag });
      setError(problem);
      setBusy(false);
    }
  };
  // That somebody else has changed it stays said.
  const edited = () => setError((old: unknown) => (old instanceof Changed || isGone(old) ? old : null));
  return { seen: seen.lease, etag: seen.etag, busy, error, gone: isGone(error), edited, run };
}

const WORDS: Record<string, string> = {
  name: "name",
  start_date: "start",
  end_date: "end",
  before_end_date: "time of the reminder",
  extend_if_free: "time up to which it goes on by itself",
  reminders: "list of reminders",
  keep_hosts: "lock on its hosts",
  min: "number",
  max: "number",
  amount: "number",
  before_end: "action at the end",
};

/** Says what somebody else has changed. */
export function ChangedNote({ error }: { error: unknown }) {
  if (!(error instanceof Changed)) return null;
  const { lease, keys } = error;
  const value = (key: string) => {
    const found = lease[key as keyof Lease];
    if (typeof found !== "string") return "";
    const text = key.endsWith("_date") ? moment(Date.parse(found), zone.value, present.value) : `“${found}”`;
    return ` is now ${text}`;
  };
  const said = [
    ...new Set(keys.map((key) => `The ${WORDS[key] ?? key.replaceAll("_", " ")}${value(key) || " has changed"}.`)),
  ];
  return (
    <div class="banner warning" role="alert">
      <p>
        {error.message} {said.join(" ")}
      </p>
    </div>
  );
}
