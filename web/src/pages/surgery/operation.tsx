// SPDX-License-Identifier: Apache-2.0
/** A dialog of one operation on a lease: what comes of it is shown before it is done. */
import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { type Asked, useAsked } from "../../api/ask.ts";
import { newKey, request } from "../../api/client.ts";
import { Refused, isGone, sentencesOf } from "../../api/errors.ts";
import { useNewFields } from "../../parts/settled.tsx";
import { note } from "../../parts/announce.tsx";
import { BusyButton } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FormErrors } from "../../parts/field.tsx";

export interface OperationProps<T> {
  /** The tag of what the reader has seen. */
  etag: string | null | undefined;
  onDone: (answer: T) => void;
  /** Reads again what the tag is of. */
  onStale?: () => void;
  onClose: () => void;
  title: string;
  verb: string;
  doing: string;
  /** Said when it is done. */
  said: string;
  path: string;
  /** A change has no key: its tag keeps it from being made twice. */
  method?: "POST" | "PUT";
  /** Null: not all of it is known yet. */
  body: object | null;
  pointers: readonly string[];
  /** Draws the form; the sentences of refusals are by their fields. */
  children: (fields: ReadonlyMap<string, string>) => ComponentChildren;
  /** Says what comes of it. */
  outcome: (answer: T) => ComponentChildren;
}

/** The dry run of what is asked for, then the operation itself, once. */
export function Operation<T>(props: OperationProps<T>) {
  const { etag, onDone, onClose, title, verb, doing, said, path, body, pointers, children, outcome } = props;
  const method = props.method ?? "POST";
  const form = useNewFields();
  // While a field shows what is no value, nothing of it is known: neither what comes of it nor what is refused.
  const known = form.unsettled === 0 ? body : null;
  const asked: Asked<T> = useAsked<T>(`${path}?dry_run=true`, known, 60, method);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const key = useRef({ key: newKey(), of: "" });
  const { fields, others } = sentencesOf(error ?? asked.error, pointers);
  const gone = isGone(error ?? asked.error);
  const submit = async () => {
    if (busy || known === null || !asked.data || asked.loading) return;
    setBusy(true);
    setError(null);
    // One key for one intention, also if an answer is lost.
    const text = JSON.stringify(body);
    if (key.current.of !== text) key.current = { key: newKey(), of: text };
    try {
      const options = { body, ifMatch: etag ?? undefined };
      const once = method === "POST" ? { key: key.current.key } : {};
      const { data } = await request<T>(method, path, { ...options, ...once });
      note(said);
      onDone(data);
    } catch (refused) {
      if (refused instanceof Refused) key.current = { key: newKey(), of: "" };
      const stale = refused instanceof Refused && refused.status === 412;
      setError(
        stale ? new Error("The lease has changed meanwhile; look at what comes of it, and send it again.") : refused,
      );
      if (stale) {
        props.onStale?.();
        asked.again();
      }
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={title}
      fields={form}
      onClose={onClose}
      onSubmit={() => void submit()}
      onEdit={() => setError(null)}
      actions={
        <>
          <button type="button" onClick={onClose}>
            {gone ? "Close" : "Cancel"}
          </button>
          {!gone && (
            <BusyButton type="submit" class="primary" busy={busy} doing={doing} disabled={!asked.data || asked.loading}>
              {verb}
            </BusyButton>
          )}
        </>
      }
    >
      {children(fields)}
      {body !== null && (
        <div class="preview-area" role="status" aria-busy={asked.loading}>
          {asked.data && !asked.loading ? outcome(asked.data) : asked.loading ? "Looking what comes of it…" : ""}
        </div>
      )}
      <FormErrors sentences={others} />
    </Dialog>
  );
}
