// SPDX-License-Identifier: Apache-2.0
/** The heat row of a group: how many are free over time, as colour and as a number. */
import type { Heat, Scale } from "./layout.ts";

/** Stretches of equal numbers in a window, so that few are painted. */
export interface Stretch {
  start: number;
  end: number;
  free: number;
  total: number;
}

/**
 * Returns the stretches of a heat row between two instants. `every` joins so many steps into one, which shows the
 * fewest free among them; neighbours with equal numbers are joined, too.
 */
export function stretchesOf(heat: Heat, from: number, to: number, every = 1): Stretch[] {
  const found: Stretch[] = [];
  const first = Math.max(0, Math.floor((from - heat.from) / heat.step / every) * every);
  const last = Math.min(heat.free.length, Math.ceil((to - heat.from) / heat.step));
  for (let index = first; index < last; index += every) {
    const until = Math.min(index + every, heat.free.length);
    let least = index;
    for (let one = index + 1; one < until; one++) if (heat.free[one]! < heat.free[least]!) least = one;
    const [start, end] = [heat.from + index * heat.step, heat.from + until * heat.step];
    const [free, total] = [heat.free[least] ?? 0, heat.total[least] ?? 0];
    const before = found[found.length - 1];
    if (before && before.free === free && before.total === total) before.end = end;
    else found.push({ start, end, free, total });
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
  // A stretch narrower than its number says nothing.
  const every = Math.max(1, Math.ceil(30 / (heat.step * scale.pixelsPerMs)));
  for (const one of stretchesOf(heat, from, to, every)) {
    const left = (Math.max(one.start, from) - from) * scale.pixelsPerMs;
    const right = (Math.min(one.end, to) - from) * scale.pixelsPerMs;
    pen.fillStyle = colours[levelOf(one.free, one.total)]!;
    pen.fillRect(left, 4, Math.max(1, right - left - 0.5), height - 8);
    if (right - left >= 22) {
      pen.fillStyle = text;
      pen.fillText(String(one.free), (left + right) / 2, height / 2 + 0.5);
    }
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
