// SPDX-License-Identifier: Apache-2.0
/** For operators: what they may have to act on, why, and what would be done about it. */
import { useState } from "preact/hooks";
import { useAsked } from "../../api/ask.ts";
import { request } from "../../api/client.ts";
import { sentencesOf } from "../../api/errors.ts";
import { useLive } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import type { Link, Problem, ProblemRepair } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, Elsewhere, Empty, PageHead, When } from "../../parts/basics.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { Field, FormErrors } from "../../parts/field.tsx";
import { List } from "../../parts/list.tsx";
import { hrefOf } from "../../router.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { pageOfSubject } from "../../words/history.ts";
import { inPageWords } from "../../words/refusal.ts";

const VERBS: Readonly<Record<string, string>> = {
  retry: "Try again",
  release: "End the claim",
  give_up: "Give up",
  end: "End",
  mend: "Mend",
  recheck: "Check again",
  drop: "Forget",
};

/** Actions that nobody loses anything by. */
const HARMLESS: ReadonlySet<string> = new Set(["retry", "mend", "recheck"]);

interface Chosen {
  problem: Problem;
  action: string;
}

/** The page: a row for each problem, the oldest first. */
export function ProblemsPage() {
  const watch = useLive<{ problems: Problem[]; links: Link[] }>("v1/problems", { limit: 200 }, 20)!;
  const [chosen, setChosen] = useState<Chosen | null>(null);
  const { data, error } = watch.state.value;
  const acts = may("blazar:problems:act");
  return (
    <>
      <PageHead title="Problems" lead="What somebody may have to act on. A problem is gone when it is mended." />
      <List
        heads={["What", "Since", "Why, and what comes next", ...(acts ? ["Actions"] : [])]}
        items={data?.problems ?? null}
        error={error}
        retry={() => void watch.read()}
        empty={
          <Empty title="There are no problems">All that is due is done, and the clouds are as they should be.</Empty>
        }
        row={(problem) => (
          <tr key={problem.id}>
            <th scope="row">
              <Subject problem={problem} />
              {problem.region && <span class="muted"> in {problem.region}</span>}
            </th>
            <td data-head="Since">
              <When at={problem.since} />
            </td>
            <td>
              {problem.explanation.map((sentence) => (
                <p key={sentence}>{inPageWords(sentence, zone.value, present.value)}</p>
              ))}
            </td>
            {acts && (
              <td>
                <div class="row">
                  {problem.actions.map((action) => (
                    <button
                      key={action}
                      type="button"
                      aria-label={`${VERBS[action] ?? action}: ${problem.summary}`}
                      onClick={() => setChosen({ problem, action })}
                    >
                      {VERBS[action] ?? action}
                    </button>
                  ))}
                </div>
              </td>
            )}
          </tr>
        )}
      />
      {Boolean(error) && <Elsewhere command="blazar-manage problems list" />}
      {data?.links.some((link) => link.rel === "next") && <p class="hint">The first 200 are shown.</p>}
      {chosen && (
        <ActDialog
          key={`${chosen.problem.id} ${chosen.action}`}
          {...chosen}
          onClose={() => setChosen(null)}
          onDone={() => {
            setChosen(null);
            void watch.read();
          }}
        />
      )}
    </>
  );
}

/** What a problem is, with the way to the page of what it is about. */
function Subject({ problem }: { problem: Problem }) {
  if (problem.lease_id) return <a href={hrefOf("lease", { id: problem.lease_id })}>{problem.summary}</a>;
  if (problem.kind === "manager" || problem.kind === "log") return <a href={hrefOf("managers")}>{problem.summary}</a>;
  const page = problem.resource_id && pageOfSubject({ object: { type: "resource", id: problem.resource_id } });
  if (page) return <a href={hrefOf(...page)}>{problem.summary}</a>;
  return <>{problem.summary}</>;
}

/** Says what would be done, asks why, and does it. */
function ActDialog({ problem, action, onClose, onDone }: Chosen & { onClose: () => void; onDone: () => void }) {
  const [reason, setReason] = useState("");
  const [confirm, setConfirm] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const path = `v1/problems/${encodeURIComponent(problem.id)}/${action}`;
  const preview = useAsked<{ repair: ProblemRepair }>(path, { reason: "a dry run", dry_run: true });
  const isUnknown = problem.kind === "unknown";
  const { fields, others } = sentencesOf(error ?? preview.error, ["/reason", "/confirm"]);
  const verb = VERBS[action] ?? action;
  const submit = async () => {
    if (busy || reason.trim() === "") return;
    setBusy(true);
    setError(null);
    try {
      const body = { reason: reason.trim(), dry_run: false, ...(isUnknown ? { confirm: confirm.trim() } : {}) };
      const { data } = await request<{ repair: ProblemRepair }>("POST", path, { body });
      note(inPageWords(data.repair.said.join(" "), zone.value, present.value));
      onDone();
    } catch (refused) {
      setError(refused);
      setBusy(false);
    }
  };
  const actions = (
    <>
      <button type="button" onClick={onClose}>
        Cancel
      </button>
      <BusyButton
        type="submit"
        class={HARMLESS.has(action) ? "primary" : "danger"}
        busy={busy}
        doing="Doing it…"
        disabled={reason.trim() === "" || preview.data === null}
      >
        {verb}
      </BusyButton>
    </>
  );
  return (
    <Dialog title={`${verb}: ${problem.summary}`} onClose={onClose} onSubmit={() => void submit()} actions={actions}>
      <div class="stack" role="status" aria-busy={preview.loading}>
        {preview.loading && <p class="muted">Looking what would be done…</p>}
        {preview.data?.repair.said.map((sentence) => (
          <p key={sentence}>{inPageWords(sentence, zone.value, present.value)}</p>
        ))}
      </div>
      <Field label="Reason" error={fields.get("/reason")} hint="It goes into the history, for operators.">
        {(control) => (
          <input
            {...control}
            type="text"
            maxLength={1000}
            value={reason}
            onInput={(event) => setReason(event.currentTarget.value)}
          />
        )}
      </Field>
      {isUnknown && (
        <Field label="Id of the reservation, once more" error={fields.get("/confirm")}>
          {(control) => (
            <input
              {...control}
              type="text"
              maxLength={64}
              value={confirm}
              onInput={(event) => setConfirm(event.currentTarget.value)}
            />
          )}
        </Field>
      )}
      <FormErrors sentences={others} />
    </Dialog>
  );
}
