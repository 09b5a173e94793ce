// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { CalendarResource, Capacity } from "../src/api/types.ts";
import { sizeInWords } from "../src/grid/layout.ts";
import type { Block, Row } from "../src/grid/layout.ts";
import { Rows, type View, freeOnly, groupsOf, projectsOf, sourceOf, wantedOnly } from "../src/pages/calendar/data.ts";
import { type Read, comingOf, saidOf, sayCell, sayGroup, timesOf, whatOf } from "../src/pages/calendar/words.ts";
import { ofGroup } from "../src/pages/calendar/reading.ts";

const NOON = Date.parse("2031-03-03T12:00:00Z");
const HOUR = 3_600_000;

/** What the table says of a row, all of it. */
function sayRow(row: Pick<Row, "blocks">, now: number, zone: string, read: Read): string[] {
  return saidOf(row, 100).blocks.map((one) => `${whatOf(one, now)}: ${timesOf(one, read, zone, now)[0]}`);
}
const VIEW: View = { from: NOON - 24 * HOUR, to: NOON + 24 * HOUR, now: NOON, project: "physics", mayChange: true };

/** A host with one lease of its own from 13:00 to 14:00. */
function host(id: string, status = "PENDING", user = "alice"): CalendarResource {
  const block = {
    kind: "mine",
    start: "2031-03-03T13:00:00Z",
    end: "2031-03-03T14:00:00Z",
    lease_id: "lease",
    reservation_id: "reservation",
    name: "work",
    user_id: user,
    status,
  };
  return { id, name: id, capacity: {}, properties: {}, blocks: [block] } as unknown as CalendarResource;
}

test("a resource that was not read again is the same row until the minute or the range changes", () => {
  const rows = new Rows();
  const resources = [host("h-1"), host("h-2")];
  const first = rows.of(resources, VIEW);
  assert.deepEqual(rows.of(resources, { ...VIEW, now: NOON + 59_000 }), first);
  assert.equal(rows.of(resources, VIEW)[0], first[0]);
  assert.notEqual(rows.of(resources, { ...VIEW, now: NOON + 60_000 })[0], first[0]);
  assert.notEqual(rows.of(resources, { ...VIEW, to: VIEW.to + HOUR })[0], first[0]);
});

test("blocks stay the same list until something in them changes", () => {
  const rows = new Rows();
  const blocks = rows.of([host("h-1")], VIEW)[0]!.blocks;
  assert.deepEqual(
    blocks.map(({ kind, mark, movable, label }) => [kind, mark, movable, label]),
    [["own", "booked", true, "work"]],
  );
  // In between nobody has looked at the row.
  rows.of([host("h-1")], { ...VIEW, now: NOON + 60_000 });
  assert.equal(rows.of([host("h-1")], { ...VIEW, now: NOON + 120_000 })[0]!.blocks, blocks);
  const active = rows.of([host("h-1", "ACTIVE")], VIEW)[0]!.blocks;
  assert.notEqual(active, blocks);
  assert.equal(active[0]!.mark, "active");
});

test("the state of a block follows the clock without being read again", () => {
  const rows = new Rows();
  const resources = [host("h-1")];
  assert.equal(rows.of(resources, VIEW)[0]!.blocks[0]!.mark, "booked");
  const due = rows.of(resources, { ...VIEW, now: NOON + HOUR })[0]!.blocks;
  assert.equal(due[0]!.mark, "changing");
  const over = rows.of(resources, { ...VIEW, now: NOON + 2 * HOUR })[0]!.blocks;
  assert.equal(over[0]!.movable, undefined);
});

test("a block that stays stands for what was read last", () => {
  const rows = new Rows();
  const block = rows.of([host("h-1")], VIEW)[0]!.blocks[0]!;
  assert.equal(rows.of([host("h-1", "PENDING", "bob")], VIEW)[0]!.blocks[0], block);
  assert.equal(sourceOf(block)?.block.user_id, "bob");
});

