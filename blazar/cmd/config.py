# SPDX-License-Identifier: Apache-2.0
"""Options of ``blazar.conf``, with the names of the existing Blazar."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import sys
from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from oslo_config import cfg, types
from oslo_log import log

from blazar import RELEASE
from blazar.calendar.strategies import Strategy
from blazar.clouds.openstack import options as cloud
from blazar.cmd.masking import mask_cookies
from blazar.enforcement import builtin_options
from blazar.manager.settings import Settings
from blazar.model.bounds import Bounds
from blazar.model.errors import BlazarError
from blazar.resources.aggregates.membership import AggregateNames
from blazar.resources.hosts.type import RESOURCE_TYPE as PHYSICAL_HOST
from blazar.resources.hosts.type import HostSettings

LOG = logging.getLogger(__name__)


class ConfigurationError(BlazarError):
    """The configuration is invalid; the message says what to change."""


_BEFORE_END = {
    "": "the same as notification",
    "none": "nothing",
    "notification": "a notification",
    "snapshot": "a notification, and an image of every server on the reservation's hosts",
    "migration": "a notification, and every server is migrated to a host outside the freepool and reservation "
    "aggregates",
    "default": "the same as notification",
    "email": "the same as notification; a listener may send the mail",
}
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
    cfg.IntOpt(
        "connections",
        default=1000,
        min=100,
        max=100000,
        help="Maximum number of open connections of blazar-api; near it, the connections that have been idle for the "
        "longest are closed. The process needs a limit of open files 256 higher than this.",
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
        "request_limit",
        default=15,
        min=1,
        help="Maximum seconds that a request may spend in calls to the cloud; longer work is finished or undone in the "
        "background.",
    ),
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
ENFORCEMENT_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "enabled_filters",
        default=[],
        help="Filters that check every new and every changed lease, in this order: MaxLeaseDurationFilter, "
        "MaxConcurrentLeasesFilter, MaxUnitsFilter, ResourceHoursFilter, StartWindowFilter, ExternalServiceFilter, or "
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
NOVA_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "aggregate_freepool_name",
        default="freepool",
        deprecated_group="physical:host",
        help="Name of the host aggregate of all reservable hosts that are not in use (the freepool); must exist, "
        "without an availability zone. Must be the same in nova-scheduler's configuration.",
    ),
    cfg.StrOpt(
        "blazar_owner",
        default="blazar:owner",
        deprecated_group="physical:host",
        help="Metadata key of a reservation's aggregate for the id of the owning project. Must be the same in "
        "nova-scheduler's configuration.",
    ),
    cfg.StrOpt(
        "project_id_key",
        default="blazar:project",
        deprecated_group="physical:host",
        help="No effect: another project gets access to a reservation by its id as a metadata key of the aggregate, "
        "with any value.",
    ),
    cfg.StrOpt(
        "image_prefix",
        default="reserved_",
        deprecated_group="DEFAULT",
        help="Prefix of the names of snapshots that are created before the end of a lease.",
    ),
    *cloud.NOVA_OPTIONS,
]
HOST_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "blazar_az_prefix",
        default="blazar_",
        help="Prefix of the availability zone of a reservation's hosts; the reservation's id follows. Must be the same "
        "in nova-scheduler's configuration.",
    ),
    cfg.StrOpt(
        "before_end",
        default="",
        choices=list(_BEFORE_END.items()),
        deprecated_name="before_end_action",
        help="Action before the end of a reservation whose request sets no action, or 'default'. For reservations of "
        "instances, migration only sends the notification.",
    ),
    cfg.IntOpt(
        "hours_before_end_lease",
        min=0,
        help="Hours before the end of a lease with host reservations at which its before_end action runs, if the "
        "request sets no time; 0 for never. Without it, [manager] minutes_before_end_lease applies.",
    ),
    cfg.BoolOpt(
        "randomize_host_selection",
        default=False,
        help="Choose suitable hosts at random; otherwise the smallest suitable hosts are chosen.",
    ),
    cfg.BoolOpt(
        "enable_polling_monitor",
        default=True,
        help="Poll the state of compute hosts, and heal leases on hosts that fail. The default of the existing Blazar "
        "is false.",
    ),
    cfg.IntOpt("polling_interval", default=60, min=1, help="Seconds between two polls of all hosts."),
    cfg.IntOpt(
        "failures_before_healing",
        default=2,
        min=1,
        max=100,
        help="Number of consecutive polls that must find a host down, disabled or missing before it counts as failed, "
        "or healthy before it counts as recovered: one failed poll has no effect.",
    ),
    cfg.BoolOpt(
        "enable_notification_monitor",
        default=False,
        help="Listen to Nova's versioned notifications service.update, and poll at once when a nova-compute is "
        "disabled, enabled or forced down. A crashed service sends none, so keep the polling monitor enabled as well.",
    ),
    cfg.ListOpt(
        "notification_topics",
        default=["notifications", "versioned_notifications"],
        help="Topics of Nova's notifications, on the message bus of [oslo_messaging_notifications], or else of "
        "[DEFAULT].",
    ),
    cfg.IntOpt(
        "healing_interval",
        default=60,
        min=0,
        help="Minutes. Leases that start within this time are healed as soon as a host fails; later leases are healed "
        "by a check that runs at this interval. 0: all future leases are healed at once; the check runs every hour.",
    ),
]
DATABASE_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "connection",
        secret=True,
        sample_default="postgresql+psycopg://blazar:PASSWORD@HOST/blazar",
        help="SQLAlchemy URL of the database: postgresql+psycopg://blazar:PASSWORD@HOST/blazar, or mysql+pymysql://… "
        "for MariaDB and MySQL.",
    ),
    cfg.IntOpt(
        "max_pool_size",
        default=20,
        min=1,
        help="Number of database connections that a process keeps open; it may briefly open 20 more.",
    ),
    cfg.IntOpt(
        "connection_recycle_time",
        default=1800,
        min=-1,
        help="Seconds after which a connection is replaced, before a firewall or server closes it; -1 for never.",
    ),
]
GROUPS: dict[str, list[cfg.Opt]] = {
    "DEFAULT": [*DEFAULT_CLI_OPTIONS, *DEFAULT_OPTIONS],
    "api": API_OPTIONS,
    "cloud": cloud.CLOUD_OPTIONS,
    "database": DATABASE_OPTIONS,
    "enforcement": ENFORCEMENT_OPTIONS,
    "glance": cloud.GLANCE_OPTIONS,
    "manager": MANAGER_OPTIONS,
    "neutron": cloud.NEUTRON_OPTIONS,
    "notifications": NOTIFICATION_OPTIONS,
    "nova": NOVA_OPTIONS,
    "physical:host": HOST_OPTIONS,
    "placement": cloud.PLACEMENT_OPTIONS,
}

NAMESPACES = (
    "blazar",
    "oslo.limit",
    "oslo.log",
    "oslo.messaging",
    "oslo.middleware",
    "oslo.policy",
    "keystonemiddleware.auth_token",
)
"""Namespaces of options that a file may set; the same as in ``etc/blazar/blazar-config-generator.conf``."""

NOT_OURS = frozenset({"keystone_authtoken", "keystone", "oslo_limit", "service_auth", "oslo_concurrency", "cache"})
"""Groups whose options depend on plugins, or belong to another library."""

NEVER_EMPTY = frozenset({("manager", "rpc_topic"), ("nova", "aggregate_freepool_name"), ("nova", "blazar_owner")})
DOLLAR = "has a '$' that does not start the name of an option; write '$$' for a dollar sign"
MOST = 2**31 - 1
"""Larger intervals overflow date arithmetic."""


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options by group, for oslo-config-generator."""
    return [*GROUPS.items(), (cloud.GROUP, cloud.list_keystone_opts())]


