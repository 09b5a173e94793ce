// SPDX-License-Identifier: Apache-2.0
/** Of what one is told: one's own leases by mail, and the project's web hooks. */
import { useState } from "preact/hooks";
import { useLive } from "../../api/live.ts";
import { info, may } from "../../api/session.ts";
import type { Subscription, SubscriptionList } from "../../api/subscriptions.ts";
import { Empty, PageHead, When } from "../../parts/basics.tsx";
import { List } from "../../parts/list.tsx";
import { Phase } from "../../parts/state.tsx";
import { sentence } from "../../words/events.ts";
import { backlogOf, subscriptionState } from "../../words/subscriptions.ts";
import { type Act, ActDialog, verbsOf } from "./acts.tsx";
import { NewHookDialog } from "./new-hook.tsx";
import { Mine } from "./mine.tsx";

/** The page: what comes by mail, and a row for each subscription of the project. */
export function NotificationsPage() {
  const watch = useLive<SubscriptionList>("v1/subscriptions", { limit: 200 }, 10)!;
  const [chosen, setChosen] = useState<{ found: Subscription; act: Act } | null>(null);
  const [isNew, setNew] = useState(false);
  const { data, error } = watch.state.value;
  const reread = () => void watch.read();
  // While it is not known what the service sends, what fails says so.
  const channels = info.value?.channels ?? ["webhook", "mail"];
  return (
    <>
      <PageHead title="Notifications" lead="What you are told by mail, and the programs that are told by web hooks." />
      {may("blazar:subscriptions:mine") && channels.includes("mail") && <Mine />}
      {!channels.includes("mail") && (
        <p class="muted">This service sends no mail: its operators have not named a mail server.</p>
      )}
      <section class="told" aria-labelledby="subscriptions">
        <div class="row told-head">
          <h2 id="subscriptions">Web hooks and mail of the project</h2>
          {may("blazar:subscriptions:post") && channels.includes("webhook") && (
            <button type="button" onClick={() => setNew(true)}>
              New web hook
            </button>
          )}
        </div>
        <List
          heads={["Receiver", "State", "Events", "Last sent", ""]}
          items={data?.subscriptions ?? null}
          error={error}
          retry={reread}
          empty={
            <Empty title="No program is told">
              {channels.includes("webhook")
                ? "A web hook is sent a signed message when a lease of the project starts, fails or ends, for example."
                : "This service sends no web hooks, as its operators have not set them up."}
            </Empty>
          }
          row={(found) => <Row key={found.id} found={found} onAct={(act) => setChosen({ found, act })} />}
        />
      </section>
      {chosen && (
        <ActDialog
          {...chosen}
          onClose={() => setChosen(null)}
          onDone={() => {
            setChosen(null);
            reread();
          }}
        />
      )}
      {isNew && <NewHookDialog onMade={reread} onClose={() => setNew(false)} />}
    </>
  );
}

function Row({ found, onAct }: { found: Subscription; onAct: (act: Act) => void }) {
  const name = found.url ?? "mail to its maker";
  return (
    <tr>
      <th scope="row" class="told-url">
        {name}
        {found.project_id === null && <span class="muted"> of all projects</span>}
        {found.lease_id && <span class="muted"> of the lease {found.lease_id.slice(0, 8)}</span>}
      </th>
      <td>
        <Phase {...subscriptionState(found)} />
        {backlogOf(found).map((text) => (
          <p class="hint" key={text}>
            {text}
          </p>
        ))}
        {found.reason && <p class="missing">{sentence(found.reason)}</p>}
      </td>
      <td data-head="Events">{found.events.join(", ")}</td>
      <td data-head="Last sent">
        {found.last_delivered_at ? <When at={found.last_delivered_at} as="relative" /> : "never"}
      </td>
      <td>
        <div class="row row-actions">
          {verbsOf(found).map(({ act, text }) => (
            <button
              key={act}
              type="button"
              class={act === "delete" ? "small danger" : "small"}
              aria-label={`${text}: ${name}`}
              onClick={() => onAct(act)}
            >
              {text}
            </button>
          ))}
        </div>
      </td>
    </tr>
  );
}
