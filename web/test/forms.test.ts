// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { pairsProblem } from "../src/forms/pairs.tsx";
import type { Schema } from "../src/api/kinds.ts";
import {
  decoded,
  encoded,
  fieldsOf,
  initialValues,
  known,
  missingField,
  proposalsOf,
  setIn,
  setsOf,
  withSet,
  withValue,
} from "../src/forms/schema.ts";
import { lineOf, linesOf } from "../src/words/lines.ts";
import { attributeInWords, capacityInWords, leftOutInWords } from "../src/words/values.ts";

const REFERENCE: Schema = {
  type: "object",
  required: ["reservation"],
  properties: { reservation: { type: ["integer", "string"] } },
  "x-resource-types": ["network"],
};

const only = (schema: Schema) => fieldsOf({ properties: { it: schema } })[0]!;

test("each kind of schema has a control of its own", () => {
  const controls = (
    [
      { type: "string", maxLength: 255 },
      { type: "string", maxLength: 65535 },
      { type: "string", writeOnly: true },
      { type: "string", contentEncoding: "base64" },
      { type: ["integer", "null"] },
      { type: ["boolean", "null"] },
      { enum: ["vlan", "vxlan"] },
      { type: ["array", "string", "null"], format: "requirement" },
      { type: "object", additionalProperties: { type: ["string", "integer"] } },
      { type: "array", items: { type: "string" } },
      { anyOf: [{ type: "string" }, REFERENCE] },
      { type: ["object", "string"], contentMediaType: "application/yaml" },
      { type: ["object", "null"], additionalProperties: { type: "string", contentMediaType: "text/plain" } },
      { type: ["object", "null"], properties: { cidr: { type: "string" }, enable_dhcp: { type: "boolean" } } },
      { type: "object", additionalProperties: true },
      {},
    ] as Schema[]
  ).map((schema) => only(schema).control);
  assert.deepEqual(controls, [
    "text",
    "long",
    "secret",
    "base64",
    "number",
    "boolean",
    "choice",
    "requirement",
    "pairs",
    "list",
    "named",
    "document",
    "files",
    "object",
    "json",
    "json",
  ]);
});

test("hints are for people: what programs send as null or JSON is left out", () => {
  const hints = [
    "the id of a flavor, or null with vcpus, memory_mb and disk_gb",
    "a whole number from 1; left out with a flavor",
    "a template of Heat, as YAML text or as an object",
    'a reservation of addresses of the same lease, such as {"reservation": 0}, or null',
    'null, or a subnet that the network has from the start, such as {"cidr": "10.0.0.0/24"}',
    "a whole number from 0; how many hosts are kept, or null to lend none",
    'hosts of which a property, as "rack", has one value; an object has the property, and the size of groups',
    "true or false",
  ].map((description) => only({ type: "string", description }).hint);
  assert.deepEqual(hints, [
    "The id of a flavor",
    "Left out with a flavor",
    "A template of Heat",
    "A reservation of addresses of the same lease",
    "A subnet that the network has from the start",
    "How many hosts are kept",
    'Hosts of which a property, as "rack", has one value',
    "",
  ]);
});

test("networks are a word, or a list of ids and of networks of the lease", () => {
  const id: Schema = { type: "object", required: ["uuid"], properties: { uuid: { type: "string" } } };
  const field = only({ anyOf: [{ enum: ["auto", "none"] }, { type: "array", items: { anyOf: [id, REFERENCE] } }] });
  assert.equal(field.control, "list");
  assert.deepEqual(
    [field.instead, field.refers, field.typed, field.wrap],
    [["auto", "none"], ["network"], true, "uuid"],
  );
});

test("what can only be a reservation of the lease cannot be typed", () => {
  const field = only(REFERENCE);
  assert.deepEqual([field.control, field.refers, field.typed], ["named", ["network"], false]);
});

test("what is needed comes first, and is missed by its label", () => {
  const schema: Schema = {
    required: ["size"],
    properties: { amount: { type: "integer" }, size: { type: "integer", title: "Size of each" } },
  };
  assert.deepEqual(
    fieldsOf(schema).map(({ name }) => name),
    ["size", "amount"],
  );
  assert.equal(missingField(schema, { amount: 1 })?.label, "Size of each");
  assert.equal(missingField(schema, { size: 1 }), null);
  assert.deepEqual(known(schema, { size: 1, other: 2 }), { size: 1 });
});

test("a new reservation has one of what it counts", () => {
  const count: Schema = { type: "integer" };
  assert.deepEqual(initialValues({ required: ["amount"], properties: { amount: count } }), { amount: 1 });
  assert.deepEqual(initialValues({ properties: { min: count, max: count, amount: count } }), { min: 1, max: 1 });
  assert.deepEqual(initialValues({ required: ["size"], properties: { size: count, amount: count } }), {});
});

