// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reservation, Wish } from "../src/api/types.ts";
import { type Values, parted } from "../src/forms/schema.ts";
import { againParams } from "../src/words/again.ts";
import { whatOf } from "../src/words/lease.ts";
import { withoutWant } from "../src/words/references.ts";
import {
  applied,
  bodyOf,
  isoOf,
  lengthInWords,
  lengthOf,
  missingOf,
  newWant,
  paramsOf,
  partAt,
  questionOf,
  requirementOf,
  wantOf,
  wishOf,
} from "../src/words/question.ts";

const DAY = { start_date: "2030-01-01T00:00:00Z", end_date: "2030-01-02T00:00:00Z" };
const params = (text: string) => new URLSearchParams(text);
const through = (text: string) => {
  const kept = new URLSearchParams();
  for (const [name, value] of Object.entries(paramsOf(questionOf(params(text)))))
    if (value !== null) kept.set(name, String(value));
  return questionOf(kept);
};

test("an empty address asks for one host for a day as soon as possible", () => {
  const question = questionOf(params(""));
  assert.deepEqual(bodyOf(question, "Europe/Paris"), {
    reservations: [{ resource_type: "physical:host", min: 1, max: 1, resource_properties: [] }],
    limit: 8,
    time_zone: "Europe/Paris",
    duration: "P1D",
    earliest: "now",
    latest: "+P30D",
  });
});

test("every question comes back from its address", () => {
  const addresses = [
    "",
    "min=4&max=6&for=P3D&from=2026-11-26T15:00:00Z&to=2026-12-26T15:00:00Z",
    `req=${encodeURIComponent('["and",["==","$gpu","A100"],[">=","$vcpus",32],["or",["==","$rack","r1"],["==","$rack","r2"]]]')}`,
    "type=virtual:instance&amount=3&vcpus=8&memory_mb=16384&disk_gb=0&affinity=false&within=P90D",
    "type=flavor:instance&amount=2&flavor=m1.large&affinity=true",
    "type=virtual:floatingip&amount=2&network=88888888-1111-4222-8333-444455556666",
    "start=2026-11-26T15:00:00Z&end=2026-11-27T15:00:00Z",
    `also=${encodeURIComponent('[{"resource_type":"virtual:floatingip","amount":2,"network_id":"n"}]')}`,
  ];
  for (const address of addresses) assert.deepEqual(through(address), questionOf(params(address)), address);
});

test("nonsense in an address gives the defaults", () => {
  const question = questionOf(
    params("min=-3&max=x&req={broken&for=soon&from=never&also=7&start=2026-01-02&end=2026-01-01"),
  );
  assert.deepEqual(question, questionOf(params("")));
});

test("a window asks whether exactly it fits", () => {
  const body = bodyOf(questionOf(params("start=2026-11-26T15:00:00Z&end=2026-11-27T15:00:00Z")), "UTC")!;
  assert.equal(body.start_date, "2026-11-26T15:00:00Z");
  assert.equal(body.end_date, "2026-11-27T15:00:00Z");
  assert.equal("duration" in body, false);
});

test("a search is never shorter than what it searches", () => {
  assert.equal(bodyOf(questionOf(params("for=P9W&within=P7D")), "UTC")!.latest, "+P9W");
});

test("nothing is asked before a flavor or a network is named", () => {
  assert.equal(bodyOf(questionOf(params("type=flavor:instance")), "UTC"), null);
  assert.equal(missingOf(newWant("virtual:floatingip")), "network");
  assert.equal(missingOf(newWant("physical:host")), null);
});

test("parts that the chooser cannot show are kept", () => {
  const or = ["or", ["==", "$rack", "r1"], ["==", "$rack", "r2"]];
  const want = wantOf({
    resource_type: "physical:host",
    min: 1,
    resource_properties: ["and", or, ["==", "$gpu", "A100"]],
  });
  assert.deepEqual(want.conditions, [{ sign: "==", name: "gpu", value: "A100" }]);
  assert.deepEqual(requirementOf(want), ["and", ["==", "$gpu", "A100"], or]);
});

test("max follows min upwards", () => {
  assert.equal(wishOf({ ...newWant("physical:host"), count: 5, most: 3 }).max, 5);
});

test("durations are read in the largest unit that keeps their meaning", () => {
  assert.deepEqual(lengthOf("P3D"), { count: 3, unit: "days", seconds: 259_200 });
  assert.deepEqual(lengthOf("PT72H"), { count: 72, unit: "hours", seconds: 259_200 });
  assert.deepEqual(lengthOf("P1DT12H"), { count: 36, unit: "hours", seconds: 129_600 });
  assert.deepEqual(lengthOf("2w"), { count: 2, unit: "weeks", seconds: 1_209_600 });
  assert.deepEqual(lengthOf("90m"), { count: 90, unit: "minutes", seconds: 5_400 });
  for (const text of ["", "P", "PT0H", "0d", "3", "P9000W", "-P1D"]) assert.equal(lengthOf(text), null, text);
  assert.equal(isoOf(90, "minutes"), "PT90M");
  assert.equal(lengthInWords("P1D"), "1 day");
  assert.equal(lengthInWords("PT36H"), "36 hours");
});

