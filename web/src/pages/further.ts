// SPDX-License-Identifier: Apache-2.0
/** The pages that few begin with. They are fetched together: one file more, not one for each set of pages. */
export { AllLeasesPage } from "./all-leases.tsx";
export { CalendarPage } from "./calendar.tsx";
export { HostsPage } from "./hosts.tsx";
export { LeasePage } from "./lease.tsx";
export { LeasesPage } from "./leases.tsx";
export { MaintenancePage } from "./maintenance.tsx";
export { OverviewPage } from "./overview.tsx";
export { ResourcePage } from "./resource.tsx";
export { ResourcesPage } from "./resources.tsx";
export { SeriesPage } from "./series.tsx";
