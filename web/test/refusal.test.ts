// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Refused, faultsOf, isGone, plain, sentencesOf, stillTrue } from "../src/api/errors.ts";
import type { Schema } from "../src/api/kinds.ts";
import { fieldsOf, labelsOf } from "../src/forms/schema.ts";
import { inPageWords } from "../src/words/refusal.ts";

const NOW = Date.parse("2026-11-26T15:30:00Z");
const said = (text: string) => inPageWords(text, "Europe/Berlin", NOW);

test("a limit is said in plain words and in the zone of the page", () => {
  assert.equal(
    said(
      "reservations, start_date, end_date: the lease would take 144 host-hours from 2026-11-01 00:00 to " +
        "2026-12-01 00:00, and 27.98 are left (max_resource_hours); ask for fewer",
    ),
    "The lease would take 144 host hours in November 2026, and 27.98 are left; ask for fewer",
  );
  assert.equal(
    said(
      "the lease would take 12160 vcpu-hours from 2026-11-23 00:00 to 2026-11-30 00:00, and of the 5000 that the " +
        "project has in a week (blazar:vcpu_hours) 4128.33 are left for it; ask for another time",
    ),
    "The lease would take 12,160 vCPU hours from Mon 23 Nov 01:00 to Mon 30 Nov 01:00, and of the 5,000 that the " +
      "project has in a week 4,128.33 are left for it; ask for another time",
  );
  assert.equal(
    said(
      "reservations, start_date, end_date: the lease would cost 24753.70 EUR for December 2026, and of the 25000.00 " +
        "that the project has for a month (max_spend) 22463.58 are left; ask for a start at 2027-01-01T00:00:00Z",
    ),
    "The lease would cost 24,753.70 EUR for December 2026, and of the 25,000.00 that the project has for a month " +
      "22,463.58 are left; ask for a start at Fri 1 Jan 2027 01:00",
  );
  assert.equal(
    said("Fee is 'abc', which is invalid; give an amount as a string, such as \"3.20\", with at most 9 digits"),
    "Fee is 'abc', which is invalid; give an amount, such as \"3.20\", with at most 9 digits",
  );
  assert.equal(said("the project may have no leases (leases_per_project is 0)"), "The project may have no leases");
});

test("a requirement in a refusal is said as the page says it elsewhere", () => {
  assert.equal(
    said("Not enough hosts. 4 asked for; 59 hosts; 9 with node_type == compute or node_type == storage; 0 free"),
    "Not enough hosts. 4 asked for; 59 hosts; 9 with node_type = compute or node_type = storage; 0 free",
  );
  assert.equal(
    said("2 with (memory_mb >= 65536 or vcpus > 8) and gpu != none"),
    "2 with (memory ≥ 64 GiB or vCPUs > 8) and gpu ≠ none",
  );
  assert.equal(said("'a == b' is no requirement"), "'a == b' is no requirement");
});

test("fields are said as the page calls them, and what is gone without the question for it", () => {
  assert.equal(
    said("start_date 2026-11-20T10:00:00Z is in the past; it is 2026-11-26T15:30:00Z now"),
    "The start Fri 20 Nov 11:00 is in the past; it is Thu 26 Nov 16:30 now",
  );
  assert.equal(
    said("earliest 2026-11-20T10:00:00Z is in the past"),
    "The earliest start Fri 20 Nov 11:00 is in the past",
  );
  assert.equal(said("The earliest 3 days"), "The earliest 3 days");
  assert.equal(
    said("rule: UNTIL: 2099-01-01 23:59 UTC is more than 1096 days after the start; choose an earlier one"),
    "Fri 2 Jan 2099 00:59 is more than 1096 days after the start; choose an earlier one",
  );
  assert.equal(said("'start_date' is missing"), "'start_date' is missing");
  assert.equal(said("Lease with {'lease_id': '93c55306'} not found"), "There is no such lease any more");
});

test("beside a field the service's sentence calls it by its label", () => {
  const fault = (pointer: string, detail: string) => ({ status: 400, code: "c", title: "", detail, pointer });
  const beside = (pointer: string, detail: string, labels?: Record<string, string>) =>
    sentencesOf(
      new Refused(400, [fault(pointer, detail)]),
      [pointer],
      new Map(Object.entries(labels ?? {})),
    ).fields.get(pointer);
  const network = "/floating_network_id";
  assert.equal(
    beside(network, "floating_network_id is missing; give the id of an external network", { [network]: "Its network" }),
    "Its network is missing; give the id of an external network",
  );
  assert.equal(beside(network, "floating_network_id is missing"), "Floating network is missing");
  assert.equal(
    beside("/reservations/1/min", "reservations[1].min is 0, which is less than 1", {
      "/reservations/1/min": "Devices, at least",
    }),
    "Devices, at least is 0, which is less than 1",
  );
  assert.equal(beside("/subnet/gateway_ip", "subnet.gateway_ip: 'x' is no address"), "'x' is no address");
  assert.equal(beside("/end_date", "end_date is missing"), "The end is missing");
  // What is only called alike stays.
  assert.equal(beside("/hosts", "hosts of another zone are free"), "Hosts of another zone are free");
  assert.equal(beside("/host", "'host' is taken"), "'host' is taken");
});

test("fields in objects have their labels by the pointers of refusals", () => {
  const schema = {
    properties: {
      network_id: { type: "string", title: "Network" },
      subnet: { type: "object", properties: { cidr: { type: "string", title: "Range" }, dhcp: { type: "boolean" } } },
    },
  };
  assert.deepEqual(
    [...labelsOf(fieldsOf(schema as Schema), "/reservations/0")],
    [
      ["/reservations/0/network_id", "Network"],
      ["/reservations/0/subnet", "Subnet"],
      ["/reservations/0/subnet/cidr", "Range"],
      ["/reservations/0/subnet/dhcp", "Dhcp"],
    ],
  );
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

test("after a new sign-in nothing is left of the refusal; elsewhere it says what to do", () => {
  const fault = { status: 401, code: "", title: "", detail: "The service refused (401)." };
  assert.deepEqual(sentencesOf(new Refused(401, [fault], null, null, true), []).others, []);
  assert.equal(sentencesOf(new Refused(401, [fault]), []).others.length, 1);
  assert.match(faultsOf(401, null)[0]!.detail, /Say again who you are; what you typed is still here/);
});

test("what is over or no more has no button left", () => {
  const refused = (status: number, code: string) => new Refused(status, [{ status, code, title: "", detail: "" }]);
  assert.equal(isGone(refused(404, "")), true);
  assert.equal(isGone(refused(409, "reservation.lease_ended")), true);
  assert.equal(isGone(refused(409, "reservation.lease_waits")), false);
});

test("what was refused goes with what is changed: of a field with the field, of the whole with any of them", () => {
  const fields = new Map([
    ["/network", "Give a network"],
    ["/address", "Give an address"],
  ]);
  const refused = { fields, others: ["It is registered already"] };
  const sent = { address: "192.0.2.1", projects: "" };
  assert.deepEqual(stillTrue(refused, sent, { ...sent }), refused);
  const other = stillTrue(refused, sent, { ...sent, address: "192.0.2.2" });
  assert.deepEqual([...other.fields.keys()], ["/network"]);
  assert.deepEqual(other.others, []);
  const { address: _, ...emptied } = sent;
  assert.deepEqual([...stillTrue(refused, sent, emptied).fields.keys()], ["/network"]);
  assert.deepEqual(stillTrue(refused, sent, { ...sent, network: "public" }).others, []);
});
