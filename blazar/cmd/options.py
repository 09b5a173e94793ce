# SPDX-License-Identifier: Apache-2.0
"""The options of ``blazar.conf``: names, sections and defaults of the existing Blazar, and ours.

``clouds/openstack/options`` has those of the cloud's services, and filters of enforcement have their own.
"""

from __future__ import annotations

from oslo_config import cfg, types

from blazar.clouds import energy, mail, prometheus, webhooks
from blazar.clouds.hooks import options as hooks
from blazar.clouds.openstack import options as cloud
from blazar.clouds.redfish import options as redfish
from blazar.cmd import database_options as database
from blazar.cmd import lease_options as leases
from blazar.cmd import monitoring_options as monitoring
from blazar.cmd import tracing
from blazar.cmd import ui_options as ui
from blazar.enforcement import builtin_options
from blazar.manager.power import settings as power
from blazar.manager.use import settings as use
from blazar.resources.generic.hooked_type import GENERIC_OPTIONS
from blazar.resources.hosts import evacuation_options as evacuation
from blazar.resources.hosts import options as hosts

DEFAULT_CLI_OPTIONS: list[cfg.Opt] = [
    cfg.HostAddressOpt(
        "host",
        default="0.0.0.0",
        help="Address on which blazar-api listens. It is also the name of a manager on the message bus; if it is "
        "0.0.0.0 or ::, the hostname is used instead.",
    ),
    cfg.PortOpt("port", default=1234, help="Port on which blazar-api listens."),
    cfg.BoolOpt(
        "log_exchange", default=False, help="Log every request and its response (without tokens), for debugging."
    ),
    *cloud.DEFAULT_CLI_OPTIONS,
]
DEFAULT_OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt("cleaning_time", default=0, min=0, help="Minutes that a resource is kept free between two leases."),
    cfg.BoolOpt(
        "enable_v1_api", default=True, help="Serve version 1 of the API, which all clients and dashboards use."
    ),
    *cloud.DEFAULT_OPTIONS,
    *(
        cfg.StrOpt(
            name, default=default, deprecated_for_removal=True, deprecated_reason="It has no effect.", help="Not used."
        )
        for name, default in (
            ("auth_strategy", "keystone"),
            ("keystone_client_version", "3"),
            ("db_driver", "blazar.db"),
        )
    ),
]


def _page_options(size: str, usual: int, most: str, maximum: int, what: str) -> tuple[cfg.Opt, cfg.Opt]:
    """Return the options for the length of a list: by default, and at most."""
    return (
        cfg.IntOpt(size, default=usual, min=1, max=5000, help=f"{what}, if the request names no limit."),
        cfg.IntOpt(
            most,
            default=maximum,
            min=1,
            max=5000,
            help=f"{what}, at most; a larger limit of a request is cut. Not less than {size}.",
        ),
    )


