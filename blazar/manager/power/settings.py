# SPDX-License-Identifier: Apache-2.0
"""Settings of power: which hosts sleep while nobody needs them."""

from __future__ import annotations

from datetime import timedelta

from oslo_config import cfg

from blazar.model.power.settings import PowerMode, PowerSettings
from blazar.model.power.spare_rules import parse_rule

SECTION = "power"
_DAY = 24 * 3600
LEARNED = -1
"""The value of ``spare`` by which it is learned."""

_MODES = [
    (str(PowerMode.OFF), "nothing is planned"),
    (
        str(PowerMode.DRY_RUN),
        "it is planned each minute which hosts would sleep, and written down; no host is switched",
    ),
    (str(PowerMode.ON), "hosts that operators have given an adapter and a target are switched off and on"),
]

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "mode",
        default=str(PowerMode.OFF),
        choices=_MODES,
        help="What comes of hosts that nobody needs.",
    ),
    cfg.IntOpt(
        "spare",
        default=LEARNED,
        min=LEARNED,
        help="How many free hosts of each class stay awake for leases that start at once; -1: half more than were "
        "asked for at once within the worst hour of the last 14 days, working hours and others apart, and at least "
        "16 % of its hosts in working hours, 8 % otherwise.",
    ),
    cfg.ListOpt(
        "spares",
        default=[],
        help="The spare of some classes at some hours, in place of that of [power] spare: a list such as "
        "gpu=A100; MO-FR; 07:00-19:00: 4, gpu=A100: 1, SA SU: 0. Each names values of class_by, days, or hours of the "
        "site's wall clock ([reports] time_zone), and after a colon a number of hosts, or learned. The first that fits "
        "counts.",
    ),
    cfg.IntOpt(
        "idle_after",
        default=300,
        min=0,
        max=_DAY,
        help="Seconds for which a host has not been used when it may be switched off.",
    ),
    cfg.IntOpt(
        "min_off",
        default=7200,
        min=600,
        max=7 * _DAY,
        help="Seconds for which a host must be able to sleep to be switched off.",
    ),
    cfg.IntOpt(
        "wake_timeout",
        default=900,
        min=60,
        max=_DAY,
        help="Seconds after which a host that was switched on, and whose nova-compute is not up, has failed. Hosts are "
        "woken before a start by this, the time of a second attempt, and five minutes; at least by 30 minutes until "
        "50 wakes are known.",
    ),
    cfg.IntOpt(
        "shutdown_timeout",
        default=300,
        min=10,
        max=_DAY,
        help="Seconds after which a host that was told to shut down, and still runs, has its power cut.",
    ),
    cfg.IntOpt(
        "ramp",
        default=10,
        min=1,
        max=10000,
        help="How many hosts may be switched within a minute, over all managers.",
    ),
    cfg.IntOpt(
        "cycles_per_day",
        default=2,
        min=1,
        max=100,
        help="How often a host may be switched off within 24 hours.",
    ),
    cfg.ListOpt(
        "class_by",
        default=[],
        help="Properties by which requests tell hosts apart, such as gpu. Hosts with the same values are a class, "
        "which has a spare and a lead of its own: an awake host without a GPU is of no use to who asks for one. "
        "Without any, all hosts are one class.",
    ),
]


def read(conf: cfg.ConfigOpts) -> PowerSettings:
    """Return the settings as configured; InvalidInput."""
    section = conf[SECTION]
    class_by = tuple(dict.fromkeys(section.class_by))
    return PowerSettings(
        mode=PowerMode(section.mode),
        spare=None if section.spare == LEARNED else section.spare,
        idle_after=timedelta(seconds=section.idle_after),
        min_off=timedelta(seconds=section.min_off),
        wake_timeout=timedelta(seconds=section.wake_timeout),
        shutdown_timeout=timedelta(seconds=section.shutdown_timeout),
        ramp=section.ramp,
        cycles_per_day=section.cycles_per_day,
        class_by=class_by,
        spare_rules=tuple(parse_rule(text, class_by) for text in section.spares),
    )
