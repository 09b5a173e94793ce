// SPDX-License-Identifier: Apache-2.0
/** The pages: one row each; those that few begin with are fetched later. To add a page, add a row here. */
import {
  Activity,
  Bell,
  Boxes,
  CalendarDays,
  ChartColumn,
  ClipboardList,
  Cpu,
  History as HistoryIcon,
  type IconNode,
  ReceiptText,
  Repeat,
  Search,
  Server,
  Tag,
  Tickets,
  TriangleAlert,
  Wrench,
} from "lucide";
import type { ComponentType } from "preact";
import { FindPage } from "./pages/search/find.tsx";
import { later } from "./parts/later.tsx";

const fetchedLater = new Set<ComponentType>();

/** A page that is fetched when it is first looked at. */
function further(name: keyof typeof import("./pages/further.ts")): ComponentType {
  const view = later(async () => (await import("./pages/further.ts"))[name]);
  fetchedLater.add(view);
  return view;
}

/** Fetches the code of a page early, beside what is asked of the service first. */
export async function fetchCode(path: string): Promise<void> {
  if (PAGES.some((page) => page.path === path && fetchedLater.has(page.view))) await import("./pages/further.ts");
}

export interface Page {
  /** The segment after /ui/; "" is the home page. */
  path: string;
  title: string;
  view: ComponentType;
  /** In the navigation with this icon; a page without one is reached from others. */
  icon?: IconNode;
  /** Shown if the policy allows this rule. */
  rule?: string;
  /** In the navigation of those who may use this rule alone; others are led there by pages. */
  listedFor?: string;
  /** In the navigation once leases cost something. */
  priced?: boolean;
  /** With resources of this kind. */
  kind?: string;
  /** In the group of operators. */
  operators?: boolean;
  /** What is counted in the navigation: a list of the service, as its answer names it. */
  counts?: string;
  /** Uses the whole window instead of a column. */
  full?: boolean;
}

export const PAGES: readonly Page[] = [
  { path: "", title: "Find a time", view: FindPage, icon: Search },
  {
    path: "calendar",
    title: "Calendar",
    view: further("CalendarPage"),
    icon: CalendarDays,
    full: true,
  },
  { path: "leases", title: "My leases", view: further("LeasesPage"), icon: Tickets },
  { path: "lease", title: "Lease", view: further("LeasePage") },
  {
    path: "series",
    title: "Series",
    view: further("SeriesPage"),
    icon: Repeat,
    rule: "blazar:series:get",
  },
  {
    path: "notifications",
    title: "Notifications",
    view: further("NotificationsPage"),
    icon: Bell,
    rule: "blazar:subscriptions:get",
  },
  {
    path: "resources",
    title: "Resources",
    view: further("ResourcesPage"),
    icon: Boxes,
    rule: "blazar:resources:get",
  },
  {
    path: "resource",
    title: "Resource",
    view: further("ResourcePage"),
    rule: "blazar:resources:get",
  },
  {
    path: "usage",
    title: "Usage",
    view: further("UsagePage"),
    icon: ChartColumn,
    rule: "blazar:reports:get",
  },
  {
    path: "spending",
    title: "Spending",
    view: further("SpendingPage"),
    icon: ReceiptText,
    rule: "blazar:statements:get",
    priced: true,
  },
  {
    path: "history",
    title: "History",
    view: further("HistoryPage"),
    icon: HistoryIcon,
    rule: "blazar:history:get",
  },
  {
    path: "overview",
    title: "Overview",
    view: further("OverviewPage"),
    icon: Activity,
    rule: "blazar:calendar:get_owners",
    operators: true,
  },
  {
    path: "problems",
    title: "Problems",
    view: further("ProblemsPage"),
    icon: TriangleAlert,
    rule: "blazar:problems:get",
    operators: true,
    counts: "v1/problems",
  },
  {
    path: "hosts",
    title: "Hosts",
    view: further("HostsPage"),
    icon: Server,
    rule: "blazar:resources:get_private",
    kind: "host",
    operators: true,
  },
  {
    path: "maintenance",
    title: "Maintenance",
    view: further("MaintenancePage"),
    icon: Wrench,
    rule: "blazar:maintenances:get",
    operators: true,
  },
  {
    path: "prices",
    title: "Prices",
    view: further("PricesPage"),
    icon: Tag,
    rule: "blazar:price_lists:get",
    listedFor: "blazar:price_lists:post",
    operators: true,
  },
  {
    path: "managers",
    title: "Managers",
    view: further("ManagersPage"),
    icon: Cpu,
    rule: "blazar:managers:get",
    operators: true,
  },
  {
    path: "all-leases",
    title: "All leases",
    view: further("AllLeasesPage"),
    icon: ClipboardList,
    rule: "blazar:calendar:get_owners",
    operators: true,
  },
];

/** Returns the page of a path; undefined if there is none. */
export function pageOf(path: string): Page | undefined {
  return PAGES.find((page) => page.path === path);
}
