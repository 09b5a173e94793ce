// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import { Changed, changeLease, deleteLease, movedKeys } from "../src/api/change.ts";
import type { Answer } from "../src/api/client.ts";
import { Refused } from "../src/api/errors.ts";
import type { Lease } from "../src/api/types.ts";

const lease = (changes: Partial<Lease> = {}): Lease => ({
  id: "l1",
  name: "course",
  project_id: "physics",
  user_id: "alice",
  status: "ACTIVE",
  degraded: false,
  revision: 1,
  start_date: "2026-11-20T15:00:00Z",
  end_date: "2026-11-29T15:00:00Z",
  before_end_date: null,
  created_at: "2026-11-19T08:12:03Z",
  updated_at: null,
  deleted_at: null,
  conditions: [],
  reservations: [],
  events: [],
  ...changes,
});

/** A service with one lease; PUT and DELETE are refused unless the tag is the present one. */
function service(present: Lease) {
  const sent: string[] = [];
  const send = async <T>(
    method: string,
    _path: string,
    options: { ifMatch?: string | undefined },
  ): Promise<Answer<T>> => {
    sent.push(`${method} ${options.ifMatch ?? ""}`.trim());
    const etag = `"${present.revision}"`;
    if (method !== "GET" && options.ifMatch !== etag) {
      const detail = "The lease was changed since you read it.";
      throw new Refused(412, [{ status: 412, code: "reservation.precondition_failed", title: "", detail }]);
    }
    return { status: 200, data: { lease: present } as T, etag };
  };
  return { sent, send };
}

test("a change goes through at once if nothing has moved", async () => {
  const { sent, send } = service(lease());
  await changeLease(lease(), '"1"', { name: "new" }, send);
  assert.deepEqual(sent, ['PUT "1"']);
});

test("a lease that the service has moved on is changed all the same", async () => {
  const { sent, send } = service(lease({ revision: 3, status: "UPDATING" }));
  await changeLease(lease(), '"1"', { end_date: "2026-12-01T15:00:00Z" }, send);
  assert.deepEqual(sent, ['PUT "1"', "GET", 'PUT "3"']);
});

test("what somebody else has changed is not overwritten", async () => {
  const { sent, send } = service(lease({ revision: 2, end_date: "2026-11-30T15:00:00Z" }));
  await assert.rejects(changeLease(lease(), '"1"', { end_date: "2026-12-01T15:00:00Z" }, send), (error: unknown) => {
    assert.ok(error instanceof Changed);
    assert.deepEqual([error.keys, error.etag, error.lease.end_date], [["end_date"], '"2"', "2026-11-30T15:00:00Z"]);
    return true;
  });
  assert.deepEqual(sent, ['PUT "1"', "GET"]);
});

test("without a tag the lease is read first", async () => {
  const { sent, send } = service(lease({ revision: 7 }));
  await changeLease(lease(), null, { name: "new" }, send);
  assert.deepEqual(sent, ["GET", 'PUT "7"']);
});

test("a lease that was extended meanwhile is not deleted unseen", async () => {
  const { send } = service(lease({ revision: 2, end_date: "2026-12-30T15:00:00Z" }));
  await assert.rejects(deleteLease(lease(), '"1"', send), Changed);
});

test("a refusal that is no 412 is passed on", async () => {
  const refused = new Refused(409, [{ status: 409, code: "reservation.lease_busy", title: "", detail: "busy" }]);
  await assert.rejects(
    changeLease(lease(), '"1"', { name: "new" }, async () => {
      throw refused;
    }),
    refused,
  );
});

test("of a reservation only the keys of the change count", () => {
  const one = {
    id: "r1",
    resource_type: "physical:host",
    min: 1,
    max: 2,
    before_end: "default",
  } as Lease["reservations"][number];
  const seen = lease({ reservations: [one] });
  const now = lease({ reservations: [{ ...one, max: 3 }] });
  assert.deepEqual(movedKeys(seen, now, { reservations: [{ id: "r1", min: 2 }] }), []);
  assert.deepEqual(movedKeys(seen, now, { reservations: [{ id: "r1", max: 4 }] }), ["max"]);
});
