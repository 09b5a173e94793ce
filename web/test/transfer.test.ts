// SPDX-License-Identifier: Apache-2.0
import "temporal-polyfill/global";
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Transfer } from "../src/api/types.ts";
import {
  givingMeans,
  isStanding,
  offerBody,
  projectIdOf,
  takerInWords,
  uncheckedInWords,
  takingMeans,
  whatOfOffer,
} from "../src/words/transfer.ts";

const GIFT = { within: false, project: "", user: "", message: "" };

test("an offer is sent once it is known who is to get the lease", () => {
  assert.equal(offerBody(GIFT), null);
  assert.equal(offerBody({ ...GIFT, user: "bob" }), null);
  assert.deepEqual(offerBody({ ...GIFT, project: " chemistry " }), { project_id: "chemistry" });
  assert.deepEqual(offerBody({ within: false, project: "chemistry", user: "bob", message: " for you " }), {
    project_id: "chemistry",
    user_id: "bob",
    message: "for you",
  });
});

test("an offer within the project names a user, and no project", () => {
  assert.equal(offerBody({ ...GIFT, within: true, project: "chemistry" }), null);
  assert.deepEqual(offerBody({ ...GIFT, within: true, project: "chemistry", user: "bob" }), { user_id: "bob" });
});

test("who may accept is said", () => {
  const lease = { project_id: "physics" };
  assert.equal(takerInWords({ project_id: "chemistry", user_id: null }, lease), "any member of chemistry");
  assert.equal(takerInWords({ project_id: "chemistry", user_id: "bob" }, lease), "the user bob of chemistry");
  assert.equal(takerInWords({ project_id: "physics", user_id: "dave" }, lease), "the user dave");
});

test("an offer that nobody has accepted in time does not stand", () => {
  const offer = { expires_at: "2026-11-26T12:00:00Z" };
  assert.equal(isStanding(offer, Date.parse("2026-11-26T11:59:59Z")), true);
  assert.equal(isStanding(offer, Date.parse("2026-11-26T12:00:00Z")), false);
  assert.equal(isStanding(null, 0), false);
});

function offered(changes: Partial<Transfer>): Transfer {
  const reservations = [
    { id: "1", resource_type: "physical:host", status: "pending", count: 2, parameters: { min: 2, max: 2 } },
    { id: "2", resource_type: "virtual:floatingip", status: "pending", count: 1, parameters: { amount: 1 } },
  ];
  return {
    project_id: "chemistry",
    from_project_id: "physics",
    lease: { status: "PENDING", reservations },
    ...changes,
  } as unknown as Transfer;
}

test("what an offered lease has is said by what was asked for", () => {
  assert.equal(whatOfOffer(offered({})), "2 hosts and 1 floating IP");
});

test("what giving and taking mean depends on whether the project stays", () => {
  assert.match(givingMeans(false)[1]!, /counts for their project/);
  assert.match(givingMeans(true)[1]!, /The project keeps it/);
  assert.match(givingMeans(false)[2]!, /ends by itself/, "nobody takes it for one that stands forever");
  assert.match(takingMeans(offered({}))[0]!, /counts for your project/);
  assert.match(takingMeans(offered({ from_project_id: "chemistry" }))[0]!, /You become its user/);
  const active = { ...offered({}).lease, status: "ACTIVE" };
  assert.equal(takingMeans(offered({ lease: active })).length, 2);
});

test("a project of one's own is named by its name, another one by its id", () => {
  const known = [
    { id: "4f1c", name: "chemistry" },
    { id: "77aa", name: "lab" },
    { id: "88bb", name: "lab" },
  ];
  assert.equal(projectIdOf(" chemistry ", known), "4f1c");
  assert.equal(projectIdOf("lab", known), "lab", "two of a name are told apart by their ids alone");
  assert.equal(projectIdOf("9c0d", known), "9c0d");
});

test("that nobody has checked whether there is a project is said, but of those that the giver knows", () => {
  const lease = { project_id: "physics" };
  const said = (project_id: string) => uncheckedInWords({ project_id }, lease, [{ id: "chemistry" }]);
  assert.equal(said("physics"), null);
  assert.equal(said("chemistry"), null);
  assert.equal(said("chemstry"), "Nobody has checked that there is a project chemstry: see that its id is right.");
});
