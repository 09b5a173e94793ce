// SPDX-License-Identifier: Apache-2.0
/** What is where in the grid: pure functions over rows of blocks. Instants are milliseconds since 1970, windows half-open. */

/** How a block is drawn. `own` and `lease` have a state's mark, `other` is anonymous, `out` is out of use. */
export type BlockKind = "own" | "lease" | "other" | "cleaning" | "out";

export interface Block {
  /** Unique in its row, and the same in the next answer. */
  key: string;
  kind: BlockKind;
  start: number;
  end: number;
  /** Shown inside if there is room. */
  label: string;
  /** The state of a lease, as a class of its own. */
  mark?: string;
  /** True if its end may be dragged. */
  movable?: boolean;
  /** True if its start may be dragged, and so all of it. */
  startMovable?: boolean;
  /** Who it is of, as a number from 0 on: a colour. */
  colour?: number;
  /** True if it is none of those that are looked for. */
  dim?: boolean;
}

export interface Row {
  key: string;
  name: string;
  detail: string;
  /** Sorted by start. */
  blocks: readonly Block[];
}

/** How many of a group are free, in steps of equal length. */
export interface Heat {
  from: number;
  step: number;
  free: readonly number[];
  total: readonly number[];
  /** What is counted, if not rows: "units". */
  noun?: string | undefined;
}

export interface Group {
  key: string;
  name: string;
  open: boolean;
  /** How many rows it has, also while they are not read. */
  size: number;
  /** Of how many, if not all of them are shown: its heat is that of all. */
  of?: number;
  rows: readonly Row[];
  heat: Heat | null;
}

/** Returns "41", or "29 of 41" where only some of its rows are shown. */
export function sizeInWords({ size, of }: Pick<Group, "size" | "of">): string {
  return of === undefined ? String(size) : `${size} of ${of}`;
}

/** A line of the grid: the head of a group, or a row of an open one. */
export type Line = { kind: "group"; key: string; group: Group } | { kind: "row"; key: string; group: Group; row: Row };

/** A stretch of a row's time: a block, or a gap between blocks that may be booked. */
export interface Segment {
  start: number;
  end: number;
  /** Null for a gap. */
  block: Block | null;
}

/** Returns the lines from top to bottom. A single group without a name has no head. */
export function linesOf(groups: readonly Group[]): Line[] {
  const lines: Line[] = [];
  for (const group of groups) {
    const headless = groups.length === 1 && group.name === "";
    if (!headless) lines.push({ kind: "group", key: `group:${group.key}`, group });
    if (group.open || headless) for (const row of group.rows) lines.push({ kind: "row", key: row.key, group, row });
  }
  return lines;
}

const latestEnds = new WeakMap<readonly Block[], Float64Array>();

/** Returns the latest end among the first n + 1 blocks, for each n: what lets a search stop early. */
function latestEndsOf(blocks: readonly Block[]): Float64Array {
  let known = latestEnds.get(blocks);
  if (!known) {
    known = new Float64Array(blocks.length);
    let latest = Number.NEGATIVE_INFINITY;
    for (const [index, block] of blocks.entries()) {
      latest = Math.max(latest, block.end);
      known[index] = latest;
    }
    latestEnds.set(blocks, known);
  }
  return known;
}

