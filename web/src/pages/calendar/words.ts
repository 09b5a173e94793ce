// SPDX-License-Identifier: Apache-2.0
/** Blocks of the calendar in sentences. */
import { leastOf } from "../../grid/heat.ts";
import { type Block, type Group, type Row, blocksBetween, sizeInWords } from "../../grid/layout.ts";
import { clock, daysBetween, duration, moment, range } from "../../time/format.ts";
import { phaseOf } from "../../words/lease.ts";
import { capacityInWords } from "../../words/values.ts";
import { ENABLED_LATER, sourceOf } from "./data.ts";

/** Returns what a block is, without its times: "gan-training, active". */
export function whatOf(block: Block | null, now: number): string {
  if (!block) return "Free";
  const source = sourceOf(block)?.block;
  switch (block.kind) {
    case "own":
    case "lease": {
      const state = phaseOf({ status: source?.status ?? "" }, block.start, now).word;
      return [block.label || "Reserved", state].join(", ");
    }
    case "cleaning":
      return "Cleaning between two users";
    case "out":
      // Why it is disabled is said of the time before.
      if (source?.code === ENABLED_LATER) return "Takes new leases once enabled";
      if (source?.code === "maintenance") return ["Maintenance", source.reason].filter(Boolean).join(": ");
      return ["Out of use", codeInWords(source?.code), source?.reason].filter(Boolean).join(": ");
    default:
      return source?.used ? `Promised to others: ${capacityInWords(source.used).join(", ")}` : "Promised to others";
  }
}

/** Returns why a resource is out of use in words. */
export function codeInWords(code: string | undefined): string {
  return code?.replaceAll("_", " ") ?? "";
}

/** What of time the calendar has read: an end of a block that lies there is where it was cut, not its own. */
export interface Read {
  from: number;
  to: number;
}

/** Returns when a block or a gap is, and how long, as far as that is known. */
export function timesOf(
  { start, end }: { start: number; end: number },
  { from, to }: Read,
  zone: string,
  now: number,
): [when: string, long: string] {
  const [begins, ends] = [start > from, end < to];
  const long = duration(end - start);
  if (begins && ends) return [range(start, end, zone, now), long];
  if (begins) return [`from ${moment(start, zone, now)} on`, `at least ${long}`];
  if (ends) return [`until ${moment(end, zone, now)}`, `at least ${long}`];
  return ["all the time shown", `at least ${long}`];
}

/** Returns the full sentence of a cell for a screen reader. */
export function sayCell(
  block: Block | null,
  start: number,
  end: number,
  now: number,
  zone: string,
  read: Read,
): string {
  const what = whatOf(block, now);
  if (start <= read.from || end >= read.to) return `${what}, ${timesOf({ start, end }, read, zone, now)[0]}`;
  const same = daysBetween(start, end, zone) === 0;
  return `${what}, ${moment(start, zone, now)} to ${same ? clock(end, zone) : moment(end, zone, now)}`;
}

/** Returns a sentence about a closed or open group. */
export function sayGroup(group: Group, now: number, zone: string): string {
  const { heat } = group;
  if (!heat) return `${group.name}: ${sizeInWords(group)}`;
  const index = Math.floor((now - heat.from) / heat.step);
  const free = heat.free[index];
  const least = leastOf({
    ...heat,
    free: heat.free.slice(Math.max(0, index)),
    from: heat.from + Math.max(0, index) * heat.step,
  });
  // A step has the fewest that are free at any time of it, which need not be now.
  const counted = heat.noun ? ` ${heat.noun}` : "";
  const hours = Math.round(heat.step / 3_600_000);
  const step = hours === 1 ? "in this hour" : `in these ${hours} hours`;
  const present = free === undefined ? "" : `at least ${free} of ${heat.total[index]}${counted} free ${step}; `;
  return `${present}${least ? `fewest: ${least.free}${counted} free, ${range(least.start, least.end, zone, now)}` : ""}`;
}

/** Returns what of a row the table says at first, and how many more times there are, by whose they are. */
export function saidOf(row: Pick<Row, "blocks">, most: number): { blocks: Block[]; more: number; others: number } {
  const busy = row.blocks.filter((block) => block.kind !== "cleaning");
  // Of other projects than the one that is looked for.
  const wanted = busy.filter((block) => !block.dim);
  return {
    blocks: wanted.slice(0, most),
    more: Math.max(0, wanted.length - most),
    others: busy.length - wanted.length,
  };
}

/** Returns the blocks of a row in some time; what is over is no reason any more, unless one looks at the past. */
export function comingOf(row: Pick<Row, "blocks">, seen: Read, now: number): Block[] {
  const from = seen.to > now ? Math.max(seen.from, now) : seen.from;
  return blocksBetween(row.blocks, from, seen.to);
}

/** Returns why a block cannot be dragged. */
export function whyStuck(block: Block, now: number): string {
  const status = sourceOf(block)?.block.status;
  if (block.kind === "lease" || block.kind === "other") return "This is promised to others: only they can move it.";
  if (block.kind !== "own") return "Only your own leases can be moved.";
  if (block.end <= now) return "This lease is over.";
  if (status === "ACTIVE") return "This lease is in use: only its end can be moved. Drag its right edge.";
  if (block.movable) return "The start of this lease is not in sight. Open it to change its dates.";
  return "This lease cannot be moved now. Open it to see why.";
}
