# SPDX-License-Identifier: Apache-2.0
"""Preemptible servers: they use hosts of the freepool until a lease needs them.

A server is preemptible by its flavor: an operator has given that the extra spec ``blazar:preemptible``. Nothing else
that is found on a host is ever deleted to make room.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import replace

from blazar.clouds.ports import Cloud, Flavor, Server
from blazar.clouds.supplies import OUR_CLASSES, reservation_of
from blazar.model.amounts import Amounts
from blazar.model.errors import InvalidInput
from blazar.model.resource import Resource
from blazar.resources.flavors import per_instance_of

LOG = logging.getLogger(__name__)

SPEC = "blazar:preemptible"
"""Extra spec of a flavor; the scheduler filter reads the same."""

OURS = (f"resources:{OUR_CLASSES}", "aggregate_instance_extra_specs:reservation")
"""How extra specs begin that the flavor of a reservation has besides those of a flavor that it was made from."""

TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
"""What the scheduler filter takes for true, in any case."""


def is_preemptible(server: Server) -> bool:
    """Tell whether a server makes room for leases."""
    return server.extra_specs.get(SPEC, "").strip().lower() in TRUE


def surplus(servers: Iterable[Server], capacity: Amounts, promised: Amounts) -> tuple[Server, ...]:
    """Return the preemptible servers that stand in the way of what is promised on a host: the newest, as few as can be.

    ``servers`` are those on the host but for the ones in promised room. What others than preemptible servers take is
    taken, whoever they are.
    """
    taken = promised
    preemptible = []
    for server in servers:
        if is_preemptible(server):
            preemptible.append(server)
        else:
            taken += _taken(server)
    evicted = []
    for server in sorted(preemptible, key=lambda server: (server.created_at, server.id)):
        with_it = taken + _taken(server)
        # What the host does not have at all stands in nobody's way: nothing of it can be promised.
        if any(amount > capacity.get(name) for name, amount in with_it if promised.get(name)):
            evicted.append(server)
        else:
            taken = with_it
    return tuple(reversed(evicted))


class Preemptibles:
    """Makes room for slots on hosts that are shared."""

    def __init__(self, cloud: Cloud) -> None:
        self._compute = cloud.compute
        self._placement = cloud.placement

    def make_room(self, resource: Resource) -> int:
        """Delete the preemptible servers on a host for which there is no room beside all slots there.

        Returns how many of them are still there. New ones do not come: the scheduler filter lets none onto hosts in
        the aggregate of a reservation.
        """
        host = str(resource.attributes["service_name"])
        servers = self._compute.servers_on(host)
        if not any(is_preemptible(server) for server in servers):
            return 0
        promised = Amounts()
        for name, total in self._placement.slots(resource.name).items():
            flavor = self._compute.flavor(reservation_of(name))
            if flavor is not None:
                promised += takes(flavor).times(total)
        evicted = surplus((s for s in servers if not _in_slot(s)), resource.capacity, promised)
        for server in evicted:
            LOG.info("Preemptible server %s of project %s makes room on host %s", server.id, server.project_id, host)
            self._compute.delete_server(server.id)
        gone = {server.id for server in evicted}
        return sum(server.id in gone for server in self._compute.servers_on(host)) if evicted else 0


def takes(flavor: Flavor) -> Amounts:
    """Return what a server takes of a host; of what can not be promised anyway only its sizes count."""
    plain = replace(flavor, extra_specs={k: v for k, v in flavor.extra_specs.items() if not k.startswith(OURS)})
    try:
        return per_instance_of(plain)
    except InvalidInput:
        return per_instance_of(replace(plain, extra_specs={}))


def _taken(server: Server) -> Amounts:
    sizes = {name: server.amounts.get(name) for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
    vcpus, memory_mb, disk_gb = sizes.values()
    return takes(Flavor(server.id, server.name, vcpus, memory_mb, disk_gb, extra_specs=server.extra_specs))


def _in_slot(server: Server) -> bool:
    return any(key.startswith(f"resources:{OUR_CLASSES}") for key in server.extra_specs)
