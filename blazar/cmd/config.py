# SPDX-License-Identifier: Apache-2.0
"""Reads and checks ``blazar.conf``, and turns it into the settings of the parts."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from oslo_config import cfg, types
from oslo_log import log

from blazar import RELEASE
from blazar.clouds.openstack import options as cloud
from blazar.cmd import former_options, lease_options
from blazar.cmd.config_files import explain_encoding, files, list_files, list_names, list_values, names, sections
from blazar.cmd.options import DEFAULT_CLI_OPTIONS, GROUPS
from blazar.manager.common.settings import Settings
from blazar.manager.power import settings as power
from blazar.manager.use import settings as use
from blazar.model.base.errors import BlazarError, InvalidInput
from blazar.model.base.paging import ApiBounds, PageBounds
from blazar.model.base.plugins import entry_points
from blazar.model.base.service_info import ReadBounds
from blazar.model.leases.limits import Bounds
from blazar.model.leases.states import LeaseKind
from blazar.model.resources.regions import Regions
from blazar.model.series.checks import SeriesLimits
from blazar.resources.hosts.options import SECTION as HOSTS
from blazar.resources.hosts.options import read_strategy
from blazar.resources.hosts.type import RESOURCE_TYPE as PHYSICAL_HOST

LOG = logging.getLogger(__name__)

T = TypeVar("T")


class ConfigurationError(BlazarError):
    """The configuration is invalid; the message says what to change."""


NAMESPACES = (
    "blazar",
    "oslo.concurrency",
    "oslo.limit",
    "oslo.log",
    "oslo.messaging",
    "oslo.middleware",
    "oslo.policy",
    "keystonemiddleware.auth_token",
)
"""Namespaces of options that a file may set; the same as in ``etc/blazar/blazar-config-generator.conf``."""

EXTENSIONS = (
    "blazar.api.routes",
    "blazar.clouds.openstack",
    "blazar.clouds.simulated",
    "blazar.enforcement.filters",
    "blazar.resource.kinds",
    "blazar.resource.plugins",
)
"""Groups of entry points by which other packages extend Blazar; ``oslo.config.opts`` of such a package are read."""

NOT_OURS = {"keystone_authtoken", "keystone", "oslo_limit", "service_auth", "cache", "audit_middleware_notifications"}
"""Groups whose options depend on plugins, or belong to another library."""

NEVER_EMPTY = frozenset({("manager", "rpc_topic"), ("nova", "aggregate_freepool_name"), ("nova", "blazar_owner")})
DOLLAR = "has a '$' that does not start the name of an option; write '$$' for a dollar sign"
MOST = 2**31 - 1
"""Larger intervals overflow date arithmetic."""


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options by group, for oslo-config-generator."""
    return [*GROUPS.items(), (cloud.GROUP, cloud.list_keystone_opts()), *former_options.OPTIONS.items()]


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
    cloud.register_keystone_options(conf)
    log.register_options(conf)
    log.set_defaults(default_log_levels=[*log.get_default_log_levels(), "alembic=WARN", "waitress.queue=ERROR"])
    _parse(conf, arguments, program, files)
    # Only now: an option that a package requires must not stop those who do not use the package.
    others = _register_others(conf)
    for group, options in (*GROUPS.items(), (cloud.GROUP, cloud.SESSION_OPTIONS), *others):
        for option in options:
            _check(conf, group, option)
    return conf


def _register_others(conf: cfg.ConfigOpts) -> list[tuple[str, list[cfg.Opt]]]:
    """Register the options of packages that extend Blazar, and return them by group.

    A package whose options cannot be read or clash with others is reported and left out: it need not be in use.
    """
    found: list[tuple[str, list[cfg.Opt]]] = []
    for point in _option_lists():
        try:
            theirs = _options_of(point)
            for group, options in theirs:
                conf.register_opts(options, group=group)
        except (Exception, SystemExit) as error:
            # Code of other packages: it may raise anything.
            LOG.warning("Options of %s are not available: %s: %s", point.name, type(error).__name__, error)
            continue
        found += theirs
    return found