const window = { start_date: "2026-12-03T14:00:00Z", end_date: "2026-12-04T20:00:00Z" };

test("alternatives change what they name and nothing else", () => {
  const req = encodeURIComponent('["and",["==","$gpu","A100"],[">=","$vcpus",32]]');
  const question = questionOf(params(`min=4&max=6&for=P3D&req=${req}`));
  const later = applied(question, { change: "time", ...window });
  assert.deepEqual(later, { ...question, from: Date.parse(window.start_date) });
  const fewer = applied(question, { change: "count", ...window, reservations: [{ min: 2, max: 2 }] });
  assert.deepEqual([fewer.wants[0]!.count, fewer.wants[0]!.most, fewer.length], [2, null, "P3D"]);
  assert.equal(applied(question, { change: "duration", ...window }).length, "PT30H");
  const drop = "/reservations/0/resource_properties/1";
  assert.deepEqual(partAt(question, drop), ["==", "$gpu", "A100"]);
  assert.deepEqual(requirementOf(applied(question, { change: "requirement", drop, ...window }).wants[0]!), [
    ">=",
    "$vcpus",
    32,
  ]);
  const all = applied(question, { change: "requirement", drop: "/reservations/0/resource_properties", ...window });
  assert.deepEqual(requirementOf(all.wants[0]!), []);
});

test("an alternative time for an exact window is a window again", () => {
  const question = questionOf(params("start=2026-11-26T15:00:00Z&end=2026-11-27T21:00:00Z"));
  assert.deepEqual(applied(question, { change: "time", ...window }).exactly, {
    start: Date.parse(window.start_date),
    end: Date.parse(window.end_date),
  });
});

test("what a schema describes comes back from its address", () => {
  const address = `type=network&with=${encodeURIComponent('{"network_name":"lab"}')}&also=${encodeURIComponent('[{"resource_type":"generic","class":"microscope","min":1,"max":1}]')}`;
  const question = questionOf(params(address));
  assert.deepEqual(question.wants.map(wishOf), [
    { resource_type: "network", network_name: "lab" },
    { resource_type: "generic", class: "microscope", min: 1, max: 1 },
  ]);
  assert.deepEqual(through(address), question);
});

const BESIDE = { ephemeral_gb: 30, extra_specs: { "hw:cpu_policy": "dedicated" } };

test("what stands beside the sentence of servers is asked, comes back from the address and is said", () => {
  const address = `type=virtual:instance&amount=3&vcpus=8&memory_mb=16384&with=${encodeURIComponent(JSON.stringify(BESIDE))}`;
  const question = questionOf(params(address));
  const [wish] = question.wants.map(wishOf);
  assert.deepEqual([wish!.ephemeral_gb, wish!.extra_specs], [30, BESIDE.extra_specs]);
  assert.deepEqual(through(address), question);
  assert.equal(whatOf(wish!), "3 servers of 8 vCPU, 16 GiB, 30 GiB of ephemeral disk, hw:cpu_policy = dedicated");
  // What asks for nothing is not sent, nor is what belongs elsewhere.
  const none = encodeURIComponent('{"ephemeral_gb":0,"extra_specs":{},"before_end":"none"}');
  const bare = questionOf(params(`type=virtual:instance&amount=3&with=${none}`)).wants.map(wishOf)[0]!;
  assert.deepEqual([bare.ephemeral_gb, bare.extra_specs, bare.before_end], [undefined, undefined, undefined]);
});

test("GPUs of servers are asked, come back from the address and are said", () => {
  const gpus = { gpus: 2, gpu_model: "A100" };
  const address = `type=virtual:instance&amount=1&vcpus=8&memory_mb=16384&with=${encodeURIComponent(JSON.stringify(gpus))}`;
  const [wish] = questionOf(params(address)).wants.map(wishOf);
  assert.deepEqual([wish!.gpus, wish!.gpu_model], [2, "A100"]);
  assert.equal(whatOf(wish!), "1 server of 8 vCPU, 16 GiB, 2 × A100");
});

test("servers that are booked again have all that they had", () => {
  const size = { amount: 2, vcpus: 2, memory_mb: 4096, disk_gb: 20, ...BESIDE };
  const reservations = [{ id: "r1", resource_type: "virtual:instance", status: "active", use: {}, ...size }];
  const again = againParams({ ...DAY, reservations: reservations as unknown as Reservation[], reminders: [] });
  assert.deepEqual(JSON.parse(String(again.with)), BESIDE);
  assert.equal(again.type, "virtual:instance");
});

