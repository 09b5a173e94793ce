// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reservation } from "../src/api/types.ts";
import { fieldsOf } from "../src/words/parameters.ts";
import { goesWith } from "../src/words/use.ts";

const COMMON = { id: "r1", status: "active", allocations: [], use: { addresses: [] }, before_end: "default" };

function of(resource_type: string, more: object): Reservation {
  return { ...COMMON, resource_type, ...more } as unknown as Reservation;
}

test("a type without words of its own shows its fields, and none that is empty", () => {
  const shown = fieldsOf(of("network", { network_name: "lab", network_description: "", network_properties: null }));
  assert.deepEqual(shown, [{ name: "Network name", values: [{ text: "lab" }] }]);
});

test("a reference leads to the other reservation, and a requirement is one value", () => {
  const shown = fieldsOf(
    of("a:b", { networks: [{ reservation: "r2" }, "n3"], resource_properties: ["==", "$a", "b"] }),
  );
  assert.deepEqual(shown[0]?.values, [{ text: "r2", to: "r2" }, { text: "n3" }]);
  assert.deepEqual(shown[1]?.values, [{ text: '["==","$a","b"]' }]);
});

test("hosts are shown in sentences", () => {
  assert.deepEqual(fieldsOf(of("physical:host", { min: 1, max: 2 })), []);
});

test("the end of what has no servers does not speak of servers", () => {
  assert.equal(goesWith(of("network", {})), "It is taken back.");
});