test("of many resources closed groups have their heat and size, and no rows", () => {
  const series = (gpu: string | null, total: number) => ({
    group: { gpu },
    total: [total, total - 1],
    free: [1, 0],
    promised: [0, 0],
    out_of_use: [0, 0],
  });
  const capacity = {
    as_of: "2031-03-03T12:00:00Z",
    from: "2031-03-03T12:00:00Z",
    to: "2031-03-03T14:00:00Z",
    step_seconds: 3600,
    measure: "resources",
    series: [series("A100", 300), series(null, 500)],
  };
  const groups = groupsOf([], [], "gpu", capacity, (key) => key === "A100", { partly: true });
  assert.deepEqual(
    groups.map(({ key, name, open, size, rows, heat }) => [key, name, open, size, rows.length, heat?.free]),
    [
      ["A100", "gpu A100", true, 300, 0, [1, 0]],
      ["", "without gpu", false, 500, 0, [1, 0]],
    ],
  );
});

test("the rows of a group are asked for by its value, and those without one by all others", () => {
  const keys = ["A100", "H100", ""];
  const region = ["==", "$region", "north"];
  assert.deepEqual(ofGroup([], "gpu", "A100", keys), ["==", "$gpu", "A100"]);
  assert.deepEqual(ofGroup(region, "gpu", "A100", keys), ["and", region, ["==", "$gpu", "A100"]]);
  assert.deepEqual(ofGroup([], "gpu", "", keys), ["not", ["in", "$gpu", ["A100", "H100"]]]);
  assert.deepEqual(ofGroup([], "gpu", "", [""]), []);
});

/** A host as an operator sees it, with a lease of a project. */
function theirs(id: string, project: string, name = "work"): CalendarResource {
  const one = host(id);
  const blocks = one.blocks.map((block) => ({ ...block, kind: "lease", project_id: project, name }));
  return { ...one, blocks } as unknown as CalendarResource;
}

test("each other project has a colour that it keeps, and the own one has none", () => {
  const resources = [
    theirs("h-1", "biology"),
    theirs("h-2", "climate"),
    theirs("h-3", "climate"),
    theirs("h-4", "physics"),
  ];
  assert.deepEqual(projectsOf(resources, "physics"), ["climate", "biology"]);
  const colours = () => new Rows().of(resources, VIEW).map((row) => row.blocks[0]!.colour);
  const before = colours();
  assert.notEqual(before[0], before[1]);
  assert.equal(before[1], before[2]);
  assert.equal(before[3], undefined);
  projectsOf([theirs("h-5", "astronomy"), ...resources], "physics");
  assert.deepEqual(colours(), before);
});

test("rows are found by the name of a host or a lease, and by project", () => {
  const resources = [theirs("h-1", "biology", "Genome"), theirs("h-2", "climate"), host("mine-3")];
  const found = (text: string, project: string | null = null) =>
    wantedOnly(new Rows().of(resources, VIEW), resources, { text, project }).of.map((one) => one.id);
  assert.deepEqual(found(""), ["h-1", "h-2", "mine-3"]);
  assert.deepEqual(found("H-"), ["h-1", "h-2"]);
  assert.deepEqual(found("genome"), ["h-1"]);
  assert.deepEqual(found("", "climate"), ["h-2"]);
  assert.deepEqual(found("h-2", "climate"), ["h-2"]);
  assert.deepEqual(found("h-1", "climate"), []);
});

test("a lease is moved before it begins only, and as long as its start is in the range", () => {
  const movable = (status: string, view: View = VIEW) => {
    const [block] = new Rows().of([host("h-1", status)], view)[0]!.blocks;
    return [block!.movable === true, block!.startMovable === true];
  };
  assert.deepEqual(movable("PENDING"), [true, true]);
  assert.deepEqual(movable("ACTIVE"), [true, false]);
  assert.deepEqual(movable("TERMINATED"), [false, false]);
  assert.deepEqual(movable("PENDING", { ...VIEW, from: NOON + HOUR }), [true, false]);
  assert.deepEqual(movable("PENDING", { ...VIEW, mayChange: false }), [false, false]);
});

test("the head of a group of which some rows are shown says of how many, as its heat is that of all", () => {
  const series = [{ group: { gpu: "A100" }, total: [12, 12], free: [10, 12] }];
  const capacity = { from: "2031-03-03T00:00:00Z", step_seconds: 3600, series } as unknown as Capacity;
  const hosts = ["h-1", "h-2"].map((id) => ({ ...host(id), properties: { gpu: "A100" } }));
  const rows = new Rows().of(hosts, VIEW);
  const heads = (filtered: boolean) =>
    groupsOf(rows, hosts, "gpu", capacity, () => true, { filtered }).map((group) => sizeInWords(group));
  assert.deepEqual(heads(true), ["2 of 12"]);
  assert.deepEqual(heads(false), ["2"]);
});

