// SPDX-License-Identifier: Apache-2.0
/** A series of values as the path of an SVG that goes in steps. */

/**
 * Returns where in a series of steps a curve changes, and to what: the points have the fewest of their step, and the first
 * moment its own number, which holds for no more than a part of the first step.
 */
export function fromNow(
  points: readonly number[],
  first: number | undefined,
): { values: number[]; at: (index: number) => number } {
  if (first === undefined || first === points[0]) return { values: [...points], at: (index) => index };
  return { values: [first, ...points], at: (index) => (index < 2 ? index / 2 : index - 1) };
}

/** Returns the path through all values; equal neighbours make one step, so that long series stay short. */
export function stepPath(
  values: readonly number[],
  x: (index: number) => number,
  y: (value: number) => number,
): string {
  const text = (value: number) => String(Math.round(value * 100) / 100);
  const first = values[0];
  if (first === undefined) return "";
  const parts = [`M ${text(x(0))} ${text(y(first))}`];
  let last = first;
  for (const [index, value] of values.entries()) {
    if (value === last) continue;
    parts.push(`H ${text(x(index))} V ${text(y(value))}`);
    last = value;
  }
  parts.push(`H ${text(x(values.length))}`);
  return parts.join(" ");
}
