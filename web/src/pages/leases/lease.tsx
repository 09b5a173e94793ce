// SPDX-License-Identifier: Apache-2.0
/** A lease: its state, what was got and how to use it, what has happened and what will. */
import { CalendarPlus } from "lucide";
import { useState } from "preact/hooks";
import { useCurrency } from "../../api/billing.ts";
import { Refused } from "../../api/errors.ts";
import { useLive } from "../../api/live.ts";
import { info, may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { Menu } from "../../parts/menu.tsx";
import { Skeleton, Trouble, When } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icon.tsx";
import { LeaseState } from "../../parts/state.tsx";
import { hrefOf, place, setParams } from "../../router.ts";
import { moment, range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { againParams } from "../../words/again.ts";
import { momentsOf, sentence } from "../../words/events.ts";
import {
  conditionInWords,
  countdownOf,
  isEnding,
  isInLine,
  isNews,
  isPast,
  lengthOf,
  whatOfLease,
} from "../../words/lease.ts";
import { otherThanMarked } from "../../words/marked.ts";
import { hostsOf, isOperable, maySplit } from "../../words/surgery.ts";
import { resourceName } from "../../words/use.ts";
import { estimateOf, endInSentence, waitInWords } from "../../words/waiting.ts";
import { FeedsDialog } from "../feeds.tsx";
import { withinSentence } from "../../words/refusal.ts";
import { CostPanel } from "./cost.tsx";
import { EnergyPanel } from "./energy.tsx";
import { History } from "./history.tsx";
import { endingOf, mayEnd } from "./end-now.tsx";
import { MaintenanceBars } from "./maintenance.tsx";
import { useMergeable } from "../surgery/mergeable.ts";
import { ConfirmBar } from "./confirm.tsx";
import { NoLease } from "./no-lease.tsx";
import { ExtensionOffer } from "./offer.tsx";
import { RoomPanel } from "./room.tsx";
import { Reservations } from "./reservations.tsx";
import { HostsLock, PromisePanel, ReleaseBar, TriesPanel, UsePanel, WaitPanel, goesOnInWords } from "./standing.tsx";
import { OfferBar } from "../surgery/transfer.tsx";
import {
  ChangeDialog,
  EndNowDialog,
  ExtendDialog,
  GiveDialog,
  MergeDialog,
  ShrinkDialog,
  SplitDialog,
  SwapDialog,
} from "./actions.tsx";

type Doing = "extend" | "change" | "end" | "feed" | "swap" | "shrink" | "split" | "merge" | "give";

/** The page; `?id=` names the lease, `?do=` opens a dialog. */
export function LeasePage() {
  const id = place.value.params.get("id");
  const watch = useLive<{ lease: Lease }>(id ? `v1/leases/${encodeURIComponent(id)}` : null, {}, 10);
  const state = watch?.state.value;
  const refused = state?.error instanceof Refused && [403, 404].includes(state.error.status);
  // What was deleted here is shown once more, and a dialog says by itself that there is nothing to send.
  const shown = state?.data && (state.data.lease.deleted_at || place.value.params.get("do"));
  if (!id || (refused && !shown)) return <NoLease key={id} id={id} known={Boolean(state?.data)} />;
  if (!state?.data)
    return state?.error ? <Trouble error={state.error} retry={() => void watch?.read()} /> : <Skeleton lines={8} />;
  const changed = (lease: Lease) => {
    // A deleted lease may be read once more from the history; what the page knows is shown until then.
    if (lease.deleted_at) watch?.put({ lease }, null);
    void watch?.read();
  };
  return (
    <>
      {state.error !== null && <Trouble error={state.error} retry={() => void watch?.read()} />}
      <Whole lease={state.data.lease} etag={state.etag} onChanged={changed} />
    </>
  );
}

function Whole({ lease, etag, onChanged }: { lease: Lease; etag: string | null; onChanged: (lease: Lease) => void }) {
  const doing = place.value.params.get("do") as Doing | null;
  const show = (next: Doing | null) => setParams({ do: next, end: null });
  const done = (changed: Lease) => {
    show(null);
    onChanged(changed);
  };
  const dialog = { lease, etag, onDone: done, onClose: () => show(null) };
  const proposed = Date.parse(place.value.params.get("end") ?? "");
  const past = isPast(lease);
  const waits = isInLine(lease) || lease.status === "IN_PROGRESS";
  return (
    <>
      <Head lease={lease} show={show} />
      <div class="stack conditions">
        <ConfirmBar lease={lease} onDone={onChanged} />
        <ReleaseBar lease={lease} onDone={onChanged} />
        <OfferBar lease={lease} onDone={onChanged} />
        <MarkedBar lease={lease} />
        <ExtensionOffer lease={lease} etag={etag} onDone={onChanged} />
        <Conditions lease={lease} />
        <MaintenanceBars lease={lease} />
      </div>
      <div class="lease-columns">
        <div>
          <WaitPanel lease={lease} />
          <RoomPanel lease={lease} />
          <PromisePanel lease={lease} />
          <TriesPanel lease={lease} />
          <Reservations lease={lease} />
          <details class="raw">
            <summary>As the API has it</summary>
            {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, which needs the keyboard, too */}
            <pre tabIndex={0}>{JSON.stringify(lease, null, 2)}</pre>
          </details>
        </div>
        <div>
          <HostsLock lease={lease} etag={etag} onDone={onChanged} />
          <UsePanel lease={lease} onDone={onChanged} />
          <CostPanel lease={lease} />
          <EnergyPanel lease={lease} />
          <Timeline lease={lease} />
          <History lease={lease} />
        </div>
      </div>
      {doing === "extend" && !past && !waits && (
        <ExtendDialog {...dialog} proposedEnd={Number.isNaN(proposed) ? undefined : proposed} />
      )}
      {doing === "change" && !past && !waits && <ChangeDialog {...dialog} />}
      {doing === "end" && !past && <EndNowDialog {...dialog} />}
      {doing === "swap" && isOperable(lease) && <SwapDialog {...dialog} />}
      {doing === "shrink" && isOperable(lease) && <ShrinkDialog {...dialog} />}
      {doing === "split" && isOperable(lease) && <SplitDialog {...dialog} />}
      {doing === "merge" && isOperable(lease) && <MergeDialog {...dialog} />}
      {doing === "give" && isOperable(lease) && <GiveDialog {...dialog} />}
      {doing === "feed" && <FeedsDialog beside={lease.name} onClose={() => show(null)} />}
    </>
  );
}

function Head({ lease, show }: { lease: Lease; show: (doing: Doing) => void }) {
  const past = isPast(lease);
  const now = present.value;
  // New dates give a failed lease another chance.
  const failed = lease.status === "ERROR";
  // What waits has nothing to be changed, and what waited in vain is asked for again.
  const ending = isEnding(lease, now);
  const fixed = past || ending || isInLine(lease) || lease.status === "IN_PROGRESS";
  const again = past || lease.status === "TIMED_OUT";
  const over = past ? endInSentence(lease) : null;
  const goesOn = goesOnInWords(lease, now);
  const mine = info.value?.project_id === lease.project_id;
  return (
    <header class="lease-head">
      <div class="lease-title">
        <h1>{lease.name || "Lease without a name"}</h1>
        <p>
          <LeaseState lease={lease} />
        </p>
        <p class="muted">
          {whatOfLease(lease)}
          <br />
          <Times lease={lease} />
          {!mine && ` · project ${lease.project_id}, user ${lease.user_id}`}
        </p>
        {over && <p>{over}</p>}
        {lease.series_id && (
          <p>
            It is one of <a href={hrefOf("series", { id: lease.series_id })}>a series</a>.
          </p>
        )}
        {goesOn && <p class="goes-on">{goesOn}</p>}
      </div>
      <Countdown lease={lease} />
      <div class="page-actions">
        {!fixed && may("blazar:leases:put") && (
          <>
            {!failed && (
              <button type="button" class="primary" onClick={() => show("extend")}>
                Extend
              </button>
            )}
            <button type="button" class={failed ? "primary" : ""} onClick={() => show("change")}>
              Change
            </button>
          </>
        )}
        {may("blazar:leases:post") && (
          <a
            class={again ? "button primary" : "button"}
            href={hrefOf("", {
              ...againParams(lease),
              book: lease.status === "TIMED_OUT" && lease.wait ? "wait" : null,
            })}
          >
            {lease.status === "TIMED_OUT" ? "Ask again" : "Book again"}
          </a>
        )}
        {may("blazar:feeds:post") && (
          <button type="button" onClick={() => show("feed")}>
            <Icon of={CalendarPlus} /> Calendar link of all my leases
          </button>
        )}
        {!ending && <More lease={lease} show={show} />}
        {!past && !ending && mayEnd(lease) && (
          <button type="button" class="danger" onClick={() => show("end")}>
            {endingOf(lease)}
          </button>
        )}
      </div>
    </header>
  );
}

/** What is done to a lease less often. */
function More({ lease, show }: { lease: Lease; show: (doing: Doing) => void }) {
  if (!isOperable(lease)) return null;
  const choices: { what: Doing; text: string }[] = [];
  if (may("blazar:leases:swap") && hostsOf(lease).length > 0) choices.push({ what: "swap", text: "Swap a host" });
  if (may("blazar:leases:put") && hostsOf(lease).length > 1) choices.push({ what: "shrink", text: "Give up hosts" });
  if (may("blazar:leases:split") && maySplit(lease)) choices.push({ what: "split", text: "Split it into two" });
  if (may("blazar:leases:transfer")) choices.push({ what: "give", text: "Give it to somebody else" });
  const merges = may("blazar:leases:merge");
  if (choices.length === 0 && !merges) return null;
  return (
    <Menu
      title={`More for ${lease.name}`}
      label={
        <span>
          More<span class="visually-hidden"> for {lease.name}</span>
        </span>
      }
    >
      {(close) => (
        <div class="choices">
          {choices.map(({ what, text }) => (
            <button
              key={what}
              type="button"
              onClick={() => {
                close();
                show(what);
              }}
            >
              {text}
            </button>
          ))}
          {merges && (
            <MergeChoice
              lease={lease}
              onChoose={() => {
                close();
                show("merge");
              }}
            />
          )}
        </div>
      )}
    </Menu>
  );
}

/** Says whether there is a lease to merge it with, so that nobody opens a dialog for nothing. */
function MergeChoice({ lease, onChoose }: { lease: Lease; onChoose: () => void }) {
  // The first that fits is enough.
  const { leases, error } = useMergeable(lease, 2);
  const none = leases?.length === 0;
  return (
    <>
      <button type="button" disabled={(leases === null && error === null) || none} onClick={onChoose}>
        Merge it with another
      </button>
      {none && <p class="hint menu-hint">No other lease has the same dates, or begins where this one ends.</p>}
    </>
  );
}

/** That a lease which was drawn in the calendar has other resources than the rows that were marked. */
function MarkedBar({ lease }: { lease: Lease }) {
  const marked = (place.value.params.get("marked") ?? "").split(",").filter(Boolean);
  const said = otherThanMarked(
    marked,
    lease.reservations.flatMap(({ allocations }) => allocations.map(resourceName)),
  );
  if (said === null || isPast(lease)) return null;
  return (
    <div class="banner warning" role="status">
      <p>{said}</p>
      <button type="button" class="quiet small" onClick={() => setParams({ marked: null })}>
        All right
      </button>
    </div>
  );
}

/** From when to when, and of what waits what it may cost. */
function Times({ lease }: { lease: Lease }) {
  const currency = useCurrency();
  return <>{timesOf(lease, currency)}</>;
}

/** From when to when, as far as that is known. */
function timesOf(lease: Lease, currency: string): string {
  const words = range(Date.parse(lease.start_date), Date.parse(lease.end_date), zone.value, present.value);
  if (lease.status === "TIMED_OUT") return `for ${lengthOf(lease)}`;
  if (lease.status !== "WAITING" || !lease.wait) return `${words} (${lengthOf(lease)})`;
  const asked = waitInWords(lease.wait, lengthOf(lease), zone.value, present.value, currency);
  return lease.wait.estimated_start ? `${asked}; probably ${words}` : asked;
}

/** How much of the time is over, as a bar with words. */
function Countdown({ lease }: { lease: Lease }) {
  const now = present.value;
  const found = countdownOf(lease, now);
  if (!found) return null;
  return (
    <div class="countdown">
      <p title={estimateOf(lease)}>{found.words}</p>
      <div class="countdown-bar" aria-hidden="true">
        <span style={{ width: `${found.share * 100}%` }} />
      </div>
      <p class="muted">{moment(found.at, zone.value, now)}</p>
    </div>
  );
}

function Conditions({ lease }: { lease: Lease }) {
  const conditions = lease.conditions.filter((one) => isNews(one, present.value));
  if (conditions.length === 0 || isPast(lease)) return null;
  return (
    <>
      {conditions.map((one) => (
        <div
          key={`${one.type}${one.reservation_id}${one.since}`}
          class={one.type.endsWith("_failed") ? "banner error" : "banner warning"}
        >
          <p>
            {sentence(withinSentence(conditionInWords(one), zone.value, present.value))}{" "}
            <span class="muted">
              Since <When at={Math.floor(Date.parse(one.since) / 60_000) * 60_000} as="spoken" />.
            </span>
          </p>
        </div>
      ))}
    </>
  );
}

function Timeline({ lease }: { lease: Lease }) {
  const now = present.value;
  const moments = momentsOf(lease, now);
  const [all, setAll] = useState(false);
  const shown = all ? moments : moments.slice(-12);
  return (
    <section class="card" aria-label="What has happened and what will">
      <h2>Timeline</h2>
      {shown.length < moments.length && (
        <button type="button" class="link" onClick={() => setAll(true)}>
          Show {moments.length - shown.length} earlier ones
        </button>
      )}
      <ol class="timeline">
        {shown.map((one) => (
          <li key={one.id} class={`moment moment-${one.progress}`}>
            <p>
              <strong>{one.title}</strong> <When at={one.at} />
            </p>
            {one.details.map((detail) => (
              <p class="muted" key={detail}>
                {withinSentence(detail, zone.value, now)}
              </p>
            ))}
          </li>
        ))}
      </ol>
    </section>
  );
}