API_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "api_v2_controllers",
        item_type=types.String(choices=["oshosts", "leases"]),
        default=["oshosts", "leases"],
        help="Parts of version 2 of the API, which is deprecated, to serve: oshosts is /v2/os-hosts, leases is "
        "/v2/leases; empty to disable version 2.",
    ),
    cfg.IntOpt(
        "threads",
        default=16,
        min=1,
        help="Maximum number of requests that blazar-api serves concurrently; WSGI servers have their own setting.",
    ),
    monitoring.DRAIN_SECONDS,
    cfg.BoolOpt(
        "final_refusals",
        default=False,
        help="At version 1.0 and in version 2, answer 400 instead of 409 if there is not enough for a lease, and "
        "instead of 404 if a new lease names what the cloud does not have: for programs that send a request again "
        "after any status but 400 and 500.",
    ),
    *leases.OPTIONS,
    cfg.IntOpt(
        "connections",
        default=1000,
        min=100,
        max=100000,
        help="Maximum number of open connections of blazar-api; near it, the connections that have been idle for the "
        "longest are closed. The process needs a limit of open files 256 higher than this.",
    ),
    *_page_options("page_size", 100, "max_page_size", 1000, "Items of a page of a list"),
    *_page_options("calendar_page_size", 200, "max_calendar_page_size", 1000, "Resources of a page of the calendar"),
    cfg.IntOpt(
        "max_range",
        default=366,
        min=1,
        max=3660,
        help="Longest range, in days, of one request for the calendar or for capacity.",
    ),
    cfg.IntOpt(
        "range_back",
        default=366,
        min=0,
        max=36600,
        help="Days that a range of the calendar or of capacity may reach back, for operators.",
    ),
    cfg.IntOpt(
        "range_back_members",
        default=31,
        min=0,
        max=36600,
        help="The same for all others, who see who else uses resources only as anonymous blocks; not more than "
        "range_back.",
    ),
    cfg.IntOpt(
        "range_ahead",
        default=1827,
        min=1,
        max=36600,
        help="Days that a range of the calendar or of capacity may reach ahead; 1827 are five years.",
    ),
    cfg.IntOpt(
        "capacity_points",
        default=100000,
        min=200,
        max=10**7,
        help="Maximum number of points of capacity, of all groups.",
    ),
    cfg.IntOpt("capacity_groups", default=100, min=1, max=10000, help="Maximum number of groups of capacity."),
    cfg.IntOpt(
        "max_properties", default=200, min=1, max=10000, help="Properties of resources that GET /v1/properties shows."
    ),
    cfg.IntOpt(
        "max_property_values",
        default=100,
        min=1,
        max=10000,
        help="Values of each property that GET /v1/properties shows; of more, the most frequent.",
    ),
    cfg.IntOpt(
        "feeds_per_user",
        default=20,
        min=0,
        max=10000,
        help="Maximum number of live feeds of a user, in all projects together; 0 for none.",
    ),
]
MANAGER_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "plugins",
        default=[
            "physical.host.plugin",
            "virtual.instance.plugin",
            "flavor.instance.plugin",
            "virtual.floatingip.plugin",
            "network.plugin",
            "device.plugin",
            "generic.plugin",
            "virtual.volume.plugin",
            "virtual.server.plugin",
            "virtual.stack.plugin",
        ],
        help="Resource types to enable, by entry point name.",
    ),
    cfg.StrOpt(
        "rpc_topic",
        default="blazar.manager",
        help="Message bus topic on which managers receive requests; must be the same for the API and the managers.",
    ),
    cfg.IntOpt(
        "minutes_before_end_lease",
        default=60,
        min=0,
        help="Minutes before the end of a lease at which its before_end action runs, if the request sets no time; 0 "
        "for never.",
    ),
    cfg.IntOpt(
        "event_max_retries",
        default=1,
        min=0,
        max=50,
        deprecated_for_removal=True,
        deprecated_reason="Failed events are retried for as long as a retry is useful.",
        help="Not used.",
    ),
    cfg.IntOpt(
        "claim_ttl",
        default=20,
        min=1,
        help="Seconds without a heartbeat after which another manager takes over the claims of a manager. A call that "
        "changes the cloud times out after half of this time, and none starts if less than that is left.",
    ),
    cfg.IntOpt(
        "sweep_interval",
        default=600,
        min=0,
        help="Seconds between two searches of the cloud for leftovers of finished leases (aggregates, flavors, server "
        "groups, resource classes, floating IPs), for example after the crash of a manager. They are removed as at the "
        "end of a lease. 0 for never.",
    ),
    cfg.BoolOpt(
        "sweep_dry_run",
        default=False,
        help="Only log leftovers of finished leases, without removing them.",
    ),
    cfg.IntOpt(
        "drift_interval",
        default=3600,
        min=0,
        help="Seconds between two looks at all reservations in use, one after the other, for what they have in the "
        "cloud other than the books say. What differs is a problem. 0 for never.",
    ),
    cfg.BoolOpt("drift_mend", default=False, help="Bring what differs to what the books say, as the action mend."),
    cfg.IntOpt(
        "request_limit",
        default=15,
        min=1,
        help="Maximum seconds that a request may spend in calls to the cloud; longer work is finished or undone in the "
        "background.",
    ),
    monitoring.DRAIN_TIMEOUT,
    cfg.StrOpt(
        "heal_active",
        default="none",
        choices=[
            (
                "none",
                "the reservation keeps its resources, and the lease is degraded until the failed one has recovered",
            ),
            ("replace", "a failed resource without servers on it is replaced by another"),
        ],
        help="Action for an active reservation when one of its resources fails.",
    ),
    *leases.REPACK,
    cfg.IntOpt(
        "rpc_threads", default=32, min=1, help="Maximum number of API requests that a manager processes concurrently."
    ),
    cfg.IntOpt(
        "startup_wait",
        default=300,
        min=0,
        help="Maximum seconds that a starting manager waits for its database and for Keystone.",
    ),
]
AVAILABILITY_OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt(
        "max_range",
        default=366,
        min=1,
        max=3660,
        help="Longest range, in days, that one search for free time may cover.",
    ),
    *_page_options("openings", 5, "max_openings", 20, "Openings in an answer"),
    cfg.IntOpt(
        "max_placements",
        default=2000,
        min=100,
        help="Placements that one search for free time may try; then it answers with what it has found. Needed only "
        "for leases with several reservations of which one is for servers.",
    ),
    cfg.IntOpt(
        "max_seconds",
        default=15,
        min=1,
        help="Maximum seconds that one search for free time may take; then it is answered with 503. Less than "
        "rpc_response_timeout: else the API gives up first.",
    ),
    cfg.IntOpt(
        "max_searches",
        default=2,
        min=1,
        help="Searches for free time that a project may have in progress in one process of the API.",
    ),
]
ENFORCEMENT_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "enabled_filters",
        default=[],
        help="Filters that check every new and every changed lease, in this order: MaxLeaseDurationFilter, "
        "MaxConcurrentLeasesFilter, MaxUnitsFilter, ResourceHoursFilter, SpendFilter, StartWindowFilter, "
        "ExternalServiceFilter, or "
        "the name of an entry point in blazar.enforcement.filters.",
    ),
    cfg.ListOpt(
        "exempt_projects",
        default=[],
        help="Ids of projects whose leases are not checked by filters; an external service is still notified of their "
        "leases.",
    ),
    cfg.IntOpt(
        "leases_per_project",
        default=1000,
        min=-1,
        help="Maximum number of leases of a project that have not ended, including those without reservations; -1 for "
        "no limit. Applies without any filter, but not to exempt_projects.",
    ),
    cfg.IntOpt(
        "reservations_per_lease",
        default=30,
        min=-1,
        help="Maximum number of reservations of a lease, each of which may need an aggregate, a flavor and more in the "
        "cloud; -1 for the 100 of the API. Applies like leases_per_project.",
    ),
    cfg.IntOpt(
        "reservations_per_project",
        default=1000,
        min=-1,
        help="Maximum number of reservations in all leases of a project that have not ended; -1 for no limit. Applies "
        "like leases_per_project.",
    ),
    cfg.IntOpt(
        "lapsed_per_project",
        default=20,
        min=-1,
        help="Maximum number of leases of a project that nobody has confirmed in time within 24 hours; one more with "
        "confirm_within is refused. -1 for no limit. Applies like leases_per_project.",
    ),
    cfg.IntOpt(
        "notice_attempts",
        default=20,
        min=1,
        max=1000,
        help="Maximum attempts to deliver a notification of a new, changed or ended lease to an external service; 20 "
        "attempts take about two hours.",
    ),
    *builtin_options(),
]
NOTIFICATION_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt("publisher_id", default="blazar.lease", help="Publisher id of the notifications."),
]
GROUPS: dict[str, list[cfg.Opt]] = {
    "DEFAULT": [*DEFAULT_CLI_OPTIONS, *DEFAULT_OPTIONS],
    "api": API_OPTIONS,
    "audit": monitoring.AUDIT_OPTIONS,
    "availability": AVAILABILITY_OPTIONS,
    "cloud": cloud.CLOUD_OPTIONS,
    "database": database.OPTIONS,
    energy.SECTION: energy.OPTIONS,
    "enforcement": ENFORCEMENT_OPTIONS,
    evacuation.SECTION: evacuation.OPTIONS,
    "history": [*leases.HISTORY_OPTIONS],
    leases.BILLING_SECTION: [*leases.BILLING_OPTIONS],
    hooks.SECTION: GENERIC_OPTIONS,
    "glance": cloud.GLANCE_OPTIONS,
    "cinder": cloud.CINDER_OPTIONS,
    mail.SECTION: mail.MAIL_OPTIONS,
    "manager": MANAGER_OPTIONS,
    monitoring.SECTION: monitoring.OPTIONS,
    "neutron": cloud.NEUTRON_OPTIONS,
    "notifications": NOTIFICATION_OPTIONS,
    "nova": [*hosts.NOVA_OPTIONS, *cloud.NOVA_OPTIONS],
    "pci": hosts.PCI_OPTIONS,
    "quota": hosts.QUOTA_OPTIONS,
    hosts.SECTION: hosts.HOST_OPTIONS,
    "placement": cloud.PLACEMENT_OPTIONS,
    redfish.SECTION: redfish.OPTIONS,
    "reports": [*leases.REPORT_OPTIONS],
    tracing.GROUP: tracing.OPTIONS,
    ui.SECTION: ui.OPTIONS,
    webhooks.SECTION: webhooks.WEBHOOK_OPTIONS,
    power.SECTION: power.OPTIONS,
    use.SECTION: [*use.OPTIONS, *prometheus.OPTIONS, *use.POLICY_OPTIONS],
}