def load(
    arguments: list[str], *, program: str, files: list[str] | None = None, conf: cfg.ConfigOpts | None = None
) -> cfg.ConfigOpts:
    """Read the configuration; ConfigurationError names the invalid option and its valid values.

    Processes that use the message bus pass ``cfg.CONF``: parts of oslo.messaging read their options only there.
    """
    conf = cfg.ConfigOpts() if conf is None else conf
    conf.register_cli_opts(DEFAULT_CLI_OPTIONS)
    for group, options in GROUPS.items():
        conf.register_opts(options, group=None if group == "DEFAULT" else group)
    cloud.register(conf)
    log.register_options(conf)
    log.set_defaults(default_log_levels=[*log.get_default_log_levels(), "alembic=WARN", "waitress.queue=ERROR"])
    _parse(conf, arguments, program, files)
    for group, options in {**GROUPS, cloud.GROUP: cloud.SESSION_OPTIONS}.items():
        for option in options:
            _check(conf, group, option)
    return conf


def read_again(conf: cfg.ConfigOpts) -> None:
    """Reload mutable options, for example the log level. An error in the file is logged and changes nothing."""
    try:
        conf.mutate_config_files()
    except (Exception, SystemExit) as error:
        LOG.error("Configuration cannot be reloaded and stays unchanged: %s", error)


