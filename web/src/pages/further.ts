// SPDX-License-Identifier: Apache-2.0
/** The pages that few begin with. They are fetched together: one file more, not one for each set of pages. */
export { AllLeasesPage } from "./leases/all-leases.tsx";
export { CalendarPage } from "./calendar/calendar.tsx";
export { HistoryPage } from "./history/history.tsx";
export { HostsPage } from "./hosts/hosts.tsx";
export { LeasePage } from "./leases/lease.tsx";
export { LeasesPage } from "./leases/leases.tsx";
export { MaintenancePage } from "./maintenance/maintenance.tsx";
export { ManagersPage } from "./managers/managers.tsx";
export { NotificationsPage } from "./notifications/notifications.tsx";
export { OverviewPage } from "./overview/overview.tsx";
export { PricesPage } from "./prices/prices.tsx";
export { ProblemsPage } from "./problems/problems.tsx";
export { ResourcePage } from "./resources/resource.tsx";
export { ResourcesPage } from "./resources/resources.tsx";
export { SeriesPage } from "./series/series.tsx";
export { SpendingPage } from "./spending/spending.tsx";
export { UsagePage } from "./usage/usage.tsx";
