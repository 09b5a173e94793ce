// SPDX-License-Identifier: Apache-2.0
/** The pages: one row each. To add a page, add a row here; web/README.md tells the rest. */
import {
  Activity,
  Boxes,
  CalendarDays,
  ClipboardList,
  type IconNode,
  Repeat,
  Search,
  Server,
  Tickets,
  Wrench,
} from "lucide";
import type { ComponentType } from "preact";
import { AllLeasesPage } from "./pages/all-leases.tsx";
import { CalendarPage } from "./pages/calendar.tsx";
import { FindPage } from "./pages/find.tsx";
import { HostsPage } from "./pages/hosts.tsx";
import { LeasePage } from "./pages/lease.tsx";
import { LeasesPage } from "./pages/leases.tsx";
import { MaintenancePage } from "./pages/maintenance.tsx";
import { OverviewPage } from "./pages/overview.tsx";
import { SeriesPage } from "./pages/series.tsx";
import { ResourcePage } from "./pages/resource.tsx";
import { ResourcesPage } from "./pages/resources.tsx";

export interface Page {
  /** The segment after /ui/; "" is the home page. */
  path: string;
  title: string;
  view: ComponentType;
  /** In the navigation with this icon; a page without one is reached from others. */
  icon?: IconNode;
  /** Shown if the policy allows this rule. */
  rule?: string;
  /** In the group of operators. */
  operators?: boolean;
  /** Uses the whole window instead of a column. */
  full?: boolean;
}

export const PAGES: readonly Page[] = [
  { path: "", title: "Find a time", view: FindPage, icon: Search },
  { path: "calendar", title: "Calendar", view: CalendarPage, icon: CalendarDays, full: true },
  { path: "leases", title: "My leases", view: LeasesPage, icon: Tickets },
  { path: "lease", title: "Lease", view: LeasePage },
  { path: "series", title: "Series", view: SeriesPage, icon: Repeat, rule: "blazar:series:get" },
  { path: "resources", title: "Resources", view: ResourcesPage, icon: Boxes, rule: "blazar:resources:get" },
  { path: "resource", title: "Resource", view: ResourcePage, rule: "blazar:resources:get" },
  {
    path: "overview",
    title: "Overview",
    view: OverviewPage,
    icon: Activity,
    rule: "blazar:calendar:get_owners",
    operators: true,
  },
  { path: "hosts", title: "Hosts", view: HostsPage, icon: Server, rule: "blazar:oshosts:get", operators: true },
  {
    path: "maintenance",
    title: "Maintenance",
    view: MaintenancePage,
    icon: Wrench,
    rule: "blazar:maintenances:get",
    operators: true,
  },
  {
    path: "all-leases",
    title: "All leases",
    view: AllLeasesPage,
    icon: ClipboardList,
    rule: "blazar:calendar:get_owners",
    operators: true,
  },
];

/** Returns the page of a path; undefined if there is none. */
export function pageOf(path: string): Page | undefined {
  return PAGES.find((page) => page.path === path);
}
