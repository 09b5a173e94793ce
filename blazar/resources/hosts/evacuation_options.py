# SPDX-License-Identifier: Apache-2.0
"""The options of hosts that are emptied, for leases of the kind ``best_effort`` and before maintenance windows."""

from __future__ import annotations

from datetime import timedelta

from oslo_config import cfg

from blazar.calendar.evacuation.values import EvacuationStrategy, Rules
from blazar.model.base.values import dataclass

SECTION = "evacuation"

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "strategy",
        default=str(EvacuationStrategy.FEWEST),
        choices=[
            (str(EvacuationStrategy.FEWEST), "those with the fewest servers"),
            (str(EvacuationStrategy.SMALLEST), "those with the least memory and disk to copy"),
            (str(EvacuationStrategy.CHEAPEST), "those whose servers suffer least, by their state and their disks"),
        ],
        help="Which hosts are emptied for a lease of the kind best_effort.",
    ),
    cfg.IntOpt(
        "limit",
        default=60,
        min=1,
        max=1440,
        help="Minutes in which the hosts of a lease must be empty; then what still moves is aborted, and the lease is "
        "TIMED_OUT. What would take longer by its memory and disks is refused.",
    ),
    cfg.IntOpt(
        "maintenance_lead",
        default=120,
        min=0,
        max=10080,
        help="Minutes before a maintenance window from which on servers of leases in use are moved off its hosts, if "
        "the window says so. What is not moved by its start stays; of a window that is opened later, what is not moved "
        "within limit.",
    ),
    cfg.IntOpt(
        "headroom",
        default=10,
        min=0,
        max=90,
        help="Percent of each host that stays free when it takes servers of hosts that are emptied.",
    ),
    cfg.IntOpt(
        "rate", default=100, min=1, help="MiB of memory and disk that one move copies in a second, for the estimate."
    ),
    cfg.IntOpt(
        "moves_per_host",
        default=2,
        min=1,
        max=100,
        help="How many servers of one host are moved at the same time. Nova itself queues more than its "
        "max_concurrent_live_migrations.",
    ),
    cfg.IntOpt("moves_in_all", default=10, min=1, max=1000, help="How many servers are moved at a time for one lease."),
    cfg.ListOpt(
        "never_move_projects",
        default=[],
        help="Ids of projects whose servers are never moved: a host with one of them is not emptied. Owners keep a "
        "single server where it is with the tag blazar:keep, or by locking it.",
    ),
]


@dataclass(frozen=True, slots=True)
class EvacuationSettings:
    """An operator's settings of how hosts are emptied.

    ``never`` are the projects whose servers are not moved; ``lead`` is how long before a maintenance window it begins.
    """

    rules: Rules = Rules()
    never: frozenset[str] = frozenset()
    lead: timedelta = timedelta(hours=2)

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts) -> EvacuationSettings:
        """Return the settings as configured."""
        section = conf[SECTION]
        rules = Rules(
            EvacuationStrategy(section.strategy),
            headroom=section.headroom,
            rate=section.rate,
            per_host=section.moves_per_host,
            in_all=section.moves_in_all,
            limit=timedelta(minutes=section.limit),
        )
        lead = timedelta(minutes=section.maintenance_lead)
        return cls(rules, frozenset(section.never_move_projects), lead)
