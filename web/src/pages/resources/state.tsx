// SPDX-License-Identifier: Apache-2.0
/** The state of a resource: failed, out of use, promised until, free. */
import { now as serviceNow } from "../../api/client.ts";
import { useLiveList } from "../../api/live.ts";
import { may } from "../../api/session.ts";
import type { Block, CalendarPage, CalendarResource, Resource } from "../../api/types.ts";
import { When } from "../../parts/basics.tsx";
import { StateMark } from "../../parts/state.tsx";
import { hrefOf } from "../../router.ts";
import { freeInWords } from "../../words/values.ts";
import { spoken } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";

const HOUR = 3_600_000;
/** How many days ahead is looked. */
const AHEAD = 30;

type Conditioned = Pick<Resource, "id" | "reservable" | "failure" | "disabled">;

/** That a resource is promised. Instants are null beyond what was read. */
export interface Promised {
  /** When nothing of it is promised any more, as far as it is now. */
  until: string | null;
  /** Of a shared resource: what is left of that of which the least is, and when more will be. */
  part: { free: string; none: boolean; first: string | null } | null;
}
export type PromisedUntil = ReadonlyMap<string, Promised>;

/** Returns how each resource is promised now, as blocks up to `to` tell; those that are free now are missing. */
export function promisedUntil(resources: readonly CalendarResource[], now: number, to: number): PromisedUntil {
  const found = new Map<string, Promised>();
  // Blocks are cut at the range: one that reaches its end may go on.
  const endOf = ({ end }: Block) => (end !== null && Date.parse(end) < to ? end : null);
  for (const { id, blocks, capacity } of resources) {
    const current = blocks.filter(
      ({ kind, start, end }) =>
        (kind === "lease" || kind === "mine" || kind === "other") &&
        Date.parse(start) <= now &&
        (end === null || Date.parse(end) > now),
    );
    const whole = current.find(({ used }) => !used);
    if (whole) found.set(id, { until: endOf(whole), part: null });
    else if (current.length > 0) {
      const ends = current.map(endOf);
      const known = ends.filter((end) => end !== null).sort();
      const until = known.length < ends.length ? null : known[known.length - 1]!;
      found.set(id, { until, part: { ...leftOf(capacity ?? {}, current), first: known[0] ?? null } });
    }
  }
  return found;
}

/** Returns what is left of that of which the smallest share is left. */
function leftOf(
  capacity: Readonly<Record<string, number>>,
  current: readonly Block[],
): { free: string; none: boolean } {
  let scarcest = { name: "", left: 0, all: 0, share: Number.POSITIVE_INFINITY };
  for (const [name, all] of Object.entries(capacity)) {
    const left = Math.max(0, all - current.reduce((sum, { used }) => sum + (used?.[name] ?? 0), 0));
    if (all > 0 && left / all < scarcest.share) scarcest = { name, left, all, share: left / all };
  }
  const { name, left, all } = scarcest;
  return name === "" ? { free: "", none: false } : { free: freeInWords(name, left, all), none: left === 0 };
}

/** Until when the resources of a type are promised; `read` has those of which that is known. */
export interface Promises {
  until: PromisedUntil;
  /** The maintenance window that is open or begins within a day, by resource. */
  closed: ReadonlyMap<string, Block>;
  read: ReadonlySet<string>;
  loading: boolean;
}

/** Returns the maintenance of each resource that goes on or begins within a day. */
export function maintenanceSoon(resources: readonly CalendarResource[], now: number): ReadonlyMap<string, Block> {
  const closed = new Map<string, Block>();
  for (const { id, blocks } of resources) {
    const next = blocks.find(
      ({ code, start, end }) =>
        code === "maintenance" && Date.parse(start) < now + 24 * HOUR && (end === null || Date.parse(end) > now),
    );
    if (next) closed.set(id, next);
  }
  return closed;
}

/** Returns what a page of the calendar lists. */
function inCalendar(body: Record<string, unknown>): { items: CalendarResource[]; count: number | undefined } {
  const { resources, count } = body.calendar as CalendarPage;
  return { items: resources, count };
}

