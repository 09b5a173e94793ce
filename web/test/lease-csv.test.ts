// SPDX-License-Identifier: Apache-2.0
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Lease } from "../src/api/types.ts";
import { csvOf } from "../src/words/lease-csv.ts";

const lease = (name: string) =>
  ({
    id: "1",
    name,
    project_id: "p",
    user_id: "u",
    status: "ACTIVE",
    kind: "scheduled",
    start_date: "2026-11-23T10:00:00Z",
    end_date: "2026-11-23T11:30:00Z",
    reservations: [],
    created_at: "2026-11-20T10:00:00Z",
  }) as unknown as Lease;

test("leases are a table for spreadsheets, and no name is a formula or another cell", () => {
  const [head, ...rows] = csvOf([lease('a, "b"'), lease("=1+1"), lease("x\r\ny")]).split(/\r\n(?=1|$)/);
  assert.equal(head, "id,name,project,user,status,kind,start,end,hours,what,created");
  const rest = "p,u,ACTIVE,scheduled,2026-11-23T10:00:00Z,2026-11-23T11:30:00Z,1.5,,2026-11-20T10:00:00Z";
  assert.deepEqual(rows, [`1,"a, ""b""",${rest}`, `1,'=1+1,${rest}`, `1,"x\r\ny",${rest}`, ""]);
});
