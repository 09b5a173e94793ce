// SPDX-License-Identifier: Apache-2.0
/** How a lease stands: its place in line, whether it goes on by itself, whether it is used, and who may act on that. */
import { useState } from "preact/hooks";
import { changeLease } from "../../api/change.ts";
import { request } from "../../api/client.ts";
import { plain } from "../../api/errors.ts";
import { may } from "../../api/session.ts";
import type { Lease } from "../../api/types.ts";
import { note } from "../../parts/announce.tsx";
import { BusyButton, When } from "../../parts/basics.tsx";
import { StateMark } from "../../parts/state.tsx";
import { present } from "../../time/now.ts";
import { zone } from "../../time/zone.ts";
import { sentence } from "../../words/events.ts";
import { lengthInWords } from "../../words/length.ts";
import { isInLine, isPast } from "../../words/lease.ts";
import { withinSentence } from "../../words/refusal.ts";
import { WAITING_MEANS, about, triesInWords, usageInWords, waitSentences, whyReleased } from "../../words/waiting.ts";

/** A reason of the service, as the page says it. */
const inWords = (reason: string) => withinSentence(reason, zone.value, present.value);

/** Seconds tell nothing here. */
function minute(instant: string): number {
  return Math.floor(Date.parse(instant) / 60_000) * 60_000;
}

/** That a lease that waited has a start, which can only become earlier. */
export function PromisePanel({ lease }: { lease: Lease }) {
  if (lease.status !== "PENDING" || !lease.wait?.advance) return null;
  return (
    <section class="card wait" aria-label="Its promised start">
      <h2>
        <StateMark mark="booked" /> Promised
      </h2>
      <p>
        It starts <When at={Math.ceil(Date.parse(lease.start_date) / 60_000) * 60_000} as="spoken" /> at the latest. If
        something becomes free, it starts earlier, and is as long as before.
      </p>
      <p class="hint">Other dates or reservations of your own end that: then it starts when you say.</p>
    </section>
  );
}

/** The place of a lease in line, or that it waited in vain. */
export function WaitPanel({ lease }: { lease: Lease }) {
  const { wait } = lease;
  if (!wait || isPast(lease) || !isInLine(lease)) return null;
  const here = zone.value;
  const now = present.value;
  const over = lease.status === "TIMED_OUT";
  return (
    <section class="card wait" aria-label="Its place in line">
      <h2>
        <StateMark mark={over ? "timed-out" : "waiting"} />{" "}
        {over ? "It waited in vain" : wait.position === 1 ? "Next in line" : "Waiting in line"}
      </h2>
      {over ? (
        <p>Its turn did not come in that time. Ask again, if you still need it; nothing is kept for it.</p>
      ) : (
        <p>{waitSentences(wait, here, now).join(" ")}</p>
      )}
      {wait.reason !== null && (
        <p class="missing">
          {sentence(over ? inWords(wait.reason) : `as things are no waiting helps: ${inWords(wait.reason)}`)}
        </p>
      )}
      <dl class="facts">
        <dt>{over ? "Waited since" : "Waits since"}</dt>
        <dd>
          <When at={minute(wait.queued_at)} as="spoken" />
        </dd>
        {Date.parse(wait.earliest) > Date.parse(wait.queued_at) + 60_000 && (
          <>
            <dt>Starts from</dt>
            <dd>
              <When at={minute(wait.earliest)} as="spoken" /> on
            </dd>
          </>
        )}
        <dt>{over ? "Gave up" : "Waits until"}</dt>
        <dd>
          <When at={minute(wait.until)} as="spoken" />
        </dd>
        {wait.latest && (
          <>
            <dt>Starts by</dt>
            <dd>
              <When at={minute(wait.latest)} as="spoken" />
            </dd>
          </>
        )}
        {wait.at_least && (
          <>
            <dt>For at least</dt>
            <dd>{lengthInWords(wait.at_least)}</dd>
          </>
        )}
      </dl>
      {!over && <p class="hint">{WAITING_MEANS}</p>}
    </section>
  );
}