test("servers of a flavor are booked again with what it gives them: cards, cells and traits", () => {
  const source = JSON.stringify({ id: "gpu.two", vcpus: 8, extra_specs: { "pci_passthrough:alias": "a100:2" } });
  const own = { id: "r1", resource_type: "flavor:instance", flavor_id: "r1", resource_properties: source };
  const reservations = [{ ...own, amount: 3, vcpus: 8, affinity: false }] as unknown as Reservation[];
  const again = againParams({ ...DAY, reservations, reminders: [] });
  const asked = Object.fromEntries(Object.entries(again).filter(([, value]) => value !== null));
  assert.deepEqual(asked, { type: "flavor:instance", amount: 3, flavor: "gpu.two", affinity: "false" });
});

test("a lease that is booked again refers by number", () => {
  const reservations = [
    { id: "r1", resource_type: "network", network_name: "lab", status: "active", use: {} },
    { id: "r2", resource_type: "a:b", networks: [{ reservation: "r1" }, "n3"], before_end: "none" },
  ] as unknown as Reservation[];
  const again = againParams({ ...DAY, reservations, reminders: [] });
  assert.equal(again.remind, null);
  assert.equal(again.with, '{"network_name":"lab"}');
  assert.equal(again.also, '[{"networks":[{"reservation":0},"n3"],"resource_type":"a:b"}]');
});

test("again is asked for as long as was asked for before, though what began at once has some seconds more or less", () => {
  const reservations = [{ id: "r1", resource_type: "physical:host", min: 1, max: 1 }] as unknown as Reservation[];
  const length = (start: string, end: string) =>
    questionOf(
      new URLSearchParams(
        Object.entries(againParams({ start_date: start, end_date: end, reservations }))
          .filter(([, value]) => value !== null)
          .map(([name, value]) => [name, String(value)]),
      ),
    ).length;
  assert.equal(length("2026-11-26T08:00:00Z", "2026-11-28T08:00:00Z"), "P2D");
  assert.equal(length("2026-11-26T08:00:27Z", "2026-11-28T08:01:00Z"), "P2D");
  assert.equal(length("2026-11-26T08:00:10Z", "2026-11-26T18:00:00Z"), "PT10H");
  assert.equal(length("2026-11-26T08:00:10Z", "2026-11-27T08:01:00Z"), "P1D");
  assert.equal(length("2026-11-26T08:00:00Z", "2026-11-26T09:30:00Z"), "PT90M");
  assert.equal(length("2026-11-26T08:00:00Z", "2026-11-26T08:00:30Z"), "PT1M");
});

test("references follow when a reservation is taken away", () => {
  const own = (values: object) => ({ ...newWant("a:b"), values: values as Values });
  const wants = [
    own({}),
    own({ network: { reservation: 0 } }),
    own({ networks: [{ reservation: 1 }, { reservation: 0 }] }),
  ];
  const left = withoutWant({ ...questionOf(params("")), wants }, 0);
  assert.deepEqual(
    left.wants.map((want) => want.values),
    [{}, { networks: [{ reservation: 0 }] }],
  );
});

test("an address has nothing that is long or secret", () => {
  const schema = { properties: { key: { type: "string", writeOnly: true }, name: { type: "string", maxLength: 9 } } };
  assert.deepEqual(parted(schema, { key: "k", name: "n" }), { open: { name: "n" }, held: { key: "k" } });
});

test("how hosts lie and are lent is said, and kept by the form", () => {
  const asked: Wish = { resource_type: "physical:host", min: 2, max: 2, resource_properties: [] };
  const domains = { property: "nvlink_domain", size: 8 };
  const said: [Partial<Wish>, string][] = [
    [{ together: "rack" }, "2 hosts, of one rack"],
    [{ together: { property: "rack", prefer: true } }, "2 hosts, of one rack if possible"],
    [{ together: domains, min: 8, max: 16 }, "8 to 16 hosts, in groups of 8 of one nvlink_domain"],
    [{ spread: { property: "rack" } }, "2 hosts, each of another rack"],
    [{ together: "rack", spread: { property: "feed", most: 2 } }, "2 hosts, of one rack, at most 2 of a feed"],
    [{ lend_beyond: 0 }, "2 hosts, idle hosts are lent"],
    [{ lend_beyond: 1 }, "2 hosts, idle hosts beyond 1 are lent"],
  ];
  for (const [lies, words] of said) {
    const wish = { ...asked, ...lies };
    assert.equal(whatOf(wish), words);
    assert.deepEqual(wishOf(wantOf(wish)), wish);
  }
});
