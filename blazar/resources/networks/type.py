# SPDX-License-Identifier: Apache-2.0
"""network: a segment, on which the project gets a network for as long as the lease lasts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

from oslo_config import cfg

from blazar.clouds.ports import Cloud, NewSubnet, Quota
from blazar.model.demand import Demand
from blazar.model.errors import BlazarError, ClaimLost, Conflict, InvalidInput, NotEnoughResources
from blazar.model.lease import Content, Json, ReservationStatus
from blazar.model.requirements import Requirement, keys, matches
from blazar.model.resource import NETWORK, RESERVED_NAMES, Resource
from blazar.resources.actions import (
    BEFORE_END,
    RECHECK_LATER,
    RECHECK_SOON,
    action_of,
    simple_action,
    updated,
    with_action,
)
from blazar.resources.base import Action, Done, Given, NotYet, Progress, Rank, Task
from blazar.resources.gone import MadeById
from blazar.resources.hosts.options import HostSettings
from blazar.resources.networks.assignment import NETWORK_ID, SUBNET_ID, NetworkAssignment
from blazar.resources.networks.registration import ATTRIBUTES
from blazar.resources.networks.schema import SCHEMA
from blazar.resources.networks.subnet import SUBNET, as_json, subnet_of
from blazar.resources.parameters import quoted, requirement_of, requirement_text, stored_maybe_text, stored_text
from blazar.resources.probes import States
from blazar.resources.quotas import Needs
from blazar.resources.transferring import until_start

RESOURCE_TYPE = "network"

NAME, DESCRIPTION = "network_name", "network_description"
REQUIREMENTS = ("network_properties", "resource_properties")
LONGEST = 255
"""Maximum characters of a name and of a description in Neutron."""


@dataclass(frozen=True, slots=True)
class NetworkParameters:
    """The parameters of a reservation of a network, named as in the API."""

    network_name: str
    network_description: str
    network_properties: str | None
    resource_properties: str | None
    before_end: str
    subnet: NewSubnet | None = None

    @classmethod
    def checked(cls, given: Json) -> NetworkParameters:
        """Return the parameters of a request that has all of them; InvalidInput names the field."""
        action = simple_action(given, "networks")
        name = given[NAME]
        if not isinstance(name, str) or not name.strip() or len(name) > LONGEST:
            raise InvalidInput(
                f"{NAME} is {quoted(name)}; give a name for the network, of 1 to {LONGEST} characters",
                pointer=f"/{NAME}",
            )
        network, resource = (requirement_text(given[field], field) for field in REQUIREMENTS)
        return cls(name, _description(given[DESCRIPTION]), network, resource, action, subnet_of(given.get(SUBNET)))

    @classmethod
    def of(cls, content: Content) -> NetworkParameters:
        """Return the parameters that a reservation keeps."""
        return cls(
            stored_text(content, NAME),
            stored_text(content, DESCRIPTION, ""),
            stored_maybe_text(content, "network_properties"),
            stored_maybe_text(content, "resource_properties"),
            stored_text(content, BEFORE_END, "default"),
            subnet_of(content.values.get(SUBNET)),
        )

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them; a subnet only if one is asked for, as 1.0 knows none."""
        kept = asdict(self)
        del kept[SUBNET]
        return Content(kept if self.subnet is None else {**kept, SUBNET: as_json(self.subnet)})

    @property
    def requirement(self) -> Requirement:
        """Return what a segment must have."""
        return requirement_of(network_properties=self.network_properties, resource_properties=self.resource_properties)


