// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reservation } from "../src/api/types.ts";
import { fieldsOf } from "../src/words/parameters.ts";
import { whatOf } from "../src/words/lease.ts";
import { goesWith } from "../src/words/use.ts";

const COMMON = { id: "r1", status: "active", allocations: [], use: { addresses: [] }, before_end: "default" };

function of(resource_type: string, more: object): Reservation {
  return { ...COMMON, resource_type, ...more } as unknown as Reservation;
}

test("a type without words of its own shows its fields, and none that is empty", () => {
  const schema = { properties: { network_description: { title: "Description" } } };
  const network = of("network", { network_name: "lab", network_description: "for tests", network_properties: null });
  assert.deepEqual(fieldsOf(network, schema), [{ name: "Description", values: [{ text: "for tests" }] }]);
  assert.equal(whatOf(network), "network lab");
});

test("a reference leads to the other reservation, and a requirement is one value", () => {
  const shown = fieldsOf(
    of("a:b", { networks: [{ reservation: "r2" }, "n3"], resource_properties: ["==", "$a", "b"] }),
  );
  assert.deepEqual(shown[0]?.values, [{ text: "r2", to: "r2" }, { text: "n3" }]);
  assert.deepEqual(shown[1]?.values, [{ text: "a = b" }]);
});

test("objects are readable lines", () => {
  const shown = fieldsOf(of("a:b", { resources: [{ id: "1", name: "x", answer: { address: "y" } }], metadata: {} }));
  assert.deepEqual(shown[0]?.values, [{ text: "name: x" }, { text: "answer / address: y" }]);
  assert.equal(shown.length, 1);
});

test("titles say what it is, not its type", () => {
  const said = [
    of("generic", { class: "microscope", min: 1, max: 1 }),
    of("generic", { class: "licence", amount: 3 }),
    of("generic", { class: "bench", min: 2, max: 4 }),
    of("virtual:volume", { size: 100, amount: 2 }),
    of("virtual:server", { amount: 2, vcpus: 2, memory_mb: 4096 }),
  ].map(whatOf);
  assert.deepEqual(said, [
    "1 microscope",
    "3 units of a licence",
    "2 to 4 × bench",
    "2 volumes of 100 GiB",
    "2 servers of 2 vCPU, 4 GiB",
  ]);
});

test("hosts are shown in sentences", () => {
  assert.deepEqual(fieldsOf(of("physical:host", { min: 1, max: 2 })), []);
});

test("the end of what has no servers does not speak of servers", () => {
  assert.equal(goesWith(of("network", {})), "It is taken back.");
});
