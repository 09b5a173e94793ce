# SPDX-License-Identifier: Apache-2.0
"""The freepool: the aggregate of all hosts that can be reserved and are not.

Reservations of instances share its hosts: these stay in it, and are in the aggregates of such reservations as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from blazar.clouds.ports.compute import Aggregate, AggregateList, Compute, Hypervisor, Server
from blazar.clouds.side_by_side import ask_each
from blazar.model.base.errors import CloudUnavailable, NotFound
from blazar.model.base.reasons import Cause, ReasonCode, joint_cause, spell_count
from blazar.model.base.values import dataclass, field
from blazar.model.resources.resource import Resource
from blazar.resources.contract.parameters import by_service
from blazar.resources.hosts.aggregates.membership import AggregateMembership, AggregateNames
from blazar.resources.hosts.preemptibles import is_preemptible

T = TypeVar("T")

HOSTS_AT_A_TIME = 16
"""Hosts of one reservation that are worked on at the same time."""

NAMED_IN_REASON = 3
"""How many of the waiting hosts a reason names."""


class HostWaits(CloudUnavailable):
    """One host cannot be assigned yet; others can."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What is unfinished: how many preemptible servers are being deleted, and why other hosts wait, by service name."""

    evicted: int = 0
    waiting: Mapping[str, HostWaits] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """Return the reason for operators."""
        more = len(self.waiting) - NAMED_IN_REASON
        texts = [wait.message for wait in self.waiting.values()][:NAMED_IN_REASON]
        named_hosts = [*texts, *([f"{more} more hosts wait"] if more > 0 else [])]
        return "; ".join(
            [f"{spell_count(self.evicted, 'preemptible server')} being deleted"] * bool(self.evicted) + named_hosts
        )

    def cause(self, resources: Iterable[Resource]) -> Cause:
        """Return what everybody may know of it; ``resources`` are the hosts."""
        waiting = by_service(resources, self.waiting)
        evicting = Cause(ReasonCode.RESOURCE_NOT_READY)
        return joint_cause([evicting, *(wait.cause.at(id_) for id_, wait in waiting.items())])


class NotInFreepool(NotFound):
    """Hosts cannot be assigned because they are not in the freepool."""

    def __init__(self, hosts: Iterable[str], freepool: str) -> None:
        self.reasons = {
            host: f"host {host} is not in the aggregate {freepool!r}; add it, so that it can be assigned"
            for host in hosts
        }
        super().__init__("; ".join(self.reasons.values()))