/** Returns the first index for which `test` holds; `length` if there is none. It must hold for all that follow. */
export function firstIndex(length: number, test: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (test(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Returns the blocks that overlap a window. */
export function blocksBetween(blocks: readonly Block[], from: number, to: number): Block[] {
  const ends = latestEndsOf(blocks);
  const first = firstIndex(blocks.length, (index) => ends[index]! > from);
  const last = firstIndex(blocks.length, (index) => blocks[index]!.start >= to);
  const found: Block[] = [];
  for (let index = first; index < last; index++) if (blocks[index]!.end > from) found.push(blocks[index]!);
  return found;
}

/** Returns blocks and gaps of a window in the order of time; overlapping blocks follow each other by their start. */
export function segmentsOf(blocks: readonly Block[], from: number, to: number): Segment[] {
  const segments: Segment[] = [];
  let free = from;
  for (const block of blocksBetween(blocks, from, to)) {
    if (block.start > free) segments.push({ start: free, end: block.start, block: null });
    segments.push({ start: block.start, end: block.end, block });
    free = Math.max(free, block.end);
  }
  if (free < to) segments.push({ start: free, end: to, block: null });
  return segments;
}

/** Returns the segment at an instant, or the nearest one. */
export function segmentAt(segments: readonly Segment[], at: number): number {
  const found = segments.findIndex((segment) => segment.start <= at && at < segment.end);
  if (found >= 0) return found;
  return segments.length > 0 && at >= segments[segments.length - 1]!.end ? segments.length - 1 : 0;
}

/** Tells whether nothing of a row lies in a window. */
export function isFree(row: Row, from: number, to: number): boolean {
  return blocksBetween(row.blocks, from, to).length === 0;
}

/** Returns when something else begins in the row after a block; `limit` if nothing does. */
export function freeUntil(row: Row, block: Block, limit: number): number {
  let until = limit;
  for (const other of blocksBetween(row.blocks, block.end, limit)) {
    // What is cleaned after this block moves along with its end.
    if (other !== block && other.kind !== "cleaning") until = Math.min(until, Math.max(other.start, block.end));
  }
  return until;
}

/** Which edges of a block are dragged. */
export type Edges = "start" | "end" | "both";

/** Returns the window of a block whose edge, or all of it, is brought to an instant; it keeps a step, and begins no earlier than now. */
export function movedTo(
  block: Pick<Block, "start" | "end">,
  edges: Edges,
  at: number,
  { step, now }: { step: number; now: number },
): { start: number; end: number } {
  if (edges === "end") return { start: block.start, end: Math.max(at, block.start + step, now) };
  if (edges === "start") return { start: Math.min(Math.max(at, now), block.end - step), end: block.end };
  const start = Math.max(at, now);
  return { start, end: start + block.end - block.start };
}

/** Tells whether nothing but a block itself, and its cleaning, lies in a window of its row. */
export function isFreeFor(row: Row, block: Block, from: number, to: number): boolean {
  return blocksBetween(row.blocks, from, to).every(
    (other) => other === block || (other.kind === "cleaning" && other.start === block.end),
  );
}

/** Returns which lane each block is drawn in and how many there are: blocks that share a host lie side by side. */
export function lanesOf(blocks: readonly Block[]): { lanes: Uint8Array; count: number } {
  const lanes = new Uint8Array(blocks.length);
  const ends: number[] = [];
  for (const [index, block] of blocks.entries()) {
    if (block.kind === "out" || block.kind === "cleaning") continue;
    let lane = ends.findIndex((end) => end <= block.start);
    if (lane < 0) lane = ends.length < 4 ? ends.push(0) - 1 : 3;
    ends[lane] = Math.max(ends[lane] ?? 0, block.end);
    lanes[index] = lane;
  }
  return { lanes, count: Math.max(1, ends.length) };
}

/** Instants to pixels and back. */
export class Scale {
  constructor(
    readonly from: number,
    readonly to: number,
    readonly pixelsPerMs: number,
  ) {}

  get width(): number {
    return (this.to - this.from) * this.pixelsPerMs;
  }

  x(at: number): number {
    return (at - this.from) * this.pixelsPerMs;
  }

  at(x: number): number {
    return this.from + x / this.pixelsPerMs;
  }
}

const MINUTE = 60_000;
const STEPS = [
  5 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  60 * MINUTE,
  180 * MINUTE,
  360 * MINUTE,
  720 * MINUTE,
  1440 * MINUTE,
];

/** Returns the step to which dragging snaps: the smallest that is 8 pixels or wider. */
export function snapStep(pixelsPerMs: number): number {
  return STEPS.find((step) => step * pixelsPerMs >= 8) ?? STEPS[STEPS.length - 1]!;
}

/** Returns the nearest multiple of a step, counted from an origin such as the beginning of a day. */
export function snap(at: number, step: number, origin: number): number {
  return origin + Math.round((at - origin) / step) * step;
}
