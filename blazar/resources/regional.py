# SPDX-License-Identifier: Apache-2.0
"""Types and kinds of several regions: each call goes to those of the region that the work lies in.

A type or kind is made once for each region, on the cloud of that region, and knows of no other. What is the same in
all, as the rules for parameters, is asked of those of the default region.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import TypeVar

from blazar.clouds.ports import Server
from blazar.model.demand import Demand
from blazar.model.errors import BlazarError, CloudUnavailable, InvalidInput
from blazar.model.lease import Content, Reservation
from blazar.model.regions import Regions, within
from blazar.model.requests import Registration
from blazar.model.requirements import all_of
from blazar.model.resource import REGION, Resource, ResourceDetails, ResourceKind
from blazar.model.resource_pages import Candidate
from blazar.resources.base import Given, Progress, ResourceType, Task
from blazar.resources.complete import CompleteType
from blazar.resources.kinds import CloudResource, CompleteKind, Kind, Polled, Uses
from blazar.resources.parameters import quoted
from blazar.resources.probes import States

T = TypeVar("T")


class RegionalType(CompleteType):
    """A resource type of several regions: acts in the region of the reservation."""

    def __init__(self, by_region: Mapping[str, ResourceType], regions: Regions) -> None:
        super().__init__(by_region[regions.default])
        self._by_region = {name: CompleteType(plain) for name, plain in by_region.items()}
        self._regions = regions

    def within(self, region: str) -> CompleteType:
        """Return the type of one region. CloudUnavailable if that is not configured any more."""
        return _of(self._by_region, self._regions, region)

    def start(self, task: Task) -> Progress:
        """Ensure that the project can use the resources, and no others."""
        return self.within(task.reservation.region).start(task)

    def end(self, task: Task) -> Progress:
        """Ensure that nothing of the reservation is left."""
        return self.within(task.reservation.region).end(task)

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None = None) -> Given:
        """Return the parameters of a request, completed with data from the reservation's cloud, or the default one."""
        region = "" if reservation is None else reservation.region
        return self.within(region).resolve(given, project_id=project_id, reservation=reservation)

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change, for resources of the reservation's region. InvalidInput if it asks for
        those of another; CloudUnavailable if that is not configured any more.
        """
        region = task.reservation.region or self._regions.default
        self.within(region)
        demand = super().demand_again(task, parameters, known=known)
        if region not in self._regions.allowed(demand.requirement):
            raise InvalidInput(
                f"the reservation lies in the region {region}, and its $region cannot be changed; make another lease "
                "for resources of another region"
            )
        return in_region(demand, region)

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return the count in use of each resource, by calendar id."""
        return self.within(task.reservation.region).in_use(task)

    def users(self, task: Task, resource: Resource) -> tuple[str, ...]:
        """Return the ids of what runs on a resource of a reservation in use."""
        return self.within(task.reservation.region).users(task, resource)

    def probe(self, task: Task) -> States | None:
        """Return how many things users have in a reservation in use, by state; None if it cannot tell."""
        return self.within(task.reservation.region).probe(task)

    def servers_in_use(self, task: Task) -> Collection[Server] | None:
        """Return the servers that keep a reservation in use; None if its use is not that of servers."""
        return self.within(task.reservation.region).servers_in_use(task)

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project; empty if it can."""
        return self.within(task.reservation.region).transfer_obstacle(task, project_id)

    def prepare(self, task: Task) -> Content:
        """Ensure what must exist before the start."""
        return self.within(task.reservation.region).prepare(task)

    def before_end(self, task: Task) -> Progress:
        """Do what the reservation's action says."""
        return self.within(task.reservation.region).before_end(task)

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Undo a failed change."""
        return self.within(task.reservation.region).restore(task, surplus)

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have anything in the cloud of any region."""
        return frozenset().union(
            *(
                each.reservations_in_cloud([r for r in resources if (r.region or self._regions.default) == name])
                for name, each in self._by_region.items()
            )
        )

    def projects_in_cloud(self, resources: Collection[Resource]) -> Mapping[int, frozenset[str]]:
        """Return the projects that can use resources of any region by what has no mark."""
        found: dict[int, frozenset[str]] = {}
        for name, each in self._by_region.items():
            found |= each.projects_in_cloud([r for r in resources if (r.region or self._regions.default) == name])
        return found