test("a value is taken away, and base64 is what was typed", () => {
  assert.deepEqual(withValue({ a: 1, b: 2 }, "a", undefined), { b: 2 });
  assert.equal(decoded(encoded("#cloud-config\nname: Zürich")), "#cloud-config\nname: Zürich");
  assert.equal(decoded("%"), null);
});

test("nobody has to read JSON", () => {
  assert.equal(lineOf(["a", true, null]), "a, yes, nothing");
  assert.deepEqual(linesOf([{ id: "1", name: "scope-1", answer: { address: "10.0.0.1", ports: [1, 2] } }]), [
    "name: scope-1",
    "answer / address: 10.0.0.1",
    "answer / ports: 1, 2",
  ]);
  assert.deepEqual(attributeInWords("memory_mb", 4096), { name: "Memory", text: "4 GiB" });
  assert.deepEqual(attributeInWords("hook_url", "https://x"), { name: "Hook URL", text: "https://x" });
  assert.equal(attributeInWords("physical_network", null), null);
  assert.deepEqual(capacityInWords({ VCPU: 16, MEMORY_MB: 4096, CUSTOM_GPU: 4 }), [
    "16 vCPUs",
    "4 GiB memory",
    "4 gpu",
  ]);
  assert.deepEqual(capacityInWords({ UNIT: 1 }), []);
  assert.deepEqual(capacityInWords({ GIGABYTES: 20000, VOLUMES: 20000 }), ["20,000 GiB"]);
});

test("of numbers that are given instead of each other one set is filled in", () => {
  const number: Schema = { type: "integer", minimum: 1 };
  const amount: Schema = { ...number, title: "Units", "x-instead-of": ["min", "max"] };
  const schema: Schema = { required: ["class"], properties: { class: {}, min: number, max: number, amount } };
  const sets = setsOf(fieldsOf(schema));
  assert.deepEqual(
    sets.map((set) => set.map(({ name }) => name)),
    [["min", "max"], ["amount"]],
  );
  assert.deepEqual(initialValues(schema), { min: 1 });
  assert.deepEqual([setIn(sets, { max: 2 }), setIn(sets, { amount: 2 }), setIn(sets, {})], [0, 1, 0]);
  assert.deepEqual(withSet(sets, 1, { class: "seat", min: 3, max: 4 }), { class: "seat", amount: 3 });
  assert.deepEqual(withSet(sets, 0, { class: "seat", amount: 5 }), { class: "seat", min: 5 });
  assert.deepEqual(setsOf(fieldsOf({ properties: { min: number, max: number } })), []);
});

test("rows that could not be sent as they stand are said", () => {
  assert.equal(
    pairsProblem([
      ["gpu", "A100"],
      ["", ""],
    ]),
    null,
  );
  assert.equal(pairsProblem([["", "A100"]]), "Name the property that has this value.");
  assert.equal(
    pairsProblem([
      ["gpu", "A100"],
      [" gpu ", "H100"],
    ]),
    "There are two values for gpu; keep one.",
  );
});

test("for a new resource nothing is proposed that is registered already", () => {
  const addresses = [
    { value: "203.0.113.1", count: 1 },
    { value: "203.0.113.2", count: 1 },
  ];
  const free = [{ floating_network_id: "public", floating_ip_address: "203.0.113.3" }, {}];
  assert.deepEqual(proposalsOf("floating_ip_address", addresses, free), ["203.0.113.3"]);
  assert.deepEqual(proposalsOf("floating_ip_address", addresses, []), []);
  const networks = [
    { value: "public", count: 2 },
    { value: "campus", count: 1 },
  ];
  assert.deepEqual(proposalsOf("floating_network_id", networks, free), ["public"]);
  assert.deepEqual(proposalsOf("floating_network_id", networks, []), ["public"]);
  // Who books chooses among what is registered.
  assert.deepEqual(proposalsOf("floating_ip_address", addresses, undefined), ["203.0.113.1", "203.0.113.2"]);
  assert.deepEqual(proposalsOf("segment_id", [{ value: 7, count: 1 }], undefined), ["7"]);
});

test("it is said how many hypervisors no number counts", () => {
  assert.equal(
    leftOutInWords(1),
    "1 hypervisor of the cloud is not registered: it is not listed, and no number counts it.",
  );
  assert.equal(
    leftOutInWords(3),
    "3 hypervisors of the cloud are not registered: they are not listed, and no number counts them.",
  );
});
