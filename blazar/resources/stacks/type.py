# SPDX-License-Identifier: Apache-2.0
"""virtual:stack: a stack of Heat, made at the start on what its servers, volumes and addresses have reserved."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Self

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.projects import Quota
from blazar.clouds.ports.stacks import PlannedResource, StackPlan, StackRefused
from blazar.model.base.errors import InvalidInput, NotFound
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass, replace
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.secrets import has_forgotten, hide_secrets, remove_secrets
from blazar.model.resources.resource import HOST
from blazar.resources.contract.actions import BEFORE_END, action_of, with_action
from blazar.resources.contract.parameters import quote
from blazar.resources.contract.type import Needs, ResourceType
from blazar.resources.contract.values import Action, Child, Given, Progress, Rank, ResolutionNeeded, Task
from blazar.resources.floating_ips.registration import reservation_tag
from blazar.resources.hosts.options import read_before_end
from blazar.resources.stacks.creation import Mask, StackMaking, plan_of
from blazar.resources.stacks.parameters import NAME, SCHEMA, StackParameters, Takes, hidden_parts, mask_hidden
from blazar.resources.stacks.pricing import AddressPrice, StackPrice, price_resources
from blazar.resources.stacks.source import FLOATING_IP, KEY_PAIR, TEMPLATE, StackSource
from blazar.resources.stacks.templates import (
    Reserved,
    adapt_for_preview,
    check_addresses,
    insert_reserved,
    restore_volume_type,
)

RESOURCE_TYPE = "virtual:stack"
_PREVIEW = "blazar-preview"
"""What names of previews begin with: Heat refuses one that a stack of the project has."""
_UNTOLD = "Heat says why; it is not told here, as it may have hidden parameters in it"


@dataclass(frozen=True, slots=True)
class GivenStack(Given):
    """The parameters of a request, checked, with what Heat says that it takes."""

    source: StackSource
    takes: Takes


class VirtualStack(ResourceType):
    """The resource type ``virtual:stack``."""

    resource_type = RESOURCE_TYPE
    kind = HOST
    rank = Rank.ORCHESTRATION
    unique = NAME
    schema = SCHEMA

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the type as configured; the default action is that of hosts."""
        return cls(cloud, before_end=read_before_end(conf))

    def __init__(self, cloud: Cloud, *, before_end: str = "") -> None:
        self._before_end = before_end
        self.quotas = cloud.quotas
        self._cloud = cloud
        self._making = StackMaking(cloud)

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None = None) -> Given:
        """Return the request with what the stack takes. InvalidInput, RoleMissing; the template is not run."""
        if reservation is not None or isinstance(given, GivenStack):
            return given
        source = StackSource.checked(given.values)
        self._cloud.projects.check_role(project_id)
        # What is refused may be said by a hidden parameter.
        with hide_secrets(lambda: hidden_parts(source)):
            return GivenStack(given.values, source, self._count_takes(self._preview_resources(project_id, source)))

    def parameters(self, given: Given) -> Content:
        """Return template, files, environment and parameters as they were sent, and what they take. InvalidInput."""
        if not isinstance(given, GivenStack):
            # For the sentence about what is wrong, if something is.
            StackSource.checked(given.values)
            raise ResolutionNeeded
        return StackParameters.checked(with_action(given.values), given.source, given.takes).content

    def masked(self, given: Json) -> Json:
        """Return the parameters of a request without the values of hidden parameters of the templates. InvalidInput."""
        return mask_hidden(given, StackSource.checked(given))

    def needs(self, parameters: Content) -> Needs:
        """Return the servers; volumes are needed by the reservations of them that the stack is made of."""
        return {Quota.SERVERS: sum(server.amount for server in StackParameters.of(parameters).takes.price.servers)}

    def children(self, parameters: Content) -> tuple[Child, ...]:
        """Return the servers of each flavor, the quota for volumes of each type and size, and the addresses."""
        wanted = StackParameters.of(parameters)
        takes = wanted.takes.price
        stated = wanted.action
        simple = stated if stated in ("default", "none", "notification", "") else "notification"
        servers = (
            {"flavor_id": flavor_id, "amount": server_price.amount, "affinity": None, BEFORE_END: stated}
            for server_price, flavor_id in zip(takes.servers, wanted.takes.flavor_ids, strict=True)
        )
        volumes = (
            {"size": v.size_gb, "amount": v.amount, "volume_type": v.volume_type, "mode": "quota", BEFORE_END: simple}
            for v in takes.volumes
        )
        addresses = (
            {"network_id": address.network, "amount": address.amount, BEFORE_END: simple} for address in takes.addresses
        )
        of_types: Mapping[str, Iterable[Json]] = {
            "flavor:instance": servers,
            "virtual:volume": volumes,
            "virtual:floatingip": addresses,
        }
        return tuple(Child(name, given, f"/{TEMPLATE}") for name, every in of_types.items() for given in every)

    def action(self, parameters: Content) -> Action:
        """Return the action before the end; work is saved by the reservations of servers."""
        action = action_of(StackParameters.of(parameters).action, self._before_end)
        return Action.NOTIFICATION if action.saves_work else action

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        """Return that a change prepares nothing."""
        return False

    def prepare(self, task: Task) -> Content:
        """Make nothing, but refuse the name of a stack that is there when the lease begins. Conflict."""
        wanted = StackParameters.of(task.reservation.parameters)
        # One of a lease for later can be deleted until then.
        if wanted.given_name is not None and task.lease.window.start <= task.lease.created_at:
            self._making.check_name(task, wanted.given_name)
        return task.reservation.cloud_ids

    def start(self, task: Task) -> Progress:
        """Ensure that the stack is complete, made of what is reserved."""
        wanted = StackParameters.of(task.reservation.parameters)

        def plan() -> StackPlan:
            source = insert_reserved(wanted.source, self._reserved_by_children(task, wanted.takes))
            return plan_of(wanted.name(task.reservation.id), source, wanted.timeout)

        return self._making.ensure_stack(task, plan, _make_mask(wanted))

    def restore(self, task: Task, surplus: tuple[object, ...]) -> Progress:
        """A change of dates changes nothing in the cloud."""
        return self._making.progress_unchanged(task)

    def end(self, task: Task) -> Progress:
        """Ensure that the stack is gone, whatever its state."""
        return self._making.delete_stack(task, _make_mask(StackParameters.of(task.reservation.parameters)))

    def reservations_in_projects(self, projects: Collection[str]) -> frozenset[str]:
        """Return the reservations that have stacks in these projects, by their tags: one call for each project."""
        return frozenset().union(*(self._making.reservations_with_stacks(project) for project in sorted(projects)))

    def _preview_resources(self, project_id: str, source: StackSource) -> tuple[PlannedResource, ...]:
        """Return what Heat says that the stack has."""
        plan = plan_of(f"{_PREVIEW}-{uuid.uuid4()}", adapt_for_preview(source), None)
        try:
            found = self._cloud.stacks.preview_stack(project_id, plan)
        except StackRefused as error:
            refusal = f"{TEMPLATE}: Heat does not take it: {error.explanation}"
            raise InvalidInput(refusal, at=f"/{TEMPLATE}") from None
        # Heat tells them by the types that the environment has it leave out.
        planned = tuple(restore_volume_type(resource) for resource in found if resource.type not in source.left_out)
        check_addresses(source, planned)
        return planned

    def _count_takes(self, planned: tuple[PlannedResource, ...]) -> Takes:
        found = price_resources(planned)
        if any(not volume.volume_type for volume in found.volumes):
            raise InvalidInput(
                f"{TEMPLATE}: a volume of the stack has no volume_type; name one of a registered pool, and boot "
                "servers from a resource of type OS::Cinder::Volume rather than from a volume that Nova makes",
                at=f"/{TEMPLATE}",
            )
        if found == StackPrice():
            raise InvalidInput(
                f"{TEMPLATE}: the stack has no servers, volumes or addresses, so there is nothing to reserve; make it "
                "without a lease",
                at=f"/{TEMPLATE}",
            )
        # One network may have several names.
        by_id: dict[str, list[str]] = {}
        for resource in planned:
            if resource.type == FLOATING_IP:
                asked = resource.properties.get("floating_network") or resource.properties.get("floating_network_id")
                by_id.setdefault(self._find_network_id(str(asked)), []).append(resource.name)
        addresses = tuple(AddressPrice(network, len(names)) for network, names in sorted(by_id.items()))
        ordered = tuple(name for _, names in sorted(by_id.items()) for name in names)
        keys = sorted({str(resource.properties.get("name")) for resource in planned if resource.type == KEY_PAIR})
        names = self._cloud.compute.flavor_names() if found.servers else {}
        flavor_ids = tuple(_find_flavor_id(server.flavor, names) for server in found.servers)
        return Takes(replace(found, addresses=addresses), flavor_ids, ordered, tuple(keys))

    def _find_network_id(self, asked: str) -> str:
        found = self._cloud.network.network(asked)
        if found is None:
            raise InvalidInput(
                f"{TEMPLATE}: floating_network is {quote(asked)}, which is not the id of a network; give its id",
                at=f"/{TEMPLATE}",
            )
        return found.id

    def _reserved_by_children(self, task: Task, takes: Takes) -> Reserved:
        """Return what the children have, which are in the order of what the stack takes."""
        left = list(task.children)
        flavors = {server.flavor: _cloud_id_of(left.pop(0), "flavor_id") for server in takes.price.servers}
        del left[: len(takes.price.volumes)]
        ids: list[str] = []
        for address_price in takes.price.addresses:
            found = self._cloud.network.floating_ips(
                network_id=address_price.network, tag=reservation_tag(left.pop(0).id)
            )
            ids += sorted(address.id for address in found)[: address_price.amount]
        keys = {name: f"{name[:200]}-{task.reservation.id}" for name in takes.keys}
        return Reserved(flavors, keys, dict(zip(takes.addresses, ids, strict=True)))


def _make_mask(wanted: StackParameters) -> Mask:
    if has_forgotten(wanted.values):
        # What is hidden can no longer be found in the text.
        return lambda text: _UNTOLD if text else text
    # Read at need only: that checks the whole template again.
    return lambda text: remove_secrets(text, hidden_parts(wanted.source)) if text else text


def _find_flavor_id(asked: str, names: Mapping[str, str]) -> str:
    """Return the id of a flavor that a template names by id or by name; who can use it is checked later."""
    if asked in names:
        return asked
    found = sorted(id_ for id_, name in names.items() if name == asked)
    if not found:
        raise NotFound(f"{TEMPLATE}: there is no flavor {quote(asked)}; give another one", at=f"/{TEMPLATE}")
    return found[0]


def _cloud_id_of(child: Reservation, key: str) -> str:
    return str(child.cloud_ids.values[key])