class RegionalKind(CompleteKind):
    """A kind of several regions: resources are registered in one, and have its name among their attributes."""

    def __init__(self, by_region: Mapping[str, Kind], regions: Regions) -> None:
        super().__init__(by_region[regions.default])
        self._by_region = {name: CompleteKind(plain) for name, plain in by_region.items()}
        self._regions = regions
        self.own_properties |= {REGION}
        fields = {"type": "string", "enum": list(regions), "description": f"one of {', '.join(regions)}"}
        shape = self.shape
        known = shape.registration.get("properties")
        properties = {**(known if isinstance(known, Mapping) else {}), REGION: fields}
        self.shape = replace(
            shape,
            registration={**shape.registration, "properties": properties},
            attributes={**shape.attributes, REGION: {"type": "string"}},
            public=(*shape.public, REGION),
            shown=(*shape.shown, REGION),
        )

    def within(self, region: str) -> CompleteKind:
        """Return the kind of one region. CloudUnavailable if that is not configured any more."""
        return _of(self._by_region, self._regions, region)

    def located(self, request: Registration) -> Registration:
        """Return a request with its region beside what names the resource: where there is no field for it, it is
        among the properties, as it is shown.
        """
        if REGION not in request.capabilities or request.given.get(REGION) is not None:
            return request
        capabilities = dict(request.capabilities)
        return replace(request, given={**request.given, REGION: capabilities.pop(REGION)}, capabilities=capabilities)

    def find(self, request: Registration) -> CloudResource:
        """Return the resource that a request names in its region, by default the first. InvalidInput, NotFound.

        The region is that of ``region``, or the one before the number in ``id``, as in answers.
        """
        given = dict(request.given)
        asked, pointer = given.pop(REGION, None), f"/{REGION}"
        before, colon, number = str(given.get("id") or "").rpartition(":")
        if colon and number.isdigit():
            given["id"] = number
            if asked is not None and asked != before:
                raise InvalidInput(f"id is of the region {before}, and {REGION} is {quoted(asked)}; give one of them")
            asked, pointer = before, "/id"
        region = self._regions.default if asked is None else asked
        if not isinstance(region, str) or region not in self._by_region:
            raise InvalidInput(
                f"{pointer[1:]} is {quoted(region)}; give one of {', '.join(self._regions)}"
                if pointer != "/id"
                else f"id is of the region {quoted(region)}; give a number in one of {', '.join(self._regions)}",
                pointer=pointer,
                data={"allowed": list(self._regions)},
            )
        return self._located(self._by_region[region].find(replace(request, given=given)), region)

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return what is stored of a resource that can be registered. InvalidInput, NotFound, Conflict."""
        return _in_region(self.within(in_cloud.region).details(in_cloud), in_cloud.region)

    def check_unused(self, in_cloud: CloudResource) -> None:
        """Raise Conflict if a registered resource is in use outside of reservations."""
        self.within(in_cloud.region).check_unused(in_cloud)

    def current(self, resource: Resource) -> CloudResource:
        """Return a registered resource as the cloud knows it now; NotFound."""
        return self._located(self.within(resource.region).current(resource), resource.region)

    def enter(self, in_cloud: CloudResource) -> bool:
        """Ensure that a resource is prepared."""
        return self.within(in_cloud.region).enter(in_cloud)

    def leave(self, in_cloud: CloudResource) -> None:
        """Ensure that a resource is as it was before its registration."""
        self.within(in_cloud.region).leave(in_cloud)

    def candidates(self, registered: Collection[Resource]) -> tuple[Candidate, ...]:
        """Return what the clouds have to register; those that do not answer are left out, unless none does."""
        found: list[Candidate] = []
        failed: list[BlazarError] = []
        for name, each in self._by_region.items():
            try:
                here = [r for r in registered if (r.region or self._regions.default) == name]
                found += (self._placed(one, name) for one in each.candidates(here))
            except CloudUnavailable as error:
                failed.append(error)
        if len(failed) == len(self._by_region):
            raise failed[0]
        return tuple(found)

    def close(self, resources: Collection[Resource], mark: str) -> None:
        """Ensure that resources are closed, each in its region."""
        for region, some in _by_region(resources).items():
            self.within(region).close(some, mark)

    def reopen(self, resources: Collection[Resource], mark: str, others: Mapping[int, str]) -> None:
        """Ensure that no resource has this mark, each in its region."""
        for region, some in _by_region(resources).items():
            self.within(region).reopen(some, mark, others)

    def occupants(self, resources: Collection[Resource]) -> Mapping[int, int]:
        """Return how many servers or the like are on resources, by calendar id."""
        found: dict[int, int] = {}
        for region, some in _by_region(resources).items():
            found |= self.within(region).occupants(some)
        return found

    def poll(self, registered: Collection[Resource], uses: Uses) -> Polled:
        """Return the state of the registered resources of one region."""
        region = next((resource.region for resource in registered), "")
        return _changed(self.within(region).poll(registered, uses), registered)

    def refresh(self, resource: Resource, uses: Uses, prepare: Callable[[CloudResource], None]) -> Polled:
        """Return the state of one resource, prepared if need be."""
        polled = self.within(resource.region).refresh(
            resource, uses, lambda in_cloud: prepare(self._located(in_cloud, resource.region))
        )
        return _changed(polled, (resource,))

    def _located(self, in_cloud: CloudResource, region: str) -> CloudResource:
        return replace(in_cloud, external_id=self._id(in_cloud.external_id, region), region=region)

    def _placed(self, candidate: Candidate, region: str) -> Candidate:
        """Return what a cloud has, with its region; the fields that register it name that, too."""
        given = {**candidate.registration, REGION: region} if candidate.registration else candidate.registration
        return replace(candidate, id=self._id(candidate.id, region), region=region, registration=given)

    def _id(self, external_id: str, region: str) -> str:
        """Return the id by which the API knows a resource: Nova counts the hosts of each region from 1."""
        return f"{region}:{external_id}" if external_id.isdigit() and region != self._regions.default else external_id


def _of(by_region: Mapping[str, T], regions: Regions, region: str) -> T:
    found = by_region.get(region or regions.default)
    if found is None:
        raise CloudUnavailable(f"the region {region} is not configured any more; an operator can add it again")
    return found


def _by_region(resources: Collection[Resource]) -> Mapping[str, list[Resource]]:
    found: dict[str, list[Resource]] = {}
    for each in resources:
        found.setdefault(each.region, []).append(each)
    return found


def in_region(demand: Demand, region: str) -> Demand:
    """Return a demand for resources of one region."""
    return replace(demand, requirement=all_of(within(region), demand.requirement))


def _in_region(details: ResourceDetails, region: str) -> ResourceDetails:
    return replace(details, attributes={**details.attributes, REGION: region})


def _changed(polled: Polled, registered: Collection[Resource]) -> Polled:
    """Return a poll with the region in the details, of those resources whose details have changed."""
    known = {resource.id: resource for resource in registered}
    located = {id_: _in_region(details, known[id_].region) for id_, details in polled.details.items() if id_ in known}
    return replace(polled, details={id_: new for id_, new in located.items() if new != known[id_].details})


Provided = tuple[tuple[ResourceType | CompleteType, ...], Mapping[ResourceKind, Kind | CompleteKind]]
"""The types, and the kinds by name."""


def combined(
    regions: Regions, made: Mapping[str, tuple[tuple[ResourceType, ...], Mapping[ResourceKind, Kind]]]
) -> Provided:
    """Return the types and kinds of several regions, each one of all regions in the place of one for each."""
    first_types, first_kinds = made[regions.default]
    types = {name: {each.resource_type: each for each in those} for name, (those, _) in made.items()}
    return (
        tuple(
            RegionalType({name: types[name][each.resource_type] for name in regions}, regions) for each in first_types
        ),
        {kind: RegionalKind({name: made[name][1][kind] for name in regions}, regions) for kind in first_kinds},
    )
