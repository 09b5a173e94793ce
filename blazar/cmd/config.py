# SPDX-License-Identifier: Apache-2.0
"""Options of ``blazar.conf``, with the names that operators know."""

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
from blazar.resources import physical_host
from blazar.resources.physical_host import HostSettings
from blazar.resources.pools import PoolNames

LOG = logging.getLogger(__name__)


class ConfigurationError(BlazarError):
    """The configuration can not work; the message says what to change."""


_BEFORE_END = {
    "": "the same as notification",
    "none": "nothing",
    "notification": "a notification",
    "snapshot": "a notification, and an image of every server on the reservation's hosts",
    "migration": "a notification, and every server is moved to a host that is in no pool",
    "default": "the same as notification",
    "email": "the same as notification; who hears it may send the mail",
}
DEFAULT_CLI_OPTIONS: list[cfg.Opt] = [
    cfg.HostAddressOpt(
        "host",
        default="0.0.0.0",
        help="Address on which blazar-api listens. A manager takes it for its name on the message bus, and the name of "
        "its machine if it is 0.0.0.0 or ::.",
    ),
    cfg.PortOpt("port", default=1234, help="Port on which blazar-api listens."),
    cfg.BoolOpt(
        "log_exchange", default=False, help="Log every request and its answer (without tokens), for debugging."
    ),
    *cloud.DEFAULT_CLI_OPTIONS,
]
DEFAULT_OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt("cleaning_time", default=0, min=0, help="Minutes that a resource is kept free between two leases."),
    cfg.BoolOpt(
        "enable_v1_api", default=True, help="Serve version 1 of the API, the one that all clients and dashboards speak."
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
        help="What there is of version 2 of the API, which is deprecated: oshosts is /v2/os-hosts, leases is "
        "/v2/leases; empty for no version 2.",
    ),
    cfg.IntOpt(
        "threads",
        default=16,
        min=1,
        help="Requests that blazar-api works on at a time; a WSGI server has a setting of its own.",
    ),
    cfg.IntOpt(
        "connections",
        default=1000,
        min=100,
        max=100000,
        help="Connections that blazar-api keeps open at a time; beyond it those that were idle for the longest are "
        "closed. As many files as that and 256 must be allowed to the process.",
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
        help="Resource types to offer, by entry point name.",
    ),
    cfg.StrOpt(
        "rpc_topic",
        default="blazar.manager",
        help="Topic of the message bus on which managers take requests; the same in the API's and the managers' file.",
    ),
    cfg.IntOpt(
        "minutes_before_end_lease",
        default=60,
        min=0,
        help="Minutes before the end of a lease at which its before_end action runs, where the request names no "
        "time; 0 for never.",
    ),
    cfg.IntOpt(
        "event_max_retries",
        default=1,
        min=0,
        max=50,
        deprecated_for_removal=True,
        deprecated_reason="What fails is tried again for as long as it makes sense.",
        help="Not used.",
    ),
    cfg.IntOpt(
        "claim_ttl",
        default=20,
        min=1,
        help="Seconds after which the work of a manager that gave no sign of life is taken over by another. A call "
        "that changes something in the cloud is given up after half of that, and none begins when less is left.",
    ),
    cfg.IntOpt(
        "sweep_interval",
        default=600,
        min=0,
        help="Seconds between two searches of the cloud for what is left of leases that are over (aggregates, flavors, "
        "server groups, resource classes, floating IPs), as after the crash of a manager. It is ended as the lease "
        "would have been. 0: never.",
    ),
    cfg.BoolOpt(
        "sweep_dry_run",
        default=False,
        help="Only log what is left of leases that are over, and leave it where it is.",
    ),
    cfg.IntOpt(
        "request_limit",
        default=15,
        min=1,
        help="Seconds that a request may spend in calls to the cloud; what takes longer goes on in the background or "
        "is undone there.",
    ),
    cfg.StrOpt(
        "heal_active",
        default="none",
        choices=[
            ("none", "what is in use stays, and the lease is degraded until the resource is back"),
            ("replace", "another takes the place of what has failed and has no servers on it"),
        ],
        help="What is done for a reservation in use when one of its resources fails.",
    ),
    cfg.IntOpt("rpc_threads", default=32, min=1, help="Requests from the API that a manager works on at a time."),
    cfg.IntOpt(
        "startup_wait",
        default=300,
        min=0,
        help="Seconds that a starting manager waits for its database and for Keystone before it gives up.",
    ),
]
ENFORCEMENT_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt(
        "enabled_filters",
        default=[],
        help="What every new lease and every change of one must pass, in this order: MaxLeaseDurationFilter, "
        "MaxConcurrentLeasesFilter, MaxUnitsFilter, ResourceHoursFilter, StartWindowFilter, ExternalServiceFilter, or "
        "the name of an entry point in blazar.enforcement.filters.",
    ),
    cfg.ListOpt(
        "exempt_projects",
        default=[],
        help="Projects, by id, whose leases no filter is asked about; of what they book and end an external service is "
        "told all the same.",
    ),
    cfg.IntOpt(
        "leases_per_project",
        default=1000,
        min=-1,
        help="Leases that a project may have which have not ended, those without reservations included; -1 for no "
        "bound. It counts without any filter, but not for exempt_projects.",
    ),
    cfg.IntOpt(
        "reservations_per_lease",
        default=30,
        min=-1,
        help="Reservations that a lease may have, each of which may be an aggregate, a flavor and more in the cloud; "
        "-1 for no bound but the 100 of the API. Counts as leases_per_project does.",
    ),
    cfg.IntOpt(
        "reservations_per_project",
        default=1000,
        min=-1,
        help="Reservations in all leases of a project that have not ended; -1 for no bound. Counts as "
        "leases_per_project does.",
    ),
    cfg.IntOpt(
        "notice_attempts",
        default=20,
        min=1,
        max=1000,
        help="How often an external service is told of one lease that was booked, changed or ended before that is "
        "given up: 20 tries take about two hours.",
    ),
    *builtin_options(),
]
NOTIFICATION_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt("publisher_id", default="blazar.lease", help="Who the notifications say they are from."),
]
NOVA_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "aggregate_freepool_name",
        default="freepool",
        deprecated_group="physical:host",
        help="Name of the host aggregate of all hosts that can be reserved and are not in use; must exist, without an "
        "availability zone. The same in nova-scheduler's file.",
    ),
    cfg.StrOpt(
        "blazar_owner",
        default="blazar:owner",
        deprecated_group="physical:host",
        help="Metadata key under which a reservation's aggregate holds the id of the owning project. The same in "
        "nova-scheduler's file.",
    ),
    cfg.StrOpt(
        "project_id_key",
        default="blazar:project",
        deprecated_group="physical:host",
        help="No effect: a further project is let into a reservation by its id as a metadata key of the aggregate, "
        "whatever the value.",
    ),
    cfg.StrOpt(
        "image_prefix",
        default="reserved_",
        deprecated_group="DEFAULT",
        help="Prefix of the names of the snapshots that are made before the end of a lease.",
    ),
    *cloud.NOVA_OPTIONS,
]
HOST_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "blazar_az_prefix",
        default="blazar_",
        help="The availability zone of a reservation's hosts is this and the reservation's id. The same in "
        "nova-scheduler's file.",
    ),
    cfg.StrOpt(
        "before_end",
        default="",
        choices=list(_BEFORE_END.items()),
        deprecated_name="before_end_action",
        help="What is done before the end of a reservation whose request names no action, or 'default'. For "
        "reservations of instances, migration comes to a notification.",
    ),
    cfg.IntOpt(
        "hours_before_end_lease",
        min=0,
        help="Hours before the end of a lease with whole hosts at which its before_end action runs, where the request "
        "names no time; 0 for never. Not set: [manager] minutes_before_end_lease.",
    ),
    cfg.BoolOpt(
        "randomize_host_selection",
        default=False,
        help="Choose among the hosts that fit at random; else the smallest that fit are taken.",
    ),
    cfg.BoolOpt(
        "enable_polling_monitor",
        default=True,
        help="Look at the state of compute hosts every so often, and have leases on those that fail healed. The "
        "default of the existing Blazar is false.",
    ),
    cfg.IntOpt(
        "polling_interval", default=60, min=1, help="Seconds between two looks of the polling monitor at all hosts."
    ),
    cfg.IntOpt(
        "failures_before_healing",
        default=2,
        min=1,
        max=100,
        help="So many looks in a row must find a host down, disabled or gone before it counts as failed, and so many "
        "must find it well before it counts as that: one missed look moves nobody.",
    ),
    cfg.BoolOpt(
        "enable_notification_monitor",
        default=False,
        help="Listen to Nova's versioned notifications service.update, and look at once when a nova-compute is "
        "disabled, enabled or forced down. What just dies sends none: leave the polling monitor on as well.",
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
        help="Minutes: leases that begin within so many are healed as soon as a host fails, and the others in time, as "
        "all are looked at so often. 0 heals all of the future at once, and looks every hour.",
    ),
]
DATABASE_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "connection",
        secret=True,
        sample_default="postgresql+psycopg://blazar:PASSWORD@HOST/blazar",
        help="SQLAlchemy URL of the database: postgresql+psycopg://blazar:PASSWORD@HOST/blazar, or with mysql+pymysql "
        "for MariaDB and MySQL.",
    ),
    cfg.IntOpt(
        "max_pool_size",
        default=20,
        min=1,
        help="Connections that a process keeps open to the database; for a moment it may have 20 more.",
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
"""Whose options an existing file may have; the same as in ``etc/blazar/blazar-config-generator.conf``."""

NOT_OURS = frozenset({"keystone_authtoken", "keystone", "oslo_limit", "service_auth", "oslo_concurrency", "cache"})
"""Groups whose options depend on plugins, or are another library's."""

NEVER_EMPTY = frozenset({("manager", "rpc_topic"), ("nova", "aggregate_freepool_name"), ("nova", "blazar_owner")})
DOLLAR = "has a '$' that begins the name of no option; write '$$' where a dollar sign is meant"
MOST = 2**31 - 1
"""Beyond it there are no dates to count to."""


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options by group, for oslo-config-generator."""
    return [*GROUPS.items(), (cloud.GROUP, cloud.list_keystone_opts())]


def load(
    arguments: list[str], *, program: str, files: list[str] | None = None, conf: cfg.ConfigOpts | None = None
) -> cfg.ConfigOpts:
    """Read the configuration. ConfigurationError names the option and what it may be.

    Processes that use the message bus pass ``cfg.CONF``: parts of oslo.messaging look for their options there only.
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
    """Take over what may change while we run, as the level of the log. A slip in the file ends nobody's work."""
    try:
        conf.mutate_config_files()
    except (Exception, SystemExit) as error:
        LOG.error("The configuration can not be read again, and stays as it was: %s", error)


def start_log(conf: cfg.ConfigOpts) -> None:
    """Write the log where the configuration says."""
    try:
        log.setup(conf, "blazar")
    except (log.LogConfigError, OSError, ValueError) as error:
        raise ConfigurationError(f"the log can not be written as log_config_append, log_dir … say: {error}") from error
    mask_cookies()


def _parse(conf: cfg.ConfigOpts, arguments: list[str], program: str, files: list[str] | None) -> None:
    said = io.StringIO()
    try:
        with contextlib.redirect_stderr(said):
            conf(arguments, project="blazar", prog=program, version=f"{program} {RELEASE}", default_config_files=files)
    except SystemExit as end:
        # So the library says that an option of the command line has a wrong value, in a file or there.
        if end.code == 1:
            text = said.getvalue().strip().splitlines()[-1]
            raise ConfigurationError(f"[DEFAULT] {text.removeprefix('argument --')}") from end
        sys.stderr.write(said.getvalue())
        raise
    except cfg.NoSuchOptError as error:
        raise ConfigurationError(f"${error.opt_name}: the configuration {DOLLAR}") from error
    except (OSError, UnicodeError) as error:
        raise ConfigurationError(f"the configuration can not be read: {error}") from error
    sys.stderr.write(said.getvalue())


def _check(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> None:
    """Read an option once, so that a value that can not be stops the start and not a lease."""
    name = f"[{group}] {option.name}"
    wanted = f"give {_wanted(option.type)}"
    try:
        value = (conf if group == "DEFAULT" else conf[group])[option.dest]
    except (cfg.NoSuchOptError, cfg.TemplateSubstitutionError) as error:
        raise ConfigurationError(f"{name} {DOLLAR}") from error
    except ValueError as error:
        # The library tells where the value is in words for programmers; what is wrong with it is one error below.
        given = "" if option.secret else f" {_given(conf, group, option)!r}"
        raise ConfigurationError(f"{name} can not be{given}: {error.__context__ or error}; {wanted}") from error
    if (value is None and option.default is not None) or (value == "" and (group, option.name) in NEVER_EMPTY):
        raise ConfigurationError(f"{name} is empty; {wanted}, or take the line out")
    if isinstance(value, int | float) and not value <= MOST:
        raise ConfigurationError(f"{name} can not be {value}: it is too large; {wanted}")


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
            return f"any of {', '.join(choices)}, with commas between them"
        case types.Dict(value_type=types.Integer()):
            return "names with whole numbers, as name:10, with commas between them"
        case types.String() if kind.choices:
            return f"one of {', '.join(choice or 'nothing' for choice in kind.choices)}"
    return "a value"


def _given(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> str:
    """Return an option's value as the files have it."""
    names = set(_names(group, option))
    given = ""
    for file in _files(conf):
        for section, values in _sections(file).items():
            given = next((texts[-1] for name, texts in values.items() if (section, name) in names), given)
    return given


def default_files() -> list[str] | None:
    """Return the file that a WSGI server gives no arguments for: of ``$OS_BLAZAR_CONFIG_DIR``, else the usual ones."""
    folder = os.environ.get("OS_BLAZAR_CONFIG_DIR")
    return [os.path.join(folder, "blazar.conf")] if folder else None


def leftovers(conf: cfg.ConfigOpts) -> list[str]:
    """Return what the configuration files set and nothing reads, as ``[group] option``."""
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
    """Return the files that were read, the one that counts most last."""
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
        before_end_leads={} if hours is None else {physical_host.RESOURCE_TYPE: timedelta(hours=hours)},
        claim_ttl=timedelta(seconds=conf.manager.claim_ttl),
        request_limit=timedelta(seconds=conf.manager.request_limit),
        sweep_interval=timedelta(seconds=conf.manager.sweep_interval),
        sweep_dry_run=conf.manager.sweep_dry_run,
        strategy=Strategy.RANDOM if hosts.randomize_host_selection else Strategy.PACK,
        polling_interval=timedelta(seconds=hosts.polling_interval if hosts.enable_polling_monitor else 0),
        failures_before_healing=hosts.failures_before_healing,
        healing_interval=timedelta(minutes=hosts.healing_interval),
        heal_active=conf.manager.heal_active == "replace",
        notice_attempts=conf.enforcement.notice_attempts,
        bounds=_bounds(conf.enforcement),
    )


def _bounds(section: Any) -> Bounds:
    numbers = (section.leases_per_project, section.reservations_per_lease, section.reservations_per_project)
    return Bounds(*(None if number < 0 else number for number in numbers))


def host_settings(conf: cfg.ConfigOpts) -> HostSettings:
    """Return the settings of host reservations."""
    return HostSettings(
        pools=PoolNames(
            freepool=conf.nova.aggregate_freepool_name,
            zone_prefix=conf["physical:host"].blazar_az_prefix,
            owner_key=conf.nova.blazar_owner,
        ),
        before_end=conf["physical:host"].before_end,
        image_prefix=conf.nova.image_prefix,
    )
