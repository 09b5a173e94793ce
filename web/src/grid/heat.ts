// SPDX-License-Identifier: Apache-2.0
/** The heat row of a group: how many are free over time, as colour and as a number. */
import type { Heat, Scale } from "./layout.ts";

/** A stretch of time in which as many are free all the time; of joined steps, from the fewest to the most. */
export interface Stretch {
  start: number;
  end: number;
  /** The fewest. */
  free: number;
  most: number;
  total: number;
}

/**
 * Returns the stretches of a heat row between two instants. `every` joins so many steps into one, which has the fewest
 * and the most free among them; neighbours with equal numbers are joined, too.
 */
export function stretchesOf(heat: Heat, from: number, to: number, every = 1): Stretch[] {
  const found: Stretch[] = [];
  const first = Math.max(0, Math.floor((from - heat.from) / heat.step / every) * every);
  const last = Math.min(heat.free.length, Math.ceil((to - heat.from) / heat.step));
  for (let index = first; index < last; index += every) {
    const until = Math.min(index + every, heat.free.length);
    let [least, most] = [index, heat.free[index]!];
    for (let one = index + 1; one < until; one++) {
      if (heat.free[one]! < heat.free[least]!) least = one;
      most = Math.max(most, heat.free[one]!);
    }
    const [start, end] = [heat.from + index * heat.step, heat.from + until * heat.step];
    const [free, total] = [heat.free[least] ?? 0, heat.total[least] ?? 0];
    const before = found[found.length - 1];
    if (before && before.free === free && before.most === most && before.total === total) before.end = end;
    else found.push({ start, end, free, most, total });
  }
  return found;
}

/** A number on a heat row, and the time in which it is true: "12", or "3–8" where it changes. */
export interface Written {
  start: number;
  end: number;
  text: string;
}

/** Returns how wide a number is with some room around it, in pixels. */
function roomFor(text: string): number {
  return Math.max(22, 7 * text.length + 8);
}

/**
 * Returns the numbers that fit on stretches, each true at every moment of its time: stretches that are too narrow for a
 * number of their own get one together, from the fewest to the most.
 */
export function writtenOn(stretches: readonly Stretch[], pixelsPerMs: number): Written[] {
  const found: Written[] = [];
  let together: Omit<Stretch, "total"> | null = null;
  const put = ({ start, end, free, most }: Omit<Stretch, "total">): boolean => {
    const text = free === most ? String(free) : `${free}–${most}`;
    const fits = (end - start) * pixelsPerMs >= roomFor(text);
    if (fits) found.push({ start, end, text });
    return fits;
  };
  for (const one of stretches) {
    if (put(one)) {
      together = null;
      continue;
    }
    together = together
      ? {
          start: together.start,
          end: one.end,
          free: Math.min(together.free, one.free),
          most: Math.max(together.most, one.most),
        }
      : one;
    if (put(together)) together = null;
  }
  return found;
}

/** Returns 0 (none free) to 4 (all but a fifth are free). */
export function levelOf(free: number, total: number): number {
  if (free <= 0 || total <= 0) return 0;
  return Math.min(4, 1 + Math.floor((free / total) * 4));
}

/** Returns the least that is free, and when, in a sentence's parts; null if nothing is known. */
export function leastOf(heat: Heat): Stretch | null {
  let least: Stretch | null = null;
  for (const one of stretchesOf(heat, heat.from, heat.from + heat.step * heat.free.length)) {
    if (!least || one.free < least.free) least = one;
  }
  return least;
}

/** Paints the window into a canvas whose left edge is at `from`. */
export function paintHeat(
  canvas: HTMLCanvasElement,
  heat: Heat,
  scale: Scale,
  from: number,
  to: number,
  height: number,
): void {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.ceil((to - from) * scale.pixelsPerMs);
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const style = getComputedStyle(canvas);
  const colours = [0, 1, 2, 3, 4].map((level) => colour(style, `--heat-${level}`));
  const text = colour(style, "--text");
  pen.scale(ratio, ratio);
  pen.font = `500 11px ${style.fontFamily}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  // As fine as can be seen: what is free for some hours must not vanish in a day without.
  const every = Math.max(1, Math.ceil(2 / (heat.step * scale.pixelsPerMs)));
  const stretches = stretchesOf(heat, from, to, every).map((one) => {
    return { ...one, start: Math.max(one.start, from), end: Math.min(one.end, to) };
  });
  const x = (at: number) => (at - from) * scale.pixelsPerMs;
  for (const one of stretches) {
    pen.fillStyle = colours[levelOf(one.free, one.total)]!;
    pen.fillRect(x(one.start), 4, Math.max(1, x(one.end) - x(one.start)), height - 8);
  }
  for (const { start, end, text: number } of writtenOn(stretches, scale.pixelsPerMs)) {
    // What lies between two gaps is what the number is about.
    for (const edge of [start, end]) pen.clearRect(x(edge) - 0.5, 4, 1, height - 8);
    pen.fillStyle = text;
    pen.fillText(number, (x(start) + x(end)) / 2, height / 2 + 0.5);
  }
}

const probe = new Map<string, string>();

/** Resolves light-dark() and the like, which a canvas does not know. */
function colour(style: CSSStyleDeclaration, name: string): string {
  const value = style.getPropertyValue(name).trim();
  const key = `${value}|${style.colorScheme}`;
  let found = probe.get(key);
  if (found === undefined) {
    const span = document.createElement("span");
    span.hidden = true;
    // Forced colours are for text; the canvas keeps its own, with the number on them.
    span.style.forcedColorAdjust = "none";
    span.style.color = `var(${name})`;
    document.body.append(span);
    found = getComputedStyle(span).color;
    span.remove();
    probe.set(key, found);
  }
  return found;
}

/** Forgets resolved colours: the theme has changed. */
export function forgetColours(): void {
  probe.clear();
}
