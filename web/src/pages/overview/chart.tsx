// SPDX-License-Identifier: Apache-2.0
/** Free, promised and out of use over time, as steps stacked on each other. */
import type { Capacity, CapacitySeries } from "../../api/types.ts";
import { ticksOf } from "../../grid/ticks.ts";
import { useWidth } from "../../parts/width.ts";
import { useInWords } from "./sums.ts";

const USUAL_WIDTH = 1000;
const HEIGHT = 220;
const LEFT = 38;
const BOTTOM = 22;

export interface ChartProps {
  capacity: Capacity;
  /** What begins now; null while it is not read. */
  near: Capacity | null;
  series: CapacitySeries;
  zone: string;
  now: number;
  noun: string;
}

/** Draws one series; a sentence says the same to screen readers. */
export function CapacityChart({ capacity, near, series, zone, now, noun }: ChartProps) {
  const [figure, width] = useWidth<HTMLElement>(USUAL_WIDTH);
  const from = Date.parse(capacity.from);
  const to = Date.parse(capacity.to);
  const most = Math.max(1, ...series.total);
  const x = (at: number) => LEFT + ((at - from) / (to - from)) * (width - LEFT);
  const y = (count: number) => (HEIGHT - BOTTOM) * (1 - count / most) + 4;
  const step = capacity.step_seconds * 1000;
  const promised = series.promised;
  const used = promised.map((count, index) => count + series.out_of_use[index]!);
  const path = (values: readonly number[]) =>
    `M${LEFT} ${y(0)}${values.map((count, index) => `V${y(count)}H${x(Math.min(to, from + (index + 1) * step))}`).join("")}V${y(0)}Z`;
  const summary = useInWords(capacity, near, { zone, now, noun });
  const { minor } = ticksOf(from, to, width / (to - from), zone, 76);
  const marks = [...new Set([0, Math.round(most / 2), most])];
  return (
    <figure class="chart" ref={figure}>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={summary || `How many ${noun} are free over time`}>
        {marks.map((count) => (
          <g key={count}>
            <line class="chart-line" x1={LEFT} x2={width} y1={y(count)} y2={y(count)} />
            <text x={LEFT - 8} y={y(count) + 4} text-anchor="end">
              {count.toLocaleString("en")}
            </text>
          </g>
        ))}
        <path class="chart-out" d={path(used)} />
        <path class="chart-promised" d={path(promised)} />
        {minor
          .filter((tick) => tick.at >= from && tick.at < to)
          .map((tick) => (
            <text key={tick.at} x={x(tick.at) + 4} y={HEIGHT - 4}>
              {tick.label}
            </text>
          ))}
        {now > from && now < to && <line class="chart-now" x1={x(now)} x2={x(now)} y1={0} y2={y(0)} />}
      </svg>
      <figcaption>
        <ul class="legend">
          <li>
            <span class="legend-block chart-key-promised" aria-hidden="true" /> promised
          </li>
          <li>
            <span class="legend-block chart-key-out" aria-hidden="true" /> out of use, promised to nobody
          </li>
          <li>
            <span class="legend-block chart-key-free" aria-hidden="true" /> free
          </li>
          {summary && <li class="muted">{summary}</li>}
          {series.out_of_use.some((count) => count > 0) && (
            <li class="muted">What is out of use but promised counts as promised.</li>
          )}
          {from < now && <li class="muted">Before now only what is still out of use is known to have been.</li>}
        </ul>
      </figcaption>
    </figure>
  );
}
