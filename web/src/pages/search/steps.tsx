// SPDX-License-Identifier: Apache-2.0
/** The strip of time itself: steps, days, openings; a click begins the search there, a drag draws a window. */
import { useState } from "preact/hooks";
import type { CapacitySeries, Opening } from "../../api/types.ts";
import { duration, formatted, moment, plural, range } from "../../time/format.ts";
import { present } from "../../time/now.ts";
import { startOfDay, zone } from "../../time/zone.ts";
import { drawnWindow, fullHour, openOf } from "../../words/offers.ts";
import { fromNow, stepPath } from "../../words/steps.ts";

const WIDTH = 1000;
const HEIGHT = 72;
/** So far, in pixels, a click may slip before it draws. */
const SLIP = 6;

export interface StepsProps {
  series: CapacitySeries;
  total: number;
  start: number;
  step: number;
  asked: number;
  noun: string;
  openings: readonly Opening[];
  onPick: (at: number) => void;
  onDraw: (window: { start: number; end: number }) => void;
}

/** Where the pointer is, and where it went down: instants. */
interface Pointing {
  at: number;
  down: { at: number; x: number } | null;
  drawing: boolean;
}

/** Follows the pointer over the strip. */
function usePointing(start: number, end: number, props: Pick<StepsProps, "onPick" | "onDraw">) {
  const [pointing, setPointing] = useState<Pointing | null>(null);
  const instantAt = (event: PointerEvent) => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return start + Math.max(0, Math.min(1, (event.clientX - box.left) / box.width)) * (end - start);
  };
  const handlers = {
    onPointerDown: (event: PointerEvent) => {
      if (event.button !== 0) return;
      const at = instantAt(event);
      // A finger that moves scrolls the page; it taps to pick.
      if (event.pointerType === "mouse") (event.currentTarget as Element).setPointerCapture(event.pointerId);
      setPointing({ at, down: { at, x: event.clientX }, drawing: false });
    },
    onPointerMove: (event: PointerEvent) => {
      const down = pointing?.down ?? null;
      const drawing = down !== null && (pointing?.drawing || Math.abs(event.clientX - down.x) > SLIP);
      setPointing({ at: instantAt(event), down, drawing });
    },
    onPointerLeave: () => pointing?.down === null && setPointing(null),
    onPointerCancel: () => setPointing(null),
    onPointerUp: (event: PointerEvent) => {
      const at = instantAt(event);
      const { down = null, drawing = false } = pointing ?? {};
      setPointing({ at, down: null, drawing: false });
      if (!down) return;
      if (drawing) props.onDraw(drawnWindow(down.at, at, zone.value, present.value));
      else props.onPick(fullHour(at, zone.value));
    },
  };
  return { pointing, handlers };
}

/** The steps, with what is needed, the openings and the days below. */
export function Steps(props: StepsProps) {
  const { series, total, start, step, asked, noun, openings } = props;
  const here = zone.value;
  const now = present.value;
  const count = series.free.length;
  const end = start + count * step;
  const { pointing, handlers } = usePointing(start, end, props);
  const x = (at: number) => (Math.max(0, Math.min(end - start, at - start)) / (end - start)) * WIDTH;
  const y = (value: number) => HEIGHT - 1 - (value / total) * (HEIGHT - 4);
  const { values, at } = fromNow(series.free, series.at_start?.free);
  const path = stepPath(values, (index) => (at(index) / count) * WIDTH, y);
  const least = Math.min(...series.free);
  const most = Math.max(...series.free);
  const enough = series.free.findIndex((free) => free >= asked);
  const first = enough < 0 ? "none" : moment(start + enough * step, here, now);
  const summary = `Free ${noun} from ${moment(start, here, now)} to ${moment(end, here, now)}: at least ${least}, at most ${most} of ${total}; the first time with ${asked}: ${first}.`;
  const window = pointing?.drawing && pointing.down ? drawnWindow(pointing.down.at, pointing.at, here, now) : null;
  return (
    <>
      <div class="strip-box">
        <div class="strip-axis number" aria-hidden="true">
          <span>{total}</span>
          <span>0</span>
        </div>
        <svg
          role="img"
          aria-label={summary}
          viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
          preserveAspectRatio="none"
          {...handlers}
        >
          {weekends(start, end, here).map(([from, to]) => (
            <rect key={from} class="strip-weekend" x={x(from)} width={x(to) - x(from)} y={0} height={HEIGHT} />
          ))}
          <path class="strip-area" d={`${path} V ${HEIGHT} H 0 Z`} />
          <path class="strip-line" d={path} />
          {asked > 0 && asked <= total && <line class="strip-asked" x1={0} x2={WIDTH} y1={y(asked)} y2={y(asked)} />}
          {window && (
            <rect
              class="strip-drawn"
              x={x(window.start)}
              width={x(window.end) - x(window.start)}
              y={0}
              height={HEIGHT}
            />
          )}
          {pointing && !window && (
            <line class="strip-pointed" x1={x(pointing.at)} x2={x(pointing.at)} y1={0} y2={HEIGHT} />
          )}
        </svg>
        <svg class="strip-openings" aria-hidden="true" viewBox={`0 0 ${WIDTH} 6`} preserveAspectRatio="none">
          {openings.map((one) => {
            const open = openOf(one);
            const from = x(open.start);
            return (
              <rect
                key={one.start_date}
                x={from}
                width={Math.max(2, x(open.end) - from)}
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
      <Legend {...props} pointed={pointing?.at ?? null} drawn={window} />
    </>
  );
}

interface LegendProps extends StepsProps {
  pointed: number | null;
  drawn: { start: number; end: number } | null;
}

/** What the colours mean and what a click does; or what is under the pointer. */
function Legend({ series, total, start, step, asked, noun, openings, pointed, drawn }: LegendProps) {
  const here = zone.value;
  const now = present.value;
  if (drawn) {
    return (
      <p class="strip-legend hint" aria-hidden="true">
        {range(drawn.start, drawn.end, here, now)} ({duration(drawn.end - drawn.start)}); let go to ask for just that
      </p>
    );
  }
  if (pointed !== null) {
    const index = Math.max(0, Math.min(series.free.length - 1, Math.floor((pointed - start) / step)));
    const until = duration(step);
    return (
      <p class="strip-legend hint" aria-hidden="true">
        {moment(Math.floor((start + index * step) / 60_000) * 60_000, here, now)}, for {until}: at least{" "}
        {series.free[index]} of {plural(total, noun, noun)} free
      </p>
    );
  }
  return (
    <p class="strip-legend hint" aria-hidden="true">
      <span class="key key-free" /> free {noun}
      {asked > 0 && asked <= total && (
        <>
          <span class="key key-asked" /> needed
        </>
      )}
      {openings.some((one) => one.refusals.length === 0) && (
        <>
          <span class="key key-opening" /> free for what you ask
        </>
      )}
      {openings.some((one) => one.refusals.length > 0) && (
        <>
          <span class="key key-refused" /> would be refused
        </>
      )}
      <span class="strip-hint">
        {shownInWords(series.free.length * step)} Click to search from there, drag to ask for just that time.
      </span>
    </p>
  );
}

/** The strip ends where the first openings can be seen, though the search may go on: how much of it is shown. */
function shownInWords(long: number): string {
  const days = Math.round(long / 86_400_000);
  return `${days > 1 ? `${days} days are` : `${duration(long)} is`} shown; the search may go on beyond.`;
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
