# SPDX-License-Identifier: Apache-2.0
"""network: a segment, on which the project gets a network for as long as the lease lasts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Self

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.projects import Quota
from blazar.model.base.errors import BlazarError, ClaimLost, Conflict, InvalidInput, NotEnoughResources
from blazar.model.calendar.demand import Demand
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.requirements import Requirement, matches, property_keys
from blazar.model.resources.resource import NETWORK, RESERVED_NAMES, Resource
from blazar.resources.contract.actions import (
    BEFORE_END,
    RECHECK_LATER,
    RECHECK_SOON,
    action_of,
    update_values,
    with_action,
)
from blazar.resources.contract.parameters import requirement_of
from blazar.resources.contract.probes import MadeById, States
from blazar.resources.contract.type import Needs, ResourceType
from blazar.resources.contract.values import Action, Done, Given, NotYet, Progress, Rank, Task, until_start
from blazar.resources.hosts.options import read_before_end
from blazar.resources.networks.assignment import NETWORK_ID, SUBNET_ID, NetworkAssignment
from blazar.resources.networks.parameters import DESCRIPTION, NAME, REQUIREMENTS, SCHEMA, SUBNET, NetworkParameters
from blazar.resources.networks.registration import ATTRIBUTES

RESOURCE_TYPE = "network"


class NetworkReservation(ResourceType):
    """The resource type ``network``."""

    resource_type = RESOURCE_TYPE
    schema = SCHEMA
    kind = NETWORK
    rank = Rank.NETWORK

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the type as configured; the default action is that of hosts."""
        return cls(cloud, before_end=read_before_end(conf))

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
        return NetworkParameters.checked(update_values({SUBNET: None, **current.values}, change)).content

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
            asked = property_keys(requirement_of(**{field: getattr(wanted, field)}))
            if unknown := sorted(asked - known - ATTRIBUTES - RESERVED_NAMES):
                raise InvalidInput(
                    f"{field} asks for {', '.join('$' + key for key in unknown)}, which no network segment has; use "
                    f"$network_type, $physical_network, $segment_id or one of their capabilities",
                    code="unknown_property",
                    at=f"/{field}",
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
                    at=f"/{field}",
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
        if left := self._assignment.delete_networks(task, but=resource):
            return _not_yet(left)
        network = self._assignment.ensure_network(task, resource, name=wanted.network_name)
        known = {k: v for k, v in task.reservation.cloud_ids.values.items() if k == SUBNET_ID}
        same = task.reservation.cloud_ids.values.get(NETWORK_ID) == network.id
        cloud_ids = Content({NETWORK_ID: network.id, **(known if same else {})})
        try:
            if wanted.subnet is not None and (starting or not same):
                subnet_id = self._assignment.ensure_subnet(network, wanted.subnet)
                cloud_ids = Content({NETWORK_ID: network.id, SUBNET_ID: subnet_id})
            self._assignment.mark_network(task, network, description=wanted.network_description)
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
        left = self._assignment.delete_networks(task)
        return _not_yet(left) if left else Done()

    def gone(self, made: MadeById) -> frozenset[str]:
        """Return which networks are gone: one list of all."""
        there = {network.id for network in self._segments.segment_networks()}
        every = frozenset(id_ for ids in made.values() for id_ in ids)
        return frozenset(id_ for id_ in every - there if not self._segments.segment_networks(id=id_))

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have networks, recognized by tag or description."""
        return self._assignment.reservations_with_networks(resources)


def _not_yet(left: Mapping[str, str]) -> NotYet:
    return NotYet(RECHECK_LATER, "; ".join(f"network {id_} {held}" for id_, held in sorted(left.items())))
