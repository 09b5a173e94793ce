// SPDX-License-Identifier: Apache-2.0
/** Leases as a table for spreadsheets. Pure. */
import type { Lease } from "../api/types.ts";
import { whatOf } from "./lease.ts";

const HEADS = ["id", "name", "project", "user", "status", "kind", "start", "end", "hours", "what", "created"];

/** What the table needs of a lease. */
export const CSV_FIELDS = "name,project_id,user_id,status,kind,start_date,end_date,reservations,created_at";

/** Returns the table with a head: instants in UTC, hours with one decimal. */
export function csvOf(leases: readonly Lease[]): string {
  const rows = leases.map((lease) => [
    lease.id,
    lease.name,
    lease.project_id,
    lease.user_id,
    lease.status,
    lease.kind ?? "",
    lease.start_date,
    lease.end_date,
    ((Date.parse(lease.end_date) - Date.parse(lease.start_date)) / 3_600_000).toFixed(1),
    lease.reservations.map(whatOf).join("; "),
    lease.created_at,
  ]);
  return [HEADS, ...rows].map((row) => `${row.map(cellOf).join(",")}\r\n`).join("");
}

/** A name that a spreadsheet would take for a formula is a text all the same. */
function cellOf(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
