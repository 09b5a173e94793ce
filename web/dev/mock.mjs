// SPDX-License-Identifier: Apache-2.0
// Serves the built pages and a made-up service at microversion 1.1, to work on the pages alone:
//   node dev/mock.mjs        PORT=8080 HOSTS=60 LEASES=400 DIST=../blazar/api/web/dist LATENCY=0
// Its placement is simple and its answers are not checked: what counts is the real service.
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { makeLease, makeWorld } from "./world.mjs";

const HERE = dirname(fileURLToPath(import.meta.url));
const DIST = resolve(process.env.DIST ?? join(HERE, "../../blazar/api/web/dist"));
const PORT = Number(process.env.PORT ?? 8080);
const LATENCY = Number(process.env.LATENCY ?? 0);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const world = makeWorld({
  hosts: Number(process.env.HOSTS ?? 60),
  leases: Number(process.env.LEASES ?? 400),
  now: Date.now(),
});
const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";
const TYPES = {
  ".js": "text/javascript",
  ".css": "text/css",
  ".html": "text/html; charset=utf-8",
  ".svg": "image/svg+xml",
  ".json": "application/json",
};

class Refusal extends Error {
  constructor(status, code, detail, more = {}) {
    super(detail);
    this.status = status;
    this.fault = {
      status,
      code: `reservation.${code}`,
      title: code.replaceAll("_", " "),
      detail,
      request_id: "req-mock",
      links: [],
      ...more,
    };
  }
}