class NetworkReservation:
    """The resource type ``network``."""

    resource_type = RESOURCE_TYPE
    schema = SCHEMA
    kind = NETWORK
    rank = Rank.NETWORK

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the type as configured; the default action is that of hosts."""
        return cls(cloud, before_end=HostSettings.configured(conf).before_end)

    def __init__(self, cloud: Cloud, *, before_end: str = "") -> None:
        self._before_end = before_end
        self.quotas = cloud.quotas
        self._segments = cloud.segments
        self._assignment = NetworkAssignment(cloud.segments, cloud.network)

    def needs(self, parameters: Content) -> Needs:
        """Return the network, and its subnet if it gets one."""
        return {Quota.NETWORKS: 1, Quota.SUBNETS: int(NetworkParameters.of(parameters).subnet is not None)}

    def parameters(self, given: Given) -> Content:
        """Return name, description, both requirements and ``before_end``; other keys are left out."""
        if NAME not in given.values:
            raise InvalidInput(
                f"Missing parameter {NAME} (a network reservation needs a name for the network; {DESCRIPTION} and "
                f"{' and '.join(REQUIREMENTS)} may be left out)"
            )
        defaults = {DESCRIPTION: "", **dict.fromkeys(REQUIREMENTS, ""), BEFORE_END: "default"}
        return NetworkParameters.checked({**defaults, **with_action(given.values)}).content

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``."""
        return NetworkParameters.checked(updated({SUBNET: None, **current.values}, change)).content

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project: in use its network is in the present one."""
        return until_start(task, "its network is in its project")

    def action(self, parameters: Content) -> Action:
        """Return the action before the end; a default that saves servers becomes a notification."""
        action = action_of(NetworkParameters.of(parameters).before_end, self._before_end)
        return Action.NOTIFICATION if action.saves_work else action

    def requirement(self, parameters: Content) -> Requirement:
        """Return what a segment must have."""
        return NetworkParameters.of(parameters).requirement

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return a demand for one whole segment that meets both requirements."""
        requirement = self.requirement(parameters)
        wanted = NetworkParameters.of(parameters)
        for field in REQUIREMENTS:
            asked = keys(requirement_of(**{field: getattr(wanted, field)}))
            if unknown := sorted(asked - known - ATTRIBUTES - RESERVED_NAMES):
                raise InvalidInput(
                    f"{field} asks for {', '.join('$' + key for key in unknown)}, which no network segment has; use "
                    f"$network_type, $physical_network, $segment_id or one of their capabilities",
                    code="unknown_property",
                    pointer=f"/{field}",
                )
        return Demand(kind=self.kind, min_count=1, max_count=1, requirement=requirement)

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change; a reservation in use keeps its segment, and its network its name."""
        fresh, held = self.demand(parameters, known=known), frozenset(task.counts)
        if task.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=held)
        before, after = NetworkParameters.of(task.reservation.parameters), NetworkParameters.of(parameters)
        for field in (NAME, DESCRIPTION, SUBNET):
            if getattr(before, field) != getattr(after, field):
                raise Conflict(
                    f"{field} of reservation {task.reservation.id} cannot be changed while it is in use; change the "
                    f"network itself",
                    pointer=f"/{field}",
                )
        fits = all(matches(fresh.requirement, resource.properties) for resource in task.resources)
        if not fits and after.requirement != before.requirement:
            raise NotEnoughResources(
                f"reservation {task.reservation.id} is in use on a segment that would no longer match; it keeps its "
                f"segment while it is active"
            )
        return replace(fresh, pinned=held)

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return a count of 1 for the segment if users have built on its network."""
        wanted = NetworkParameters.of(task.reservation.parameters).subnet
        used = self._assignment.is_used(task, beside=wanted)
        return dict.fromkeys((resource.id for resource in task.resources), 1) if used else {}

    def probe(self, task: Task) -> States:
        """Return whether users have built anything on the network."""
        return {"built": 1} if self.in_use(task) else {}

    def start(self, task: Task) -> Progress:
        """Ensure that the project has exactly the network of the reservation, on its segment."""
        if not task.resources:
            return Done()
        (resource,) = task.resources
        wanted = NetworkParameters.of(task.reservation.parameters)
        starting = task.reservation.status is ReservationStatus.PENDING
        # At first, because users can keep these busy, and a new network must be recorded without delay.
        if left := self._assignment.remove(task, but=resource):
            return _not_yet(left)
        network = self._assignment.ensure(task, resource, name=wanted.network_name)
        known = {k: v for k, v in task.reservation.cloud_ids.values.items() if k == SUBNET_ID}
        same = task.reservation.cloud_ids.values.get(NETWORK_ID) == network.id
        cloud_ids = Content({NETWORK_ID: network.id, **(known if same else {})})
        try:
            if wanted.subnet is not None and (starting or not same):
                subnet_id = self._assignment.subnet(network, wanted.subnet)
                cloud_ids = Content({NETWORK_ID: network.id, SUBNET_ID: subnet_id})
            self._assignment.mark(task, network, description=wanted.network_description)
        except ClaimLost:
            raise
        except BlazarError as error:
            if task.reservation.cloud_ids == cloud_ids:
                raise
            # Its users can remove its marks before the next attempt.
            return NotYet(RECHECK_SOON, error.message, error.cause, cloud_ids)
        return Done(cloud_ids)

    def end(self, task: Task) -> Progress:
        """Ensure that no network of the reservation is left; those of others on the same segment stay."""
        left = self._assignment.remove(task)
        return _not_yet(left) if left else Done()

    def gone(self, made: MadeById) -> frozenset[str]:
        """Return which networks are gone: one list of all."""
        there = {network.id for network in self._segments.segment_networks()}
        every = frozenset(id_ for ids in made.values() for id_ in ids)
        return frozenset(id_ for id_ in every - there if not self._segments.segment_networks(id=id_))

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have networks, recognized by tag or description."""
        return self._assignment.reservations(resources)


def _description(given: object) -> str:
    if not isinstance(given, str | int | float | None):
        raise InvalidInput(f"{DESCRIPTION} is {quoted(given)}; give a string", pointer=f"/{DESCRIPTION}")
    text = "" if given is None else str(given)
    if len(text) > LONGEST:
        raise InvalidInput(
            f"{DESCRIPTION} has {len(text)} characters; give at most {LONGEST}", pointer=f"/{DESCRIPTION}"
        )
    return text


def _not_yet(left: Mapping[str, str]) -> NotYet:
    return NotYet(RECHECK_LATER, "; ".join(f"network {id_} {held}" for id_, held in sorted(left.items())))