def _option_lists() -> list[EntryPoint]:
    """Return the entry points with the options of packages that extend Blazar."""
    extending = {point.dist.name for group in EXTENSIONS for point in entry_points(group=group) if point.dist}
    points = entry_points(group="oslo.config.opts")
    return [point for point in points if point.dist and point.dist.name in extending - {"blazar"}]


def _options_of(point: EntryPoint) -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options that an entry point lists, by section; raises whatever its package does."""
    return [(getattr(group, "name", group) or "DEFAULT", list(options)) for group, options in point.load()()]


def read_again(conf: cfg.ConfigOpts) -> None:
    """Reload mutable options, for example the log level. An error in the file is logged and changes nothing."""
    try:
        conf.mutate_config_files()
    except (Exception, SystemExit) as error:
        reason = explain_encoding(files(conf)) or error
        LOG.error("Configuration cannot be reloaded and stays unchanged: %s", reason)


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
    except cfg.ConfigFileParseError as error:
        if (reason := explain_encoding([error.config_file])) is None:
            raise
        raise ConfigurationError(f"the configuration cannot be read: {reason}") from error
    except OSError as error:
        raise ConfigurationError(f"the configuration cannot be read: {error}") from error
    except UnicodeError as error:
        # This error does not name its file.
        reason = explain_encoding(list_files(conf, arguments))
        raise ConfigurationError(f"the configuration cannot be read: {reason or error}") from error
    sys.stderr.write(said.getvalue())


def _check(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> None:
    """Read an option once, so that an invalid value fails at the start and not with a lease."""
    name = f"[{group}] {option.name}"
    wanted = f"give {_describe_kind(option.type)}"
    try:
        value = (conf if group == "DEFAULT" else conf[group])[option.dest]
    except (cfg.NoSuchOptError, cfg.TemplateSubstitutionError) as error:
        raise ConfigurationError(f"{name} {DOLLAR}") from error
    except ValueError as error:
        # The message of this exception is for programmers; its context says what is wrong with the value.
        text = _read_value(conf, group, option)
        given = "" if option.secret else f" {text!r}"
        reason = _no_number(option.type, text.strip()) or error.__context__ or error
        raise ConfigurationError(f"{name} cannot be{given}: {reason}; {wanted}") from error
    if (value is None and option.default is not None) or (value == "" and (group, option.name) in NEVER_EMPTY):
        raise ConfigurationError(f"{name} is empty; {wanted}, or remove the line")
    if isinstance(value, int | float) and not value <= MOST:
        raise ConfigurationError(f"{name} cannot be {value}: it is too large; {wanted}")


def _no_number(kind: types.ConfigType, text: str) -> str | None:
    """Return in words that a text is not the number that is wanted; None: something else is wrong."""
    match kind:
        case types.Integer() if not re.fullmatch(r"[+-]?\d+", text):
            return "it is no whole number"
        case types.Float() if not re.fullmatch(r"[+-]?[\d.]+(e[+-]?\d+)?", text):
            return "it is no number"
    return None


def _describe_kind(kind: types.ConfigType) -> str:
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
        case types.Dict(value_type=types.Float(min=float(least), max=most)):
            return f"names with numbers from {least:g} to {most:g}, for example name:0.5, separated by commas"
        case types.Dict(value_type=types.Integer()):
            return "names with whole numbers, for example name:10, separated by commas"
        case types.String() if kind.choices:
            return f"one of {', '.join(choice or 'nothing' for choice in kind.choices)}"
    return "a value"


def _read_value(conf: cfg.ConfigOpts, group: str, option: cfg.Opt) -> str:
    """Return an option's value as written in the files."""
    ours = set(names(group, option))
    given = ""
    for file in files(conf):
        for section, values in sections(file).items():
            given = next((texts[-1] for name, texts in values.items() if (section, name) in ours), given)
    return given


