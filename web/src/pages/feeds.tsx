// SPDX-License-Identifier: Apache-2.0
/** Links for calendars of phones and desks: made, listed and revoked here. A link is shown once. */
import { useState } from "preact/hooks";
import { request } from "../api/client.ts";
import { sentencesOf } from "../api/errors.ts";
import { useLive } from "../api/live.ts";
import { info, may, session } from "../api/session.ts";
import type { Feed } from "../api/types.ts";
import { note } from "../parts/announce.tsx";
import { BusyButton, Copy, Skeleton, Trouble, When } from "../parts/basics.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { Field, FormErrors } from "../parts/field.tsx";
import { requirementOf } from "../words/question.ts";
import { type Parts, Requirement } from "../forms/requirement.tsx";

export interface FeedsProps {
  onClose: () => void;
  /** For operators: a link that shows all leases on this resource. */
  resource?: { label: string; name: string };
  /** Opened beside this lease, of which alone there is no link. */
  beside?: string;
}

/** The dialog "Calendar links". */
export function FeedsDialog({ onClose, resource, beside }: FeedsProps) {
  const watch = useLive<{ feeds: Feed[] }>("v1/feeds", {}, 60);
  const [made, setMade] = useState<Feed | null>(null);
  const state = watch!.state.value;
  const isOwn = (feed: Feed) => feed.user_id === (info.value?.user_id ?? feed.user_id);
  const own = (state.data?.feeds ?? []).filter(
    (feed) => isOwn(feed) && (!resource || feed.resource === resource.label),
  );
  return (
    <Dialog title={resource ? `Calendar links of ${resource.name}` : "Calendar links"} onClose={onClose}>
      <p class="muted">
        A calendar that subscribes to a link shows {resource ? "all leases on this host" : "your leases"} and reminds
        you of their ends{beside && `: ${beside} and all others, those to come as well`}. Anybody with the link can read
        it: it needs no password.
      </p>
      {made?.url ? (
        <div class="stack made" role="status">
          <p>
            <strong>{made.name || "The link"}</strong> is made. Copy it now: it is not shown again.
          </p>
          <Copy text={made.url} label="the link" />
        </div>
      ) : (
        <NewFeed
          resource={resource}
          onMade={(feed) => {
            setMade(feed);
            void watch?.read();
          }}
        />
      )}
      {state.loading && <Skeleton lines={2} />}
      {state.error !== null && !state.data && <Trouble error={state.error} retry={() => void watch?.read()} />}
      {own.length > 0 && (
        <>
          <h3>Your links</h3>
          <ul class="feeds">
            {own.map((feed) => (
              <FeedRow key={feed.id} feed={feed} onGone={() => void watch?.read()} />
            ))}
          </ul>
        </>
      )}
    </Dialog>
  );
}

const KINDS: Record<Feed["kind"], string> = {
  user: "my leases",
  project: "all leases of the project",
  resource: "all leases on one resource",
  free_busy: "free and busy times, without names",
};

function NewFeed({ onMade, resource }: { onMade: (feed: Feed) => void; resource: FeedsProps["resource"] }) {
  const [kind, setKind] = useState<Feed["kind"]>(resource ? "resource" : "user");
  const [parts, setParts] = useState<Parts>({ conditions: [], others: [] });
  const [name, setName] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const { fields, others } = sentencesOf(error, ["/name", "/kind", "/requirement"]);
  const make = async () => {
    if (busy) return;
    setBusy(true);
    setError(null);
    const body: Record<string, unknown> = { kind, name: name.trim() || (resource?.name ?? "calendar") };
    if (kind === "resource") body.resource = resource?.label;
    if (kind === "free_busy") body.requirement = requirementOf(parts);
    try {
      const { data } = await request<{ feed: Feed }>("POST", "v1/feeds", { body });
      onMade(data.feed);
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <div class="stack">
      {!resource && <KindField kind={kind} error={fields.get("/kind")} onChange={setKind} />}
      {kind === "free_busy" && (
        <fieldset class="feed-hosts">
          <legend>Busy means that no such host is free</legend>
          <div class="sentence">
            <span>hosts</span>
            <Requirement
              value={parts}
              wrong={fields.has("/requirement")}
              onChange={(changed) => setParts({ ...parts, ...changed })}
            />
          </div>
          {fields.has("/requirement") && <p class="field-error">{fields.get("/requirement")}</p>}
        </fieldset>
      )}
      <Field label="Name" error={fields.get("/name")} hint="So that you know later which link is where.">
        {(control) => (
          <input
            {...control}
            type="text"
            maxLength={80}
            placeholder="my phone"
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        )}
      </Field>
      <FormErrors sentences={others} />
      <div class="row">
        <BusyButton type="button" class="primary" busy={busy} doing="Making…" onClick={() => void make()}>
          Make a link
        </BusyButton>
      </div>
    </div>
  );
}

interface KindProps {
  kind: Feed["kind"];
  error: string | undefined;
  onChange: (kind: Feed["kind"]) => void;
}

function KindField({ kind, error, onChange }: KindProps) {
  const project = session.value?.project?.name ?? "";
  return (
    <Field label="It shows" error={error}>
      {(control) => (
        <select {...control} value={kind} onChange={(event) => onChange(event.currentTarget.value as Feed["kind"])}>
          <option value="user">{KINDS.user}</option>
          <option value="project">{`${KINDS.project} ${project}`.trim()}</option>
          <option value="free_busy">{KINDS.free_busy}</option>
        </select>
      )}
    </Field>
  );
}

function FeedRow({ feed, onGone }: { feed: Feed; onGone: () => void }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const revoke = async () => {
    if (busy) return;
    setBusy(true);
    try {
      await request("DELETE", `v1/feeds/${feed.id}`);
      note(`The link ${feed.name} was revoked`);
      onGone();
    } catch (problem) {
      setError(problem);
      setBusy(false);
    }
  };
  return (
    <li>
      <div>
        <p>
          <strong>{feed.name || "calendar"}</strong>{" "}
          <span class="muted">{[KINDS[feed.kind], feed.resource].filter(Boolean).join(": ")}</span>
        </p>
        <p class="hint">
          {feed.last_used_at ? (
            <>
              Last read <When at={feed.last_used_at} as="relative" />
            </>
          ) : (
            "Not read yet"
          )}
          , ends <When at={feed.expires_at} as="relative" />
        </p>
        {error !== null && <Trouble error={error} />}
      </div>
      {may("blazar:feeds:delete") && (
        <BusyButton
          type="button"
          class="small danger"
          busy={busy}
          doing="Revoking…"
          aria-label={`Revoke the link ${feed.name}`}
          onClick={() => void revoke()}
        >
          Revoke
        </BusyButton>
      )}
    </li>
  );
}
