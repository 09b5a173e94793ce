// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Property, Requirement } from "../src/api/types.ts";
import { inWords } from "../src/words/lease.ts";
import { type MarkedResource, otherThanMarked, sharedBy, wishOfRows } from "../src/words/marked.ts";

const text = (name: string, ...values: [string, number][]): Property => ({
  name,
  type: "text",
  private: false,
  values: values.map(([value, count]) => ({ value, count })),
  truncated: false,
});
const KNOWN: Property[] = [
  text("gpu", ["A100", 12], ["H100", 6]),
  text("node_type", ["compute", 30], ["storage", 29]),
  text("hypervisor_type", ["QEMU", 59]),
  text("rack", ["r1", 30], ["r2", 29]),
  {
    ...text("vcpus"),
    type: "number",
    values: [
      { value: 48, count: 9 },
      { value: 128, count: 50 },
    ],
  },
];
const row = (name: string | null, vcpus: number, properties: MarkedResource["properties"]): MarkedResource => ({
  name,
  capacity: { VCPU: vcpus },
  properties: { hypervisor_type: "QEMU", ...properties },
});
const BIG = row(null, 128, { node_type: "compute", rack: "r1" });
const BIGGER = row(null, 128, { node_type: "compute", rack: "r2" });
const STORE = row(null, 48, { node_type: "storage", rack: "r1" });

/** Tells whether a row meets a requirement, as the service would. */
function meets(one: MarkedResource, requirement: Requirement): boolean {
  const [operator, ...rest] = requirement as [string, ...Requirement[]];
  if (operator === undefined) return true;
  if (operator === "and") return rest.every((part) => meets(one, part));
  if (operator === "or") return rest.some((part) => meets(one, part));
  if (operator === "not") return !meets(one, rest[0]!);
  const name = String(requirement[1]).slice(1);
  const value = name === "vcpus" ? one.capacity.VCPU : name === "hypervisor_hostname" ? one.name : one.properties[name];
  return operator === "==" && value === requirement[2];
}

const of = (count: number, all: MarkedResource[] | null = null) => ({ known: KNOWN, all, count });

test("more hosts like one are asked for by what at least so many have, not by its place or by what it lacks", () => {
  const a100 = (rack: string, vcpus = 128) => row(null, vcpus, { gpu: "A100", node_type: "compute", rack });
  const all = [a100("r1"), a100("r1"), a100("r2"), a100("r2"), a100("r2", 48), BIG];
  const words = (count: number, among: MarkedResource[] | null) =>
    inWords([wishOfRows([all[0]!], of(count, among), [], false).requirement]);
  assert.equal(words(4, all), "gpu = A100 and node_type = compute and vCPUs = 128");
  assert.equal(words(5, all), "node_type = compute and vCPUs = 128", "the rarest is dropped until so many fit");
  assert.equal(words(13, null), "node_type = compute and vCPUs = 128", "only twelve have the GPU");
  assert.equal(words(40, null), "vCPUs = 128");
  const network = text("network", ["100G", 6], ["25G", 30]);
  const bare = wishOfRows([BIG], { known: [network], all: null, count: 4 }, [], false);
  assert.deepEqual(bare.requirement, [], "that it lacks a network is no wish");
});

test("a property that is another one of each host is not asked for, not even for one host like this", () => {
  const serial = text("serial", ["s1", 1], ["s2", 1]);
  const rows = [row(null, 8, { serial: "s1" })];
  assert.deepEqual(sharedBy(rows, { known: [serial], all: null, count: 1 }), []);
});

test("who may ask for names asks for exactly the rows that were drawn", () => {
  const wish = wishOfRows([row("cn1", 8, {}), row("cn2", 8, {})], of(2), ["==", "$gpu", "A100"], true);
  assert.deepEqual(wish, {
    exact: true,
    requirement: ["or", ["==", "$hypervisor_hostname", "cn1"], ["==", "$hypervisor_hostname", "cn2"]],
  });
  assert.equal(wishOfRows([BIG], of(1), [], true).exact, false, "what has no name cannot be asked for by it");
});

test("others ask for what all marked rows share, and for nothing that they do not", () => {
  const { exact, requirement } = wishOfRows([BIG, BIGGER], of(2), [], false);
  assert.equal(exact, false);
  assert.equal(inWords([requirement]), "node_type = compute and vCPUs = 128");
  assert.ok(meets(BIG, requirement) && meets(BIGGER, requirement));
  assert.ok(!meets(STORE, requirement), "a storage node is not like two big ones");
});

test("a group and a filter are asked for once", () => {
  const { requirement } = wishOfRows(
    [BIG],
    of(1),
    ["and", ["==", "$rack", "r1"], ["==", "$node_type", "compute"]],
    false,
  );
  assert.equal(inWords([requirement]), "rack = r1 and node_type = compute and vCPUs = 128");
  assert.equal(requirement.filter((part) => JSON.stringify(part).includes("rack")).length, 1);
});

test("of random rows each is like all of them together", () => {
  const values = { gpu: ["A100", "H100", undefined], node_type: ["compute", "storage"], rack: ["r1", "r2"] };
  for (let seed = 0; seed < 500; seed++) {
    const some = Array.from({ length: 1 + (seed % 4) }, (_, index) => {
      const pick = (name: keyof typeof values) =>
        values[name][(seed * 7 + index * 3 + name.length) % values[name].length];
      const properties = { gpu: pick("gpu"), node_type: pick("node_type"), rack: pick("rack") };
      const given = Object.entries(properties).filter((entry): entry is [string, string] => entry[1] !== undefined);
      return row(null, seed % 3 === 0 ? 48 : 128, Object.fromEntries(given));
    });
    for (const part of sharedBy(some, of(some.length)))
      for (const one of some) assert.ok(meets(one, part), JSON.stringify(part));
    const { requirement } = wishOfRows(some, of(some.length), [], false);
    for (const one of some) assert.ok(meets(one, requirement), `seed ${seed}`);
  }
});

test("a lease with other hosts than those that were marked says so", () => {
  assert.equal(otherThanMarked([], ["h-1"]), null);
  assert.equal(otherThanMarked(["h-1", "h-2"], ["h-2", "h-1"]), null);
  assert.equal(otherThanMarked(["h-1"], []), null, "nothing is chosen yet");
  assert.equal(
    otherThanMarked(["h-1", "h-2"], ["h-1", "h-3"]),
    "You marked h-1 and h-2; it has h-1 and h-3, which are like what you marked.",
  );
});
