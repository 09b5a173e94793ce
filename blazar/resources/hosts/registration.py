# SPDX-License-Identifier: Apache-2.0
"""Hosts entering and leaving the service: the freepool, and the reservation provider in Placement."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Mapping

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Hypervisor
from blazar.model.base.errors import Conflict, NotFound
from blazar.model.base.reasons import spell_count
from blazar.model.base.values import dataclass
from blazar.model.maintenance.windows import MARK
from blazar.model.resources.resource import PropertyValue, ResourceDetails
from blazar.resources.contract.kind import Holders, InUse
from blazar.resources.hosts.aggregates.freepool import Freepool
from blazar.resources.hosts.aggregates.membership import AggregateNames

Attributes = Mapping[str, PropertyValue]
"""The attributes of a host on the calendar, as ``attributes_of`` makes them."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Why a host has failed (None: it is healthy), whether it is in the freepool or the aggregate of a reservation, and
    which reservations in use hold it without having it in their aggregate. The latter two are unknown without a
    freepool. ``pooled``: it is in the freepool.
    """

    failure: str | None
    in_aggregate: bool | None
    lacking: frozenset[str]
    pooled: bool = False


class HostRegistration:
    """Ensures what a registered host has in the cloud."""

    def __init__(self, cloud: Cloud, names: AggregateNames) -> None:
        self._cloud = cloud
        self._names = names
        self._freepool = Freepool(cloud.compute, names)

    def find(self, *, id: str | None, name: str | None) -> Hypervisor:
        """Return the hypervisor with exactly this id, or else this name; NotFound."""
        if id is not None:
            return self._cloud.compute.hypervisor(id=id)
        return self._cloud.compute.hypervisor(hostname=name)

    def hypervisors(self) -> tuple[Hypervisor, ...]:
        """Return all hypervisors of the cloud."""
        return self._cloud.compute.hypervisors()

    def count_servers(self) -> Mapping[str, int]:
        """Return how many servers run on each host that has some, by service name."""
        return self._cloud.compute.count_servers()

    def count_arrivals(self, host: Hypervisor) -> int:
        """Return how many servers are on a host or on their way there, as booted or moved ones.

        Nova lists a server where it is. What is to arrive has its room in Placement, as what is in the recycle bin.
        """
        servers = {server.id for server in self._cloud.compute.servers_on(host.service_name)}
        room = self._cloud.evacuation.rooms([host.hypervisor_hostname]).get(host.hypervisor_hostname)
        return len(servers | room.consumers.keys() if room is not None else servers)

    def disable_services(self, services: Collection[str], mark: str) -> None:
        """Ensure that the nova-computes of hosts are disabled; those that were enabled get the mark as the reason.

        Those that Nova does not know are left out.
        """
        for hypervisor in self.hypervisors():
            if hypervisor.service_name in services and hypervisor.enabled:
                self._cloud.compute.disable_service(hypervisor.service_name, mark)

    def enable_services(self, services: Mapping[str, str | None], mark: str) -> None:
        """Ensure that no nova-compute is disabled for this reason: it gets the other one given for it, or is enabled.

        What anybody has disabled for another reason stays disabled.
        """
        for hypervisor in self.hypervisors():
            if hypervisor.service_name in services and not hypervisor.enabled and hypervisor.disabled_reason == mark:
                other = services[hypervisor.service_name]
                if other is None:
                    self._cloud.compute.enable_service(hypervisor.service_name)
                else:
                    self._cloud.compute.disable_service(hypervisor.service_name, other)

    def details(self, hostname: str, attributes: Attributes) -> ResourceDetails:
        """Return the attributes, inventory and traits of a host; NotFound if Placement does not know it."""
        found = self.details_of({hostname: attributes})
        if hostname not in found:
            raise NotFound(f"Placement has no resource provider {hostname}")
        return found[hostname]

    def details_of(self, hosts: Mapping[str, Attributes]) -> Mapping[str, ResourceDetails]:
        """Return the details of hosts, by hostname; those that Placement does not know are left out."""
        inventories = self._cloud.placement.inventories(list(hosts))
        return {name: ResourceDetails(hosts[name], inventories[name]) for name in hosts if name in inventories}

    def is_assigned(self, hypervisor: Hypervisor) -> bool:
        """Return whether the availability zone that Nova shows for a host is that of a reservation."""
        return hypervisor.availability_zone.startswith(self._names.zone_prefix)

    def find_standings(
        self,
        hypervisors: Collection[Hypervisor],
        holders: Holders,
        in_use: InUse,
        evacuable: frozenset[str] = frozenset(),
    ) -> Mapping[str, Standing]:
        """Return the health and place of hypervisors, by hostname; makes one call.

        A host is healthy if it is up, enabled, and in the freepool or in the aggregate of a reservation that holds it
        (``holders``). ``in_use`` has to be read before the call: a host enters the aggregate of a reservation before
        the reservation is in use. The ``evacuable`` hosts are healthy in no aggregate, too.
        """
        aggregates = self._cloud.compute.aggregates()
        places = self._freepool.places_of_hosts(aggregates)
        members = {aggregate.name: aggregate.hosts for aggregate in aggregates}
        users: dict[str, set[str]] = defaultdict(set)
        for reservation, names in in_use.items():
            for name in names:
                users[name].add(reservation)
        place_of = {h.hypervisor_hostname: (places or {}).get(h.service_name) for h in hypervisors}
        strange = {place for name, place in place_of.items() if place is not None and place not in users[name]}
        held = {**in_use, **(holders(strange) if strange else {})}

        def standing(host: Hypervisor) -> Standing:
            lacking = (r for r in users[host.hypervisor_hostname] if host.service_name not in members.get(r, ()))
            found = places is not None and host.service_name in places
            at_home = host.hypervisor_hostname in evacuable and not found
            return Standing(
                failure=_failure_of_host(host, None if at_home else places, held, self._names.freepool),
                in_aggregate=None if places is None else found or at_home,
                lacking=frozenset(() if places is None else lacking),
                pooled=found and place_of[host.hypervisor_hostname] is None,
            )

        return {h.hypervisor_hostname: standing(h) for h in hypervisors}

    def check_freepool(self) -> None:
        """Raise NotFound, with the remedy, if the cloud has no freepool, without which no host can be judged."""
        self._freepool.aggregate()

    def check_empty(self, host: str, service_name: str) -> None:
        """Raise Conflict if the host runs servers."""
        servers = self._cloud.compute.servers_on(service_name)
        if servers:
            raise Conflict(
                f"host {host} runs {spell_count(len(servers), 'server')}, as {servers[0].id}; move or delete them, "
                "then retry",
                code="host_has_servers",
            )

    def ensure_entered(self, hostname: str, service_name: str) -> bool:
        """Ensure that the host has a reservation provider and is in the freepool; return whether one was missing."""
        made = False
        if self._cloud.placement.reservation_provider(hostname) is None:
            try:
                self._cloud.placement.create_reservation_provider(hostname)
                made = True
            except Conflict:
                if self._cloud.placement.reservation_provider(hostname) is None:
                    raise
        return self._freepool.ensure_in(service_name) or made

    def ensure_left(self, service_name: str) -> None:
        """Ensure that the host is not in the freepool. One that Nova no longer knows may stay there.

        Its reservation provider stays, empty, for the next registration: a nova-compute that has seen it (Nova 34)
        reads its allocations periodically, and can boot no server for minutes after its deletion. Nova itself deletes
        it together with the compute service.
        """
        try:
            self._freepool.ensure_out(service_name)
        except NotFound:
            if any(h.service_name == service_name for h in self._cloud.compute.hypervisors()):
                raise


def _failure_of_host(
    hypervisor: Hypervisor,
    places: Mapping[str, str | None] | None,
    held: Mapping[str, Collection[str]],
    freepool: str,
) -> str | None:
    if not hypervisor.up:
        return "its nova-compute is down"
    if not hypervisor.enabled and not (hypervisor.disabled_reason or "").startswith(MARK):
        return "its nova-compute is disabled"
    if places is not None and hypervisor.service_name not in places:
        mend = shlex.join(("openstack", "aggregate", "add", "host", freepool, hypervisor.service_name))
        return f"it is neither in the aggregate {freepool!r} nor in that of a reservation ({mend})"
    reservation = places[hypervisor.service_name] if places is not None else None
    if reservation is not None and hypervisor.hypervisor_hostname not in held.get(reservation, ()):
        return f"it is in the aggregate of reservation {reservation}, which does not hold it"
    return None


def attributes_of(hypervisor: Hypervisor) -> Attributes:
    """Return the attributes that the API shows: its names and units (MiB, GiB), sizes as Nova reports them."""
    return {
        "hypervisor_hostname": hypervisor.hypervisor_hostname,
        "service_name": hypervisor.service_name,
        "hypervisor_type": hypervisor.hypervisor_type,
        "hypervisor_version": hypervisor.hypervisor_version,
        "vcpus": hypervisor.vcpus,
        "memory_mb": hypervisor.memory_mb,
        "local_gb": hypervisor.local_gb,
        "cpu_info": hypervisor.cpu_info,
        "availability_zone": hypervisor.availability_zone,
        "status": None,
    }


HOST_ID = "^([A-Za-z0-9][A-Za-z0-9_.-]{0,39}:)?[0-9]+$"
HOST_ID_DESCRIPTION = "the number of the hypervisor in Nova, of another region than the first as RegionTwo:7"


def normalize_host_id(given: str | float) -> str:
    """Return an id that matches ``HOST_ID``, or is a whole number, as it is stored: without leading zeros."""
    # For a JSON schema 7.0 is an integer, too.
    if isinstance(given, float):
        given = int(given)
    region, colon, number = str(given).rpartition(":")
    return f"{region}{colon}{int(number)}"
