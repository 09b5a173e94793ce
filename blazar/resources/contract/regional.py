# SPDX-License-Identifier: Apache-2.0
"""Types and kinds of several regions: each call goes to those of the region that the work lies in.

A type or kind is made once for each region, on the cloud of that region, and knows of no other. What is the same in
all, as the rules for parameters, is asked of those of the default region.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeVar

from blazar.model.base.errors import BlazarError, CloudUnavailable, InvalidInput, naming_region
from blazar.model.calendar.demand import Demand
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.resources.changes import Registration
from blazar.model.resources.pages import Candidate
from blazar.model.resources.regions import Regions, region_requirement
from blazar.model.resources.requirements import join_requirements
from blazar.model.resources.resource import REGION, KindShape, Resource, ResourceDetails, ResourceKind
from blazar.resources.contract.checked import CheckedKind, CheckedType
from blazar.resources.contract.kind import CalendarReads, CloudResource, Kind, Polled
from blazar.resources.contract.parameters import quote
from blazar.resources.contract.plugin import copy_values, first_parameter, returns, stands_for
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Given, Task

T = TypeVar("T")


def _forward_to_region(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    """Return the method that calls the one of the region in which the work lies, which the first parameter tells.

    What it does not tell, and is not the same in all regions, has to be asked of the type of one (``within``).
    """
    first, united = first_parameter(method), _UNITED.get(returns(method).partition("[")[0])

    def of_task(self: Any, task: Task, *args: Any, **kwargs: Any) -> Any:
        return _ask(self, task.reservation.region, name, task, *args, **kwargs)

    def of_resource(self: Any, resource: Any, *args: Any, **kwargs: Any) -> Any:
        return _ask(self, resource.region, name, resource, *args, **kwargs)

    def of_resources(self: Any, resources: Collection[Resource], *args: Any, **kwargs: Any) -> Any:
        assert united is not None
        here = _group_by_region(resources)
        return united([_ask(self, region, name, some, *args, **kwargs) for region, some in here.items()])

    def of_any(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.within(""), name)(*args, **kwargs)

    def of_none(self: Any, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(f"{name} is another in each region: ask the type of one of them, by within")

    if first == "Collection[Resource]" and united is not None:
        return of_resources
    if first in ("Resource", "CloudResource"):
        return of_resource
    return of_task if first == "Task" else of_any if name in SAME_EVERYWHERE else of_none


SAME_EVERYWHERE = frozenset(
    {"parameters", "masked", "requirement", "references", "children", "demand", "changed", "divided", "needs"}
    | {"needs_as_part", "must_prepare_again", "action"}
)
"""Methods that only compute: those of the default region answer for all."""

_UNITED: Mapping[str, Callable[[list[Any]], Any]] = {
    "frozenset": lambda answers: frozenset().union(*answers),
    "Mapping": lambda answers: {key: value for answer in answers for key, value in answer.items()},
    "None": lambda answers: None,
}
"""How answers about the resources of several regions become one, by annotation."""


@stands_for(ResourceType, _forward_to_region)
class RegionalType(ResourceType):
    """A resource type of several regions: acts in the region of the reservation."""

    def __init__(self, by_region: Mapping[str, ResourceType], regions: Regions) -> None:
        self._by_region = {name: CheckedType(plain) for name, plain in by_region.items()}
        self._regions = regions
        copy_values(self, self._by_region[regions.default])

    def has(self, member: str) -> bool:
        """Return whether the type defines a member itself."""
        return self.within("").has(member)

    def within(self, region: str) -> ResourceType:
        """Return the type of one region. CloudUnavailable if that is not configured any more."""
        return _find_region(self._by_region, self._regions, region)

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None = None) -> Given:
        """Return the parameters of a request, completed with data from the reservation's cloud, or the default one."""
        region = "" if reservation is None else reservation.region
        found: Given = _ask(self, region, "resolve", given, project_id=project_id, reservation=reservation)
        return found

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change, for resources of the reservation's region. InvalidInput if it asks for
        those of another; CloudUnavailable if that is not configured any more.
        """
        region = task.reservation.region or self._regions.default
        demand = self.within(region).demand_again(task, parameters, known=known)
        if region not in self._regions.list_allowed(demand.requirement):
            raise InvalidInput(
                f"the reservation lies in the region {region}, and its $region cannot be changed; make another lease "
                "for resources of another region"
            )
        return in_region(demand, region)


@stands_for(Kind, _forward_to_region)
class RegionalKind(Kind):
    """A kind of several regions: resources are registered in one, and have its name among their attributes."""

    def __init__(self, by_region: Mapping[str, Kind], regions: Regions) -> None:
        self._by_region = {name: CheckedKind(plain) for name, plain in by_region.items()}
        self._regions = regions
        copy_values(self, self._by_region[regions.default])
        self.own_properties |= {REGION}

    @cached_property
    def shape(self) -> KindShape:
        """Its words and schemas, with the region among them."""
        fields = {"type": "string", "enum": list(self._regions), "description": f"one of {', '.join(self._regions)}"}
        shape = self.within("").shape
        known = shape.registration.get("properties")
        properties = {**(known if isinstance(known, Mapping) else {}), REGION: fields}
        return replace(
            shape,
            registration={**shape.registration, "properties": properties},
            attributes={**shape.attributes, REGION: {"type": "string"}},
            public=(*shape.public, REGION),
            shown=(*shape.shown, REGION),
        )

    def within(self, region: str) -> Kind:
        """Return the kind of one region. CloudUnavailable if that is not configured any more."""
        return _find_region(self._by_region, self._regions, region)

    def has(self, member: str) -> bool:
        """Return whether the kind defines a member itself."""
        return self.within("").has(member)

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
                raise InvalidInput(f"id is of the region {before}, and {REGION} is {quote(asked)}; give one of them")
            asked, pointer = before, "/id"
        region = self._regions.default if asked is None else asked
        if not isinstance(region, str) or region not in self._by_region:
            raise InvalidInput(
                f"{pointer[1:]} is {quote(region)}; give one of {', '.join(self._regions)}"
                if pointer != "/id"
                else f"id is of the region {quote(region)}; give a number in one of {', '.join(self._regions)}",
                at=pointer,
                data={"allowed": list(self._regions)},
            )
        return self._resource_in_region(_ask(self, region, "find", replace(request, given=given)), region)

    def details(self, in_cloud: CloudResource) -> ResourceDetails:
        """Return what is stored of a resource that can be registered. InvalidInput, NotFound, Conflict."""
        return _details_in_region(_ask(self, in_cloud.region, "details", in_cloud), in_cloud.region)

    def current(self, resource: Resource) -> CloudResource:
        """Return a registered resource as the cloud knows it now; NotFound."""
        return self._resource_in_region(_ask(self, resource.region, "current", resource), resource.region)

    def candidates(self, registered: Collection[Resource]) -> tuple[Candidate, ...]:
        """Return what the clouds have to register; those that do not answer are left out, unless none does."""
        found: list[Candidate] = []
        failed: list[BlazarError] = []
        for name, checked_kind in self._by_region.items():
            try:
                here = [r for r in registered if (r.region or self._regions.default) == name]
                found += (self._candidate_in_region(one, name) for one in checked_kind.candidates(here))
            except CloudUnavailable as error:
                failed.append(error)
        if len(failed) == len(self._by_region):
            raise failed[0]
        return tuple(found)

    def poll(self, registered: Collection[Resource], uses: CalendarReads) -> Polled:
        """Return the state of the registered resources of one region."""
        region = next((resource.region for resource in registered), "")
        return _locate_details(self.within(region).poll(registered, uses), registered)

    def refresh(self, resource: Resource, uses: CalendarReads, prepare: Callable[[CloudResource], None]) -> Polled:
        """Return the state of one resource, prepared if need be."""
        polled = self.within(resource.region).refresh(
            resource, uses, lambda in_cloud: prepare(self._resource_in_region(in_cloud, resource.region))
        )
        return _locate_details(polled, (resource,))

    def _resource_in_region(self, in_cloud: CloudResource, region: str) -> CloudResource:
        return replace(in_cloud, external_id=self._id_in_region(in_cloud.external_id, region), region=region)

    def _candidate_in_region(self, candidate: Candidate, region: str) -> Candidate:
        """Return what a cloud has, with its region; the fields that register it name that, too."""
        given = {**candidate.registration, REGION: region} if candidate.registration else candidate.registration
        return replace(candidate, id=self._id_in_region(candidate.id, region), region=region, registration=given)

    def _id_in_region(self, external_id: str, region: str) -> str:
        """Return the id by which the API knows a resource: Nova counts the hosts of each region from 1."""
        return f"{region}:{external_id}" if external_id.isdigit() and region != self._regions.default else external_id


def _ask(self: Any, region: str, method: str, *args: Any, **kwargs: Any) -> Any:
    """Call a method of a type or kind in a region, which everybody may read of where its cloud fails."""
    within = getattr(self.within(region), method)
    with naming_region(region):
        return within(*args, **kwargs)


def _find_region(by_region: Mapping[str, T], regions: Regions, region: str) -> T:
    found = by_region.get(region or regions.default)
    if found is None:
        sentence = f"the region {region} is not configured any more; an operator can add it again"
        raise CloudUnavailable(sentence, public=sentence)
    return found


def _group_by_region(resources: Collection[Resource]) -> Mapping[str, list[Resource]]:
    found: dict[str, list[Resource]] = {}
    for resource in resources:
        found.setdefault(resource.region, []).append(resource)
    return found


def in_region(demand: Demand, region: str) -> Demand:
    """Return a demand for resources of one region."""
    return replace(demand, requirement=join_requirements(region_requirement(region), demand.requirement))


def _details_in_region(details: ResourceDetails, region: str) -> ResourceDetails:
    return replace(details, attributes={**details.attributes, REGION: region})


def _locate_details(polled: Polled, registered: Collection[Resource]) -> Polled:
    """Return a poll with the region in the details, of those resources whose details have changed."""
    known = {resource.id: resource for resource in registered}
    located = {
        id_: _details_in_region(details, known[id_].region) for id_, details in polled.details.items() if id_ in known
    }
    return replace(polled, details={id_: new for id_, new in located.items() if new != known[id_].details})


Provided = tuple[tuple[ResourceType, ...], Mapping[ResourceKind, Kind]]
"""The types, and the kinds by name."""


def check_answers(types: Collection[ResourceType], kinds: Mapping[ResourceKind, Kind]) -> Provided:
    """Return types and kinds whose answers are checked; TypeError for one that cannot be used."""
    return (
        tuple(plain if isinstance(plain, RegionalType) else CheckedType(plain) for plain in types),
        {name: plain if isinstance(plain, RegionalKind) else CheckedKind(plain) for name, plain in kinds.items()},
    )


def combine_regions(regions: Regions, made: Mapping[str, Provided]) -> Provided:
    """Return the types and kinds of several regions, each one of all regions in the place of one for each."""
    first_types, first_kinds = made[regions.default]
    types = {name: {type_.resource_type: type_ for type_ in those} for name, (those, _) in made.items()}
    return (
        tuple(RegionalType({name: types[name][t.resource_type] for name in regions}, regions) for t in first_types),
        {kind: RegionalKind({name: made[name][1][kind] for name in regions}, regions) for kind in first_kinds},
    )
