# SPDX-License-Identifier: Apache-2.0
"""virtual:floatingip: addresses of an external network, assigned as floating IPs of the project."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Self

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.calendar.demand import Demand
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.requirements import Membership
from blazar.model.resources.resource import FLOATING_IP, Resource
from blazar.resources.contract.actions import BEFORE_END, action_of, update_values, with_action
from blazar.resources.contract.probes import States
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Action, Done, Given, Progress, Task, Unusable, UsageNeeded, until_start
from blazar.resources.floating_ips.assignment import FloatingIpAssignment
from blazar.resources.floating_ips.parameters import REQUIRED, SCHEMA, FloatingIpParameters
from blazar.resources.floating_ips.registration import NETWORK, name_of
from blazar.resources.hosts.options import read_before_end

LOG = logging.getLogger(__name__)

RESOURCE_TYPE = "virtual:floatingip"


class VirtualFloatingIp(ResourceType):
    """The resource type ``virtual:floatingip``."""

    resource_type = RESOURCE_TYPE
    schema = SCHEMA
    kind = FLOATING_IP

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the type as configured; the default action is that of hosts."""
        return cls(cloud, before_end=read_before_end(conf))

    def __init__(self, cloud: Cloud, *, before_end: str = "") -> None:
        self._before_end = before_end
        self._assignment = FloatingIpAssignment(cloud.network)

    def parameters(self, given: Given) -> Content:
        """Return network, amount, required addresses and ``before_end``; other keys are left out."""
        missing = [key for key in ("network_id", "amount") if key not in given.values]
        if missing:
            raise InvalidInput(
                f"Missing parameter {', '.join(missing)} (a virtual:floatingip reservation needs network_id, the id of "
                f"an external network, and amount; {REQUIRED} may list addresses that must be among them)"
            )
        return FloatingIpParameters.checked({BEFORE_END: "default", REQUIRED: [], **with_action(given.values)}).content

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``."""
        before = FloatingIpParameters.of(current)
        after = FloatingIpParameters.checked(update_values(before.values, change))
        if after.network_id != before.network_id:
            raise InvalidInput(
                f"network_id cannot be changed from {before.network_id}; make another lease for addresses of "
                f"another network",
                at="/network_id",
            )
        return after.content

    def action(self, parameters: Content) -> Action:
        """Return the action before the end; a default that saves servers becomes a notification."""
        action = action_of(FloatingIpParameters.of(parameters).before_end, self._before_end)
        return Action.NOTIFICATION if action.saves_work else action

    def divided(
        self, parameters: Content, kept: Collection[Resource], gone: Collection[Resource]
    ) -> tuple[Content, Content] | None:
        """Return the parameters with the amount divided; a required address goes where it is."""
        before = FloatingIpParameters.of(parameters)
        names = {resource.name for resource in gone}
        going = tuple(a for a in before.required_floatingips if name_of(before.network_id, a) in names)
        staying = tuple(a for a in before.required_floatingips if a not in going)
        stays = replace(before, amount=before.amount - len(gone), required_floatingips=staying)
        return stays.content, replace(before, amount=len(gone), required_floatingips=going).content

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return a demand for ``amount`` addresses of the network, including the required ones."""
        wanted = FloatingIpParameters.of(parameters)
        return Demand(
            kind=self.kind,
            min_count=wanted.amount,
            max_count=wanted.amount,
            requirement=Membership(NETWORK, (wanted.network_id,)),
            reference="network_id",
            required=frozenset(name_of(wanted.network_id, address) for address in wanted.required_floatingips),
        )

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change; a reservation in use keeps all attached addresses."""
        fresh, held = self.demand(parameters, known=known), frozenset(task.counts)
        if task.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=held)
        before = self.demand(task.reservation.parameters, known=known)
        if (fresh.min_count, fresh.required) == (before.min_count, before.required):
            # New dates alone add no addresses, even if some have failed.
            count = max(1, len(held))
            return replace(fresh, min_count=count, max_count=count, pinned=held, required=frozenset())
        new = fresh.required - {resource.name for resource in task.resources}
        room = fresh.min_count - len(new)
        kept = held if len(held) <= room else _addresses_to_keep(task, room, fresh)
        return replace(fresh, pinned=kept, required=new)

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project: in use its addresses are in the present one."""
        return until_start(task, "its addresses are in its project")

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return a count of 1 for each address attached to a port, by calendar id."""
        return self._assignment.count_attached(task)

    def probe(self, task: Task) -> States:
        """Return how many addresses are attached to a port, or forward one."""
        attached = sum(self._assignment.count_attached(task).values())
        return {"attached": attached} if attached else {}

    def start(self, task: Task) -> Progress:
        """Ensure that the project has exactly these addresses of the reservation as floating IPs."""
        self._assignment.give_addresses(task)
        return Done()

    def end(self, task: Task) -> Progress:
        """Ensure that no floating IP of the reservation is left; those of others at the same addresses stay."""
        self._assignment.take_addresses(task)
        return Done()

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure the addresses from before the change; a reservation that has not started has none."""
        if task.reservation.status is not ReservationStatus.ACTIVE:
            return Done()
        self._assignment.take_addresses(task, surplus)
        try:
            self._assignment.give_addresses(task)
        except Unusable as lost:
            # A retry would not help: the lease goes on with the rest.
            LOG.warning("Reservation %s goes on without failed addresses: %s", task.reservation.id, lost)
        return Done()

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have floating IPs, recognized by tag or description."""
        return self._assignment.reservations_with_addresses(resources)


def _addresses_to_keep(task: Task, room: int, fresh: Demand) -> frozenset[int]:
    """Return which addresses to keep when shrinking: all attached or required ones, then others up to ``room``."""
    if task.in_use is None:
        raise UsageNeeded(task)
    stays = {r.id for r in task.resources if task.in_use.get(r.id) or r.name in fresh.required}
    if len(stays) > room:
        attached = sum(1 for resource in task.resources if task.in_use.get(resource.id))
        more = f", and {len(stays) - attached} more are required" if len(stays) > attached else ""
        raise Conflict(
            f"amount {fresh.min_count}: {max(0, room)} of the addresses that reservation {task.reservation.id} has "
            f"could stay, but {attached} are attached to ports{more}; detach {len(stays) - room} of them first",
            at="/amount",
        )
    others = sorted(frozenset(task.counts) - stays)
    return frozenset((*stays, *others[: room - len(stays)]))
