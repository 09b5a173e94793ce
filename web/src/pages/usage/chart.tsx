// SPDX-License-Identifier: Apache-2.0
/** Reserved time as bars of days, weeks or months: used, idle and not looked at, stacked on each other. */
import { useId } from "preact/hooks";
import { useWidth } from "../../parts/width.ts";
import {
  type Bar,
  type Step,
  type Sums,
  highestMark,
  hoursOf,
  isLookedAt,
  labelOf,
  partInWords,
} from "../../words/usage.ts";

const USUAL_WIDTH = 1000;
const HEIGHT = 250;
const LEFT = 52;
const BOTTOM = 24;
const TOP = 8;
/** Pixels between two bars, at most a part of a bar's room. */
const GAP = 10;
const WIDEST = 90;
/** The room of a label of an axis, in pixels. */
const LABEL: Readonly<Record<Step, number>> = { day: 26, week: 52, month: 34 };

interface Layer {
  name: Exclude<keyof Sums, "leases" | "energy" | "carbon">;
  text: string;
}

const LOOKED_AT: readonly Layer[] = [
  { name: "used", text: "used" },
  { name: "idle", text: "idle" },
  { name: "unseen", text: "not looked at" },
];
const RESERVED: readonly Layer[] = [{ name: "reserved", text: "reserved" }];

/** Returns what stands on what, from below; where nobody has looked at the use, only what was reserved. */
export function layersOf(sum: Sums): readonly Layer[] {
  return isLookedAt(sum) ? LOOKED_AT.filter(({ name }) => sum[name] > 0) : RESERVED;
}

export interface ChartProps {
  bars: readonly Bar[];
  layers: readonly Layer[];
  step: Step;
  /** The zone of the days. */
  zone: string;
  /** Says the same to screen readers. */
  summary: string;
  /** What is told is of what was so until then. */
  through: number;
}

/** Draws the bars; the table below has the same figures. */
export function UsageChart({ bars, layers, step, zone, summary, through }: ChartProps) {
  const [figure, width] = useWidth<HTMLElement>(USUAL_WIDTH);
  const pattern = useId();
  const most = highestMark(Math.max(...bars.map(({ sums }) => sums.reserved / 3600)));
  const room = (width - LEFT) / bars.length;
  const thick = Math.min(WIDEST, Math.max(1, room - Math.min(GAP, room / 4)));
  const y = (hours: number) => TOP + (HEIGHT - BOTTOM - TOP) * (1 - hours / most);
  const middle = (index: number) => LEFT + room * (index + 0.5);
  const every = Math.ceil(LABEL[step] / room);
  return (
    <figure class="chart usage-chart" ref={figure}>
      <svg viewBox={`0 0 ${width} ${HEIGHT}`} role="img" aria-label={summary}>
        <defs>
          <pattern id={pattern} width="7" height="7" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
            <rect class="chart-idle-ground" width="7" height="7" />
            <rect class="chart-idle-line" width="2.5" height="7" />
          </pattern>
        </defs>
        {[0, most / 2, most].map((hours) => (
          <g key={hours}>
            <line class="chart-line" x1={LEFT} x2={width} y1={y(hours)} y2={y(hours)} />
            <text x={LEFT - 8} y={y(hours) + 4} text-anchor="end">
              {hours.toLocaleString("en")}
            </text>
          </g>
        ))}
        {bars.map((bar, index) => (
          <Stack
            key={bar.from}
            bar={bar}
            layers={layers}
            x={middle(index) - thick / 2}
            width={thick}
            y={y}
            idle={`url(#${pattern})`}
            part={partInWords(bar, step, zone)}
          />
        ))}
        {bars.map(
          (bar, index) =>
            index % every === 0 && (
              <text
                key={bar.from}
                class={bar.from >= through ? "chart-later" : ""}
                x={middle(index)}
                y={HEIGHT - 6}
                text-anchor="middle"
              >
                {labelOf(bar, step, zone)}
              </text>
            ),
        )}
      </svg>
      <figcaption>
        <ul class="legend">
          <li class="muted">{layers.length > 1 ? "Hours, from below:" : "Hours"}</li>
          {layers.map(({ name, text }) => (
            <li key={name}>
              <span class={`legend-block chart-key-${name}`} aria-hidden="true" /> {text}
            </li>
          ))}
        </ul>
      </figcaption>
    </figure>
  );
}

interface StackProps {
  bar: Bar;
  layers: readonly Layer[];
  x: number;
  width: number;
  y: (hours: number) => number;
  /** The fill of what was idle: a pattern, for eyes that do not tell colours apart. */
  idle: string;
  part: string;
}

function Stack({ bar, layers, x, width, y, idle, part }: StackProps) {
  let below = 0;
  return (
    <g>
      {layers.map(({ name, text }) => {
        const hours = bar.sums[name] / 3600;
        if (hours === 0) return null;
        const [top, bottom] = [y(below + hours), y(below)];
        below += hours;
        const fill = name === "idle" ? { fill: idle } : {};
        return (
          <rect key={name} class={`chart-${name}`} x={x} y={top} width={width} height={bottom - top} {...fill}>
            <title>{`${part}: ${hoursOf(bar.sums[name])} hours ${text}`}</title>
          </rect>
        );
      })}
    </g>
  );
}