class Freepool:
    """The hosts of the freepool, and those that reservations of instances share."""

    def __init__(self, compute: Compute, names: AggregateNames) -> None:
        self._compute = compute
        self._names = names
        self._members = AggregateMembership(compute, names)

    def aggregate(self) -> Aggregate:
        """Return the freepool; NotFound, with the remedy, if the cloud has none."""
        return self._members.freepool(self._compute.aggregates())

    def ensure_in(self, *hosts: str) -> bool:
        """Ensure that hosts are in the freepool; return whether one had to be added."""
        aggregate = self.aggregate()
        missing = [host for host in hosts if host not in aggregate.hosts]
        for host in missing:
            self._members.add_host(aggregate, host)
        return bool(missing)

    def ensure_out(self, *hosts: str) -> None:
        """Ensure that hosts are not in the freepool."""
        aggregate = self.aggregate()
        for host in hosts:
            if host in aggregate.hosts:
                self._members.remove_host_if_known(aggregate, host)

    def places_of_hosts(self, aggregates: AggregateList) -> Mapping[str, str | None] | None:
        """Return the place of each host, by service name: None for the freepool, else the name of the aggregate.

        Hosts in none of these ``aggregates`` are left out. Returns None if the cloud has no freepool.
        """
        freepool = aggregates.named(self._names.freepool)
        if freepool is None:
            return None
        others = {
            host: a.name for a in aggregates if self._members.is_ours(a) and a.id != freepool.id for host in a.hosts
        }
        return {**dict.fromkeys(freepool.hosts), **others}

    def open_hosts(self) -> tuple[Hypervisor, ...]:
        """Return the hypervisors that are up, enabled and open to all: neither in the freepool nor reserved."""
        aggregates = self._compute.aggregates()
        kept = {host for aggregate in aggregates if self._members.is_ours(aggregate) for host in aggregate.hosts}
        return tuple(h for h in self._compute.hypervisors() if h.up and h.enabled and h.service_name not in kept)

    def share_hosts(self, aggregate: Aggregate, *, hosts: Iterable[str], aggregates: AggregateList) -> None:
        """Ensure that hosts are in an aggregate that shares them with others: they stay in the freepool.

        ``aggregates`` are all of the cloud's, just read. Raises NotInFreepool if hosts are not in the freepool, and
        CloudUnavailable while one is in the aggregate of a host reservation.
        """
        missing = [host for host in hosts if host not in aggregate.hosts]
        self.check_all_in_freepool(missing, aggregate, aggregates)
        for host in missing:
            self.check_in_freepool(host, aggregate, aggregates)
        for_each(missing, lambda host: self._members.add_host(aggregate, host))

    def stop_sharing_hosts(self, aggregate: Aggregate, *, hosts: Iterable[str]) -> None:
        """Ensure that hosts are not in an aggregate that shares them with others."""
        for host in hosts:
            if host in aggregate.hosts:
                self._members.remove_host_if_known(aggregate, host)

    def delete_sharing_aggregate(self, aggregate: Aggregate) -> None:
        """Ensure that an aggregate that shares hosts with others is gone; it stays if it has hosts unknown to Nova."""
        gone = for_each(aggregate.hosts, lambda host: self._members.remove_host_if_known(aggregate, host))
        if all(gone.values()):
            self._members.delete_aggregate(aggregate)

    def check_all_in_freepool(self, hosts: Iterable[str], aggregate: Aggregate, aggregates: AggregateList) -> None:
        """Raise NotInFreepool if hosts are neither in the freepool nor reserved: waiting does not help."""
        lost = [h for h in hosts if all(a.id == aggregate.id for a in self._members.ours_with(h, aggregates))]
        if lost and self._members.freepool(aggregates):
            raise NotInFreepool(lost, self._names.freepool)

    def check_in_freepool(self, host: str, aggregate: Aggregate, aggregates: AggregateList) -> None:
        """Raise NotInFreepool if a host is not in the freepool, and HostWaits while a reservation still has it."""
        others = [a for a in aggregates.with_host(host) if a.id != aggregate.id]
        foreign = [a for a in others if (a.availability_zone or "").startswith(self._names.zone_prefix)]
        if foreign:
            raise HostWaits(
                f"host {host} is still in the aggregate of reservation {foreign[0].name}",
            ).because(ReasonCode.PREVIOUS_USER_NOT_LEFT)
        if host not in self._members.freepool(aggregates).hosts:
            raise NotInFreepool((host,), self._names.freepool)


def check_preemptible(host: str, servers: Iterable[Server]) -> None:
    """Raise HostWaits if servers on a host are not preemptible: no other server is deleted to make room."""
    others = [server for server in servers if not is_preemptible(server)]
    if others:
        belong = "belongs" if len(others) == 1 else "belong"
        raise HostWaits(
            f"host {host} runs {spell_count(len(others), 'server')} that {belong} to no reservation, as "
            f"{others[0].id}; move or delete them",
        ).because(ReasonCode.SERVER_IN_THE_WAY)


def for_each(hosts: Iterable[str], call: Callable[[str], T]) -> Mapping[str, T]:
    """Return what calls return for hosts, by host; several of them at the same time."""
    return ask_each({host: host for host in hosts}, call, callers=HOSTS_AT_A_TIME)
