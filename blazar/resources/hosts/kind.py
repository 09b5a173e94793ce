# SPDX-License-Identifier: Apache-2.0
"""The kind ``host``: hypervisors that operators register, and how they are polled."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Hypervisor
from blazar.model.base.errors import CloudError, InvalidInput, pointing_at
from blazar.model.resources.changes import Registration
from blazar.model.resources.pages import Candidate
from blazar.model.resources.resource import EVACUABLE, HOST, KindShape, Resource, ResourceDetails
from blazar.resources.contract.kind import CalendarReads, CloudResource, Glance, Kind, Polled
from blazar.resources.contract.parameters import HOST_PROPERTIES, PUBLIC_HOST_PROPERTIES, text_of, truth_of
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.registration import (
    HOST_ID,
    HOST_ID_DESCRIPTION,
    Attributes,
    HostRegistration,
    Standing,
    attributes_of,
)

LOG = logging.getLogger(__name__)


SHAPE = KindShape(
    "host",
    "hosts",
    registration={
        "type": "object",
        "description": "an object with name or id",
        "additionalProperties": False,
        "properties": {
            "name": {
                "type": "string",
                "minLength": 1,
                "maxLength": 255,
                "description": "the hypervisor's hostname",
            },
            "id": {
                "type": "string",
                "pattern": HOST_ID,
                "maxLength": 105,
                "description": HOST_ID_DESCRIPTION,
            },
            EVACUABLE: {
                "type": "boolean",
                "description": "true for a host that anybody uses until a lease of the kind best_effort needs it, "
                "else false",
            },
        },
    },
    attributes={
        "hypervisor_hostname": {"type": "string"},
        "service_name": {"type": "string"},
        "hypervisor_type": {"type": "string"},
        "hypervisor_version": {"type": "integer"},
        "vcpus": {"type": "integer"},
        "memory_mb": {"type": "integer", "description": "MiB"},
        "local_gb": {"type": "integer", "description": "GiB"},
        "cpu_info": {"type": "string", "description": "what Nova says of the processor, in JSON"},
        "availability_zone": {"type": "string"},
        "status": {"type": "null"},
        EVACUABLE: {"type": "boolean", "description": "only of hosts that are emptied for leases"},
    },
    public=PUBLIC_HOST_PROPERTIES,
    shown=("availability_zone", "hypervisor_type"),
)


class Hosts(Kind):
    """Compute hosts. A registered host is in the freepool while no reservation has it.

    One that is registered as ``evacuable`` is not, and everybody's servers use it, until a reservation has it.
    """

    kind = HOST
    own_properties = HOST_PROPERTIES
    usual_type = "physical:host"
    shape = SHAPE

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Hosts:
        """Return the kind as configured."""
        return cls(HostRegistration(cloud, HostSettings.configured(conf).aggregates))

    def __init__(self, registration: HostRegistration) -> None:
        self._registration = registration

    def find(self, request: Registration) -> CloudResource:
        """Return the host with exactly this id, or else this name. InvalidInput, NotFound."""
        host_id, name = (text_of(request.given, key) for key in ("id", "name"))
        if host_id is None and not name:
            raise InvalidInput("give name (the hypervisor's hostname) or id (its number in Nova)")
        evacuable = truth_of(request.given, EVACUABLE)
        with pointing_at("/name" if host_id is None else "/id"):
            return _cloud_resource(self._registration.find(id=host_id, name=name), evacuable=evacuable)

    def candidates(self, registered: Collection[Resource]) -> tuple[Candidate, ...]:
        """Return the hypervisors of the cloud with the number of their servers; three calls to Nova."""
        counts = self._registration.count_servers()
        return tuple(
            Candidate(
                hypervisor.id,
                hypervisor.hypervisor_hostname,
                "down" if not hypervisor.up else "up" if hypervisor.enabled else "disabled",
                counts.get(hypervisor.service_name, 0),
                registration={"name": hypervisor.hypervisor_hostname},
            )
            for hypervisor in self._registration.hypervisors()
        )

    def current(self, resource: Resource) -> CloudResource:
        """Return a host as Nova knows it now, by its name; NotFound."""
        return _cloud_resource(self._registration.find(id=None, name=resource.name), evacuable=resource.evacuable)

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return the attributes, inventory and traits of a host that runs no servers, unless it is evacuable.

        Conflict, NotFound.
        """
        self.check_unused(in_cloud)
        return self._registration.details(in_cloud.name, in_cloud.attributes)

    def check_unused(self, in_cloud: CloudResource) -> None:
        """Raise Conflict if the host runs servers; an evacuable one may."""
        if not _is_evacuable(in_cloud):
            self._registration.check_empty(in_cloud.name, _service_name(in_cloud))

    def enter(self, in_cloud: CloudResource) -> bool:
        """Ensure that the host is in the freepool and has a reservation provider; an evacuable one is not there."""
        if _is_evacuable(in_cloud):
            self._registration.ensure_left(_service_name(in_cloud))
            return False
        return self._registration.ensure_entered(in_cloud.name, _service_name(in_cloud))

    def leave(self, in_cloud: CloudResource) -> None:
        """Ensure that the host is not in the freepool."""
        self._registration.ensure_left(_service_name(in_cloud))

    def close(self, resources: Collection[Resource], mark: str) -> None:
        """Ensure that the nova-computes of hosts are disabled; those that were enabled get the mark as the reason."""
        self._registration.disable_services([str(resource.attributes["service_name"]) for resource in resources], mark)

    def reopen(self, resources: Collection[Resource], mark: str, others: Mapping[int, str]) -> None:
        """Ensure that no nova-compute is disabled for this reason: it is enabled, or has another mark as its reason."""
        by_service = {str(resource.attributes["service_name"]): others.get(resource.id) for resource in resources}
        self._registration.enable_services(by_service, mark)

    def occupants(self, resources: Collection[Resource]) -> Mapping[int, int]:
        """Return how many servers hosts run, by calendar id."""
        counts = self._registration.count_servers()
        return {resource.id: counts.get(str(resource.attributes["service_name"]), 0) for resource in resources}

    def look(self, resource: Resource) -> Glance:
        """Return how a host is now; NotFound if Nova does not know it."""
        host = self._registration.find(id=None, name=resource.name)
        # The servers last: none sets out for a host that is closed.
        occupants = self._registration.count_arrivals(host)
        return Glance(host.up, None if host.enabled else host.disabled_reason or "", occupants)

    def list_awake(self, resources: Collection[Resource]) -> frozenset[int]:
        """Return the hosts whose nova-compute is up."""
        up = {host.hypervisor_hostname for host in self._registration.hypervisors() if host.up}
        return frozenset(resource.id for resource in resources if resource.name in up)

    def poll(self, registered: Collection[Resource], uses: CalendarReads) -> Polled:
        """Return the state of all hosts: two calls to Nova, and one to Placement if it has no changes.

        Evacuable ones that a lease has lost, as when another host took their place, leave the freepool.
        """
        in_use = uses.in_use()
        hypervisors = self._registration.hypervisors()
        evacuable = frozenset(host.name for host in registered if host.evacuable)
        standings = self._registration.find_standings(hypervisors, uses.holders, in_use, evacuable)
        for host in registered:
            standing = standings.get(host.name)
            if standing is not None and standing.failure is None and standing.lacking:
                uses.report_lacking(host, standing.lacking)
        self._take_unheld_from_freepool(
            [h for h in registered if h.evacuable and h.name in standings and standings[h.name].pooled], uses
        )
        try:
            details = self._changed_details(hypervisors, registered)
        except CloudError as error:
            # Which hosts are up is known even if their capacity is not.
            LOG.warning("Hosts could not be updated from Nova and Placement; the next poll retries: %s", error.message)
            details = {}
        return Polled({name: standing.failure for name, standing in standings.items()}, details)

    def refresh(self, resource: Resource, uses: CalendarReads, prepare: Callable[[CloudResource], None]) -> Polled:
        """Return the state of one host; one in no aggregate of ours enters the freepool before. NotFound."""
        hypervisor = self._registration.find(id=None, name=resource.name)
        standing = self._standing(hypervisor, uses, resource)
        if standing.in_aggregate is None:
            # Else a host that is where it belongs would count as missing.
            self._registration.check_freepool()
        if standing.lacking:
            uses.report_lacking(resource, standing.lacking)
        if not standing.in_aggregate:
            prepare(_cloud_resource(hypervisor, evacuable=resource.evacuable))
        details = self._changed_details((hypervisor,), (resource,))
        return Polled({resource.name: self._standing(hypervisor, uses, resource).failure}, details)

    def _take_unheld_from_freepool(self, pooled: Collection[Resource], uses: CalendarReads) -> None:
        """Ensure that of these evacuable hosts those that no lease holds are open to all."""
        # After the aggregates were read: a lease has a host on the calendar before that enters the freepool.
        held = uses.held([host.id for host in pooled]) if pooled else ()
        for host in pooled:
            if host.id not in held:
                LOG.info("Host %s is held by no lease and leaves the freepool", host.name)
                self._registration.ensure_left(str(host.attributes["service_name"]))

    def _standing(self, hypervisor: Hypervisor, uses: CalendarReads, resource: Resource) -> Standing:
        in_use = uses.in_use()
        evacuable = frozenset({resource.name} if resource.evacuable else ())
        standings = self._registration.find_standings((hypervisor,), uses.holders, in_use, evacuable)
        return standings[hypervisor.hypervisor_hostname]

    def _changed_details(
        self, hypervisors: Collection[Hypervisor], registered: Collection[Resource]
    ) -> Mapping[int, ResourceDetails]:
        """Return what Nova and Placement say otherwise than is stored, by calendar id.

        Hosts that are not among the hypervisors, or that Placement does not know, are left out: they may come back.
        """
        hosts = {host.name: host for host in registered}
        known = [
            self._with_own_zone(h, hosts[h.hypervisor_hostname]) for h in hypervisors if h.hypervisor_hostname in hosts
        ]
        details = self._registration.details_of(
            {h.hypervisor_hostname: _attributes(h, evacuable=hosts[h.hypervisor_hostname].evacuable) for h in known}
        )
        return {hosts[name].id: new for name, new in details.items() if new != hosts[name].details}

    def _with_own_zone(self, hypervisor: Hypervisor, host: Resource) -> Hypervisor:
        """Return a hypervisor with its own zone: the cloud shows that of a reservation while it is assigned, and none
        while it is closed, as for a night.
        """
        is_hidden = not hypervisor.enabled and not hypervisor.availability_zone
        if not is_hidden and not self._registration.is_assigned(hypervisor):
            return hypervisor
        return replace(hypervisor, availability_zone=str(host.attributes["availability_zone"]))


def _service_name(in_cloud: CloudResource) -> str:
    return str(in_cloud.attributes["service_name"])


def _is_evacuable(in_cloud: CloudResource) -> bool:
    return in_cloud.attributes.get(EVACUABLE) is True


def _attributes(hypervisor: Hypervisor, *, evacuable: bool) -> Attributes:
    return {**attributes_of(hypervisor), EVACUABLE: True} if evacuable else attributes_of(hypervisor)


def _cloud_resource(hypervisor: Hypervisor, *, evacuable: bool) -> CloudResource:
    return CloudResource(hypervisor.id, hypervisor.hypervisor_hostname, _attributes(hypervisor, evacuable=evacuable))