def default_files() -> list[str] | None:
    """Return the configuration file in ``$OS_BLAZAR_CONFIG_DIR``; None, for the default locations, if it is not set."""
    # For WSGI servers, which pass no arguments.
    folder = os.environ.get("OS_BLAZAR_CONFIG_DIR")
    return [os.path.join(folder, "blazar.conf")] if folder else None


def leftovers(conf: cfg.ConfigOpts) -> list[str]:
    """Return the options that the configuration files set and nothing uses, as ``[group] option``."""
    not_ours = NOT_OURS | {conf[cloud.GROUP].auth_section}
    values = [(group, name) for group, name in list_values(conf) if group not in not_ours]
    unknown = set(values)
    for option in list_options():
        # The lists of large libraries, which come last, are not imported if they are not needed.
        if not unknown:
            break
        unknown.discard(option)
    return [f"[{group}] {name}" for group, name in values if (group, name) in unknown]


def list_options() -> Iterator[tuple[str, str]]:
    """Yield the group and each name of all options that a file may set: first ours, then those of other packages."""
    points = {point.name: point for point in entry_points(group="oslo.config.opts")}
    for point in [points[name] for name in NAMESPACES if name in points]:
        yield from list_names(_options_of(point))
    for point in _option_lists():
        # Those that cannot be read were reported when they were to be registered.
        with contextlib.suppress(Exception, SystemExit):
            yield from list_names(_options_of(point))


def cleaning_time(conf: cfg.ConfigOpts) -> timedelta:
    """Return how long a resource is kept free between two leases."""
    return timedelta(minutes=conf.cleaning_time)


_REGION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")


def regions(conf: cfg.ConfigOpts) -> Regions:
    """Return the regions that are served; ConfigurationError if their names cannot be used."""
    names = tuple(conf.cloud.regions)
    for name in names:
        if not _REGION.fullmatch(name):
            raise ConfigurationError(
                f"[cloud] regions names {name!r}; the name of a region has at most 40 letters, digits, '_', '.' and "
                "'-', and begins with a letter or digit"
            )
    if len(set(names)) < len(names):
        raise ConfigurationError("[cloud] regions names a region twice; name each once")
    if names and conf.os_region_name and conf.os_region_name != names[0]:
        raise ConfigurationError(
            f"[DEFAULT] os_region_name is {conf.os_region_name}, and [cloud] regions begins with {names[0]}; begin "
            f"with {conf.os_region_name}, the region of all earlier leases, or remove os_region_name"
        )
    return Regions(names)


def manager_settings(conf: cfg.ConfigOpts) -> Settings:
    """Return the manager's settings."""
    hosts = conf[HOSTS]
    hours = hosts.hours_before_end_lease
    return Settings(
        before_end_lead=timedelta(minutes=conf.manager.minutes_before_end_lease),
        before_end_leads={} if hours is None else {PHYSICAL_HOST: timedelta(hours=hours)},
        before_end=hosts.before_end,
        claim_ttl=timedelta(seconds=conf.manager.claim_ttl),
        request_limit=timedelta(seconds=conf.manager.request_limit),
        **_read_rounds(conf),
        repack=lease_options.read_repack(conf),
        strategy=read_strategy(conf, hosts_sleep=_read_checked(power.read, conf).switches),
        polling_interval=timedelta(seconds=hosts.polling_interval if hosts.enable_polling_monitor else 0),
        failures_before_healing=hosts.failures_before_healing,
        healing_interval=timedelta(minutes=hosts.healing_interval),
        heal_active=conf.manager.heal_active == "replace",
        outbox_attempts=conf.enforcement.notice_attempts,
        bounds=_bounds(conf.enforcement),
        reads=_read_bounds(conf.api),
        search_range=timedelta(days=conf.availability.max_range),
        search_placements=conf.availability.max_placements,
        search_limit=timedelta(seconds=conf.availability.max_seconds),
        offer_lifetime=timedelta(hours=conf.api.transfer_expiry),
        idempotency_retention=timedelta(hours=conf.api.idempotency_retention),
        past_history=None if conf.api.past_history_entries < 0 else conf.api.past_history_entries,
        keep_journal=timedelta(days=conf.history.keep_days) or None,
        kinds=_kinds(conf.api),
        immediate_timeout=timedelta(seconds=conf.api.immediate_timeout),
        use_policies=_read_checked(use.read, conf),
        power=_read_checked(power.read, conf),
        max_waiting=conf.api.waiting_per_project,
        max_series=conf.api.series_per_project,
        series=SeriesLimits(conf.api.series_occurrences, timedelta(days=conf.api.series_horizon)),
        tries=min(conf.api.default_tries, conf.api.most_tries),
        provider=conf.billing.provider,
        quote_holds=timedelta(minutes=conf.billing.quote_holds),
        **{name: conf.api[name] for name in ("explain_refusals", "most_tries", "promises", "project_weights")},
        promise_notice=timedelta(minutes=conf.api.promise_notice),
    )


