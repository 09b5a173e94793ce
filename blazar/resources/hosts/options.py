# SPDX-License-Identifier: Apache-2.0
"""The options of hosts, and of what is reserved on them: names, sections and defaults of the existing Blazar."""

from __future__ import annotations

from oslo_config import cfg

from blazar.calendar.placement import Strategy
from blazar.model.base.values import dataclass
from blazar.resources.hosts.aggregates.membership import AggregateNames
from blazar.resources.hosts.evacuation_options import EvacuationSettings
from blazar.resources.hosts.gpus import NO_MODELS, GpuModels
from blazar.resources.hosts.pci_aliases import NO_ALIASES, AliasType, PciAliases

SECTION = "physical:host"
IMAGE_PREFIX = "reserved_"

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
ALLOWED_EXTRA_SPECS = (
    "hw:cpu_policy",
    "hw:cpu_thread_policy",
    "hw:emulator_threads_policy",
    "hw:cpu_sockets",
    "hw:cpu_cores",
    "hw:cpu_threads",
)
"""Extra specs that servers of a size may have: what is counted, or concerns only the inside of the server."""

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
        default=IMAGE_PREFIX,
        deprecated_group="DEFAULT",
        help="Prefix of the names of snapshots that are created before the end of a lease.",
    ),
    cfg.ListOpt(
        "allowed_extra_specs",
        default=list(ALLOWED_EXTRA_SPECS),
        help="Extra specs that requests for virtual:instance may set on the flavor of their reservation, separated by "
        "commas; * stands for any characters. Names without a colon and those that begin with resources, trait, "
        "aggregate_instance_extra_specs, capabilities, blazar or reservation are refused in any case. Empty: none.",
    ),
]
NOVA_OPTIONS += [
    cfg.MultiOpt(
        "pci_alias",
        item_type=AliasType(),
        metavar="JSON",
        help="A PCI alias of nova-api, as it is in nova.conf, which has one line for each; without it flavors that "
        "name it in pci_passthrough:alias cannot be reserved. No effect if there is an alias in [pci].",
    ),
    cfg.BoolOpt(
        "pci_in_placement",
        default=True,
        help="Whether Nova finds PCI devices of aliases in Placement ([filter_scheduler] pci_in_placement in "
        "nova.conf). If not, operators give hosts the property pci:ALIAS with the number of their devices.",
    ),
    cfg.DictOpt(
        "gpu_models",
        default={},
        help="The models of GPUs that requests for virtual:instance, or for virtual:server without a flavor, may name: "
        "each with the PCI alias or the resource class that it is in Nova, as A100:alias/a100,A16-4Q:class/VGPU. A "
        "server with several GPUs of a class gets all of them from one physical device.",
    ),
]
PCI_OPTIONS: list[cfg.Opt] = [
    cfg.MultiOpt(
        "alias",
        item_type=AliasType(),
        metavar="JSON",
        help="The same as pci_alias in [nova], by the name in nova.conf: so one file with the aliases can be read by "
        "Nova and by this service.",
    ),
]
UNIFIED_LIMITS = "nova.quota.UnifiedLimitsDriver"
QUOTA_OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "driver",
        default="nova.quota.DbQuotaDriver",
        help="That of nova.conf, where one file is for both: blazar-status tells if Nova refuses servers by it.",
    ),
    cfg.StrOpt(
        "unified_limits_resource_strategy",
        default="require",
        help="That of nova.conf, as above: with ignore, Nova refuses servers of reservations.",
    ),
]
AUTO, ROOMY, COMPACT = "auto", "roomy", "compact"
_PLACEMENTS = {
    AUTO: "compact if hosts are put to sleep ([power] mode = on), else roomy",
    ROOMY: "those with the longest gap before and after it, so that leases can be extended; of those the smallest",
    COMPACT: "those with the shortest gap, so that few hosts are used at a time, and the others can sleep",
}
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
    cfg.StrOpt(
        "placement",
        default=AUTO,
        choices=list(_PLACEMENTS.items()),
        help="Which of the free hosts that suit a lease it gets, unless randomize_host_selection is true.",
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


def read_before_end(conf: cfg.ConfigOpts) -> str:
    """Return the action before the end of a reservation, of any kind, whose request names none."""
    return str(conf[SECTION].before_end)


def read_strategy(conf: cfg.ConfigOpts, *, hosts_sleep: bool) -> Strategy:
    """Return how resources are chosen."""
    section = conf[SECTION]
    if section.randomize_host_selection:
        return Strategy.RANDOM
    is_compact = hosts_sleep if section.placement == AUTO else section.placement == COMPACT
    return Strategy.COMPACT if is_compact else Strategy.PACK


@dataclass(frozen=True, slots=True)
class HostSettings:
    """An operator's settings of host reservations; names and defaults as in ``blazar.conf``."""

    aggregates: AggregateNames = AggregateNames()
    before_end: str = ""
    image_prefix: str = IMAGE_PREFIX
    extra_specs: tuple[str, ...] = ALLOWED_EXTRA_SPECS
    evacuation: EvacuationSettings = EvacuationSettings()
    pci: PciAliases = NO_ALIASES
    gpus: GpuModels = NO_MODELS

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts) -> HostSettings:
        """Return the settings as configured. InvalidInput."""
        pci = PciAliases.of(conf.pci.alias or conf.nova.pci_alias or (), in_placement=conf.nova.pci_in_placement)
        return cls(
            aggregates=AggregateNames(
                freepool=conf.nova.aggregate_freepool_name,
                zone_prefix=conf[SECTION].blazar_az_prefix,
                owner_key=conf.nova.blazar_owner,
            ),
            before_end=read_before_end(conf),
            image_prefix=conf.nova.image_prefix,
            extra_specs=tuple(conf.nova.allowed_extra_specs),
            evacuation=EvacuationSettings.configured(conf),
            pci=pci,
            gpus=GpuModels.of(conf.nova.gpu_models, pci),
        )
