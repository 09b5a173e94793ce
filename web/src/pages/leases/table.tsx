// SPDX-License-Identifier: Apache-2.0
/** Leases in rows with what can be done, and the dialogs that do it; for the user's own and for operators. */
import { Ellipsis } from "lucide";
import { useState } from "preact/hooks";
import { may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { Menu } from "../../parts/menu.tsx";
import { When } from "../../parts/basics.tsx";
import { Icon } from "../../parts/icon.tsx";
import { LeaseState } from "../../parts/state.tsx";
import { hrefOf } from "../../router.ts";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { againParams } from "../../words/again.ts";
import {
  conditionInWords,
  endInWords,
  isEnding,
  isInLine,
  isNews,
  isPast,
  lengthOf,
  whatOf,
} from "../../words/lease.ts";
import { sentence } from "../../words/events.ts";
import { withinSentence } from "../../words/refusal.ts";
import { isStanding, takerInWords } from "../../words/transfer.ts";
import { about, estimateOf, whyReleased } from "../../words/waiting.ts";
import { ChangeDialog, EndNowDialog, ExtendDialog } from "./actions.tsx";
import { endingOf, mayEnd } from "./end-now.tsx";
import { ExtensionOffer } from "./offer.tsx";

type Doing = "extend" | "change" | "end";
/** Whose the leases are: the reader's own, of the reader's project, of all projects. */
export type Whose = "mine" | "project" | "all";

export interface LeaseTableProps {
  leases: readonly Lease[];
  whose: Whose;
  /** After a change, once its dialog is closed. */
  onChanged: () => void;
}

const DIALOGS = { extend: ExtendDialog, change: ChangeDialog, end: EndNowDialog };

/** Draws the table. `leases` have the fields of `LIST_FIELDS` at least. */
export function LeaseTable({ leases, whose, onChanged }: LeaseTableProps) {
  const [doing, setDoing] = useState<{ what: Doing; lease: Lease } | null>(null);
  const close = () => setDoing(null);
  const done = () => {
    close();
    onChanged();
  };
  const Doing = doing && DIALOGS[doing.what];
  return (
    <div class="table-scroll">
      <table class="list stacked leases">
        <thead>
          <tr>
            <th scope="col">Name</th>
            {whose === "all" && <th scope="col">Project and user</th>}
            <th scope="col">State</th>
            <th scope="col">What</th>
            <th scope="col">When</th>
            <th scope="col">
              <span class="visually-hidden">Actions</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {leases.map((lease) => (
            <Row
              key={lease.id}
              lease={lease}
              whose={whose}
              act={(what) => setDoing({ what, lease })}
              onChanged={onChanged}
            />
          ))}
        </tbody>
      </table>
      {doing && Doing && <Doing key={doing.lease.id} lease={doing.lease} onDone={done} onClose={close} />}
    </div>
  );
}

interface RowProps {
  lease: Lease;
  whose: Whose;
  act: (what: Doing) => void;
  onChanged: () => void;
}

function Row({ lease, whose, act, onChanged }: RowProps) {
  const past = isPast(lease);
  const trouble = past ? null : lease.conditions.find((one) => isNews(one, present.value));
  const endings = [...new Set(lease.reservations.map((one) => endInWords(one.before_end, one.resource_type)))];
  const waited = lease.status === "TIMED_OUT";
  const goesOn = !past && lease.extend_if_free;
  const then = [
    lengthOf(lease),
    lease.status === "WAITING" && lease.wait ? `waits until ${about(lease.wait.until, zone.value, present.value)}` : "",
    goesOn ? `goes on by itself until ${about(goesOn.until, zone.value, present.value)} if it is free` : "",
    !past && lease.transfer && isStanding(lease.transfer, present.value)
      ? `offered to ${takerInWords(lease.transfer, lease)}`
      : "",
    !past && !waited && endings.length > 0 ? `then ${endings.join("; ")}` : "",
  ]
    .filter(Boolean)
    .join("; ");
  return (
    <tr>
      <th scope="row">
        <a href={hrefOf("lease", { id: lease.id })}>{lease.name || "without a name"}</a>
        {whose === "project" && <span class="hint owner">{lease.user_id}</span>}
      </th>
      {whose === "all" && (
        <td>
          <a href={hrefOf("all-leases", { project: lease.project_id })}>{lease.project_id}</a>
          <a class="owner" href={hrefOf("all-leases", { user: lease.user_id })}>
            {lease.user_id}
          </a>
        </td>
      )}
      <td>
        <LeaseState lease={lease} />
        {trouble && <p class="hint trouble">{conditionInWords(trouble)}</p>}
        {!past && lease.release_at && (
          <p class="hint trouble release">
            released {about(lease.release_at, zone.value, present.value)}: {whyReleased(lease.usage)}
          </p>
        )}
        {!past && isInLine(lease) && lease.wait?.reason && (
          <p class="hint trouble">{sentence(withinSentence(lease.wait.reason, zone.value, present.value))}</p>
        )}
      </td>
      <td>
        {lease.reservations.map((one) => (
          <span class="what" key={one.id}>
            {whatOf(one)}
          </span>
        ))}
      </td>
      <td>
        <Times lease={lease} />
        <p class="hint">{then}</p>
        {/* Operators look at many: one search for each would be too much. */}
        {whose !== "all" && <ExtensionOffer lease={lease} onDone={onChanged} brief />}
      </td>
      <td class="actions">
        <RowActions lease={lease} past={past} act={act} />
      </td>
    </tr>
  );
}

/** From when to when, as far as that is known. */
function Times({ lease }: { lease: Lease }) {
  if (lease.status === "TIMED_OUT") return <span class="muted">its turn did not come</span>;
  const unknown = lease.status === "WAITING" && !lease.wait?.estimated_start;
  if (unknown) return <span class="muted">when is not known yet</span>;
  return (
    <>
      {lease.status === "WAITING" && (
        <span class="muted" title={estimateOf(lease)}>
          probably{" "}
        </span>
      )}
      <span class="nowrap">
        <When at={lease.start_date} />
      </span>{" "}
      –{" "}
      <span class="nowrap">
        <When at={lease.end_date} />
      </span>
    </>
  );
}

function RowActions({ lease, past, act }: { lease: Lease; past: boolean; act: RowProps["act"] }) {
  const again = (
    <a class="button small" href={hrefOf("", againParams(lease))} aria-label={`Book again: ${lease.name}`}>
      Book again
    </a>
  );
  const end = (
    <button type="button" class="small" aria-label={`${endingOf(lease)}: ${lease.name}`} onClick={() => act("end")}>
      {endingOf(lease)}
    </button>
  );
  if (!past && !isEnding(lease, present.value) && mayEnd(lease) && (isInLine(lease) || !may("blazar:leases:put")))
    return end;
  if (past || isInLine(lease) || isEnding(lease, present.value) || !may("blazar:leases:put"))
    return may("blazar:leases:post") ? again : null;
  return (
    <span class="row row-actions">
      <button type="button" class="small" aria-label={`Extend ${lease.name}`} onClick={() => act("extend")}>
        Extend
      </button>
      <Menu title={`More for ${lease.name}`} label={<Icon of={Ellipsis} />}>
        {(close) => {
          const run = (what: Doing) => {
            close();
            act(what);
          };
          return (
            <div class="choices">
              <a class="button quiet" href={hrefOf("lease", { id: lease.id })}>
                Open
              </a>
              <button type="button" onClick={() => run("change")}>
                Change
              </button>
              <a class="button quiet" href={hrefOf("", againParams(lease))}>
                Book again
              </a>
              {mayEnd(lease) && (
                <button type="button" onClick={() => run("end")}>
                  {endingOf(lease)}
                </button>
              )}
            </div>
          );
        }}
      </Menu>
    </span>
  );
}
