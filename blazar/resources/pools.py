# SPDX-License-Identifier: Apache-2.0
"""Host aggregates as pools: the freepool, and one pool a reservation.

Nova (34) refuses to let a host into an aggregate with an availability zone while another aggregate gives the host
another zone, and to change the zone of a host that runs servers. So a host leaves its operator's zone aggregate when
it is handed over and returns to it when it is taken back; where it came from is kept in the metadata of the
reservation's aggregate, so that nothing has to be remembered elsewhere. A host that Nova does not let into its zone yet
does not delay the end of its lease: it waits in the freepool, the aggregate stays with its metadata, and the sweep,
a later change of the reservation or the next reservation of the host returns it.

The order of the steps leaves no moment in which a host is in no pool: a host enters the reservation's pool before
it leaves the freepool, and enters the freepool before it leaves the reservation's pool. A host in no pool would
be open to everybody's servers.

Preemptible servers on a host are deleted before it is handed over, and nobody else's. So that no new ones come in
between, the host is closed to them first: the scheduler filter heeds a key in the freepool's metadata. A host that
returns is closed to them until it is in its zone again.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from blazar.clouds.ports import Aggregate, Compute, Hypervisor, Server
from blazar.model.errors import CloudRefused, CloudUnavailable, Conflict, NotFound
from blazar.resources.preemptibles import is_preemptible

LOG = logging.getLogger(__name__)

FORMER_ZONE = "blazar:zone:"
"""Prefix of the metadata key that names, for a host, the zone aggregates to which it returns (ids, with commas)."""


CLOSED = "blazar:closed:"
"""Prefix of the key in the freepool's metadata by which a host is closed to new preemptible servers; the value is the
reservation that takes it over or gives it back."""

TOLD = 3
"""Hosts that a reason names, of all that wait."""


class HostWaits(CloudUnavailable):
    """One host can not be handed over yet; others can."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """What is left: how many preemptible servers are being deleted, and why other hosts wait."""

    evicted: int = 0
    waiting: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """Return what to tell people."""
        more = len(self.waiting) - TOLD
        told = [*self.waiting[:TOLD], *([f"{more} more hosts wait"] if more > 0 else [])]
        return "; ".join([f"{self.evicted} preemptible servers are being deleted"] * bool(self.evicted) + told)


@dataclass(frozen=True, slots=True)
class PoolNames:
    """Names that operators, the scheduler filter and other tools know; defaults as in ``blazar.conf``."""

    freepool: str = "freepool"
    zone_prefix: str = "blazar_"
    owner_key: str = "blazar:owner"


class NotAtHand(NotFound):
    """Hosts are not where reservations take them from."""

    def __init__(self, hosts: Iterable[str], freepool: str) -> None:
        self.reasons = {
            host: f"host {host} is not in the aggregate {freepool!r}; it must be there to be handed over"
            for host in hosts
        }
        super().__init__("; ".join(self.reasons.values()))


class HostPools:
    """Moves hosts between the freepool and the pools of reservations."""

    def __init__(self, compute: Compute, names: PoolNames) -> None:
        self._compute = compute
        self._names = names

    def freepool(self) -> Aggregate:
        """Return the freepool; NotFound with the remedy if the cloud has none."""
        return self._freepool_of(self._compute.aggregates())

    def ensure_in_freepool(self, host: str) -> bool:
        """Ensure that the host is in the freepool; tell whether it had to be put there."""
        pool = self.freepool()
        if host in pool.hosts:
            return False
        self._add(pool, host)
        return True

    def ensure_out_of_freepool(self, host: str) -> None:
        """Ensure that the host is not in the freepool."""
        pool = self.freepool()
        if host in pool.hosts:
            self._remove_if_known(pool, host)

    def ensure_pool(self, reservation_id: str, *, project_id: str) -> Aggregate:
        """Ensure the reservation's aggregate: named by its id, with a zone of its own and the owner in its metadata."""
        owner = {self._names.owner_key: project_id}
        pool = self._compute.aggregate(reservation_id)
        if pool is None:
            try:
                return self._compute.create_aggregate(reservation_id, self._names.zone_prefix + reservation_id, owner)
            except Conflict:
                # A lost answer to an earlier try, or another manager's doing.
                pool = self._compute.aggregate(reservation_id)
                if pool is None:
                    raise
        if pool.metadata.get(self._names.owner_key) != project_id:
            self._compute.set_aggregate_metadata(pool.id, owner)
        return pool

    def hosts_of(self, reservation_id: str) -> tuple[str, ...]:
        """Return the service names of the hosts in the reservation's pool; none if there is no pool."""
        pool = self._compute.aggregate(reservation_id)
        return pool.hosts if pool else ()

    def reservations(self) -> frozenset[str]:
        """Return the ids of the reservations that have an aggregate with a zone of its own, or keep a host closed."""
        prefix = self._names.zone_prefix
        aggregates = self._compute.aggregates()
        freepool = _named(aggregates, self._names.freepool)
        closed = {} if freepool is None else freepool.metadata
        return frozenset(
            (
                *(a.name for a in aggregates if a.availability_zone == prefix + a.name),
                *(whose for key, whose in closed.items() if key.startswith(CLOSED)),
            )
        )

    def pooled_hosts(self, aggregates: Iterable[Aggregate]) -> Mapping[str, str | None] | None:
        """Return where hosts are, by service name: None in the freepool, else the name of a reservation's aggregate.

        Hosts that are in none of these ``aggregates`` are left out. None without a freepool.
        """
        freepool = _named(aggregates, self._names.freepool)
        if freepool is None:
            return None
        others = {host: a.name for a in aggregates if self._is_pool(a) and a.id != freepool.id for host in a.hosts}
        return {**dict.fromkeys(freepool.hosts), **others}

    def open_hosts(self) -> tuple[Hypervisor, ...]:
        """Return the hypervisors that are at work and in no pool: anybody's servers may run there."""
        aggregates = self._compute.aggregates()
        kept = {host for aggregate in aggregates if self._is_pool(aggregate) for host in aggregate.hosts}
        return tuple(h for h in self._compute.hypervisors() if h.up and h.enabled and h.service_name not in kept)

    def confirm_moves_from(self, host: str) -> int:
        """Confirm all cold moves of servers away from a host, which keep room on it until then; return their number."""
        confirmed = 0
        for server_id in self._compute.moves_to_confirm(host):
            try:
                self._compute.confirm_migration(server_id)
            except (NotFound, Conflict):
                # Deleted or confirmed a moment ago, or of a server that needs its operator: nothing to wait for.
                continue
            confirmed += 1
        return confirmed

    def hand_over(self, reservation_id: str, *, hosts: Iterable[str], project_id: str) -> HandOver:
        """Ensure that the hosts are in the reservation's pool and not in the freepool; return what is left to do.

        Each host that can be is handed over, whatever keeps the others: preemptible servers, which are deleted; a
        reservation that has not left yet; servers that are not ours to sweep away. Hosts in the pool beside these leave
        it. Raises NotAtHand at the end if hosts are in no pool (somebody took them away by hand, or Nova lost them),
        and Conflict if a host that is to leave runs servers.
        """
        wanted = tuple(hosts)
        aggregates = self._compute.aggregates()
        freepool = self._freepool_of(aggregates)
        pool = _named(aggregates, reservation_id) or self.ensure_pool(reservation_id, project_id=project_id)
        evicted, waiting = 0, []
        lost: dict[str, str] = {}
        for host in wanted:
            try:
                evicted += self._take_over(host, pool, freepool, aggregates)
            except HostWaits as wait:
                waiting.append(wait.message)
            except NotAtHand as error:
                lost |= error.reasons
        if lost:
            raise NotAtHand(lost, self._names.freepool)
        leaving = [host for host in pool.hosts if host not in wanted]
        for host in leaving:
            self._check_empty(host, pool)
        if astray := frozenset((*leaving, *_former_zones(pool))).difference(wanted):
            self._return_hosts(pool, leaving, aggregates, astray)
        self._reopen(reservation_id, aggregates, frozenset(freepool.hosts).difference(wanted))
        return HandOver(evicted, tuple(waiting))

    def bring_back(self, reservation_id: str, *, hosts: Iterable[str], project_id: str) -> None:
        """Ensure that hosts which a change of the reservation has let go are in its pool again."""
        aggregates = self._compute.aggregates()
        free = self._freepool_of(aggregates).hosts
        pool = _named(aggregates, reservation_id)
        left = [host for host in hosts if host in free]
        if left:
            here = pool.hosts if pool else ()
            self.hand_over(reservation_id, hosts=dict.fromkeys((*here, *left)), project_id=project_id)

    def admit(self, pool: Aggregate, *, hosts: Iterable[str], aggregates: tuple[Aggregate, ...]) -> None:
        """Ensure that hosts are in an aggregate that shares them with others: they stay in the freepool.

        ``aggregates`` are all that there are, read a moment ago. Raises NotAtHand if hosts are not in the freepool, and
        CloudUnavailable while one is in the pool of a reservation that has it alone.
        """
        missing = [host for host in hosts if host not in pool.hosts]
        self._check_all_at_hand(missing, pool, aggregates)
        for host in missing:
            self._check_at_hand(host, pool, aggregates)
            self._add(pool, host)

    def dismiss(self, pool: Aggregate, *, hosts: Iterable[str]) -> None:
        """Ensure that hosts are not in an aggregate that shares them with others."""
        for host in hosts:
            if host in pool.hosts:
                self._remove_if_known(pool, host)

    def dissolve(self, pool: Aggregate) -> None:
        """Ensure that an aggregate that shares hosts with others is gone; hosts that the cloud has lost keep it."""
        gone = [self._remove_if_known(pool, host) for host in pool.hosts]
        if all(gone):
            self._delete(pool)

    def take_back(self, reservation_id: str, *, hosts: frozenset[str] | None, handed_over: Iterable[str] = ()) -> int:
        """Ensure that hosts of the reservation's pool are empty and back in the freepool.

        ``hosts`` None means all of them, and that the pool itself goes too. Those ``handed_over`` that are in no pool
        at all (somebody deleted the aggregate by hand) return to the freepool as they are. Returns the number of
        servers that are still being deleted: their hosts stay where they are until a later call finds them gone.
        """
        aggregates = self._compute.aggregates()
        self._reopen(reservation_id, aggregates, hosts)
        # Before hosts return to their zones, which Nova may refuse: in no pool, one is open to everybody's servers.
        kept = {host for aggregate in aggregates if self._is_pool(aggregate) for host in aggregate.hosts}
        for host in handed_over:
            if host not in kept:
                LOG.warning("Host %s was in no pool when reservation %s ended; it returns", host, reservation_id)
                self._add_if_known(self._freepool_of(aggregates), host)
        left = 0
        for pool in [aggregate for aggregate in aggregates if aggregate.name == reservation_id]:
            left += self._empty(pool, aggregates, hosts)
        return left

    def _empty(self, pool: Aggregate, aggregates: tuple[Aggregate, ...], hosts: frozenset[str] | None) -> int:
        leaving = pool.hosts if hosts is None else tuple(host for host in pool.hosts if host in hosts)
        left = 0
        occupied: dict[str, Sequence[Server]] = {}
        for host in leaving:
            left += self.confirm_moves_from(host)
            occupied[host] = self._compute.servers_on(host)
        if any(occupied.values()):
            if hosts is None:
                self._close(pool)
            # Looked at once more right before servers are deleted: what is in the pool no more has another user.
            still_here = next((a.hosts for a in self._compute.aggregates() if a.id == pool.id), ())
            for host in leaving:
                if host not in still_here:
                    continue
                for server in occupied[host]:
                    self._compute.delete_server(server.id)
                left += len(self._compute.servers_on(host)) if occupied[host] else 0
            leaving = tuple(host for host in leaving if host in still_here)
        if left:
            return left
        # Also for hosts that a crash stopped on their way in or out, after the removal and before the return.
        if self._return_hosts(pool, leaving, aggregates, hosts) and hosts is None:
            self._delete(pool)
        return 0

    def _check_empty(self, host: str, pool: Aggregate) -> None:
        """Raise Conflict if a host can not leave a pool that goes on: somebody's server is on it."""
        self.confirm_moves_from(host)
        servers = self._compute.servers_on(host)
        if servers:
            raise Conflict(
                f"host {host} runs {len(servers)} servers of reservation {pool.name}, as {servers[0].id}; move or "
                f"delete them first"
            )

    def _return_hosts(
        self, pool: Aggregate, leaving: Sequence[str], aggregates: tuple[Aggregate, ...], hosts: frozenset[str] | None
    ) -> bool:
        """Move hosts that are ``leaving`` from a pool to the freepool, and all ``hosts`` (None: any) to their zones.

        Return whether nothing is left to do, neither for these nor for those that were on their way before.
        """
        former = {host: ids for host, ids in _former_zones(pool).items() if hosts is None or host in hosts}
        if not (leaving or former):
            return True
        freepool = self._freepool_of(aggregates)
        closed = {host: freepool.metadata.get(CLOSED + host, pool.name) for host in former}
        # Nova lets no host with servers into a zone, and preemptible ones come as soon as it is in the freepool alone.
        if closing := {CLOSED + host: pool.name for host in former if CLOSED + host not in freepool.metadata}:
            self._compute.set_aggregate_metadata(freepool.id, closing)
        out = True
        for host in leaving:
            if host not in freepool.hosts:
                self._add_if_known(freepool, host)
            # Nova refuses, too, if somebody has booted a server in between, and the host is in both until then.
            out = self._remove_if_known(pool, host) and out
        others = [a for a in aggregates if a.id != pool.id]
        home = [host for host, ids in former.items() if self._is_returned(host, ids, others)]
        if opened := {CLOSED + host: None for host in home if closed[host] == pool.name}:
            self._compute.set_aggregate_metadata(freepool.id, opened)
        done = out and len(home) == len(former)
        if home and not (done and hosts is None):
            # The pool goes on, and may not remember for ever what is up to the operator again.
            self._compute.set_aggregate_metadata(pool.id, {FORMER_ZONE + host: None for host in home})
        return done

    def _close(self, pool: Aggregate) -> None:
        """Let nobody boot into a reservation that ends: what the scheduler filter asks for goes from the metadata."""
        keys = {key: None for key in pool.metadata if not key.startswith(FORMER_ZONE)}
        if keys:
            self._compute.set_aggregate_metadata(pool.id, keys)

    def _take_over(self, host: str, pool: Aggregate, freepool: Aggregate, aggregates: tuple[Aggregate, ...]) -> int:
        """Ensure one host in the pool; return how many preemptible servers have to go first."""
        closed = CLOSED + host in freepool.metadata
        if host not in pool.hosts:
            self._check_at_hand(host, pool, aggregates)
            servers = self._compute.servers_on(host)
            if servers:
                self._check_preemptible(host, servers)
                if not closed:
                    self._compute.set_aggregate_metadata(freepool.id, {CLOSED + host: pool.name})
                    closed = True
                LOG.info("Host %s is needed by reservation %s: %s", host, pool.name, _listed("deleting", servers))
                for server in servers:
                    self._compute.delete_server(server.id)
                if left := len(self._compute.servers_on(host)):
                    return left
            try:
                self._bring_in(host, pool, freepool, aggregates)
            except Conflict as error:
                # Somebody has booted in between, or given the host a zone: the next look tells.
                if left := len(self._compute.servers_on(host)):
                    return left
                raise HostWaits(f"host {host} cannot be handed over yet: {error.message}") from error
        if host in freepool.hosts:
            self._remove(freepool, host)
        if closed:
            self._compute.set_aggregate_metadata(freepool.id, {CLOSED + host: None})
        return 0

    def _check_preemptible(self, host: str, servers: Sequence[Server]) -> None:
        others = [server for server in servers if not is_preemptible(server)]
        if others:
            raise HostWaits(
                f"host {host} runs {len(others)} servers that belong to no reservation, as {others[0].id}; move or "
                f"delete them"
            )

    def _reopen(self, reservation_id: str, aggregates: tuple[Aggregate, ...], hosts: frozenset[str] | None) -> None:
        """Let preemptible servers onto hosts again that a reservation has closed and does not need any more.

        Those that are on their way to their zones stay closed until they are there.
        """
        freepool, pool = _named(aggregates, self._names.freepool), _named(aggregates, reservation_id)
        if freepool is None:
            return
        returning = _former_zones(pool) if pool else {}
        closed = {key.removeprefix(CLOSED): whose for key, whose in freepool.metadata.items() if key.startswith(CLOSED)}
        ours = {
            CLOSED + host: None
            for host, whose in closed.items()
            if whose == reservation_id and host not in returning and (hosts is None or host in hosts)
        }
        if ours:
            self._compute.set_aggregate_metadata(freepool.id, ours)

    def _bring_in(self, host: str, pool: Aggregate, freepool: Aggregate, aggregates: tuple[Aggregate, ...]) -> None:
        others = [a for a in aggregates if host in a.hosts and a.id not in (pool.id, freepool.id)]
        zones = [a for a in others if a.availability_zone]
        known = _former_zones(pool).get(host, frozenset())
        former = known | {a.id for a in zones}
        if not former:
            # Another reservation may have given it back, and Nova not have let it into its zone since.
            former = frozenset().union(*(_former_zones(a).get(host, ()) for a in aggregates))
        if former != known:
            # Written down before the first removal: after a crash in between, the way back is known.
            text = ",".join(str(identifier) for identifier in sorted(former))
            self._compute.set_aggregate_metadata(pool.id, {FORMER_ZONE + host: text})
        for zone in zones:
            self._remove(zone, host)
        self._add(pool, host)

    def _check_all_at_hand(self, hosts: Iterable[str], pool: Aggregate, aggregates: tuple[Aggregate, ...]) -> None:
        """Raise NotAtHand if hosts are nowhere where reservations take them from: waiting would not help."""
        kept = {host for a in aggregates if self._is_pool(a) and a.id != pool.id for host in a.hosts}
        lost = [host for host in hosts if host not in kept]
        if lost and self._freepool_of(aggregates):
            raise NotAtHand(lost, self._names.freepool)

    def _check_at_hand(self, host: str, pool: Aggregate, aggregates: tuple[Aggregate, ...]) -> None:
        others = [a for a in aggregates if host in a.hosts and a.id != pool.id]
        foreign = [a for a in others if (a.availability_zone or "").startswith(self._names.zone_prefix)]
        if foreign:
            raise HostWaits(f"host {host} is still in the pool of reservation {foreign[0].name}")
        if host not in self._freepool_of(aggregates).hosts:
            raise NotAtHand((host,), self._names.freepool)

    def _is_returned(self, host: str, former: frozenset[int], aggregates: Iterable[Aggregate]) -> bool:
        """Ensure that a host is in its former zone, and tell whether it is; nobody's end waits until it can be."""
        zones = [a for a in aggregates if a.availability_zone]
        if any(host in zone.hosts for zone in zones if zone.id not in former):
            # Its operator has given it a new zone in the meantime, or another reservation has it and knows the way.
            return True
        try:
            for zone in zones:
                # An aggregate that its operator deleted in the meantime is nothing to return to.
                if zone.id in former and host not in zone.hosts:
                    self._add_if_known(zone, host)
        except (Conflict, NotFound, CloudRefused) as error:
            LOG.warning("Host %s cannot return to its availability zone yet: %s", host, error.message)
            return False
        return True

    def _is_pool(self, aggregate: Aggregate) -> bool:
        zone = aggregate.availability_zone or ""
        return aggregate.name == self._names.freepool or zone.startswith(self._names.zone_prefix)

    def _freepool_of(self, aggregates: tuple[Aggregate, ...]) -> Aggregate:
        pool = _named(aggregates, self._names.freepool)
        if pool is None:
            raise NotFound(
                f"the cloud has no host aggregate named {self._names.freepool!r}; create it (without an availability "
                f"zone), or name yours in [nova] aggregate_freepool_name"
            )
        return pool

    def _add_if_known(self, pool: Aggregate, host: str) -> None:
        """Add a host, unless the cloud has lost it meanwhile: an end that has begun comes to its end all the same."""
        try:
            self._add(pool, host)
        except NotFound as error:
            if self._is_known(host):
                raise
            LOG.warning("Host %s does not return to the aggregate %s: %s", host, pool.name, error.message)

    def _add(self, pool: Aggregate, host: str) -> None:
        try:
            self._compute.add_host(pool.id, host)
        except Conflict:
            # In it already: a lost answer to an earlier try, or another manager's doing. Any other conflict stands.
            if not self._is_in(pool, host):
                raise

    def _remove(self, pool: Aggregate, host: str) -> None:
        try:
            self._compute.remove_host(pool.id, host)
        except NotFound:
            if self._is_in(pool, host):
                raise

    def _remove_if_known(self, pool: Aggregate, host: str) -> bool:
        """Take a host out, and tell whether it is: one that the cloud has lost can be neither used nor taken out."""
        try:
            self._remove(pool, host)
        except NotFound as error:
            if self._is_known(host):
                raise
            LOG.warning("Host %s stays in the aggregate %s: %s", host, pool.name, error.message)
            return False
        return True

    def _delete(self, pool: Aggregate) -> None:
        try:
            self._compute.delete_aggregate(pool.id)
        except NotFound:
            return

    def _is_known(self, host: str) -> bool:
        return any(hypervisor.service_name == host for hypervisor in self._compute.hypervisors())

    def _is_in(self, pool: Aggregate, host: str) -> bool:
        return any(a.id == pool.id and host in a.hosts for a in self._compute.aggregates())


def _former_zones(pool: Aggregate) -> Mapping[str, frozenset[int]]:
    """Return the ids of the zone aggregates to which hosts of a reservation's pool return, by host."""
    return {
        key.removeprefix(FORMER_ZONE): frozenset(int(id_) for id_ in ids.split(",") if id_.isdecimal())
        for key, ids in pool.metadata.items()
        if key.startswith(FORMER_ZONE)
    }


def _listed(what: str, servers: Sequence[Server]) -> str:
    named = ", ".join(f"{server.id} of project {server.project_id}" for server in servers)
    return f"{what} {len(servers)} preemptible servers: {named}"


def _named(aggregates: Iterable[Aggregate], name: str) -> Aggregate | None:
    return next((a for a in aggregates if a.name == name), None)
