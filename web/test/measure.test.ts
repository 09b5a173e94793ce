// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { goesWith } from "../src/words/use.ts";
import { measureOf } from "../src/words/measure.ts";
import { newWant } from "../src/words/question.ts";
import type { Reservation } from "../src/api/types.ts";

const measured = (type: string, values = {}, count = 1) => {
  const found = measureOf({ ...newWant(type), values, count });
  return found && [found.type, found.units?.of ?? "resources", found.asked];
};

test("what is free is counted in what a type takes", () => {
  assert.deepEqual(measured("physical:host", {}, 2), ["physical:host", "resources", 2]);
  assert.deepEqual(measured("virtual:instance", {}, 3), ["physical:host", "VCPU", 6]);
  assert.deepEqual(measured("virtual:server", { vcpus: 4 }, 2), ["physical:host", "VCPU", 8]);
  assert.deepEqual(measured("virtual:volume", { size: 10, amount: 2 }, 2), ["virtual:volume", "GIGABYTES", 20]);
  assert.deepEqual(measured("generic", { amount: 5 }, 5), ["generic", "UNIT", 5]);
  assert.deepEqual(measured("generic", { min: 2 }, 2), ["generic", "resources", 2]);
});

test("a stack is not counted in hosts, and goes as a whole", () => {
  assert.equal(measured("virtual:stack"), null);
  const stack = { resource_type: "virtual:stack", allocations: [] } as unknown as Reservation;
  assert.equal(goesWith(stack), "The stack and all that is in it are deleted.");
});