def _read_rounds(conf: cfg.ConfigOpts) -> dict[str, Any]:
    """Return the settings of what is done again and again: the sweep, looks for drift, notices, samples, reports."""
    return {
        **{name: timedelta(seconds=conf.manager[name]) for name in ("sweep_interval", "drift_interval")},
        **{name: conf.manager[name] for name in ("sweep_dry_run", "drift_mend")},
        **{name: timedelta(minutes=conf.manager[name]) for name in lease_options.MINUTES},
        "sample_interval": timedelta(seconds=conf.monitoring.sample_interval if conf.monitoring.listen else 0),
        "sample_properties": tuple(conf.monitoring.properties),
        "reports": lease_options.read_reports(conf),
    }


def _read_checked(read: Callable[[cfg.ConfigOpts], T], conf: cfg.ConfigOpts) -> T:
    try:
        return read(conf)
    except InvalidInput as error:
        raise ConfigurationError(error.message) from error


def _kinds(section: Any) -> frozenset[LeaseKind]:
    if section.default_kind not in section.allowed_kinds:
        raise ConfigurationError(
            f"[api] default_kind is {section.default_kind}, which [api] allowed_kinds does not have; choose one of: "
            f"{', '.join(section.allowed_kinds)}"
        )
    return frozenset(map(LeaseKind, section.allowed_kinds))


def _bounds(section: Any) -> Bounds:
    names = ("leases_per_project", "reservations_per_lease", "reservations_per_project", "lapsed_per_project")
    numbers = (getattr(section, name) for name in names)
    return Bounds(*(None if number < 0 else number for number in numbers))


def _read_bounds(section: Any) -> ReadBounds:
    return ReadBounds(
        longest_range=timedelta(days=section.max_range),
        back=timedelta(days=section.range_back),
        back_of_members=timedelta(days=section.range_back_members),
        ahead=timedelta(days=section.range_ahead),
        points=section.capacity_points,
        groups=section.capacity_groups,
        properties=section.max_properties,
        property_values=section.max_property_values,
        feeds_of_user=section.feeds_per_user,
    )


def api_bounds(conf: cfg.ConfigOpts) -> ApiBounds:
    """Return the bounds of lists in answers; ConfigurationError if one has more by default than at most."""
    return ApiBounds(
        pages=_page_bounds(conf, "api", "page_size"),
        calendar=_page_bounds(conf, "api", "calendar_page_size"),
        openings=_page_bounds(conf, "availability", "openings"),
    )


def _page_bounds(conf: cfg.ConfigOpts, group: str, size: str) -> PageBounds:
    usual, most = conf[group][size], conf[group][f"max_{size}"]
    if usual > most:
        raise ConfigurationError(
            f"[{group}] {size} is {usual}, more than [{group}] max_{size}, which is {most}; give at most that, or a "
            f"larger max_{size}"
        )
    return PageBounds(usual, most)