test("a block that is cut where the calendar was read to has no end that is known, and none that is said", () => {
  const [block] = new Rows().of([host("h-1")], VIEW)[0]!.blocks;
  const read = { from: VIEW.from, to: VIEW.to };
  const said = (start: number, end: number) => timesOf({ start, end }, read, "UTC", NOON);
  assert.deepEqual(said(block!.start, block!.end), ["Mon 3 Mar 13:00 – 14:00", "1 h"]);
  assert.deepEqual(said(NOON, VIEW.to), ["from Mon 3 Mar 12:00 on", "at least 1 day"]);
  assert.deepEqual(said(VIEW.from, NOON), ["until Mon 3 Mar 12:00", "at least 1 day"]);
  assert.deepEqual(said(VIEW.from, VIEW.to), ["all the time shown", "at least 2 days"]);
  assert.equal(sayCell(null, VIEW.from, NOON, NOON, "UTC", read), "Free, until Mon 3 Mar 12:00");
  assert.equal(sayCell(null, NOON, VIEW.to, NOON, "UTC", read), "Free, from Mon 3 Mar 12:00 on");
  const long = {
    ...host("h-2"),
    blocks: [{ kind: "other", start: "2031-03-02T12:00:00Z", end: "2031-03-04T12:00:00Z" }],
  };
  const [row] = new Rows().of([long as unknown as CalendarResource], VIEW);
  assert.deepEqual(sayRow(row!, NOON, "UTC", read), ["Promised to others: all the time shown"]);
});

test("of a group it is said how many are free at least, and when the fewest are", () => {
  const heat = { from: NOON - HOUR, step: HOUR, free: [9, 10, 10, 0, 0, 12], total: Array(6).fill(12) };
  const group = { key: "A100", name: "gpu A100", open: false, size: 12, rows: [], heat };
  assert.equal(
    sayGroup(group, NOON + HOUR / 2, "UTC"),
    "at least 10 of 12 free in this hour; fewest: 0 free, Mon 3 Mar 14:00 – 16:00",
  );
});

test("the head of a group of shared resources counts units, and no resources by them", () => {
  const series = { group: { class: "solver" }, free: [10], total: [20], promised: [10], out_of_use: [0] };
  const [from, to] = ["2031-03-03T12:00:00Z", "2031-03-03T13:00:00Z"];
  const capacity = { as_of: from, from, to, step_seconds: 3600, measure: "UNIT", series: [series] };
  const solver = { ...host("solver"), properties: { class: "solver" } };
  const [group] = groupsOf(new Rows().of([solver], VIEW), [solver], "class", capacity, () => true, { filtered: true });
  assert.equal(sizeInWords(group!), "1");
  assert.match(sayGroup(group!, NOON, "UTC"), /^at least 10 of 20 units free in this hour; fewest: 10 units free/);
});

test("leases of other projects are dimmed while those of one are looked for", () => {
  const lease = (project_id: string, hour: number) => {
    const [start, end] = [hour, hour + 1].map((one) => `2031-03-03T${one}:00:00Z`);
    return { kind: "lease", lease_id: project_id, project_id, name: "training", status: "PENDING", start, end };
  };
  const shared = {
    ...host("h-1"),
    blocks: [lease("physics", 13), lease("biology", 15), { ...lease("", 17), kind: "out_of_use" }],
  } as unknown as CalendarResource;
  const rows = new Rows();
  const dimmed = (only: string | null) =>
    rows.of([shared], { ...VIEW, only })[0]!.blocks.map((one) => one.dim ?? false);
  assert.deepEqual(dimmed(null), [false, false, false]);
  assert.deepEqual(dimmed("biology"), [true, false, false]);
  assert.deepEqual(dimmed("physics"), [false, true, false]);
  assert.deepEqual(dimmed(null), [false, false, false]);
});

