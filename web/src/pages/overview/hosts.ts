// SPDX-License-Identifier: Apache-2.0
/** Which hosts have some trouble: what the API is asked, here and in the list of hosts. */
import { now as serviceNow } from "../../api/client.ts";
import { startOfDay, toWire, zone } from "../../time/zone.ts";

export type Troubles = "failed" | "disabled" | "maintenance";

/** Returns the query of hosts that are in maintenance today, in the zone of the page. */
export function maintenanceToday(): Record<string, string> {
  return { maintenance_before: toWire(startOfDay(serviceNow(), zone.value, 1)) };
}

/** Returns the filters of GET /v1/resources/host for what is wrong. */
export function troublesOf(trouble: Troubles): Record<string, string> {
  switch (trouble) {
    case "failed":
      return { condition: "failed" };
    case "disabled":
      return { condition: "disabled_without_end" };
    default:
      return maintenanceToday();
  }
}
