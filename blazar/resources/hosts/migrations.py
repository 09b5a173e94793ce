# SPDX-License-Identifier: Apache-2.0
"""Moves of servers out of a reservation, made before it ends."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Hypervisor, Migration, MigrationState, Server
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.resources.contract.actions import Tally
from blazar.resources.hosts.aggregates.freepool import Freepool
from blazar.resources.hosts.aggregates.reservations import ReservationAggregates

LOG = logging.getLogger(__name__)

MOVABLE_LIVE = frozenset({"ACTIVE", "PAUSED"})
MOVABLE_COLD = frozenset({"ACTIVE", "SHUTOFF"})

MOST_TRIES = 3
"""Failed live migrations of a server before cold ones are used; also hosts tried per server and attempt."""


class HostMigrations:
    """Moves the servers of a reservation to hosts outside freepool and reservations, live or else cold.

    Nothing is stored between attempts: Nova shows which moves of a server run, wait to be confirmed, or have failed.
    """

    def __init__(self, cloud: Cloud, aggregates: ReservationAggregates, freepool: Freepool) -> None:
        self._compute = cloud.compute
        self._placement = cloud.placement
        self._aggregates = aggregates
        self._freepool = freepool

    def ensure_empty(self, reservation_id: str, *, attempt: int) -> Tally:
        """Ensure that no server is left in the reservation; each ``attempt`` starts with other target hosts."""
        hosts = self._aggregates.hosts_of(reservation_id)
        servers = [server for host in hosts for server in self._compute.servers_on(host)]
        settling = sum(self._aggregates.confirm_moves_from(host) for host in hosts)
        if not servers:
            return Tally(under_way=settling)
        targets = self._freepool.open_hosts()
        begun = running = 0
        failures = []
        for number, server in enumerate(servers):
            moves = self._compute.migrations_of(server.id)
            if moves and moves[-1].state is MigrationState.RUNNING:
                running += 1
                continue
            try:
                self._begin_move(server, moves, _rotate(targets, number + attempt))
            except NotFound:
                # Its owner has just deleted it.
                continue
            except (Conflict, CloudRefused) as error:
                failures.append(f"server {server.id} was not moved: {error.message}")
            else:
                begun += 1
        return Tally(begun, begun + running + settling, tuple(failures))

    def was_moved(self, server: Server, reservation_id: str) -> bool:
        """Return whether a server has moved out of the reservation, so that the end does not delete it."""
        hosts = self._aggregates.hosts_of(reservation_id)
        return any(
            move.state is MigrationState.DONE and move.host not in hosts
            for move in self._compute.migrations_of(server.id)
        )

    def _begin_move(self, server: Server, moves: Sequence[Migration], targets: Sequence[Hypervisor]) -> None:
        """Begin to move a server. Conflict or CloudRefused if no host takes it."""
        if server.status not in MOVABLE_LIVE | MOVABLE_COLD:
            raise Conflict(f"it is {server.status}")
        room = self._placement.hosts_with_room_for(server.id)
        fitting = [host.service_name for host in targets if host.hypervisor_hostname in room]
        if not fitting:
            raise Conflict("no host outside of reservations and the freepool has room for it")
        failed = {(move.host, move.live) for move in moves if move.state is MigrationState.FAILED}
        tired = sum(move.live for move in moves if move.state is MigrationState.FAILED) >= MOST_TRIES
        ways = [(host, True) for host in fitting if server.status in MOVABLE_LIVE and not tired][:MOST_TRIES]
        ways += [(host, False) for host in fitting if server.status in MOVABLE_COLD][:MOST_TRIES]
        refusal: Conflict | CloudRefused = Conflict("every host that has room for it failed to take it")
        for host, live in ways:
            if (host, live) in failed:
                continue
            try:
                self._compute.begin_migration(server.id, host, live=live)
            except (Conflict, CloudRefused) as error:
                LOG.info(
                    "Server %s cannot move %s to %s: %s", server.id, _word_for_migration(live), host, error.message
                )
                refusal = error
            else:
                LOG.info("Server %s moves %s to %s", server.id, _word_for_migration(live), host)
                return
        raise refusal


def _word_for_migration(live: bool) -> str:
    return "live" if live else "cold"


def _rotate(hosts: Sequence[Hypervisor], by: int) -> Sequence[Hypervisor]:
    # Spreads servers over hosts: Placement does not count the moves that have just begun.
    by = by % len(hosts) if hosts else 0
    return [*hosts[by:], *hosts[:by]]
