// SPDX-License-Identifier: Apache-2.0
/** A new web hook: its URL, its events, and its secret, which is shown once. */
import { useState } from "preact/hooks";
import { postOnce, newKey } from "../../api/client.ts";
import { sentencesOf } from "../../api/errors.ts";
import type { Subscription } from "../../api/subscriptions.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Copy } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";

/** Names of events that a text has, parted by commas, blanks or lines. */
function eventsIn(text: string): string[] {
  return text.split(/[\s,]+/).filter((name) => name !== "");
}

/** Asks for a web hook, makes it, and shows its secret. */
export function NewHookDialog({ onMade, onClose }: { onMade: () => void; onClose: () => void }) {
  const [url, setUrl] = useState("");
  const [events, setEvents] = useState("lease.*");
  const [batch, setBatch] = useState(false);
  const [key] = useState(newKey);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const [made, setMade] = useState<Subscription | null>(null);
  const { fields, others } = sentencesOf(error, ["/url", "/events"]);
  const submit = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const body = { url: url.trim(), events: eventsIn(events), batch };
      const { data } = await postOnce<{ subscription: Subscription }>("v1/subscriptions", body, key);
      note("The web hook is made");
      setMade(data.subscription);
      onMade();
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  if (made?.secret) {
    const done = (
      <button type="button" class="primary" onClick={onClose}>
        I have it
      </button>
    );
    return (
      <Dialog title="The secret of the web hook" closable={false} onClose={onClose} actions={done}>
        <div class="stack made" role="status">
          <p>
            The receiver checks with it that messages are from here.{" "}
            <strong>Copy it now: it is not shown again.</strong>
          </p>
          <Copy text={made.secret} label="the secret" />
          <p class="hint">A test was sent. Nothing else is sent until the receiver has accepted one.</p>
        </div>
      </Dialog>
    );
  }
  return (
    <Dialog
      title="New web hook"
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <BusyButton type="submit" class="primary" busy={busy} doing="Making…" disabled={url.trim() === ""}>
            Make it
          </BusyButton>
        </>
      }
    >
      <Field label="URL" error={fields.get("/url")} hint="Messages are posted there, by https.">
        {(control) => (
          <input
            {...control}
            type="url"
            maxLength={1024}
            value={url}
            onInput={(event) => setUrl(event.currentTarget.value)}
          />
        )}
      </Field>
      <Field
        label="Events"
        error={fields.get("/events")}
        hint="lease.* for all of leases, or names such as lease.started, lease.failed"
      >
        {(control) => (
          <input
            {...control}
            type="text"
            maxLength={2000}
            value={events}
            onInput={(event) => setEvents(event.currentTarget.value)}
          />
        )}
      </Field>
      <label class="check">
        <input type="checkbox" checked={batch} onChange={(event) => setBatch(event.currentTarget.checked)} />
        Up to 50 events in one message
      </label>
      <FormErrors sentences={others} />
    </Dialog>
  );
}