const parse = (text, from, name) => {
  if (text === undefined || text === null || text === "now") return Math.floor(Date.now() / 1000) * 1000;
  const sign = /^([+-])(.+)$/.exec(text);
  if (sign) return from + (sign[1] === "-" ? -1 : 1) * length(sign[2]);
  const at = Date.parse(/Z$|[+-]\d\d:\d\d$/.test(text) ? text : `${text}Z`);
  if (Number.isNaN(at))
    throw new Refusal(400, "invalid_date", `${name} must be a date such as 2026-11-26T15:00:00Z, not '${text}'`, {
      pointer: `/${name}`,
    });
  return at;
};
const length = (text) => {
  const iso = /^P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?$/.exec(text);
  if (iso)
    return (
      (((Number(iso[1] ?? 0) * 7 + Number(iso[2] ?? 0)) * 24 + Number(iso[3] ?? 0)) * 60 + Number(iso[4] ?? 0)) *
        MINUTE +
      Number(iso[5] ?? 0) * 1000
    );
  const short = /^(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?$/.exec(text);
  if (!short || text === "")
    throw new Refusal(400, "invalid_value", `'${text}' is no duration; P3D or 72h would fit`, { pointer: "/duration" });
  return (
    (((Number(short[1] ?? 0) * 7 + Number(short[2] ?? 0)) * 24 + Number(short[3] ?? 0)) * 60 + Number(short[4] ?? 0)) *
    MINUTE
  );
};
const propertiesOf = (host) => ({
  ...host.properties,
  vcpus: host.capacity.VCPU,
  memory_mb: host.capacity.MEMORY_MB,
  local_gb: host.capacity.DISK_GB,
  availability_zone: host.attributes.availability_zone,
  hypervisor_type: host.attributes.hypervisor_type,
  ...(host.name ? { hypervisor_hostname: host.name } : {}),
});
const meets = (host, requirement) => {
  if (!requirement || requirement.length === 0) return true;
  const [operator, ...rest] = requirement;
  if (operator === "and") return rest.every((one) => meets(host, one));
  if (operator === "or") return rest.some((one) => meets(host, one));
  if (operator === "not") return !meets(host, rest[0]);
  const has = propertiesOf(host)[rest[0].replace(/^\$/, "")];
  if (has === undefined) return false;
  if (operator === "in") return rest[1].some((one) => meets(host, ["==", rest[0], one]));
  const [a, b] = [has, ...rest.slice(1)].map((one) => (Number.isNaN(Number(one)) ? String(one) : Number(one)));
  return { "==": a === b, "!=": a !== b, ">=": a >= b, "<=": a <= b, ">": a > b, "<": a < b }[operator] ?? false;
};
const live = (lease) => lease.deleted_at === null && lease.status !== "TERMINATED";
const usesOf = (host, except) => {
  const uses = [];
  for (const lease of world.leases) {
    if (lease.id === except || lease.deleted_at) continue;
    for (const reservation of lease.reservations) {
      if (reservation.allocations.some((one) => one.resource.host === host.id))
        uses.push({ lease, reservation, start: Date.parse(lease.start_date), end: Date.parse(lease.end_date) });
    }
  }
  return uses.sort((a, b) => a.start - b.start);
};
let uses = new Map();
const refresh = () => {
  uses = new Map(world.hosts.map((host) => [host.id, []]));
  for (const lease of world.leases)
    if (!lease.deleted_at)
      for (const reservation of lease.reservations)
        for (const one of reservation.allocations)
          uses
            .get(one.resource.host)
            ?.push({ lease, reservation, start: Date.parse(lease.start_date), end: Date.parse(lease.end_date) });
  for (const list of uses.values()) list.sort((a, b) => a.start - b.start);
};
refresh();
const usable = (host) => host.reservable && !host.failure;
const freeIn = (host, start, end, except) =>
  usable(host) &&
  !(except ? usesOf(host, except) : uses.get(host.id)).some((use) => use.start < end && use.end > start);
const requirementOf = (wish) => {
  const list = [wish.hypervisor_properties, wish.resource_properties]
    .map((one) => (typeof one === "string" ? (one ? JSON.parse(one) : []) : (one ?? [])))
    .filter((one) => one.length > 0);
  return list.length > 1 ? ["and", ...list] : (list[0] ?? []);
};
const place = (wishes, start, end, except) => {
  const taken = new Set();
  const placed = [];
  for (const wish of wishes) {
    const least = wish.min ?? wish.amount ?? 1;
    const found = world.hosts
      .filter((host) => !taken.has(host.id) && meets(host, requirementOf(wish)) && freeIn(host, start, end, except))
      .slice(0, wish.max ?? least);
    if (found.length < least) return null;
    for (const host of found) taken.add(host.id);
    placed.push(found);
  }
  return placed;
};
const search = (wishes, earliest, latest, duration, limit, except) => {
  const starts = [earliest];
  for (const list of uses.values())
    for (const use of list) if (use.end > earliest && use.end + duration <= latest) starts.push(use.end);
  const openings = [];
  let fits = false;
  for (const start of [...new Set(starts)].sort((a, b) => a - b)) {
    if (openings.length >= limit) break;
    const placed = place(wishes, start, start + duration, except);
    if (placed && !fits)
      openings.push({
        start_date: world.wire(start),
        end_date: world.wire(start + duration),
        last_start_date: world.wire(start + 2 * HOUR),
        open_until: world.wire(start + duration + 2 * HOUR),
        reservations: placed.map((one) => ({ count: one.length })),
        refusals: [],
      });
    fits = placed !== null;
  }
  return openings;
};
const why = (wish, index, start, end) => {
  const words = JSON.stringify(requirementOf(wish));
  const steps = [{ code: "registered", remaining: world.hosts.length }];
  let left = world.hosts.filter((host) => meets(host, requirementOf(wish)));
  if (requirementOf(wish).length > 0)
    steps.push({ code: "requirement", pointer: `/reservations/${index}/resource_properties`, remaining: left.length });
  const up = left.filter((host) => host.reservable);
  if (up.length < left.length) steps.push({ code: "disabled", removed: left.length - up.length, remaining: up.length });
  left = up;
  const free = left.filter((host) => freeIn(host, start, end));
  steps.push({
    code: "promised",
    removed: left.length - free.length,
    remaining: free.length,
    until: world.wire(end + DAY),
  });
  return {
    pointer: `/reservations/${index}`,
    window: { start_date: world.wire(start), end_date: world.wire(end) },
    asked: wish.min ?? wish.amount ?? 1,
    free: free.length,
    steps,
    message: `${world.hosts.length} hosts; ${steps[1].remaining} with ${words}; ${free.length} free`,
  };
};

const routes = {
  "GET /ui/session": () => ({ mode: "standalone" }),
  "GET /v1/info": ({ who }) => ({
    info: {
      now: world.wire(Date.now()),
      user_id: who.user,
      project_id: who.project,
      allowed: [
        "blazar:leases:get",
        "blazar:leases:post",
        "blazar:leases:put",
        "blazar:leases:delete",
        "blazar:availability:get",
        "blazar:calendar:get",
        "blazar:capacity:get",
        "blazar:properties:get",
        "blazar:feeds:get",
        "blazar:feeds:post",
        "blazar:feeds:delete",
        ...(who.admin
          ? [
              "blazar:calendar:get_owners",
              "blazar:calendar:get_names",
              "blazar:resources:get_private",
              "blazar:resources:get_candidates",
              "blazar:resources:post",
              "blazar:resources:put",
              "blazar:resources:delete",
            ]
          : []),
      ],
      resource_types: ["physical:host", "virtual:instance", "flavor:instance", "virtual:floatingip"],
      before_end: { default: "notification", lead_seconds: 3600 },
      cleaning_seconds: 1800,
      confirm_within_seconds: 900,
      limits: [{ limit: "max_lease_duration", value: 30 * 86400, unit: "seconds" }],
      bounds: {
        page: 1000,
        availability_range_seconds: 31622400,
        range_seconds: 31622400,
        range_ahead_seconds: 157852800,
      },
      idempotency_seconds: 86400,
    },
  }),
  "GET /v1/properties": () => {
    const found = new Map();
    for (const host of world.hosts)
      for (const [name, value] of Object.entries(propertiesOf(host)))
        if (name !== "hypervisor_hostname") {
          const counts = found.get(name) ?? new Map();
          counts.set(value, (counts.get(value) ?? 0) + 1);
          found.set(name, counts);
        }
    return {
      properties: [...found].sort().map(([name, counts]) => {
        const numbers = [...counts.keys()].every((value) => typeof value === "number");
        return {
          name,
          type: numbers ? "number" : "text",
          private: false,
          ...(numbers ? { minimum: Math.min(...counts.keys()), maximum: Math.max(...counts.keys()) } : {}),
          values: [...counts].map(([value, count]) => ({ value, count })),
          truncated: false,
        };
      }),
    };
  },
  "GET /v1/leases": ({ who, query }) => {
    const state = query.get("state") ?? "current";
    let list = world.leases.filter(
      (lease) =>
        (who.admin || lease.project_id === who.project) && (state === "all" || (state === "past") !== live(lease)),
    );
    for (const name of ["status", "project_id", "degraded", "user_id"])
      if (query.has(name)) {
        const wanted = query.get(name).replace(/^in:/, "").split(",");
        list = list.filter((lease) => wanted.includes(String(lease[name])));
      }
    if (query.has("text"))
      list = list.filter((lease) => lease.name.toLowerCase().includes(query.get("text").toLowerCase()));
    const instant = (text) => (text === "now" ? Date.now() : Date.parse(text));
    if (query.has("from")) list = list.filter((lease) => Date.parse(lease.end_date) > instant(query.get("from")));
    if (query.has("to")) list = list.filter((lease) => Date.parse(lease.start_date) < instant(query.get("to")));
    // Nothing of it is released as unused.
    if (query.has("release_at")) list = [];
    for (const [name, sign] of [
      ["start_date", 1],
      ["end_date", 1],
    ])
      for (const filter of query.getAll(name)) {
        const [operator, ...rest] = filter.split(":");
        const at = instant(rest.join(":"));
        list = list.filter(
          (lease) =>
            ({
              gt: Date.parse(lease[name]) > at,
              gte: Date.parse(lease[name]) >= at,
              lt: Date.parse(lease[name]) < at,
              lte: Date.parse(lease[name]) <= at,
            })[operator] && sign,
        );
      }
    const key = query.get("sort_key") ?? "created_at";
    const down = query.get("sort_dir") === "desc" ? -1 : 1;
    list.sort((a, b) => down * (String(a[key]) < String(b[key]) ? -1 : 1));
    const at = query.has("marker") ? list.findIndex((lease) => lease.id === query.get("marker")) + 1 : 0;
    const size = Number(query.get("limit") ?? 100);
    const page = list.slice(at, at + size);
    const next = new URLSearchParams(query);
    if (page.length > 0) next.set("marker", page.at(-1).id);
    const fields = query.get("fields")?.split(",");
    return {
      leases: fields
        ? page.map((lease) => Object.fromEntries(["id", ...fields].map((name) => [name, lease[name]])))
        : page,
      ...(query.get("with_count") === "true" ? { count: list.length } : {}),
      links: at + size < list.length ? [{ rel: "next", href: `http://elsewhere/v1/leases?${next}` }] : [],
    };
  },
  "GET /v1/leases/": ({ who, id }) => ({ lease: own(who, id) }),
  "POST /v1/leases": ({ who, body, query, headers }) => {
    const key = headers["idempotency-key"];
    if (key && world.keys.has(key)) return [201, { lease: world.keys.get(key) }];
    if (!body.name)
      throw new Refusal(400, "missing_field", "name is missing; give the lease a name of at most 80 characters", {
        pointer: "/name",
      });
    const start = parse(body.start_date, Date.now(), "start_date");
    const end = parse(body.end_date, start, "end_date");
    if (end <= start)
      throw new Refusal(400, "invalid_window", "end_date must be after start_date", { pointer: "/end_date" });
    if (start < Date.now() - MINUTE)
      throw new Refusal(400, "date_in_past", "start_date must not be in the past", { pointer: "/start_date" });
    const placed = place(body.reservations, start, end);
    if (!placed)
      throw new Refusal(409, "not_enough_resources", "Not enough hosts available at that time.", {
        pointer: "/reservations/0",
        data: {
          reasons: body.reservations.map((wish, index) => why(wish, index, start, end)),
          alternatives: [],
          as_of: world.wire(Date.now()),
        },
      });
    const lease = makeLease({
      uuid: world.uuid,
      wire: world.wire,
      user: who.user,
      project: who.project,
      name: body.name,
      start,
      end,
      status: start <= Date.now() ? "ACTIVE" : "PENDING",
      hosts: placed.flat(),
      now: Date.now(),
      reservations: body.reservations,
    });
    if (query.get("dry_run") === "true") return [200, { lease: { ...lease, id: null } }];
    world.leases.push(lease);
    if (key) world.keys.set(key, lease);
    refresh();
    return [201, { lease }];
  },
  "PUT /v1/leases/": ({ who, id, body, query, headers }) => {
    const lease = own(who, id);
    if (headers["if-match"] && headers["if-match"] !== `"${lease.revision}.1.a"`)
      throw new Refusal(412, "precondition_failed", "The lease was changed since you read it.", {
        header: "If-Match",
        data: { etag: `"${lease.revision}.1.a"`, revision: lease.revision },
      });
    const start = body.start_date ? parse(body.start_date, 0, "start_date") : Date.parse(lease.start_date);
    const end = body.end_date ? parse(body.end_date, start, "end_date") : Date.parse(lease.end_date);
    if (end <= start)
      throw new Refusal(400, "invalid_window", "end_date must be after start_date", { pointer: "/end_date" });
    const hosts = world.hosts.filter((host) =>
      lease.reservations.some((one) => one.allocations.some((each) => each.resource.host === host.id)),
    );
    if (!hosts.every((host) => !usesOf(host, lease.id).some((use) => use.start < end && use.end > start)))
      throw new Refusal(409, "not_enough_resources", "A host is promised to somebody else then.", {
        pointer: "/end_date",
      });
    const changed = {
      ...lease,
      name: body.name ?? lease.name,
      start_date: world.wire(start),
      end_date: world.wire(end),
      before_end_date: body.before_end_date
        ? world.wire(parse(body.before_end_date, end, "before_end_date"))
        : world.wire(end - HOUR),
      status: end <= Date.now() ? "TERMINATED" : lease.status,
    };
    changed.events = lease.events.map((event) =>
      event.event_type === "end_lease" ? { ...event, time: world.wire(end) } : event,
    );
    if (query.get("dry_run") === "true") return [200, { lease: changed }];
    Object.assign(lease, changed, { revision: lease.revision + 1, updated_at: world.wire(Date.now()) });
    refresh();
    return [200, { lease }];
  },
  "DELETE /v1/leases/": ({ who, id }) => {
    const lease = own(who, id);
    lease.deleted_at = world.wire(Date.now());
    lease.status = "TERMINATED";
    lease.revision++;
    refresh();
    return [204, null];
  },
  "POST /v1/availability": ({ who, body }) => {
    const now = Math.floor(Date.now() / 1000) * 1000;
    if (body.lease_id && !body.reservations) {
      const lease = own(who, body.lease_id);
      const hosts = world.hosts.filter((host) =>
        lease.reservations.some((one) => one.allocations.some((each) => each.resource.host === host.id)),
      );
      const next = Math.min(
        ...hosts.flatMap((host) =>
          usesOf(host, lease.id)
            .filter((use) => use.start >= Date.parse(lease.end_date))
            .map((use) => use.start),
        ),
        now + 60 * DAY,
      );
      if (body.end_date) {
        const end = parse(body.end_date, now, "end_date");
        const openings =
          end <= next
            ? [
                {
                  start_date: lease.start_date,
                  end_date: world.wire(end),
                  last_start_date: lease.start_date,
                  open_until: world.wire(next),
                  reservations: lease.reservations.map((one) => ({ count: one.allocations.length })),
                  refusals: [],
                },
              ]
            : [];
        const reasons =
          openings.length > 0
            ? []
            : [
                {
                  pointer: "/reservations/0",
                  window: { start_date: lease.start_date, end_date: world.wire(end) },
                  asked: hosts.length,
                  free: 0,
                  steps: [
                    { code: "registered", remaining: world.hosts.length },
                    { code: "promised", removed: hosts.length, remaining: 0, until: world.wire(next) },
                  ],
                  message: "promised to somebody else",
                },
              ];
        return {
          availability: {
            as_of: world.wire(now),
            earliest: lease.start_date,
            latest: world.wire(end),
            duration_seconds: null,
            searched_until: world.wire(end),
            complete: true,
            openings,
            not_checked: [],
            reasons,
            alternatives: [],
            extension: null,
          },
        };
      }
      return {
        availability: {
          as_of: world.wire(now),
          earliest: lease.start_date,
          latest: world.wire(now + 60 * DAY),
          duration_seconds: null,
          searched_until: world.wire(now + 60 * DAY),
          complete: true,
          openings: [],
          not_checked: [],
          reasons: [],
          alternatives: [],
          extension: {
            open_until: world.wire(next),
            limited_by: next === now + 60 * DAY ? "range" : "promised",
            refusals: [],
          },
        },
      };
    }
    const wishes = body.reservations ?? [];
    const earliest = parse(body.start_date ?? body.earliest, now, "earliest");
    const duration = body.duration ? length(body.duration) : parse(body.end_date, earliest, "end_date") - earliest;
    const latest = body.start_date ? earliest + duration : parse(body.latest ?? "+P30D", earliest, "latest");
    for (const [index, wish] of wishes.entries())
      if ((wish.min ?? wish.amount ?? 1) < 1)
        throw new Refusal(400, "invalid_value", "min must be 1 or more", { pointer: `/reservations/${index}/min` });
    const openings = search(wishes, earliest, latest, duration, body.limit ?? 5, body.lease_id);
    const fits = openings[0]?.start_date === world.wire(earliest);
    const alternatives = [];
    if (openings.length === 0) {
      const later = search(wishes, latest, latest + 60 * DAY, duration, 1)[0];
      if (later) alternatives.push({ change: "time", start_date: later.start_date, end_date: later.end_date });
      for (let count = (wishes[0]?.min ?? 1) - 1; count > 0; count--)
        if (place([{ ...wishes[0], min: count, max: count }], earliest, earliest + duration)) {
          alternatives.push({
            change: "count",
            start_date: world.wire(earliest),
            end_date: world.wire(earliest + duration),
            reservations: [{ min: count, max: count }],
          });
          break;
        }
      if (requirementOf(wishes[0] ?? {}).length > 0)
        alternatives.push({
          change: "requirement",
          drop: "/reservations/0/resource_properties",
          start_date: world.wire(earliest),
          end_date: world.wire(earliest + duration),
        });
    }
    return {
      availability: {
        as_of: world.wire(now),
        earliest: world.wire(earliest),
        latest: world.wire(latest),
        duration_seconds: duration / 1000,
        searched_until: world.wire(latest),
        complete: true,
        openings,
        not_checked: [],
        reasons: fits ? [] : wishes.map((wish, index) => why(wish, index, earliest, earliest + duration)),
        alternatives,
        extension: null,
      },
    };
  },
  "GET /v1/calendar": ({ who, query }) => {
    const from = parse(query.get("from"), Date.now(), "from");
    const to = query.has("to") ? Date.parse(query.get("to")) : from + 14 * DAY;
    const requirement = query.has("requirement") ? JSON.parse(query.get("requirement")) : [];
    const size = Number(query.get("limit") ?? 200);
    let hosts =
      query.get("resource_type") === "virtual:floatingip" ? [] : world.hosts.filter((host) => meets(host, requirement));
    if (query.has("resource")) {
      const wanted = query.get("resource").replace(/^in:/, "").split(",");
      hosts = hosts.filter((host) => wanted.includes(host.id) || wanted.includes(host.label));
    }
    if (query.get("occupied_by") === "me")
      hosts = hosts.filter((host) =>
        uses.get(host.id).some((use) => use.lease.project_id === who.project && use.start < to && use.end > from),
      );
    const at = Number(query.get("marker") ?? 0);
    const cut = (time) => world.wire(Math.max(from, Math.min(to, time)));
    const resources = hosts.slice(at, at + size).map((host) => {
      const blocks = [];
      for (const { lease, reservation, start, end } of uses.get(host.id)) {
        if (end <= from || start >= to) continue;
        const mine = lease.project_id === who.project;
        const names = { lease_id: lease.id, reservation_id: reservation.id, name: lease.name, status: lease.status };
        if (who.admin)
          blocks.push({
            kind: "lease",
            start: cut(start),
            end: cut(end),
            used: null,
            ...names,
            project_id: lease.project_id,
            user_id: lease.user_id,
          });
        else if (mine) blocks.push({ kind: "mine", start: cut(start), end: cut(end), used: null, ...names });
        else blocks.push({ kind: "other", start: cut(start), end: cut(end), used: null });
        if ((who.admin || mine) && end + 30 * MINUTE > from && end < to)
          blocks.push({ kind: "cleaning", start: cut(end), end: cut(end + 30 * MINUTE) });
      }
      if (host.disabled)
        blocks.push({
          kind: "out_of_use",
          start: cut(Date.parse(host.disabled.since)),
          end: host.disabled.until ? cut(Date.parse(host.disabled.until)) : null,
          code: "disabled",
          reason: who.admin ? host.disabled.reason : null,
        });
      if (host.failure)
        blocks.push({
          kind: "out_of_use",
          start: cut(Date.parse(host.failure.since)),
          end: null,
          code: "failed",
          reason: who.admin ? host.failure.reason : null,
        });
      blocks.sort((a, b) => (a.start < b.start ? -1 : 1));
      const { hypervisor_hostname: _, ...properties } = propertiesOf(host);
      return {
        id: who.admin ? host.id : host.label,
        type: "host",
        name: who.admin ? host.name : null,
        ...(who.admin ? { label: host.label } : {}),
        reservable: host.reservable,
        capacity: host.capacity,
        properties,
        blocks,
      };
    });
    const next = new URLSearchParams(query);
    next.set("marker", String(at + size));
    return {
      calendar: {
        as_of: world.wire(Date.now()),
        from: world.wire(from),
        to: world.wire(to),
        resources,
        ...(query.get("with_count") === "true" ? { count: hosts.length } : {}),
      },
      links: at + size < hosts.length ? [{ rel: "next", href: `http://elsewhere/v1/calendar?${next}` }] : [],
    };
  },
  "GET /v1/capacity": ({ query }) => {
    const from = parse(query.get("from"), Date.now(), "from");
    const to = query.has("to") ? parse(query.get("to"), from, "to") : from + 14 * DAY;
    const step = query.has("step") ? length(query.get("step")) : Math.ceil((to - from) / 200 / MINUTE) * MINUTE;
    const requirement = query.has("requirement") ? JSON.parse(query.get("requirement")) : [];
    const by = query.getAll("group_by");
    const groups = new Map();
    for (const host of world.hosts) {
      if (!meets(host, requirement)) continue;
      const group = Object.fromEntries(by.map((name) => [name, propertiesOf(host)[name] ?? null]));
      const key = JSON.stringify(group);
      const series = groups.get(key) ?? { group, hosts: [] };
      series.hosts.push(host);
      groups.set(key, series);
    }
    const points = Math.ceil((to - from) / step);
    const series = [...groups.values()].map(({ group, hosts }) => {
      const promised = new Array(points).fill(0);
      const out = new Array(points).fill(0);
      for (const host of hosts) {
        if (!usable(host)) {
          for (let index = 0; index < points; index++) out[index]++;
          continue;
        }
        const seen = new Set();
        for (const use of uses.get(host.id))
          for (
            let index = Math.max(0, Math.floor((use.start - from) / step));
            index < Math.min(points, Math.ceil((use.end - from) / step));
            index++
          )
            if (!seen.has(index)) {
              seen.add(index);
              promised[index]++;
            }
      }
      const busy = hosts.filter(
        (host) => usable(host) && uses.get(host.id).some((use) => use.start <= from && use.end > from),
      ).length;
      return {
        group,
        total: promised.map(() => hosts.length),
        free: promised.map((count, index) => hosts.length - count - out[index]),
        promised,
        out_of_use: out,
        at_start: {
          total: hosts.length,
          free: hosts.length - busy - (out[0] ?? 0),
          promised: busy,
          out_of_use: out[0] ?? 0,
        },
      };
    });
    return {
      capacity: {
        as_of: world.wire(Date.now()),
        from: world.wire(from),
        to: world.wire(to),
        step_seconds: step / 1000,
        measure: query.get("measure") ?? "resource",
        series,
      },
    };
  },
  "GET /v1/resources/host": ({ query }) => {
    let list = world.hosts;
    if (query.has("text")) list = list.filter((host) => host.name.includes(query.get("text")));
    const condition = query.get("condition");
    if (condition)
      list = list.filter((host) =>
        condition === "disabled_without_end"
          ? host.disabled && !host.disabled.until
          : (host.disabled ? "disabled" : host.failure ? "failed" : "ok") === condition,
      );
    if (query.has("maintenance_before")) list = [];
    if (query.has("requirement")) list = list.filter((host) => meets(host, JSON.parse(query.get("requirement"))));
    const at = query.has("marker") ? list.findIndex((host) => host.id === query.get("marker")) + 1 : 0;
    const size = Number(query.get("limit") ?? 100);
    const page = list.slice(at, at + size);
    const next = new URLSearchParams(query);
    if (page.length > 0) next.set("marker", page.at(-1).id);
    return {
      resources: page,
      ...(query.get("with_count") === "true" ? { count: list.length } : {}),
      links: at + size < list.length ? [{ rel: "next", href: `http://elsewhere/v1/resources/host?${next}` }] : [],
    };
  },
  "GET /v1/resources/host/": ({ id }) => ({ resource: host(id) }),
  "PUT /v1/resources/host/": ({ id, body, headers }) => {
    const one = host(id);
    if (headers["if-match"] && headers["if-match"] !== `"${one.edits}"`)
      throw new Refusal(412, "precondition_failed", "The host was changed since you read it.", {
        header: "If-Match",
        data: { etag: `"${one.edits}"` },
      });
    for (const [name, value] of Object.entries(body.properties ?? {})) {
      if (/[^\w:.-]/.test(name))
        throw new Refusal(
          400,
          "invalid_value",
          `'${name}' cannot be the name of a property; use letters, digits and _`,
          { pointer: `/properties/${name}` },
        );
      if (value === null) delete one.properties[name];
      else one.properties[name] = value;
    }
    if ("disabled" in body)
      one.disabled = body.disabled
        ? {
            reason: body.disabled.reason ?? null,
            since: world.wire(Date.now()),
            until: body.disabled.until ? world.wire(parse(body.disabled.until, Date.now(), "disabled/until")) : null,
          }
        : null;
    if ("authorized_projects" in body) one.authorized_projects = body.authorized_projects;
    one.reservable = !one.disabled;
    one.edits++;
    return [200, { resource: one }];
  },
  "POST /v1/resources/host": ({ body }) => {
    const found = world.hypervisors.find((one) => one.name === body.name || one.id === body.id);
    if (!found) throw new Refusal(400, "unknown_reference", "No hypervisor has this name.", { pointer: "/name" });
    if (found.servers > 0)
      throw new Refusal(
        409,
        "host_has_servers",
        `${found.name} has ${found.servers} servers; delete or move them first.`,
      );
    const made = {
      ...world.hosts[0],
      id: found.id,
      label: `h-new${found.id}`,
      name: found.name,
      properties: body.properties ?? {},
      disabled: null,
      failure: null,
      reservable: true,
      edits: 1,
    };
    found.resource_id = found.id;
    world.hosts.push(made);
    refresh();
    return [201, { resource: made }];
  },
  "DELETE /v1/resources/host/": ({ id }) => {
    const one = host(id);
    if (uses.get(id).some((use) => use.end > Date.now()))
      throw new Refusal(409, "resource_in_use", `${one.name} is promised to leases; disable it until they have ended.`);
    world.hosts.splice(world.hosts.indexOf(one), 1);
    return [204, null];
  },
  "GET /v1/resources/host/candidates": ({ query }) => ({
    candidates: world.hypervisors.filter((one) => query.get("registered") !== "false" || one.resource_id === null),
    links: [],
  }),
  "GET /v1/feeds": ({ who }) => ({ feeds: world.feeds.filter((feed) => feed.user_id === who.user), links: [] }),
  "POST /v1/feeds": ({ who, body }) => {
    const feed = {
      id: world.uuid(),
      kind: body.kind,
      name: body.name ?? "",
      user_id: who.user,
      project_id: who.project,
      resource: null,
      created_at: world.wire(Date.now()),
      expires_at: world.wire(Date.now() + 365 * DAY),
      last_used_at: null,
    };
    world.feeds.push(feed);
    return [201, { feed: { ...feed, url: `http://127.0.0.1:${PORT}/feeds/${world.uuid().replaceAll("-", "")}.ics` } }];
  },
  "DELETE /v1/feeds/": ({ id }) => {
    world.feeds = world.feeds.filter((feed) => feed.id !== id);
    return [204, null];
  },
};
const own = (who, id) => {
  const lease = world.leases.find((one) => one.id === id && (who.admin || one.project_id === who.project));
  if (!lease) throw new Refusal(404, "lease_not_found", "There is no such lease, or you may not see it.");
  return lease;
};
const host = (id) => {
  const found = world.hosts.find((one) => one.id === id);
  if (!found) throw new Refusal(404, "host_not_found", `There is no host '${id}'.`);
  return found;
};

createServer(async (request, response) => {
  const url = new URL(request.url, "http://mock");
  if (LATENCY) await new Promise((done) => setTimeout(done, LATENCY));
  if (url.pathname === "/") return response.writeHead(302, { Location: "/ui/" }).end();
  if (url.pathname.startsWith("/ui/") && url.pathname !== "/ui/session") return page(url.pathname.slice(4), response);
  const send = (status, body, headers = {}) => {
    const bytes = body === null ? Buffer.alloc(0) : gzipSync(JSON.stringify(body), { level: 6 });
    response
      .writeHead(status, {
        "Content-Type": "application/json",
        ...(body === null ? {} : { "Content-Encoding": "gzip" }),
        ...headers,
      })
      .end(bytes);
  };
  try {
    // A page that asks for something else by now has ended its request: reading it throws.
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const [user = "admin", project = "demo", roles = ""] = String(
      request.headers["x-auth-token"] ?? "admin:demo:admin",
    ).split(":");
    const single = /^\/v1\/(?:resources\/)?[a-z-]+\/([^/]+)$/.exec(url.pathname);
    const name = single ? url.pathname.slice(0, url.pathname.lastIndexOf("/") + 1) : url.pathname;
    const handler = routes[`${request.method} ${url.pathname}`] ?? routes[`${request.method} ${name}`];
    if (!handler) throw new Refusal(404, "uri_not_found", `There is no ${request.method} ${url.pathname}.`);
    const text = Buffer.concat(chunks).toString();
    const found = handler({
      who: { user, project, admin: roles.split(",").includes("admin") },
      query: url.searchParams,
      body: text ? JSON.parse(text) : {},
      headers: request.headers,
      id: single?.[1],
    });
    const [status, body] = Array.isArray(found) ? found : [200, found];
    const one = body?.lease ?? body?.resource;
    const { as_of: _, ...tagged } = body?.calendar ?? body?.capacity ?? { body };
    const tag = body?.lease
      ? `"${one.revision}.1.a"`
      : body?.resource
        ? `"${one.edits}"`
        : `W/"${createHash("sha256").update(JSON.stringify(tagged)).digest("hex").slice(0, 16)}"`;
    if (request.method === "GET" && request.headers["if-none-match"] === tag)
      return response.writeHead(304, { ETag: tag }).end();
    send(status, body, { ETag: tag });
  } catch (error) {
    if (!(error instanceof Refusal)) console.error(error);
    send(error.status ?? 500, {
      errors: [
        error.fault ?? {
          status: 500,
          code: "reservation.internal_error",
          title: "Internal error",
          detail: String(error),
        },
      ],
    });
  }
}).listen(PORT, "127.0.0.1", () =>
  console.log(`http://127.0.0.1:${PORT}/ui/ with ${world.hosts.length} hosts and ${world.leases.length} leases`),
);

function page(name, response) {
  const file = join(DIST, name && existsSync(join(DIST, name)) && !name.includes("/") ? name : "index.html");
  response
    .writeHead(200, {
      "Content-Type": TYPES[extname(file)] ?? "application/octet-stream",
      "Content-Security-Policy": CSP,
      "Cache-Control": "no-cache",
    })
    .end(readFileSync(file));
}
