// SPDX-License-Identifier: Apache-2.0
// A made-up cloud for the mock server: hosts and leases that do not overlap, the same for the same seed.
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const KINDS = [
  { gpu: "A100", vcpus: 64, memory_mb: 515072, local_gb: 890 },
  { gpu: "H100", vcpus: 128, memory_mb: 1030144, local_gb: 1780 },
  { vcpus: 32, memory_mb: 131072, local_gb: 445 },
  { vcpus: 48, memory_mb: 196608, local_gb: 890 },
  { vcpus: 96, memory_mb: 2060288, local_gb: 890, bigmem: "true" },
];
const NAMES = [
  "gan-training",
  "course 2026",
  "lattice QCD",
  "genome assembly",
  "thesis",
  "benchmark",
  "CI pool",
  "demo",
  "weather model",
  "protein folding",
];
const PEOPLE = [
  ["alice", "physics"],
  ["carol", "physics"],
  ["bob", "chemistry"],
  ["dave", "biology"],
  ["erin", "teaching"],
];

/** A generator of numbers in [0, 1), the same for the same seed. */
export function dice(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** Returns {hosts, leases, hypervisors} around `now`. */
export function makeWorld({ hosts: count, leases: wanted, now, seed = 7 }) {
  const roll = dice(seed);
  const pick = (list) => list[Math.floor(roll() * list.length)];
  const uuid = () => "xxxxxxxx-xxxx-4xxx-8xxx-xxxxxxxxxxxx".replace(/x/g, () => Math.floor(roll() * 16).toString(16));
  const label = () => `h-${Array.from({ length: 6 }, () => pick([..."abcdefghijklmnopqrstuvwxyz234567"])).join("")}`;
  const wire = (at) => `${new Date(at).toISOString().slice(0, 19)}Z`;
  const hosts = Array.from({ length: count }, (_, index) => {
    const kind = KINDS[Math.floor((index / count) * KINDS.length)];
    const { vcpus, memory_mb, local_gb, ...rest } = kind;
    const name = `cn${String(index + 1).padStart(count > 99 ? 4 : 2, "0")}.example`;
    const disabled =
      roll() < 0.04
        ? {
            reason: pick(["fan replaced", "BIOS update", "lent to the network team"]),
            since: wire(now - 30 * HOUR),
            until: roll() < 0.5 ? wire(now + 5 * DAY) : null,
          }
        : null;
    const failure = !disabled && roll() < 0.02 ? { reason: "compute service down", since: wire(now - 3 * HOUR) } : null;
    return {
      id: String(index + 1),
      label: label(),
      kind: "host",
      name,
      attributes: {
        hypervisor_hostname: name,
        service_name: name.split(".")[0],
        hypervisor_type: "QEMU",
        hypervisor_version: 8002000,
        availability_zone: `az-${(index % 3) + 1}`,
        cpu_info: '{"arch": "x86_64"}',
      },
      capacity: { VCPU: vcpus, MEMORY_MB: memory_mb, DISK_GB: local_gb },
      traits: ["HW_CPU_X86_AVX512F"],
      properties: { ...rest, rack: `r${(index % 12) + 1}` },
      reservable: !disabled,
      disabled,
      failure,
      authorized_projects: null,
      created_at: wire(now - 200 * DAY),
      updated_at: wire(now - DAY),
      links: [],
      edits: 1,
    };
  });
  // Each host's time is filled from the left with leases and gaps: nothing overlaps.
  const per = Math.ceil(wanted / Math.max(1, count));
  const length = (60 * DAY) / Math.max(1, per);
  const leases = [];
  for (const host of hosts) {
    let at = now - 30 * DAY + roll() * length;
    for (let index = 0; index < per && leases.length < wanted; index++) {
      const start = Math.round((at + roll() * length * 0.4) / (30 * MINUTE)) * 30 * MINUTE;
      const end = start + Math.max(HOUR, Math.round((roll() * length * 0.8) / (30 * MINUTE)) * 30 * MINUTE);
      at = end + HOUR;
      const [user, project] = pick(PEOPLE);
      const status = end <= now ? "TERMINATED" : start > now ? "PENDING" : "ACTIVE";
      leases.push(
        makeLease({ uuid, wire, user, project, name: `${pick(NAMES)}`, start, end, status, hosts: [host], roll, now }),
      );
    }
  }
  const hypervisors = Array.from({ length: 4 }, (_, index) => ({
    id: String(count + index + 1),
    name: `new${index + 1}.example`,
    state: index === 3 ? "down" : "up",
    servers: index === 2 ? 2 : 0,
    resource_id: null,
  }));
  return { hosts, leases, hypervisors, feeds: [], keys: new Map(), uuid, wire };
}

/** Returns a lease of whole hosts in the full shape of the API. */
export function makeLease({ uuid, wire, user, project, name, start, end, status, hosts, roll, now, reservations }) {
  const degraded = status === "ACTIVE" && roll !== undefined && roll() < 0.05;
  const failed = status === "PENDING" && roll !== undefined && roll() < 0.02;
  const state = failed ? "ERROR" : status;
  const made = wire(Math.min(start - DAY, now));
  const asked = reservations ?? [
    {
      resource_type: "physical:host",
      min: hosts.length,
      max: hosts.length,
      resource_properties: hosts[0]?.properties.gpu ? ["==", "$gpu", hosts[0].properties.gpu] : [],
    },
  ];
  const full = asked.map((one) => ({
    id: uuid(),
    status: { TERMINATED: "deleted", ACTIVE: "active", PENDING: "pending", ERROR: "error" }[state] ?? "pending",
    missing_resources: degraded,
    resources_changed: false,
    hypervisor_properties: [],
    resource_properties: [],
    before_end: "default",
    ...one,
    ...(one.min ? { max: one.max ?? one.min } : {}),
    allocations: hosts.map((host, index) => ({
      resource: { id: host.label, type: "host", name: null, host: host.id },
      count: 1,
      used: null,
      status: degraded && index === 0 ? "failed" : ({ TERMINATED: "released", ACTIVE: "in_use" }[state] ?? "promised"),
    })),
    use: { scheduler_hints: {}, flavor_id: null, server_group_id: null, addresses: [] },
    created_at: made,
    updated_at: null,
  }));
  for (const one of full) one.use.scheduler_hints = { reservation: one.id };
  const event = (event_type, time, done, reason = null) => ({
    id: uuid(),
    event_type,
    time: wire(time),
    status: reason && !done ? "ERROR" : done ? "DONE" : "UNDONE",
    finished_at: done ? wire(time + 21_000) : null,
    attempts: done ? 1 : 0,
    next_attempt_at: null,
    reason,
  });
  const lost = {
    code: "resource_failed",
    message: "1 host has failed; it is used again when it is back, nothing that is in use is moved",
  };
  const refused = { code: "cloud_refused", message: "the cloud refused: no valid aggregate" };
  return {
    id: uuid(),
    name,
    project_id: project,
    user_id: user,
    status: state,
    degraded,
    revision: 1,
    start_date: wire(start),
    end_date: wire(end),
    before_end_date: wire(end - HOUR),
    created_at: made,
    updated_at: null,
    deleted_at: null,
    conditions: degraded
      ? [{ type: "missing_resources", reservation_id: full[0].id, since: wire(now - 3 * HOUR), count: 1, reason: lost }]
      : failed
        ? [{ type: "start_failed", reservation_id: full[0].id, since: wire(now), count: null, reason: refused }]
        : [],
    reservations: full,
    events: [
      event(
        "start_lease",
        start,
        start <= now && !failed,
        failed
          ? refused
          : start <= now && hosts[0]?.id % 7 === 0
            ? { code: "previous_user_not_left", message: "the previous user's servers were still being deleted" }
            : null,
      ),
      event("before_end_lease", end - HOUR, end - HOUR <= now),
      event("end_lease", end, end <= now),
    ],
    links: [],
  };
}
