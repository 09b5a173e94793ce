# SPDX-License-Identifier: Apache-2.0
"""virtual:floatingip: addresses of an external network, assigned as floating IPs of the project."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Self

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.model.demand import Demand
from blazar.model.errors import Conflict, InvalidInput, pointing_at
from blazar.model.lease import Content, Json, ReservationStatus
from blazar.model.requirements import Membership
from blazar.model.resource import FLOATING_IP, Resource
from blazar.resources.actions import BEFORE_END, action_of, checked_action, updated, with_action
from blazar.resources.base import Action, Done, Given, Progress, Task, Unusable, UsageNeeded
from blazar.resources.floating_ips.assignment import FloatingIpAssignment
from blazar.resources.floating_ips.registration import NETWORK, address_text, name_of
from blazar.resources.floating_ips.schema import SCHEMA
from blazar.resources.hosts.options import HostSettings
from blazar.resources.parameters import quoted, stored_number, stored_text, whole_number
from blazar.resources.probes import States
from blazar.resources.transferring import until_start

LOG = logging.getLogger(__name__)

RESOURCE_TYPE = "virtual:floatingip"

REQUIRED = "required_floatingips"
LONGEST_ID = 255


@dataclass(frozen=True, slots=True)
class FloatingIpParameters:
    """The parameters of a reservation of addresses, named as in the API."""

    network_id: str
    amount: int
    required_floatingips: tuple[str, ...]
    before_end: str

    @classmethod
    def checked(cls, given: Json) -> FloatingIpParameters:
        """Return the parameters of a request that has all of them; InvalidInput names the field."""
        action = checked_action(given)
        if action in (Action.SNAPSHOT, Action.MIGRATION):
            raise InvalidInput(
                f"{BEFORE_END} is {action!r}, which saves servers, and addresses have none; use 'notification' or "
                f"'none'",
                pointer=f"/{BEFORE_END}",
            )
        network_id = given["network_id"]
        if not isinstance(network_id, str) or not 1 <= len(network_id) <= LONGEST_ID:
            raise InvalidInput(
                f"network_id is {quoted(network_id)}; give the id of an external network, a string",
                pointer="/network_id",
            )
        amount = whole_number(given["amount"], "amount", least=1, what="a whole number of addresses")
        return cls(network_id, amount, _addresses(given[REQUIRED], amount), action)

    @classmethod
    def of(cls, content: Content) -> FloatingIpParameters:
        """Return the parameters that a reservation keeps."""
        required = content.values.get(REQUIRED) or ()
        if not isinstance(required, list | tuple):
            raise TypeError(f"{REQUIRED} is {quoted(required)}, not a list")
        return cls(
            stored_text(content, "network_id"),
            stored_number(content, "amount"),
            tuple(required),
            stored_text(content, BEFORE_END, "default"),
        )

    @property
    def values(self) -> Json:
        """Return the parameters as the API shows them."""
        return {**asdict(self), REQUIRED: list(self.required_floatingips)}

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them."""
        return Content(self.values)


class VirtualFloatingIp:
    """The resource type ``virtual:floatingip``."""

    resource_type = RESOURCE_TYPE
    schema = SCHEMA
    kind = FLOATING_IP

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the type as configured; the default action is that of hosts."""
        return cls(cloud, before_end=HostSettings.configured(conf).before_end)

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
        after = FloatingIpParameters.checked(updated(before.values, change))
        if after.network_id != before.network_id:
            raise InvalidInput(
                f"network_id cannot be changed from {before.network_id}; make another lease for addresses of "
                f"another network",
                pointer="/network_id",
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
        names = {each.name for each in gone}
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
        kept = held if len(held) <= room else _fewer(task, room, fresh)
        return replace(fresh, pinned=kept, required=new)

    def transfer_obstacle(self, task: Task, project_id: str) -> str:
        """Return why a reservation cannot go to a project: in use its addresses are in the present one."""
        return until_start(task, "its addresses are in its project")

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return a count of 1 for each address attached to a port, by calendar id."""
        return self._assignment.attached(task)

    def probe(self, task: Task) -> States:
        """Return how many addresses are attached to a port, or forward one."""
        attached = sum(self._assignment.attached(task).values())
        return {"attached": attached} if attached else {}

    def start(self, task: Task) -> Progress:
        """Ensure that the project has exactly these addresses of the reservation as floating IPs."""
        self._assignment.give(task)
        return Done()

    def end(self, task: Task) -> Progress:
        """Ensure that no floating IP of the reservation is left; those of others at the same addresses stay."""
        self._assignment.take(task)
        return Done()

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure the addresses from before the change; a reservation that has not started has none."""
        if task.reservation.status is not ReservationStatus.ACTIVE:
            return Done()
        self._assignment.take(task, surplus)
        try:
            self._assignment.give(task)
        except Unusable as lost:
            # A retry would not help: the lease goes on with the rest.
            LOG.warning("Reservation %s goes on without failed addresses: %s", task.reservation.id, lost)
        return Done()

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have floating IPs, recognized by tag or description."""
        return self._assignment.reservations(resources)


def _fewer(task: Task, room: int, fresh: Demand) -> frozenset[int]:
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
            pointer="/amount",
        )
    others = sorted(frozenset(task.counts) - stays)
    return frozenset((*stays, *others[: room - len(stays)]))


def _address(value: object, index: int) -> str:
    with pointing_at(f"/{REQUIRED}/{index}"):
        return address_text(value, f"{REQUIRED}[{index}]")


def _addresses(value: object, amount: int) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidInput(
            f'{REQUIRED} is {quoted(value)}; give a list of addresses, as ["203.0.113.10"], or []',
            pointer=f"/{REQUIRED}",
        )
    if len(value) > amount:
        raise InvalidInput(
            f"{REQUIRED} has {len(value)} addresses, and amount is {amount}; raise amount, or name fewer",
            pointer=f"/{REQUIRED}",
        )
    addresses = [_address(item, index) for index, item in enumerate(value)]
    twice = next((address for address, count in Counter(addresses).items() if count > 1), None)
    if twice:
        raise InvalidInput(f"{REQUIRED} has {twice} more than once; name each address once", pointer=f"/{REQUIRED}")
    return tuple(addresses)
