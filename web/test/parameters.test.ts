// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Reservation } from "../src/api/types.ts";
import { fieldsOf } from "../src/words/parameters.ts";
import { whatOf } from "../src/words/lease.ts";
import { divided } from "../src/words/property.ts";
import { commandsOf, goesWith } from "../src/words/use.ts";

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

test("an object is told by the titles of its parts, and a long text is shown when it is asked for", () => {
  const schema = {
    properties: { subnet: { properties: { cidr: { title: "Addresses" }, enable_dhcp: { title: "DHCP" } } } },
  };
  const network = of("network", { subnet: { cidr: "10.0.0.0/24", dns_nameservers: [], enable_dhcp: true } });
  const [subnet] = fieldsOf(network, schema);
  assert.deepEqual(subnet?.values, [{ text: "Addresses: 10.0.0.0/24" }, { text: "DHCP: yes" }]);
  const stack = of("virtual:stack", { stack_name: "course", template: "a: 1\nb: 2\n", children: [], takes: {} });
  assert.deepEqual(
    fieldsOf(stack).map(({ name, document }) => [name, document]),
    [["Template", "a: 1\nb: 2\n"]],
  );
});

test("what a server of the lease has, nobody has to attach", () => {
  const address = of("virtual:floatingip", { id: "f1", amount: 1, use: { addresses: ["203.0.113.7"] } });
  const server = of("virtual:server", { id: "s1", floating_ip: { reservation: "f1" }, server_ids: ["n1"] });
  assert.equal(commandsOf(address, { reservations: [address] }).length, 1);
  assert.deepEqual(commandsOf(address, { reservations: [address, server] }), []);
  assert.equal(commandsOf(server, { reservations: [address, server] })[0]?.text, "openstack server show n1");
});

test("what users have deleted is not shown how to use", () => {
  const made = [
    { id: "n1", deleted_at: "2026-11-25T08:00:00Z" },
    { id: "n2", deleted_at: null },
  ];
  const server = of("virtual:server", { id: "s1", server_ids: ["n1", "n2"], made });
  assert.deepEqual(
    commandsOf(server).map((one) => one.text),
    ["openstack server show n2"],
  );
});

test("a host is booted into by a hint that names its own reservation", () => {
  const use = { addresses: [], scheduler_hints: { reservation: "h1" } };
  const host = of("physical:host", { id: "h1", min: 1, use });
  assert.match(commandsOf(host, { reservations: [host] })[0]!.text, /--hint reservation=h1/);
});

test("titles say what it is, not its type", () => {
  const said = [
    of("generic", { class: "microscope", min: 1, max: 1 }),
    of("generic", { class: "licence", amount: 3 }),
    of("generic", { class: "bench", min: 2, max: 4 }),
    of("virtual:volume", { size: 100, amount: 2 }),
    of("virtual:server", { amount: 2, vcpus: 2, memory_mb: 4096 }),
    of("virtual:stack", { stack_name: "course" }),
    of("virtual:stack", { stack_name: null }),
  ].map(whatOf);
  assert.deepEqual(said, [
    "1 microscope",
    "3 units of a licence",
    "2 to 4 × bench",
    "2 volumes of 100 GiB",
    "2 servers of 2 vCPU, 4 GiB",
    "stack course",
    "stack",
  ]);
});

test("hosts are shown in sentences", () => {
  assert.deepEqual(fieldsOf(of("physical:host", { min: 1, max: 2 })), []);
});

test("the end of what has no servers does not speak of servers", () => {
  assert.equal(goesWith(of("network", {})), "It is taken back.");
});

test("properties that people choose by come first, those of programs last", () => {
  const names = ["availability_zone", "cpu_info", "created_at", "gpu", "id", "reservable", "service_name", "vcpus"];
  const { usual, technical } = divided(names.map((name) => ({ name })));
  assert.deepEqual(
    usual.map(({ name }) => name),
    ["availability_zone", "gpu", "vcpus"],
  );
  assert.deepEqual(
    technical.map(({ name }) => name),
    ["cpu_info", "created_at", "id", "reservable", "service_name"],
  );
});