/** Which tries of a lease have failed, and why. */
export function TriesPanel({ lease }: { lease: Lease }) {
  const failed = lease.wait?.failed_tries ?? [];
  const tries = lease.wait?.tries ?? null;
  if (tries === null || isPast(lease)) return null;
  return (
    <section class="card wait" aria-label="Tries">
      <h2>Tries</h2>
      <p>{triesInWords(failed.length, tries)}</p>
      {failed.length > 0 && (
        <ol class="tries">
          {failed.map((one) => (
            <li key={one.at}>
              <When at={minute(one.at)} as="spoken" />: {sentence(inWords(one.reason.detail ?? one.reason.message))}
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}

/** Returns that a lease goes on by itself, and why it did not so far. */
export function goesOnInWords(lease: Lease, now: number): string | null {
  const { extend_if_free: asked } = lease;
  if (!asked || isPast(lease)) return null;
  const until = about(asked.until, zone.value, now);
  const reason = asked.reason === null ? "" : ` Not so far: ${sentence(inWords(asked.reason))}`;
  return `It goes on by itself until ${until} at most, as long as nobody else wants what it has.${reason}`;
}

/** Whether the hosts of a lease that has not started may change, and the lock that its owners switch. */
export function HostsLock({ lease, etag, onDone }: UseProps & { etag: string | null }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>(null);
  if (lease.status !== "PENDING" || !lease.reservations.some((one) => one.resource_type === "physical:host"))
    return null;
  const locked = lease.keep_hosts === true;
  const change = async () => {
    setBusy(true);
    setError(null);
    try {
      const { data } = await changeLease(lease, etag, { keep_hosts: !locked });
      note(`${lease.name} ${locked ? "may get other hosts" : "keeps its hosts"} until it starts`);
      onDone(data.lease);
    } catch (refused) {
      setError(refused);
    }
    setBusy(false);
  };
  return (
    <section class="card hosts-lock" aria-label="Its hosts">
      <h2>{locked ? "Its hosts are locked" : "Its hosts may change"}</h2>
      <p>
        {locked
          ? "Until it starts they stay its own, unless they fail or are repaired."
          : "Until two hours or so before it starts, it may get other hosts that are as good, so that one more lease fits."}
      </p>
      {may("blazar:leases:put") && (
        <p class="row">
          <BusyButton type="button" class="small" busy={busy} doing="Changing…" onClick={() => void change()}>
            {locked ? "Unlock them" : "Keep these hosts"}
          </BusyButton>
        </p>
      )}
      {error !== null && (
        <p class="field-error" role="alert">
          {plain(error)}
        </p>
      )}
    </section>
  );
}

type Act = "keep" | "hold" | "let go";
const REQUESTS: Record<Act, ["POST" | "PUT" | "DELETE", string, string]> = {
  keep: ["POST", "keep", "is kept: the time counts again from now on"],
  hold: ["PUT", "hold", "is held: it is never released because nobody uses it"],
  "let go": ["DELETE", "hold", "is held no longer"],
};

/** Acts on the release of a lease: what is in progress, and what was refused. */
function useActs(lease: Lease, onDone: (lease: Lease) => void) {
  const [doing, setDoing] = useState<Act | null>(null);
  const [error, setError] = useState<unknown>(null);
  const act = async (what: Act) => {
    if (doing) return;
    const [method, path, said] = REQUESTS[what];
    setDoing(what);
    setError(null);
    try {
      const { data } = await request<{ lease: Lease }>(method, `v1/leases/${lease.id}/${path}`);
      note(`${lease.name} ${said}`);
      onDone(data.lease);
    } catch (refused) {
      setError(refused);
    }
    setDoing(null);
  };
  return { doing, error, act };
}

interface UseProps {
  lease: Lease;
  onDone: (lease: Lease) => void;
}

/** The warning before a release, with what keeps it off. */
export function ReleaseBar({ lease, onDone }: UseProps) {
  const { doing, error, act } = useActs(lease, onDone);
  if (!lease.release_at || isPast(lease)) return null;
  return (
    <div class="banner warning" role="status">
      <p>
        <strong>
          It is released <When at={minute(lease.release_at)} as="spoken" /> because {whyReleased(lease.usage)}.
        </strong>{" "}
        Start something in it, or keep it.
        {error !== null && (
          <span class="field-error own-line" role="alert">
            {plain(error)}
          </span>
        )}
      </p>
      <div class="row">
        {may("blazar:leases:keep") && (
          <BusyButton type="button" busy={doing === "keep"} doing="Keeping…" onClick={() => void act("keep")}>
            Keep
          </BusyButton>
        )}
        {may("blazar:leases:hold") && (
          <BusyButton type="button" busy={doing === "hold"} doing="Holding…" onClick={() => void act("hold")}>
            Hold
          </BusyButton>
        )}
      </div>
    </div>
  );
}

/** What looks have found of the use of a lease; operators hold it there, and let go. */
export function UsePanel({ lease, onDone }: UseProps) {
  const { doing, error, act } = useActs(lease, onDone);
  const said = usageInWords(lease, zone.value, present.value);
  if (said === null || isPast(lease)) return null;
  return (
    <section class="card use-panel" aria-label="Use">
      <h2>Use</h2>
      <p>
        {said}
        {lease.held && " An operator holds it: it stays until its end, used or not."}
      </p>
      {may("blazar:leases:hold") && (
        <>
          <p class="row">
            <BusyButton
              type="button"
              class="small"
              busy={doing !== null}
              doing={lease.held ? "Letting go…" : "Holding…"}
              onClick={() => void act(lease.held ? "let go" : "hold")}
            >
              {lease.held ? "Let go" : "Hold"}
            </BusyButton>
          </p>
          <p class="hint">A lease that is held is never released because nobody uses it.</p>
        </>
      )}
      {error !== null && (
        <p class="field-error" role="alert">
          {plain(error)}
        </p>
      )}
    </section>
  );
}
