// SPDX-License-Identifier: Apache-2.0
/** How many are free over time, as steps, and how many match. */
import { useRef } from "preact/hooks";
import { kindOfType } from "../../api/kinds.ts";
import { useLive } from "../../api/live.ts";
import type { Capacity, Opening, Requirement } from "../../api/types.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { moment } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { toWire, zone } from "../../time/zone.ts";
import { nounOf } from "../../words/lease.ts";
import { measureOf } from "../../words/measure.ts";
import { type Want, bySchema, wishedOf } from "../../words/question.ts";
import { Steps } from "./steps.tsx";

export interface StripProps {
  want: Want;
  from: number | null;
  to: number;
  openings: readonly Opening[];
  /** Begins the search there. */
  onPick: (at: number) => void;
  /** Asks for just this window. */
  onDraw: (window: { start: number; end: number }) => void;
}

/** Tells whether it can be said how many are free: not of what is made of others, such as a stack. */
export function isMeasured(want: Want): boolean {
  return measureOf(want) !== null && (!bySchema(want.type) || kindOfType(want.type) !== undefined);
}

/** What resources must be like: the requirement, and what is asked for by an attribute, such as a class. */
export function requiredOf(want: Want): Requirement {
  const own = wishedOf(want);
  const attributes = kindOfType(want.type)?.attributes ?? {};
  const asked = Object.entries(want.values)
    .filter(([name, value]) => bySchema(want.type) && name in attributes && typeof value === "string")
    .map(([name, value]): Requirement => ["==", `$${name}`, value]);
  const region: Requirement[] = want.region ? [["==", "$region", want.region]] : [];
  const parts = [...asked, ...(own.length > 0 ? [own] : []), ...region];
  return parts.length > 1 ? ["and", ...parts] : (parts[0] ?? []);
}

const FIVE_MINUTES = 300_000;

/** What is asked of the capacity: from the present itself, so that "free now" is what is free now. */
function queryOf(want: Want, from: number | null, to: number): Record<string, string> {
  const start = from ?? present.value;
  const end = Math.max(start + 3_600_000, Math.ceil(to / FIVE_MINUTES) * FIVE_MINUTES);
  const requirement = requiredOf(want);
  const { type, units } = measureOf(want) ?? { type: want.type, units: null };
  return {
    from: from === null ? "now" : toWire(start),
    to: toWire(end),
    resource_type: type,
    ...(requirement.length > 0 ? { requirement: JSON.stringify(requirement) } : {}),
    ...(units ? { measure: units.of } : {}),
  };
}

/** "42 hosts match, 5 free now", and below it the strip of time. */
export function Strip({ want, from, to, openings, onPick, onDraw }: StripProps) {
  const query = queryOf(want, from, to);
  const watch = useLive<{ capacity: Capacity }>("v1/capacity", query, 30);
  const { data, error } = watch!.state.value;
  // Between two questions the older answer stays, with the words that were beside it: nothing jumps.
  const kept = useRef<{ capacity: Capacity; from: number | null; want: Want } | null>(null);
  if (data) kept.current = { capacity: data.capacity, from, want };
  const answered = kept.current;
  if (!answered) return error ? <Trouble error={error} retry={() => void watch?.read()} /> : <Skeleton lines={2} />;
  const { capacity } = answered;
  const { type, units, asked } = measureOf(answered.want) ?? { type: want.type, units: null, asked: want.count };
  const series = capacity.series[0];
  const { noun: one, nouns } = kindOfType(type) ?? { noun: nounOf(type, 1), nouns: nounOf(type) };
  const noun = units?.noun ?? nouns;
  const total = Math.max(0, ...(series?.total ?? []));
  if (!series || total === 0) {
    return (
      <p class="count" role="status">
        <strong>No {nouns}</strong> match
        {requiredOf(answered.want).length > 0 ? ": take away a property." : ". An operator has to register some first."}
      </p>
    );
  }
  const at = answered.from === null ? "now" : moment(answered.from, zone.value, present.value);
  return (
    <figure class={data ? "strip" : "strip older"}>
      <figcaption class="count">
        <strong class="number">{total}</strong> {total === 1 && !units ? one : noun}{" "}
        {units ? `${units.on} ${nouns} that match` : total === 1 ? "matches" : "match"},{" "}
        <strong class="number">{series.at_start?.free ?? series.free[0]}</strong> free{" "}
        {answered.from === null ? at : `on ${at}`}
      </figcaption>
      <Steps
        series={series}
        total={total}
        start={Date.parse(capacity.from)}
        step={capacity.step_seconds * 1000}
        asked={asked}
        noun={noun}
        openings={data ? openings : []}
        onPick={onPick}
        onDraw={onDraw}
      />
    </figure>
  );
}