test("the time after the date until which a host is disabled is drawn and said as not free yet", () => {
  const disabled = { kind: "out_of_use", start: "2031-03-03T12:00:00Z", end: "2031-03-03T15:00:00Z", reason: "fan" };
  const blocks = [
    { ...disabled, code: "disabled" },
    { ...disabled, code: "to_be_enabled", start: disabled.end, end: null },
  ];
  const resource = { ...host("h-1"), blocks } as unknown as CalendarResource;
  const [row] = new Rows().of([resource], VIEW);
  assert.deepEqual(
    row!.blocks.map(({ kind, mark, label }) => [kind, mark, label]),
    [
      ["out", undefined, "fan"],
      ["out", "later", "once enabled"],
    ],
  );
  assert.deepEqual(sayRow(row!, NOON, "UTC", VIEW), [
    "Out of use: disabled: fan: Mon 3 Mar 12:00 – 15:00",
    "Takes new leases once enabled: from Mon 3 Mar 15:00 on",
  ]);
  const [, later] = row!.blocks;
  assert.equal(
    sayCell(later!, later!.start, later!.end, NOON, "UTC", VIEW),
    "Takes new leases once enabled, from Mon 3 Mar 15:00 on",
  );
  assert.deepEqual(freeOnly([row!], [resource], { start: NOON + 4 * HOUR, end: NOON + 5 * HOUR }).rows, []);
});

test("why a host is out of use is said in words, not in the service's code", () => {
  const block = { kind: "out_of_use", code: "being_removed", start: "2031-03-03T12:00:00Z", end: null, reason: null };
  const [row] = new Rows().of([{ ...host("h-1"), blocks: [block] } as unknown as CalendarResource], VIEW);
  assert.deepEqual(sayRow(row!, NOON, "UTC", VIEW), ["Out of use: being removed: from Mon 3 Mar 12:00 on"]);
});

test("the table lists the times of the project that is looked for, and counts those of others", () => {
  const lease = (project_id: string, hour: number) => {
    const [start, end] = [hour, hour + 1].map((one) => `2031-03-03T${one}:00:00Z`);
    return { kind: "lease", lease_id: `${project_id}-${hour}`, project_id, name: "run", status: "PENDING", start, end };
  };
  const leases = [lease("biology", 13), lease("art", 15), lease("biology", 17), lease("art", 18), lease("biology", 20)];
  const shared = { ...host("h-1"), blocks: leases } as unknown as CalendarResource;
  const of = (only: string | null) => new Rows().of([shared], { ...VIEW, only })[0]!;
  const said = ({ blocks, ...counts }: ReturnType<typeof saidOf>) => ({
    ...counts,
    said: sayRow({ blocks }, NOON, "UTC", VIEW),
  });
  const one = (project: string, hour: number) => `${project}: run, booked: Mon 3 Mar ${hour}:00 – ${hour + 1}:00`;
  assert.deepEqual(said(saidOf(of("biology"), 2)), {
    said: [one("biology", 13), one("biology", 17)],
    more: 1,
    others: 2,
  });
  assert.deepEqual(said(saidOf(of("art"), 9)), { said: [one("art", 15), one("art", 18)], more: 0, others: 3 });
  assert.deepEqual(said(saidOf(of(null), 9)), {
    said: leases.map((each) => one(each.project_id, Number(each.start!.slice(11, 13)))),
    more: 0,
    others: 0,
  });
});

test("the table lists what is to come in the time that is chosen, and what is over if one looks at the past", () => {
  const block = (key: string, from: number, to: number) =>
    ({ key, kind: "lease", start: NOON + from * HOUR, end: NOON + to * HOUR, label: key }) as Block;
  const blocks = [block("over", -5, -1), block("goes on", -3, 2), block("later", 3, 4), block("next week", 30, 40)];
  const keys = (from: number, to: number) =>
    comingOf({ blocks }, { from: NOON + from * HOUR, to: NOON + to * HOUR }, NOON).map(({ key }) => key);
  assert.deepEqual(keys(-12, 12), ["goes on", "later"]);
  assert.deepEqual(keys(-12, -2), ["over", "goes on"]);
});

test("what is out of use over a lease that keeps the host leaves the name of the lease to be read", () => {
  const at = (hour: number) => new Date(NOON + hour * HOUR).toISOString();
  const out = (from: number, to: number) => ({
    kind: "out_of_use",
    code: "disabled",
    reason: "fan",
    start: at(from),
    end: at(to),
  });
  const lease = {
    kind: "lease",
    name: "kept",
    project_id: "b",
    status: "ACTIVE",
    lease_id: "1",
    start: at(1),
    end: at(5),
  };
  const labels = (...blocks: object[]) =>
    new Rows().of([{ ...host("h"), blocks } as CalendarResource], VIEW)[0]!.blocks.map(({ label }) => label);
  assert.deepEqual(labels(out(0, 2), lease, out(6, 7)), ["", "b: kept", "fan"]);
});
