# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers: they use hosts of the freepool until a lease needs them.

A server is preemptible if an operator has set the extra spec ``blazar:preemptible`` on its flavor. No other server on
a host is ever deleted to make room.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Flavor, Server
from blazar.clouds.ports.placement import CLASS_PREFIX, reservation_id_of
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import InvalidInput
from blazar.model.resources.pools import is_declared
from blazar.model.resources.resource import Resource
from blazar.resources.hosts.cards import resolve_cards
from blazar.resources.hosts.flavors import per_instance_of
from blazar.resources.hosts.pci_aliases import NO_ALIASES, PciAliases

LOG = logging.getLogger(__name__)

SPEC = "blazar:preemptible"
"""Extra spec of a flavor; the scheduler filter reads the same."""

OURS = (f"resources:{CLASS_PREFIX}", "aggregate_instance_extra_specs:reservation")
"""Prefixes of the extra specs that we add to a reservation's flavor."""

TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
"""The values that the scheduler filter treats as true, ignoring case."""


def is_preemptible(server: Server) -> bool:
    """Return whether a server is preemptible."""
    return server.extra_specs.get(SPEC, "").strip().lower() in TRUE


def select_surplus(
    servers: Iterable[Server], capacity: Amounts, promised: Amounts, aliases: PciAliases = NO_ALIASES
) -> tuple[Server, ...]:
    """Return the preemptible servers to delete so that what is promised on a host fits: the newest, as few as possible.

    ``servers`` are those on the host outside reserved capacity. What non-preemptible servers use counts as taken,
    regardless of owner.
    """
    taken = promised
    preemptible = []
    for server in servers:
        if is_preemptible(server):
            preemptible.append(server)
        else:
            taken += _needs_of(server, aliases)
    # Only promised resource classes count; use of others conflicts with no promise. Who starts a reservation does
    # not know what the operator of a host declares.
    counted = {name for name, _ in promised if capacity.get(name) or not is_declared(name)}
    evicted = []
    for server in sorted(preemptible, key=lambda server: (server.created_at, server.id)):
        with_it = taken + _needs_of(server, aliases)
        if any(amount > capacity.get(name) for name, amount in with_it if name in counted):
            evicted.append(server)
        else:
            taken = with_it
    return tuple(reversed(evicted))


class Preemptibles:
    """Finds the preemptible servers in the way of reserved capacity on shared hosts, and makes room for it."""

    def __init__(self, cloud: Cloud, aliases: PciAliases = NO_ALIASES) -> None:
        self._compute = cloud.compute
        self._placement = cloud.placement
        self._aliases = aliases

    def make_room(self, resource: Resource) -> int:
        """Delete the preemptible servers on a host that do not fit beside all reserved capacity there.

        Returns how many of them still exist. No new ones appear: the scheduler filter admits none to hosts in the
        aggregate of a reservation.
        """
        host = str(resource.attributes["service_name"])
        evicted = self.find_surplus(resource)
        for server in evicted:
            LOG.info("Preemptible server %s of project %s makes room on host %s", server.id, server.project_id, host)
            self._compute.begin_server_deletion(server.id)
        gone = {server.id for server in evicted}
        return sum(server.id in gone for server in self._compute.servers_on(host)) if evicted else 0

    def find_surplus(self, resource: Resource, *, coming: str = "", count: int = 0) -> tuple[Server, ...]:
        """Return the preemptible servers on a host that do not fit beside all reserved capacity there.

        ``coming`` is a reservation that has not started, and gets capacity for so many servers there.
        """
        servers = self._compute.servers_on(str(resource.attributes["service_name"]))
        if not any(is_preemptible(server) for server in servers):
            return ()
        promised = self.sum_reserved(resource, {coming: count} if count else {})
        others = (server for server in servers if not _is_in_slot(server))
        return select_surplus(others, resource.capacity, promised, self._aliases)

    def sum_reserved(self, resource: Resource, more: Mapping[str, int]) -> Amounts:
        """Return what all reserved capacity on a host takes, with ``more`` servers by reservation."""
        totals = {reservation_id_of(n): total for n, total in self._placement.reserved_totals(resource.name).items()}
        found = Amounts()
        for reservation_id, total in {**totals, **more}.items():
            flavor = self._compute.flavor(reservation_id)
            if flavor is not None:
                found += amounts_of_flavor(flavor, self._aliases).times(total)
        return found

    def count_uncleaned(self, resource: Resource) -> int:
        """Return how many of a host's devices await cleaning, if too few others are left for all reserved capacity.

        Such a device is given to one server, and then to no other until somebody has cleaned it. Who has booted
        nothing yet could get all of them, so that what is reserved counts, and not what is used.
        """
        if not any(pool.is_cleaned for pool in resource.pools):
            return 0
        uncleaned = self._placement.uncleaned(resource.name)
        reserved = self.sum_reserved(resource, {}) if uncleaned else Amounts()
        return sum(n for name, n in uncleaned if reserved.get(name) + n > resource.capacity.get(name))


def amounts_of_flavor(flavor: Flavor, aliases: PciAliases = NO_ALIASES) -> Amounts:
    """Return the resources that a server of a flavor uses; only its sizes if the flavor cannot be reserved."""
    plain = replace(flavor, extra_specs={k: v for k, v in flavor.extra_specs.items() if not k.startswith(OURS)})
    try:
        return per_instance_of(resolve_cards(plain, aliases))
    except InvalidInput:
        return per_instance_of(replace(plain, extra_specs={}))


def _needs_of(server: Server, aliases: PciAliases) -> Amounts:
    sizes = {name: server.amounts.get(name) for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    vcpus, memory_mb, disk_gb = sizes.values()
    flavor = Flavor(server.id, server.name, vcpus, memory_mb, disk_gb, extra_specs=server.extra_specs)
    return amounts_of_flavor(flavor, aliases)


def _is_in_slot(server: Server) -> bool:
    return any(key.startswith(f"resources:{CLASS_PREFIX}") for key in server.extra_specs)