def start_log(conf: cfg.ConfigOpts) -> None:
    """Set up the log as configured; ConfigurationError if it cannot be written."""
    try:
        log.setup(conf, "blazar")
    except (log.LogConfigError, OSError, ValueError) as error:
        raise ConfigurationError(
            f"the log cannot be written; check log_config_append, log_file and log_dir: {error}"
        ) from error
    mask_cookies()


def _parse(conf: cfg.ConfigOpts, arguments: list[str], program: str, files: list[str] | None) -> None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            conf(arguments, project="blazar", prog=program, version=f"{program} {RELEASE}", default_config_files=files)
    except SystemExit as end:
        # This is how the library reports an invalid value of a command line option, also if it is set in a file.
        if end.code == 1:
            text = said.getvalue().strip().splitlines()[-1]
            raise ConfigurationError(f"[DEFAULT] {text.removeprefix('argument --')}") from end
        sys.stderr.write(said.getvalue())
        raise
    except cfg.NoSuchOptError as error:
        raise ConfigurationError(f"${error.opt_name}: the configuration {DOLLAR}") from error
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"the configuration cannot be read: {error}") from error
    sys.stderr.write(said.getvalue())


def _check(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> None:
    """Read an option once, so that an invalid value fails at the start and not with a lease."""
    name = f"[{group}] {option.name}"
    wanted = f"give {_wanted(option.type)}"
    try:
        value = (conf if group == "DEFAULT" else conf[group])[option.dest]
    except (cfg.NoSuchOptError, cfg.TemplateSubstitutionError) as error:
        raise ConfigurationError(f"{name} {DOLLAR}") from error
    except ValueError as error:
        # The message of this exception is for programmers; its context says what is wrong with the value.
        given = "" if option.secret else f" {_given(conf, group, option)!r}"
        raise ConfigurationError(f"{name} cannot be{given}: {error.__context__ or error}; {wanted}") from error
    if (value is None and option.default is not None) or (value == "" and (group, option.name) in NEVER_EMPTY):
        raise ConfigurationError(f"{name} is empty; {wanted}, or remove the line")
    if isinstance(value, int | float) and not value <= MOST:
        raise ConfigurationError(f"{name} cannot be {value}: it is too large; {wanted}")


def _wanted(kind: types.ConfigType) -> str:
    match kind:
        case types.Boolean():
            return "true or false"
        case types.HostAddress():
            return "the name or the address of a host"
        case types.Integer() | types.Float():
            number = "a whole number" if isinstance(kind, types.Integer) else "a number"
            least = "" if kind.min is None else f" from {kind.min}"
            return number + least + ("" if kind.max is None else f" to {kind.max}")
        case types.List(item_type=types.String(choices=choices)) if choices:
            return f"any of {', '.join(choices)}, separated by commas"
        case types.Dict(value_type=types.Integer()):
            return "names with whole numbers, for example name:10, separated by commas"
        case types.String() if kind.choices:
            return f"one of {', '.join(choice or 'nothing' for choice in kind.choices)}"
    return "a value"


def _given(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> str:
    """Return an option's value as written in the files."""
    names = set(_names(group, option))
    given = ""
    for file in _files(conf):
        for section, values in _sections(file).items():
            given = next((texts[-1] for name, texts in values.items() if (section, name) in names), given)
    return given


def default_files() -> list[str] | None:
    """Return the configuration file in ``$OS_BLAZAR_CONFIG_DIR``; None, for the default locations, if it is not set.

    For WSGI servers, which pass no arguments.
    """
    folder = os.environ.get("OS_BLAZAR_CONFIG_DIR")
    return [os.path.join(folder, "blazar.conf")] if folder else None


def leftovers(conf: cfg.ConfigOpts) -> list[str]:
    """Return the options that the configuration files set and nothing uses, as ``[group] option``."""
    known = set(_known())
    not_ours = NOT_OURS | {conf[cloud.GROUP].auth_section}
    return [
        f"[{group}] {name}"
        for file in _files(conf)
        for group, values in _sections(file).items()
        if group not in not_ours
        for name in values
        if (group, name) not in known
    ]


def _files(conf: cfg.ConfigOpts) -> list[str]:
    """Return the files that were read, in order of increasing precedence."""
    folders = [Path(folder).expanduser() for folder in conf.config_dir or []]
    return [*(conf.config_file or []), *(str(file) for folder in folders for file in sorted(folder.glob("*.conf")))]


def _sections(file: str) -> dict[str, dict[str, list[str]]]:
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(file, sections).parse()
    return sections


def _known() -> Iterator[tuple[str, str]]:
    for point in entry_points(group="oslo.config.opts"):
        if point.name not in NAMESPACES:
            continue
        for group, options in point.load()():
            name = getattr(group, "name", group) or "DEFAULT"
            for option in options:
                yield from _names(name, option)


def _names(group: str, option: cfg.Opt) -> Iterator[tuple[str, str]]:
    yield group, option.dest
    yield group, option.name
    for old in option.deprecated_opts:
        yield old.group or group, (old.name or option.name).replace("-", "_")


def cleaning_time(conf: cfg.ConfigOpts) -> timedelta:
    """Return how long a resource is kept free between two leases."""
    return timedelta(minutes=conf.cleaning_time)


def manager_settings(conf: cfg.ConfigOpts) -> Settings:
    """Return the manager's settings."""
    hosts = conf["physical:host"]
    hours = hosts.hours_before_end_lease
    return Settings(
        before_end_lead=timedelta(minutes=conf.manager.minutes_before_end_lease),
        before_end_leads={} if hours is None else {PHYSICAL_HOST: timedelta(hours=hours)},
        claim_ttl=timedelta(seconds=conf.manager.claim_ttl),
        request_limit=timedelta(seconds=conf.manager.request_limit),
        sweep_interval=timedelta(seconds=conf.manager.sweep_interval),
        sweep_dry_run=conf.manager.sweep_dry_run,
        strategy=Strategy.RANDOM if hosts.randomize_host_selection else Strategy.PACK,
        polling_interval=timedelta(seconds=hosts.polling_interval if hosts.enable_polling_monitor else 0),
        failures_before_healing=hosts.failures_before_healing,
        healing_interval=timedelta(minutes=hosts.healing_interval),
        heal_active=conf.manager.heal_active == "replace",
        outbox_attempts=conf.enforcement.notice_attempts,
        bounds=_bounds(conf.enforcement),
    )


def _bounds(section: Any) -> Bounds:
    numbers = (section.leases_per_project, section.reservations_per_lease, section.reservations_per_project)
    return Bounds(*(None if number < 0 else number for number in numbers))


def host_settings(conf: cfg.ConfigOpts) -> HostSettings:
    """Return the settings of host reservations."""
    return HostSettings(
        aggregates=AggregateNames(
            freepool=conf.nova.aggregate_freepool_name,
            zone_prefix=conf["physical:host"].blazar_az_prefix,
            owner_key=conf.nova.blazar_owner,
        ),
        before_end=conf["physical:host"].before_end,
        image_prefix=conf.nova.image_prefix,
    )
