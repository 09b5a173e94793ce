# SPDX-License-Identifier: Apache-2.0
"""Host aggregates of reservations of whole hosts, one for each.

Nova (34) does not add a host to an aggregate with an availability zone while another aggregate gives the host another
zone, and does not change the zone of a host that runs servers. So a host leaves its operator's zone aggregate when it
is assigned and enters it again when it is returned; the metadata of the reservation's aggregate records the former
zone, so that nothing has to be stored elsewhere. A host that Nova does not let into its zone yet does not delay the end
of its lease: it waits in the freepool, the aggregate stays with its metadata, and the sweep, a later change of the
reservation or the next reservation of the host returns it.

The order of the steps keeps a host in the freepool or a reservation's aggregate at every moment: it enters the
reservation's aggregate before it leaves the freepool, and enters the freepool before it leaves the reservation's
aggregate. A host in neither would accept servers of every project.

Preemptible servers on a host are deleted before it is assigned; no other servers are. To keep new ones away meanwhile,
the host is closed to them first, by a key in the freepool's metadata that the scheduler filter reads. A returning host
stays closed to them until it is in its zone again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from blazar.clouds.ports.compute import Aggregate, AggregateList, Compute, MigrationState, Server
from blazar.clouds.side_by_side import side_by_side
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.model.base.reasons import Cause, ReasonCode, spell_count
from blazar.resources.hosts.aggregates.freepool import (
    Freepool,
    HostWaits,
    NotInFreepool,
    Unfinished,
    check_preemptible,
    for_each,
)
from blazar.resources.hosts.aggregates.membership import AggregateMembership, AggregateNames
from blazar.resources.hosts.lending import HostLending, list_guests

LOG = logging.getLogger(__name__)

FORMER_ZONE = "blazar:zone:"
"""Prefix of the metadata key that names, for a host, the zone aggregates to which it returns (ids, with commas)."""

CLOSED = "blazar:closed:"
"""Prefix of the key in the freepool's metadata by which a host is closed to new preemptible servers; the value is the
id of the reservation that it is assigned to or returned from."""


class ReservationAggregates:
    """Moves hosts between the freepool and the aggregates of host reservations."""

    def __init__(self, compute: Compute, names: AggregateNames) -> None:
        self._compute = compute
        self._names = names
        self._members = AggregateMembership(compute, names)
        self._freepool = Freepool(compute, names)
        self._lending = HostLending(compute)

    def ensure_aggregate(self, reservation_id: str, *, project_id: str) -> Aggregate:
        """Ensure the reservation's aggregate: named by its id, with its own zone and the owner in its metadata."""
        owner = {self._names.owner_key: project_id}
        aggregate = self._compute.aggregate(reservation_id)
        if aggregate is None:
            try:
                return self._compute.create_aggregate(reservation_id, self._names.zone_prefix + reservation_id, owner)
            except Conflict:
                # An earlier attempt whose response was lost made it, or another manager did.
                aggregate = self._compute.aggregate(reservation_id)
                if aggregate is None:
                    raise
        if self._owner_of(aggregate) != project_id:
            self._compute.set_aggregate_metadata(aggregate.id, owner)
        return aggregate

    def _owner_of(self, aggregate: Aggregate) -> str | None:
        return aggregate.metadata.get(self._names.owner_key)

    def hosts_of(self, reservation_id: str) -> tuple[str, ...]:
        """Return the service names of the hosts in the reservation's aggregate; empty if it does not exist."""
        aggregate = self._compute.aggregate(reservation_id)
        return aggregate.hosts if aggregate else ()

    def reservations_with_aggregate(self) -> frozenset[str]:
        """Return the ids of the reservations that have an aggregate with its own zone, or keep a host closed."""
        prefix = self._names.zone_prefix
        aggregates = self._compute.aggregates()
        freepool = aggregates.named(self._names.freepool)
        closed = {} if freepool is None else freepool.metadata
        return frozenset(
            (
                *(a.name for a in aggregates if a.availability_zone == prefix + a.name),
                *(owner for key, owner in closed.items() if key.startswith(CLOSED)),
            )
        )

    def confirm_moves_from(self, host: str) -> int:
        """Confirm the cold migrations away from a host, which hold capacity on it until then.

        Return the number of those that were not complete, with those that cannot be confirmed yet. Read the servers on
        the host before: one that leaves in between is found here.
        """
        incomplete = 0
        for server_id, state in self._compute.unfinished_moves_from(host).items():
            try:
                if state is MigrationState.TO_CONFIRM:
                    self._compute.confirm_migration(server_id)
            except (NotFound, Conflict):
                # Just deleted or confirmed: there is nothing to wait for.
                continue
            incomplete += 1
        return incomplete

    def assign_hosts(self, reservation_id: str, *, hosts: Iterable[str], project_id: str) -> Unfinished:
        """Ensure that the hosts are in the reservation's aggregate and not in the freepool; return what is unfinished.

        Every host that can be assigned is, whatever delays the others: preemptible servers, which are deleted; a
        reservation that still has the host; servers that we must not delete. All other hosts leave the aggregate.
        Raises NotInFreepool at the end if hosts are neither in the freepool nor reserved (an operator removed them, or
        Nova no longer has them), and Conflict if a host that has to leave runs servers.
        """
        wanted = tuple(hosts)
        aggregates, seen = side_by_side(self._compute.aggregates, lambda: for_each(wanted, self._compute.servers_on))
        freepool = self._members.freepool(aggregates)
        aggregate = aggregates.named(reservation_id)
        if aggregate is None or self._owner_of(aggregate) != project_id:
            aggregate = self.ensure_aggregate(reservation_id, project_id=project_id)
        assign = partial(self._assign_host, aggregate=aggregate, freepool=freepool, aggregates=aggregates, seen=seen)
        found = for_each(wanted, assign)
        evicted = sum(left for left in found.values() if isinstance(left, int))
        waiting = {host: wait for host, wait in found.items() if isinstance(wait, HostWaits)}
        lost = [host for host, error in found.items() if isinstance(error, NotInFreepool)]
        if lost:
            raise NotInFreepool(lost, self._names.freepool)
        leaving = [host for host in aggregate.hosts if host not in wanted]
        guests = frozenset[str]()
        for host in leaving:
            guests |= self._check_empty(host, aggregate, project_id=project_id)
        if guests and (left := self._lending.evict(leaving, aggregate, guests)):
            return Unfinished(evicted + left, waiting)
        if to_return := frozenset((*leaving, *_former_zones(aggregate))).difference(wanted):
            self._return_hosts(aggregate, leaving, aggregates, to_return)
            for host in leaving:
                # One may have been booted in between the two, and would be in the way of the next user of the host.
                self._check_empty(host, aggregate)
        self._reopen_to_preemptibles(reservation_id, aggregates, frozenset(freepool.hosts).difference(wanted))
        return Unfinished(evicted, waiting)

    def reassign_returned_hosts(self, reservation_id: str, *, hosts: Iterable[str], project_id: str) -> None:
        """Put hosts that a change of the reservation has returned to the freepool back into its aggregate."""
        aggregates = self._compute.aggregates()
        free = self._members.freepool(aggregates).hosts
        aggregate = aggregates.named(reservation_id)
        left = [host for host in hosts if host in free]
        if left:
            here = aggregate.hosts if aggregate else ()
            self.assign_hosts(reservation_id, hosts=dict.fromkeys((*here, *left)), project_id=project_id)

    def release_hosts(self, reservation_id: str, *, hosts: frozenset[str] | None, assigned: Iterable[str] = ()) -> int:
        """Ensure that hosts of the reservation's aggregate are empty and back in the freepool.

        ``hosts`` None means all of them, and that the aggregate is deleted too. Those ``assigned`` that are neither
        in the freepool nor reserved (an operator deleted the aggregate) return to the freepool with their servers.
        Returns the number of servers that are still being deleted: no host leaves until a later call finds them gone.
        """
        aggregates = self._compute.aggregates()
        self._reopen_to_preemptibles(reservation_id, aggregates, hosts)
        # Before hosts return to their zones, which Nova may refuse: outside both, a host accepts anybody's servers.
        for host in assigned:
            if not self._members.ours_with(host, aggregates):
                LOG.warning(
                    "Host %s left the aggregate of reservation %s before its end; adding it to the freepool",
                    host,
                    reservation_id,
                )
                self._members.add_host_if_known(self._members.freepool(aggregates), host)
        left = 0
        for aggregate in [a for a in aggregates if a.name == reservation_id]:
            left += self._empty_hosts(aggregate, aggregates, hosts)
        return left

    def _empty_hosts(self, aggregate: Aggregate, aggregates: AggregateList, hosts: frozenset[str] | None) -> int:
        leaving = aggregate.hosts if hosts is None else tuple(host for host in aggregate.hosts if host in hosts)
        looks = for_each(leaving, lambda host: (self._compute.servers_on(host), self.confirm_moves_from(host)))
        occupied = {host: servers for host, (servers, _) in looks.items()}
        left = sum(moving for _, moving in looks.values())
        if any(occupied.values()):
            if hosts is None:
                self._close_to_new_servers(aggregate)
            # Read again right before servers are deleted: a host that has left the aggregate has another user.
            still_here = next((a.hosts for a in self._compute.aggregates() if a.id == aggregate.id), ())
            for host in leaving:
                if host not in still_here:
                    continue
                for server in occupied[host]:
                    self._compute.begin_server_deletion(server.id)
                left += len(self._compute.servers_on(host)) if occupied[host] else 0
            leaving = tuple(host for host in leaving if host in still_here)
        if left:
            return left
        # Includes hosts whose move in or out a crash interrupted between removal and return.
        if self._return_hosts(aggregate, leaving, aggregates, hosts) and hosts is None:
            self._members.delete_aggregate(aggregate)
        return 0

    def _check_empty(self, host: str, aggregate: Aggregate, *, project_id: str | None = None) -> frozenset[str]:
        """Raise Conflict if servers keep a host from leaving its aggregate; return those to which a project lent it."""
        servers = self._compute.servers_on(host)
        self.confirm_moves_from(host)
        guests = list_guests(servers, aggregate, project_id) if project_id else frozenset[str]()
        if staying := [server for server in servers if server.id not in guests]:
            raise Conflict(
                f"host {host} runs {spell_count(len(staying), 'server')} of reservation {aggregate.name}, as "
                f"{staying[0].id}; move or delete them first",
                public=f"servers run on a host that reservation {aggregate.name} would lose; move or delete them first",
            )
        return guests

    def _return_hosts(
        self,
        aggregate: Aggregate,
        leaving: Sequence[str],
        aggregates: AggregateList,
        hosts: frozenset[str] | None,
    ) -> bool:
        """Move the ``leaving`` hosts from an aggregate to the freepool, and all ``hosts`` (None: any) to their zones.

        Return whether the return is finished, for these and for those that were returning before.
        """
        former = {host: ids for host, ids in _former_zones(aggregate).items() if hosts is None or host in hosts}
        if not (leaving or former):
            return True
        freepool = self._members.freepool(aggregates)
        closed = {host: freepool.metadata.get(CLOSED + host, aggregate.name) for host in former}
        # Nova adds no host with servers to a zone, and preemptible ones boot as soon as it is in the freepool alone.
        if closing := {CLOSED + host: aggregate.name for host in former if CLOSED + host not in freepool.metadata}:
            self._compute.set_aggregate_metadata(freepool.id, closing)
        out = for_each(leaving, partial(self._members.return_host, aggregate=aggregate, freepool=freepool))
        others = [a for a in aggregates if a.id != aggregate.id]
        back = for_each(former, lambda host: self._return_to_former_zone(host, former[host], others))
        home = [host for host, is_back in back.items() if is_back]
        if opened := {CLOSED + host: None for host in home if closed[host] == aggregate.name}:
            self._compute.set_aggregate_metadata(freepool.id, opened)
        done = all(out.values()) and len(home) == len(former)
        if home and not (done and hosts is None):
            # The aggregate remains, and must not keep a former zone that the operator may change from now on.
            self._compute.set_aggregate_metadata(aggregate.id, {FORMER_ZONE + host: None for host in home})
        return done

    def _close_to_new_servers(self, aggregate: Aggregate) -> None:
        """Close an ending reservation to new servers: remove the metadata that the scheduler filter requires."""
        keys = {key: None for key in aggregate.metadata if not key.startswith(FORMER_ZONE)}
        if keys:
            self._compute.set_aggregate_metadata(aggregate.id, keys)

    def _assign_host(
        self,
        host: str,
        *,
        aggregate: Aggregate,
        freepool: Aggregate,
        aggregates: AggregateList,
        seen: Mapping[str, Sequence[Server]],
    ) -> int | HostWaits | NotInFreepool:
        """Ensure that one host is in the aggregate; return how many preemptible servers are still being deleted.

        Or why it is not. A host of which no servers were ``seen`` while the aggregates were read needs no other look.
        """
        try:
            return self._move_host(host, aggregate, freepool, aggregates, is_busy=bool(seen[host]))
        except (HostWaits, NotInFreepool) as error:
            return error

    def _move_host(
        self, host: str, aggregate: Aggregate, freepool: Aggregate, aggregates: AggregateList, *, is_busy: bool
    ) -> int:
        closed = CLOSED + host in freepool.metadata
        if host not in aggregate.hosts:
            self._freepool.check_in_freepool(host, aggregate, aggregates)
            # Read again: what was there may be that of a reservation that has left the host since.
            servers = self._compute.servers_on(host) if is_busy else ()
            if servers:
                check_preemptible(host, servers)
                if not closed:
                    self._compute.set_aggregate_metadata(freepool.id, {CLOSED + host: aggregate.name})
                    closed = True
                LOG.info(
                    "Host %s is needed by reservation %s: %s", host, aggregate.name, _list_servers("deleting", servers)
                )
                for server in servers:
                    self._compute.begin_server_deletion(server.id)
                if left := len(self._compute.servers_on(host)):
                    return left
            try:
                self._move_into_aggregate(host, aggregate, freepool, aggregates)
            except Conflict as error:
                # A server was booted in between, or the host got a zone: the next attempt finds out.
                if left := len(self._compute.servers_on(host)):
                    return left
                cause = Cause(ReasonCode.RESOURCE_NOT_READY)
                raise HostWaits(f"host {host} cannot be assigned yet: {error.message}").because(cause) from error
        if host in freepool.hosts:
            self._members.remove_host(freepool, host)
        if closed:
            self._compute.set_aggregate_metadata(freepool.id, {CLOSED + host: None})
        return 0

    def _reopen_to_preemptibles(
        self, reservation_id: str, aggregates: AggregateList, hosts: frozenset[str] | None
    ) -> None:
        """Reopen hosts that a reservation has closed to preemptible servers and no longer needs.

        Those that are returning to their zones stay closed until they are there.
        """
        freepool, aggregate = aggregates.named(self._names.freepool), aggregates.named(reservation_id)
        if freepool is None:
            return
        returning = _former_zones(aggregate) if aggregate else {}
        closed = {key.removeprefix(CLOSED): owner for key, owner in freepool.metadata.items() if key.startswith(CLOSED)}
        ours = {
            CLOSED + host: None
            for host, owner in closed.items()
            if owner == reservation_id and host not in returning and (hosts is None or host in hosts)
        }
        if ours:
            self._compute.set_aggregate_metadata(freepool.id, ours)

    def _move_into_aggregate(
        self, host: str, aggregate: Aggregate, freepool: Aggregate, aggregates: AggregateList
    ) -> None:
        others = [a for a in aggregates.with_host(host) if a.id not in (aggregate.id, freepool.id)]
        zones = [a for a in others if a.availability_zone]
        known = _former_zones(aggregate).get(host, frozenset())
        former = known | {a.id for a in zones}
        if not former:
            # Another reservation may have returned it, and Nova may not have let it into its zone since.
            waiting = aggregates.with_key(FORMER_ZONE + host)
            former = frozenset().union(*(_former_zones(other)[host] for other in waiting))
        if former != known:
            # Recorded before the first removal, so that a crash in between does not lose the former zone.
            text = ",".join(str(identifier) for identifier in sorted(former))
            self._compute.set_aggregate_metadata(aggregate.id, {FORMER_ZONE + host: text})
        for zone in zones:
            self._members.remove_host(zone, host)
        self._members.add_host(aggregate, host)

    def _return_to_former_zone(self, host: str, former: frozenset[int], aggregates: Iterable[Aggregate]) -> bool:
        """Add a host to its former zone; return False if Nova refuses yet, which delays no lease's end."""
        zones = [a for a in aggregates if a.availability_zone]
        if any(host in zone.hosts for zone in zones if zone.id not in former):
            # Its operator has given it a new zone meanwhile, or another reservation has it and recorded the zone.
            return True
        try:
            for zone in zones:
                # A zone aggregate that its operator deleted meanwhile is skipped.
                if zone.id in former and host not in zone.hosts:
                    self._members.add_host_if_known(zone, host)
        except (Conflict, NotFound, CloudRefused) as error:
            LOG.warning("Host %s cannot return to its availability zone yet: %s", host, error.message)
            return False
        return True


def _former_zones(aggregate: Aggregate) -> Mapping[str, frozenset[int]]:
    """Return the ids of the zone aggregates to which hosts of a reservation's aggregate return, by host."""
    return {
        key.removeprefix(FORMER_ZONE): frozenset(int(id_) for id_ in ids.split(",") if id_.isdecimal())
        for key, ids in aggregate.metadata.items()
        if key.startswith(FORMER_ZONE)
    }


def _list_servers(what: str, servers: Sequence[Server]) -> str:
    named = ", ".join(f"{server.id} of project {server.project_id}" for server in servers)
    return f"{what} {len(servers)} preemptible servers: {named}"
