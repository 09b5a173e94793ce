"""Options of ``blazar.conf``, with the names that operators know."""

from __future__ import annotations

from datetime import timedelta

from oslo_config import cfg

from blazar.calendar.strategies import Strategy
from blazar.manager.settings import Settings
from blazar.resources.physical_host import HostSettings
from blazar.resources.pools import PoolNames

DEFAULT_OPTIONS: list[cfg.Opt] = [
    cfg.IntOpt("cleaning_time", default=0, min=0, help="Minutes between two users of the same resource."),
]
MANAGER_OPTIONS: list[cfg.Opt] = [
    cfg.ListOpt("plugins", default=["physical.host.plugin"], help="Resource types to offer, by entry point name."),
    cfg.IntOpt(
        "minutes_before_end_lease",
        default=60,
        min=0,
        help="Minutes before the end of a lease at which its before_end action runs, where the request names no "
        "time; 0 for never.",
    ),
    cfg.IntOpt(
        "claim_ttl",
        default=60,
        min=1,
        help="Seconds after which the work of a manager that gave no sign of life is taken over by another.",
    ),
]
NOTIFICATION_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt("publisher_id", default="blazar.lease", help="The publisher named in notifications."),
]
NOVA_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt("aggregate_freepool_name", default="freepool", help="Aggregate of all hosts that can be reserved."),
    cfg.StrOpt("blazar_owner", default="blazar:owner", help="Aggregate metadata key that names the owning project."),
    cfg.StrOpt("image_prefix", default="reserved_", help="Prefix of the names of snapshots made before an end."),
]
HOST_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt("blazar_az_prefix", default="blazar_", help="Prefix of the zones of reservations' aggregates."),
    cfg.StrOpt(
        "before_end",
        default="",
        choices=["", "snapshot"],
        help="What 'default' means as a reservation's action before its end: nothing, or a snapshot of every server.",
    ),
    cfg.BoolOpt("randomize_host_selection", default=False, help="Choose among fitting hosts at random."),
]

DATABASE_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt("connection", secret=True, help="SQLAlchemy URL of the database."),
]
GROUPS: dict[str, list[cfg.Opt]] = {
    "DEFAULT": DEFAULT_OPTIONS,
    "manager": MANAGER_OPTIONS,
    "notifications": NOTIFICATION_OPTIONS,
    "nova": NOVA_OPTIONS,
    "physical:host": HOST_OPTIONS,
    "database": DATABASE_OPTIONS,
}


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options by group, for oslo-config-generator."""
    return list(GROUPS.items())


def load(arguments: list[str], *, program: str, files: list[str] | None = None) -> cfg.ConfigOpts:
    """Read the configuration. Raises oslo.config's errors, whose text names the option and the file."""
    conf = cfg.ConfigOpts()
    for group, options in GROUPS.items():
        conf.register_opts(options, group=None if group == "DEFAULT" else group)
    conf(arguments, project="blazar", prog=program, default_config_files=files)
    for group, options in GROUPS.items():
        for option in options:
            # Read each once, so that a value of the wrong type stops the start and not a lease.
            conf[group][option.dest] if group != "DEFAULT" else conf[option.dest]
    return conf


def manager_settings(conf: cfg.ConfigOpts) -> Settings:
    """Return the manager's settings."""
    random = conf["physical:host"].randomize_host_selection
    return Settings(
        cleaning_time=timedelta(minutes=conf.cleaning_time),
        before_end_lead=timedelta(minutes=conf.manager.minutes_before_end_lease),
        claim_ttl=timedelta(seconds=conf.manager.claim_ttl),
        strategy=Strategy.RANDOM if random else Strategy.PACK,
    )


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