/** Reads until when all resources of a type are promised, or that one of them whose id or label is given. */
export function usePromised(type: string, only?: string): Promises {
  const hour = Math.floor(serviceNow() / HOUR) * HOUR;
  const to = hour + AHEAD * 24 * HOUR;
  const query = { from: toWire(hour), to: toWire(to), fields: "blocks,capacity", resource_type: type, resource: only };
  const watch = useLiveList<CalendarResource>("v1/calendar", inCalendar, query, Number.POSITIVE_INFINITY, 60);
  const resources = watch.state.value.data?.items ?? [];
  return {
    until: promisedUntil(resources, present.value, to),
    closed: maintenanceSoon(resources, present.value),
    read: new Set(resources.map(({ id }) => id)),
    loading: watch.state.value.loading,
  };
}

/** "in maintenance until tomorrow 12:00", or from when on. */
function Closed({ window }: { window: Block }) {
  const begins = Date.parse(window.start);
  const said = (at: number) => spoken(at, zone.value, present.value);
  return (
    <span class="state state-past">
      <StateMark mark="changing" />
      <span class="state-word">{begins <= present.value ? "in maintenance" : "maintenance"}</span>
      <span class="state-next">
        {begins <= present.value ? window.end && `until ${said(Date.parse(window.end))}` : `from ${said(begins)} on`}
        {window.reason && `: ${window.reason}`}
      </span>
    </span>
  );
}

/** "promised until tomorrow 12:00": what operators see of a resource. What is not known of it is not said. */
export function ResourceState({ of, promises }: { of: Conditioned; promises: Promises }) {
  const window = promises.closed.get(of.id);
  return (
    <>
      <Use of={of} promises={promises} closed={window !== undefined && Date.parse(window.start) <= present.value} />
      {window && <Closed window={window} />}
    </>
  );
}

/** What is promised of it, or why nothing can be; a resource that is closed is neither free nor out of use for good. */
function Use({ of, promises, closed }: { of: Conditioned; promises: Promises; closed: boolean }) {
  const promised = promises.until.get(of.id);
  if (of.failure) {
    return (
      <span class="state state-failed">
        <StateMark mark="failed" />
        <span class="state-word">failed</span>
        <span class="state-next">
          {of.failure.reason}, <When at={of.failure.since} as="relative" />
          {may("blazar:problems:get") && (
            <>
              {" "}
              <a href={hrefOf("problems")}>What to do</a>
            </>
          )}
        </span>
      </span>
    );
  }
  if (of.disabled) {
    const { reason, until } = of.disabled;
    return (
      <span class="state state-past">
        <StateMark mark="past" />
        <span class="state-word">disabled</span>
        <span class="state-next">
          {reason}
          {until && ` until ${spoken(Date.parse(until), zone.value, present.value)}`}
        </span>
      </span>
    );
  }
  if (closed && promised === undefined) return null;
  if (!of.reservable) {
    return (
      <span class="state state-past">
        <StateMark mark="past" />
        <span class="state-word">out of use</span>
      </span>
    );
  }
  if (!promises.read.has(of.id)) {
    return (
      <span class="state">
        <StateMark mark="free" />
        <span class="state-word">can be reserved</span>
      </span>
    );
  }
  if (promised === undefined) {
    return (
      <span class="state">
        <StateMark mark="free" />
        <span class="state-word">free</span>
      </span>
    );
  }
  return (
    <span class="state">
      <StateMark mark="active" />
      <span class="state-word">{promised.part && !promised.part.none ? "partly promised" : "promised"}</span>
      <span class="state-next">{promisedInWords(promised)}</span>
    </span>
  );
}

/** "until tomorrow 12:00", and how much of a shared resource is free until then. */
function promisedInWords({ until, part }: Promised): string {
  const said = (at: string) => spoken(Date.parse(at), zone.value, present.value);
  const when = until ? `until ${said(until)}` : `for ${AHEAD} days and more`;
  if (!part) return when;
  const sooner =
    part.none && part.first !== null && part.first !== until ? `, less of it from ${said(part.first)} on` : "";
  return [part.free, `${when}${sooner}`].filter(Boolean).join(", promised ");
}
