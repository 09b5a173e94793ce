// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused, plain, sentencesOf } from "../src/api/errors.ts";
import { inPageWords } from "../src/words/refusal.ts";

const NOW = Date.parse("2026-11-26T15:30:00Z");
const said = (text: string) => inPageWords(text, "Europe/Berlin", NOW);

test("a limit is said in plain words and in the zone of the page", () => {
  assert.equal(
    said(
      "reservations, start_date, end_date: the lease would take 144 host-hours from 2026-11-01 00:00 to " +
        "2026-12-01 00:00, and 27.98 are left (max_resource_hours); ask for fewer",
    ),
    "The lease would take 144 host-hours from Sun 1 Nov 01:00 to Tue 1 Dec 01:00, and 27.98 are left; ask for fewer",
  );
  assert.equal(said("the project may have no leases (leases_per_project is 0)"), "The project may have no leases");
});

test("what somebody has typed, and what is no name of a field, stays", () => {
  assert.equal(said("'2026-11-01 00:00' is not after now"), "'2026-11-01 00:00' is not after now");
  assert.equal(said("Hosts: none (of two)"), "Hosts: none (of two)");
  assert.equal(said(""), "");
});

test("every refusal begins as a sentence does", () => {
  const fault = { status: 409, code: "c", title: "", detail: "the lease is deleted and cannot be changed" };
  const error = new Refused(409, [fault, { ...fault, pointer: "/name", detail: "name: too long" }]);
  assert.deepEqual(sentencesOf(error, ["/name"]).others, ["The lease is deleted and cannot be changed"]);
  assert.equal(sentencesOf(error, ["/name"]).fields.get("/name"), "Too long");
  assert.match(plain(new Refused(409, [fault])), /^The lease is deleted/);
});
