// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { shiftInto } from "../src/grid/dom.ts";
import { leastOf, levelOf, stretchesOf, writtenOn } from "../src/grid/heat.ts";
import {
  Scale,
  blocksBetween,
  freeUntil,
  isFree,
  isFreeFor,
  lanesOf,
  linesOf,
  movedTo,
  segmentAt,
  segmentsOf,
  snap,
  snapStep,
  type Block,
  type Group,
  type Row,
} from "../src/grid/layout.ts";

import { renewed } from "../src/grid/pointed.ts";

const HOUR = 3_600_000;

function block(start: number, end: number, more: Partial<Block> = {}): Block {
  return { key: `${start}-${end}`, kind: "other", start, end, label: "", ...more };
}

function row(blocks: Block[], key = "h-1"): Row {
  return { key, name: key, detail: "", blocks };
}

/** Numbers in [0, 1), the same in every run. */
function dice(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

test("the blocks of a window are those that a look at every block finds", () => {
  const roll = dice(5);
  for (let round = 0; round < 400; round++) {
    const blocks = Array.from({ length: Math.floor(roll() * 30) }, () => {
      const start = Math.floor(roll() * 100);
      return block(start, start + 1 + Math.floor(roll() * 40));
    }).sort((a, b) => a.start - b.start);
    const from = Math.floor(roll() * 120);
    const to = from + 1 + Math.floor(roll() * 30);
    const expected = blocks.filter((one) => one.start < to && one.end > from);
    assert.deepEqual(blocksBetween(blocks, from, to), expected);
    assert.equal(isFree(row(blocks), from, to), expected.length === 0);
  }
});

test("touching blocks leave no gap, and a window that only touches a block is free", () => {
  const blocks = [block(0, 10), block(10, 20)];
  assert.deepEqual(
    segmentsOf(blocks, 0, 30).map(({ start, end, block: one }) => [start, end, one !== null]),
    [
      [0, 10, true],
      [10, 20, true],
      [20, 30, false],
    ],
  );
  assert.equal(isFree(row(blocks), 20, 25), true);
  assert.equal(isFree(row(blocks), 19, 25), false);
});

test("a long block that began before others does not hide what is free after them", () => {
  const blocks = [block(0, 50, { kind: "out" }), block(5, 10), block(12, 20)];
  const gaps = segmentsOf(blocks, 0, 100).filter((segment) => segment.block === null);
  assert.deepEqual(gaps, [{ start: 50, end: 100, block: null }]);
});

test("an instant finds its segment, or the nearest", () => {
  const segments = segmentsOf([block(10, 20)], 0, 30);
  assert.equal(segmentAt(segments, 15), 1);
  assert.equal(segmentAt(segments, 20), 2);
  assert.equal(segmentAt(segments, 99), 2);
  assert.equal(segmentAt(segments, -5), 0);
});

test("an end can be moved until somebody else begins; its own cleaning does not stand in the way", () => {
  const own = block(0, 10, { kind: "own" });
  const blocks = [own, block(10, 12, { kind: "cleaning" }), block(20, 30)];
  assert.equal(freeUntil(row(blocks), own, 100), 20);
  assert.equal(freeUntil(row([own]), own, 100), 100);
});

test("overlapping leases of a shared host lie in lanes of their own", () => {
  const { lanes, count } = lanesOf([block(0, 10), block(5, 15), block(10, 20), block(0, 50, { kind: "out" })]);
  assert.deepEqual([...lanes], [0, 1, 0, 0]);
  assert.equal(count, 2);
});

test("closed groups show their head only, and one group without a name has no head", () => {
  const group = (key: string, name: string, open: boolean): Group => ({
    key,
    name,
    open,
    size: 2,
    rows: [row([], `${key}1`), row([], `${key}2`)],
    heat: null,
  });
  assert.deepEqual(
    linesOf([group("a", "A", true), group("b", "B", false)]).map((line) => line.key),
    ["group:a", "a1", "a2", "group:b"],
  );
  assert.deepEqual(
    linesOf([group("a", "", false)]).map((line) => line.key),
    ["a1", "a2"],
  );
});

test("edges are exact: pixels and instants are the same both ways", () => {
  const scale = new Scale(1_000_000, 1_000_000 + 90 * 24 * HOUR, 200 / HOUR);
  assert.equal(scale.width, 90 * 24 * 200);
  assert.equal(scale.at(scale.x(1_000_000 + 5.5 * HOUR)), 1_000_000 + 5.5 * HOUR);
});

test("dragging snaps to steps that can be aimed at", () => {
  assert.equal(snapStep(200 / HOUR), 5 * 60_000);
  assert.equal(snapStep(9 / HOUR), HOUR);
  assert.equal(snapStep(1 / (24 * HOUR)), 24 * HOUR);
  assert.equal(snap(7, 5, 0), 5);
  assert.equal(snap(8, 5, 0), 10);
  assert.equal(snap(8, 5, 1), 6);
});

test("heat joins equal neighbours, and joined steps show the fewest and the most free", () => {
  const heat = { from: 0, step: 10, free: [3, 3, 1, 2], total: [4, 4, 4, 4] };
  assert.deepEqual(stretchesOf(heat, 0, 40), [
    { start: 0, end: 20, free: 3, most: 3, total: 4 },
    { start: 20, end: 30, free: 1, most: 1, total: 4 },
    { start: 30, end: 40, free: 2, most: 2, total: 4 },
  ]);
  assert.deepEqual(stretchesOf(heat, 0, 40, 2), [
    { start: 0, end: 20, free: 3, most: 3, total: 4 },
    { start: 20, end: 40, free: 1, most: 2, total: 4 },
  ]);
  assert.deepEqual(leastOf(heat), { start: 20, end: 30, free: 1, most: 1, total: 4 });
});

test("a number on heat is true at every moment at which it stands, however narrow the page is", () => {
  const roll = dice(11);
  let [single, ranges] = [0, 0];
  for (let round = 0; round < 300; round++) {
    const free: number[] = [];
    while (free.length < 200) free.push(...Array(1 + Math.floor(roll() * 30)).fill(Math.floor(roll() * 13)));
    const heat = { from: 0, step: HOUR, free, total: free.map(() => 12) };
    const pixelsPerMs = (20 + roll() * 300) / (24 * HOUR);
    const every = 1 + Math.floor(roll() * 3);
    const shown = writtenOn(stretchesOf(heat, 0, 200 * HOUR, every), pixelsPerMs);
    for (const [index, { start, end, text }] of shown.entries()) {
      const [least, most = least] = text.split("–").map(Number) as [number, number?];
      const there = free.slice(start / HOUR, end / HOUR);
      assert.deepEqual([Math.min(...there), Math.max(...there)], [least, most], text);
      assert.ok((end - start) * pixelsPerMs >= 22);
      assert.ok(start >= (shown[index - 1]?.end ?? 0), "none overlaps another");
      if (text.includes("–")) ranges++;
      else single++;
    }
  }
  assert.ok(single > 1000 && ranges > 200, `${single} numbers, ${ranges} ranges`);
});

test("on a phone a day without does not hide the hours before it", () => {
  const free = [...Array(10).fill(10), ...Array(36).fill(0), ...Array(40).fill(12)];
  const heat = { from: 0, step: HOUR, free, total: free.map(() => 12) };
  const phone = 40 / (24 * HOUR);
  assert.deepEqual(writtenOn(stretchesOf(heat, 0, 86 * HOUR), phone), [
    { start: 10 * HOUR, end: 46 * HOUR, text: "0" },
    { start: 46 * HOUR, end: 86 * HOUR, text: "12" },
  ]);
});

test("the colour of heat tells none from few from all", () => {
  assert.deepEqual(
    [0, 1, 5, 9, 10].map((free) => levelOf(free, 10)),
    [0, 1, 3, 4, 4],
  );
  assert.equal(levelOf(0, 0), 0);
});

test("an edge that is dragged keeps a step and the present, and all of a block its length", () => {
  const moved = { start: 10 * HOUR, end: 14 * HOUR };
  const limits = { step: HOUR, now: 9 * HOUR };
  assert.deepEqual(movedTo(moved, "end", 11 * HOUR, limits), { start: 10 * HOUR, end: 11 * HOUR });
  assert.deepEqual(movedTo(moved, "end", 8 * HOUR, limits), { start: 10 * HOUR, end: 11 * HOUR });
  assert.deepEqual(movedTo(moved, "start", 20 * HOUR, limits), { start: 13 * HOUR, end: 14 * HOUR });
  assert.deepEqual(movedTo(moved, "start", 2 * HOUR, limits), { start: 9 * HOUR, end: 14 * HOUR });
  assert.deepEqual(movedTo(moved, "both", 12 * HOUR, limits), { start: 12 * HOUR, end: 16 * HOUR });
  assert.deepEqual(movedTo(moved, "both", 2 * HOUR, limits), { start: 9 * HOUR, end: 13 * HOUR });
});

test("a block that is moved is in nobody's way but others'", () => {
  const own = block(2 * HOUR, 4 * HOUR, { kind: "own" });
  const shown = row([own, block(4 * HOUR, 5 * HOUR, { kind: "cleaning" }), block(8 * HOUR, 9 * HOUR)]);
  assert.equal(isFreeFor(shown, own, 3 * HOUR, 8 * HOUR), true);
  assert.equal(isFreeFor(shown, own, 3 * HOUR, 8 * HOUR + 1), false);
  assert.equal(isFree(shown, 3 * HOUR, 8 * HOUR), false);
});

test("the text of a preview is never cut at an edge", () => {
  for (const left of [-500, -20, 0, 90, 300, 380, 900]) {
    const at = left + shiftInto(left, 120, 100, 400);
    assert.ok(at >= 100 && at + 120 <= 400, `${left}: ${at}`);
  }
  assert.equal(shiftInto(200, 120, 100, 400), 0);
  // One that is longer than all that is seen begins where that begins.
  assert.equal(200 + shiftInto(200, 900, 100, 400), 100);
});

test("what is pointed at is what is there by now: at its new time, or no more", () => {
  const mine = block(10, 20, { key: "mine" });
  const before = row([mine]);
  const was = { row: before, block: mine, start: 10, end: 20 };
  const moved = block(15, 25, { key: "mine" });
  const after = row([moved]);
  assert.deepEqual(renewed(was, after), { row: after, block: moved, start: 15, end: 25 });
  assert.equal(renewed(was, row([])), null);
  assert.equal(renewed(was, undefined), null);
  const gap = { row: before, block: null, start: 20, end: 30 };
  assert.equal(renewed(gap, after), null, "free time that is taken by now");
  assert.deepEqual(renewed(gap, row([mine])), { ...gap, row: row([mine]) });
});
