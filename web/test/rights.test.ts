// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { allowedOn, info, may } from "../src/api/session.ts";
import type { Info } from "../src/api/types.ts";

const PUT = "blazar:resources:put";

test("who may change hosts only sees the buttons of hosts, and those of no other kind", () => {
  info.value = { allowed: ["blazar:resources:get"] } as unknown as Info;
  allowedOn.value = new Map([
    ["host", ["blazar:resources:get", PUT]],
    ["device", ["blazar:resources:get"]],
  ]);
  assert.equal(may(PUT, "host"), true);
  assert.equal(may(PUT, "device"), false);
  assert.equal(may(PUT), false);
});

test("until the kinds are read, what is allowed of most of them is", () => {
  info.value = { allowed: [PUT] } as unknown as Info;
  allowedOn.value = new Map();
  assert.equal(may(PUT, "host"), true);
  info.value = null;
  assert.equal(may(PUT, "host"), false);
});
