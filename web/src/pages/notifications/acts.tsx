// SPDX-License-Identifier: Apache-2.0
/** What is done with a subscription, each in a dialog that says what follows. */
import { useState } from "preact/hooks";
import { request } from "../../api/client.ts";
import { sentencesOf } from "../../api/errors.ts";
import { useLive } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import type { DeliveryFailure, Subscription } from "../../api/subscriptions.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Skeleton, Trouble, When } from "../../parts/basics.tsx";
import { DateTimeField } from "../../parts/datetime.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FormErrors } from "../../parts/field.tsx";
import { present } from "../../time/now.ts";

export type Act = "test" | "pause" | "resume" | "replay" | "failures" | "delete";

interface Verb {
  act: Act;
  text: string;
  rule: string;
  is: (found: Subscription) => boolean;
}

const VERBS: readonly Verb[] = [
  { act: "test", text: "Test", rule: "blazar:subscriptions:test", is: (found) => found.channel === "webhook" },
  {
    act: "pause",
    text: "Pause",
    rule: "blazar:subscriptions:update",
    is: (found) => found.state === "active" || found.state === "unconfirmed",
  },
  {
    act: "resume",
    text: "Resume",
    rule: "blazar:subscriptions:update",
    is: (found) => found.state === "paused" || found.state === "disabled",
  },
  { act: "replay", text: "Send again", rule: "blazar:subscriptions:replay", is: () => true },
  {
    act: "failures",
    text: "Refused",
    rule: "blazar:subscriptions:get",
    is: (found) => found.dead > 0,
  },
  { act: "delete", text: "Delete", rule: "blazar:subscriptions:delete", is: () => true },
];

/** Returns what may be done with a subscription. */
export function verbsOf(found: Subscription): readonly Verb[] {
  return VERBS.filter((verb) => verb.is(found) && may(verb.rule));
}

const SAYS: Readonly<Record<Exclude<Act, "replay" | "failures">, string>> = {
  test: "A test message is sent at once. Its state soon says what the receiver has made of it.",
  pause: "Nothing is sent until it is resumed; then also what has happened meanwhile.",
  resume: "What has happened meanwhile is sent, too.",
  delete: "Nothing more is sent, and what was refused is forgotten.",
};

const DAY = 86_400_000;

interface ActProps {
  found: Subscription;
  act: Act;
  onClose: () => void;
  onDone: () => void;
}

/** Says what would be done, and does it. */
export function ActDialog({ found, act, onClose, onDone }: ActProps) {
  const name = found.url ?? "mail";
  const text = VERBS.find((verb) => verb.act === act)?.text ?? act;
  const [since, setSince] = useState<number | null>(present.value - DAY);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { fields, others } = sentencesOf(error, ["/from"]);
  if (act === "failures") return <FailuresDialog found={found} onClose={onClose} />;
  const submit = async () => {
    if (busy || since === null) return;
    setBusy(true);
    setError(null);
    const path = `v1/subscriptions/${found.id}`;
    try {
      if (act === "delete") await request("DELETE", path);
      else if (act === "test") await request("POST", `${path}/test`);
      else if (act === "replay")
        await request("POST", `${path}/replay`, { body: { from: new Date(since).toISOString() } });
      else await request("PATCH", path, { body: { state: act === "pause" ? "paused" : "active" } });
      note(`${text}: ${name}`);
      onDone();
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={`${text}: ${name}`}
      onClose={onClose}
      onSubmit={() => void submit()}
      actions={
        <>
          <button type="button" onClick={onClose}>
            Cancel
          </button>
          <BusyButton type="submit" class={act === "delete" ? "danger" : "primary"} busy={busy} doing="Doing it…">
            {text}
          </BusyButton>
        </>
      }
    >
      {act === "replay" ? (
        <>
          <p>All that has happened since then is sent again, in order and with the ids that it had.</p>
          <DateTimeField label="Since" value={since} error={fields.get("/from")} onChange={setSince} />
        </>
      ) : (
        <p>{SAYS[act]}</p>
      )}
      <FormErrors sentences={others} />
    </Dialog>
  );
}

function FailuresDialog({ found, onClose }: { found: Subscription; onClose: () => void }) {
  const path = `v1/subscriptions/${found.id}/failures`;
  const watch = useLive<{ failures: DeliveryFailure[] }>(path, { limit: 100, sort_dir: "desc" }, 30)!;
  const { data, error } = watch.state.value;
  return (
    <Dialog
      title={`Refused: ${found.url ?? "mail"}`}
      wide
      onClose={onClose}
      actions={
        <button type="button" onClick={onClose}>
          Close
        </button>
      }
    >
      <p class="muted">
        The receiver has refused these three times. Mend it, and send them again from the time of the first one.
      </p>
      {error !== null && <Trouble error={error} retry={() => void watch.read()} />}
      {!data && error === null && <Skeleton lines={4} />}
      <ul class="refused-messages">
        {data?.failures.map((failure) => (
          <li key={failure.id}>
            <strong>{failure.type.replace(/^blazar\./, "")}</strong> <span class="muted">{failure.subject}</span>
            <p class="hint">
              <When at={failure.at} />: {failure.reason}
            </p>
          </li>
        ))}
      </ul>
      {found.dropped > 0 && <p class="hint">{found.dropped} earlier ones are not kept.</p>}
    </Dialog>
  );
}
