// SPDX-License-Identifier: Apache-2.0
/** What is drawn is where the service says it is: for random answers, from the JSON to pixels and back. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CalendarResource } from "../src/api/types.ts";
import { Scale, blocksBetween, lanesOf, linesOf, segmentsOf } from "../src/grid/layout.ts";
import { Rows, type View, groupsOf, sourceOf } from "../src/pages/calendar/data.ts";

const HOUR = 3_600_000;
const FROM = Date.parse("2031-03-03T00:00:00Z");
const TO = FROM + 42 * 24 * HOUR;
const VIEW: View = { from: FROM, to: TO, now: FROM + 7 * 24 * HOUR, project: "physics", mayChange: true };

/** The same numbers each time (mulberry32). */
function chanceOf(seed: number): (limit: number) => number {
  let state = seed;
  return (limit) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296) * limit);
  };
}

const wire = (at: number) => new Date(at).toISOString().replace(".000Z", "Z");

function resourceOf(chance: (limit: number) => number, id: number): CalendarResource {
  const blocks = Array.from({ length: chance(25) }, (_, index) => {
    const start = FROM + chance(42 * 24 * 60) * 60_000;
    const kind = ["mine", "lease", "other", "cleaning", "out_of_use"][chance(5)]!;
    const endless = kind === "out_of_use" && chance(4) === 0;
    const end = Math.min(TO, start + 60_000 + chance(5 * 24 * 60) * 60_000);
    const lease = kind === "mine" || kind === "lease";
    return {
      kind,
      start: wire(start),
      end: endless ? null : wire(end),
      ...(lease ? { lease_id: `l-${id}-${index}`, reservation_id: `r-${id}-${index}`, name: "work" } : {}),
      ...(lease ? { status: ["PENDING", "ACTIVE", "TERMINATED"][chance(3)], project_id: "physics" } : {}),
    };
  });
  const properties = chance(3) === 0 ? {} : { gpu: ["A100", "H100"][chance(2)] };
  return { id: `h-${id}`, name: `h-${id}`, capacity: {}, properties, blocks } as unknown as CalendarResource;
}

for (let seed = 1; seed <= 40; seed++) {
  test(`what is drawn is where the service says it is, for random answers (${seed})`, () => {
    const chance = chanceOf(seed);
    const resources = Array.from({ length: 1 + chance(30) }, (_, id) => resourceOf(chance, id));
    const rows = new Rows().of(resources, VIEW);
    const lines = linesOf(groupsOf(rows, resources, "gpu", null, () => true)).filter((line) => line.kind === "row");
    // Each resource has one line.
    assert.deepEqual(lines.map((line) => line.key).sort(), resources.map((one) => one.id).sort());
    const scale = new Scale(FROM, TO, (1 + chance(400)) / HOUR);
    const seenFrom = FROM + chance(30 * 24) * HOUR;
    const seenTo = seenFrom + (1 + chance(10 * 24)) * HOUR;
    for (const { row } of lines) {
      const told = resources.find((one) => one.id === row.key)!.blocks;
      assert.deepEqual(row.blocks.map((block) => sourceOf(block)!.block).sort(byText), [...told].sort(byText));
      const shown = blocksBetween(row.blocks, seenFrom, seenTo);
      assert.equal(shown.length, told.filter((block) => overlaps(block, seenFrom, seenTo)).length);
      for (const block of shown) {
        const { start, end } = sourceOf(block)!.block;
        assert.ok(Math.abs(scale.at(scale.x(block.start)) - Date.parse(start)) < 1);
        assert.ok(Math.abs(scale.at(scale.x(block.end)) - (end ? Date.parse(end) : TO)) < 1);
      }
      checkLanes(shown);
      checkGaps(row.blocks, seenFrom, seenTo);
    }
  });
}

function byText(one: unknown, other: unknown): number {
  return JSON.stringify(one).localeCompare(JSON.stringify(other));
}

function overlaps(block: { start: string; end: string | null }, from: number, to: number): boolean {
  return Date.parse(block.start) < to && (block.end ? Date.parse(block.end) : TO) > from;
}

/** Blocks that overlap lie side by side, as long as there are lanes. */
function checkLanes(shown: ReturnType<typeof blocksBetween>): void {
  const { lanes, count } = lanesOf(shown);
  if (count >= 4) return;
  for (const [index, one] of shown.entries()) {
    for (const [at, other] of shown.entries()) {
      if (at <= index || !isLaned(one) || !isLaned(other)) continue;
      if (one.start < other.end && other.start < one.end) assert.notEqual(lanes[index], lanes[at]);
    }
  }
}

function isLaned({ kind }: { kind: string }): boolean {
  return kind !== "out" && kind !== "cleaning";
}

/** A gap that can be booked has nothing in it, and every free minute lies in one. */
function checkGaps(blocks: Parameters<typeof segmentsOf>[0], from: number, to: number): void {
  const gaps = segmentsOf(blocks, from, to).filter((segment) => segment.block === null);
  for (const gap of gaps) assert.deepEqual(blocksBetween(blocks, gap.start, gap.end), []);
  for (let at = from; at < to; at += HOUR) {
    const isFree = blocksBetween(blocks, at, at + 1).length === 0;
    assert.equal(
      gaps.some((gap) => gap.start <= at && at < gap.end),
      isFree,
    );
  }
}
