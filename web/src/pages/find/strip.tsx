// SPDX-License-Identifier: Apache-2.0
/** How many are free over time, as steps, and how many match. */
import { useRef, useState } from "preact/hooks";
import { kindOfType } from "../../api/kinds.ts";
import { useLive } from "../../api/live.ts";
import type { Capacity, CapacitySeries, Opening, Requirement } from "../../api/types.ts";
import { Skeleton, Trouble } from "../../parts/basics.tsx";
import { formatted, moment, plural } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { startOfDay, toWire, zone } from "../../time/zone.ts";
import { stepPath } from "../../words/steps.ts";
import { nounOf } from "../../words/lease.ts";
import { measureOf } from "../../words/measure.ts";
import { type Want, bySchema, wishedOf } from "../../words/question.ts";

export interface StripProps {
  want: Want;
  from: number | null;
  to: number;
  openings: readonly Opening[];
  /** Begins the search there. */
  onPick: (at: number) => void;
}

/** Tells whether it can be said how many are free: not of what is made of others, such as a stack. */
export function isMeasured(want: Want): boolean {
  return measureOf(want) !== null && (!bySchema(want.type) || kindOfType(want.type) !== undefined);
}

/** What resources must be like: the requirement, and what is asked for by an attribute, such as a class. */
function requiredOf(want: Want): Requirement {
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

/** "42 hosts match, 5 free now", and below it the strip of time. */
export function Strip({ want, from, to, openings, onPick }: StripProps) {
  // The present is rounded, so that the question stays the same for some minutes.
  const start = from ?? Math.floor(present.value / FIVE_MINUTES) * FIVE_MINUTES;
  const end = Math.max(start + 3_600_000, Math.ceil(to / FIVE_MINUTES) * FIVE_MINUTES);
  const requirement = requiredOf(want);
  const { type, units, asked } = measureOf(want) ?? { type: want.type, units: null, asked: want.count };
  const query: Record<string, string> = { from: toWire(start), to: toWire(end), resource_type: type };
  if (requirement.length > 0) query.requirement = JSON.stringify(requirement);
  if (units) query.measure = units.of;
  const watch = useLive<{ capacity: Capacity }>("v1/capacity", query, 30);
  const { data, error } = watch!.state.value;
  // Between two questions the older answer stays: nothing jumps.
  const kept = useRef<Capacity | null>(null);
  if (data) kept.current = data.capacity;
  const capacity = kept.current;
  if (!capacity) return error ? <Trouble error={error} retry={() => void watch?.read()} /> : <Skeleton lines={2} />;
  const series = capacity.series[0];
  const { noun: one, nouns } = kindOfType(type) ?? { noun: nounOf(type, 1), nouns: nounOf(type) };
  const noun = units?.noun ?? nouns;
  const total = Math.max(0, ...(series?.total ?? []));
  if (!series || total === 0) {
    return (
      <p class="count" role="status">
        <strong>No {nouns}</strong> match
        {requirement.length > 0 ? ": take away a property." : ". An operator has to register some first."}
      </p>
    );
  }
  const at = from === null ? "now" : moment(from, zone.value, present.value);
  return (
    <figure class="strip">
      <figcaption class="count">
        <strong class="number">{total}</strong> {total === 1 && !units ? one : noun}{" "}
        {units ? `${units.on} ${nouns} that match` : total === 1 ? "matches" : "match"},{" "}
        <strong class="number">{series.free[0]}</strong> free {from === null ? at : `on ${at}`}
      </figcaption>
      <Steps
        series={series}
        total={total}
        start={Date.parse(capacity.from)}
        step={capacity.step_seconds * 1000}
        asked={asked}
        noun={noun}
        openings={openings}
        onPick={onPick}
      />
    </figure>
  );
}

const WIDTH = 1000;
const HEIGHT = 72;

function Steps(props: {
  series: CapacitySeries;
  total: number;
  start: number;
  step: number;
  asked: number;
  noun: string;
  openings: readonly Opening[];
  onPick: (at: number) => void;
}) {
  const { series, total, start, step, asked, noun, openings, onPick } = props;
  const [pointed, setPointed] = useState<number | null>(null);
  const here = zone.value;
  const now = present.value;
  const count = series.free.length;
  const end = start + count * step;
  const x = (at: number) => (Math.max(0, Math.min(end - start, at - start)) / (end - start)) * WIDTH;
  const y = (value: number) => HEIGHT - 1 - (value / total) * (HEIGHT - 4);
  const path = stepPath(series.free, (index) => (index / count) * WIDTH, y);
  const indexAt = (event: PointerEvent | MouseEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return Math.max(0, Math.min(count - 1, Math.floor(((event.clientX - box.left) / box.width) * count)));
  };
  const least = Math.min(...series.free);
  const most = Math.max(...series.free);
  const summary = `Free ${noun} from ${moment(start, here, now)} to ${moment(end, here, now)}: at least ${least}, at most ${most} of ${total}; the first time with ${asked}: ${firstWith(series, asked, start, step, here, now)}.`;
  return (
    <>
      <div class="strip-box">
        {/* biome-ignore lint/a11y/useKeyWithClickEvents: the field for the date does the same by keyboard */}
        <svg
          role="img"
          aria-label={summary}
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          onPointerMove={(event) => setPointed(indexAt(event))}
          onPointerLeave={() => setPointed(null)}
          onClick={(event) => onPick(start + indexAt(event) * step)}
        >
          {weekends(start, end, here).map(([from, to]) => (
            <rect key={from} class="strip-weekend" x={x(from)} width={x(to) - x(from)} y={0} height={HEIGHT} />
          ))}
          <path class="strip-area" d={`${path} V ${HEIGHT} H 0 Z`} />
          <path class="strip-line" d={path} />
          {asked > 0 && asked <= total && <line class="strip-asked" x1={0} x2={WIDTH} y1={y(asked)} y2={y(asked)} />}
          {pointed !== null && (
            <line
              class="strip-pointed"
              x1={((pointed + 0.5) / count) * WIDTH}
              x2={((pointed + 0.5) / count) * WIDTH}
              y1={0}
              y2={HEIGHT}
            />
          )}
        </svg>
        <svg class="strip-openings" aria-hidden="true" viewBox={`0 0 ${WIDTH} 6`} preserveAspectRatio="none">
          {openings.map((one) => {
            const from = x(Date.parse(one.start_date));
            return (
              <rect
                key={one.start_date}
                x={from}
                width={Math.max(2, x(Date.parse(one.end_date)) - from)}
                y={1}
                height={4}
                class={one.refusals.length > 0 ? "strip-refused" : "strip-opening"}
              />
            );
          })}
        </svg>
        <div class="strip-days" aria-hidden="true">
          {dayMarks(start, end, here).map((at) => (
            <span key={at} style={{ left: `${((at - start) / (end - start)) * 100}%` }}>
              {formatted(at, here, "day")}
            </span>
          ))}
        </div>
      </div>
      <p class="strip-legend hint" aria-hidden="true">
        {pointed === null ? (
          <>
            <span class="key key-free" /> free {noun}
            {asked > 0 && asked <= total && (
              <>
                <span class="key key-asked" /> needed
              </>
            )}
            <span class="key key-opening" /> openings
          </>
        ) : (
          `${moment(start + pointed * step, here, now)}: ${series.free[pointed]} of ${plural(total, noun, noun)} free; click to search from there`
        )}
      </p>
    </>
  );
}

function firstWith(
  series: CapacitySeries,
  asked: number,
  start: number,
  step: number,
  here: string,
  now: number,
): string {
  const index = series.free.findIndex((free) => free >= asked);
  return index < 0 ? "none" : moment(start + index * step, here, now);
}

/** Returns at most eight midnights of the zone between two instants. */
function dayMarks(start: number, end: number, name: string): number[] {
  const days = Math.ceil((end - start) / 86_400_000);
  const every = Math.max(1, Math.ceil(days / 7));
  const marks: number[] = [];
  for (let day = 1; day <= days; day += every) {
    const at = startOfDay(start, name, day);
    if (at < end - (end - start) * 0.09) marks.push(at);
  }
  return marks;
}

function weekends(start: number, end: number, name: string): [number, number][] {
  if (end - start > 120 * 86_400_000) return [];
  const found: [number, number][] = [];
  for (let day = 0; startOfDay(start, name, day) < end; day++) {
    const at = startOfDay(start, name, day);
    const weekday = formatted(at, name, "weekday-short");
    if (weekday === "Sat" || weekday === "Sun") found.push([at, startOfDay(start, name, day + 1)]);
  }
  return found;
}
