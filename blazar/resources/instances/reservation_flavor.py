# SPDX-License-Identifier: Apache-2.0
"""The private flavor of an instance reservation, and its server group; their names follow from the reservation's id."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from blazar.clouds.ports.compute import Compute, Flavor
from blazar.clouds.ports.placement import CLASS_PREFIX
from blazar.model.base.errors import Conflict, NotFound
from blazar.model.base.values import dataclass, field
from blazar.resources.contract.parameters import stored_maybe_text
from blazar.resources.contract.values import Task, until_start
from blazar.resources.instances.extra_specs import may_set

AFFINITY_ID = "affinity_id"
"""Extra spec of the flavor that names the server group; Nova may require it in the aggregate's metadata, too."""


@dataclass(frozen=True, slots=True)
class ServerTemplate:
    """The server of an instance reservation. ``policy`` is that of the server group, None for no group.

    ``exact``: the flavor has these extra specs and our own, and no others; otherwise those that others add stay, except
    the ``settable`` ones, patterns of what requests may set, and the ``removable`` ones, which GPUs of requests set.
    """

    vcpus: int
    memory_mb: int
    disk_gb: int
    ephemeral_gb: int = 0
    swap_mb: int = 0
    extra_specs: Mapping[str, str] = field(default_factory=dict)
    rxtx_factor: float = 1.0
    exact: bool = False
    settable: tuple[str, ...] = ()
    removable: frozenset[str] = frozenset()
    policy: str | None = None


def template_of(flavor: Flavor, *, policy: str | None) -> ServerTemplate:
    """Return the template of servers like those of a flavor, with its extra specs."""
    return ServerTemplate(
        vcpus=flavor.vcpus,
        memory_mb=flavor.memory_mb,
        disk_gb=flavor.disk_gb,
        ephemeral_gb=flavor.ephemeral_gb,
        swap_mb=flavor.swap_mb,
        rxtx_factor=flavor.rxtx_factor,
        extra_specs=flavor.extra_specs,
        exact=True,
        policy=policy,
    )


class ReservationFlavor:
    """Ensures the flavor and the server group of reservations, and who can use the flavor."""

    def __init__(self, compute: Compute) -> None:
        self._compute = compute

    def ensure_group(self, task: Task, policy: str | None) -> str | None:
        """Ensure the server group with the policy, and no other; return its id, None for none.

        It is the project's of the lease, or, if that could not be, the service's own.
        """
        known = group_of(task)
        if policy is None and known is None:
            return None
        name, owners = flavor_name(task.reservation.id), (task.lease.project_id, None)
        groups = self._compute.server_groups(name)
        fitting = sorted(group.id for group in groups if group.policy == policy and group.project_id in owners)
        if policy is None:
            kept = None
        elif fitting:
            kept = known if known in fitting else fitting[0]
        else:
            kept = self._compute.create_server_group(name, policy, task.lease.project_id)
        for group in groups:
            # It has the policy or the project from before a change, or was created twice because a response was lost.
            if group.id != kept:
                self.delete_group(group.id)
        return kept

    def ensure_flavor(
        self, reservation_id: str, template: ServerTemplate, affinity: Mapping[str, str], *, starting: bool
    ) -> None:
        """Ensure the flavor; Conflict if another one is in use."""
        wanted = _flavor(reservation_id, template, affinity)
        found = self._compute.flavor(reservation_id)
        if found is not None and _fixed_fields(found) != _fixed_fields(wanted):
            if not starting and self._compute.flavor_access(reservation_id):
                raise Conflict(f"the flavor of reservation {reservation_id} is in use and cannot be replaced")
            self.delete_flavor(reservation_id)
            found = None
        if found is None:
            try:
                return self._compute.create_flavor(wanted)
            except Conflict:
                # An earlier attempt whose response was lost made it, or another manager did.
                found = self._compute.flavor(reservation_id)
                if found is None or _fixed_fields(found) != _fixed_fields(wanted):
                    raise
        specs = _specs_to_set(found, wanted, template)
        if specs:
            self._compute.set_flavor_specs(reservation_id, specs)
        return None

    def give_access(self, task: Task, *, starting: bool) -> None:
        """Ensure that the project of the lease can use the flavor; if it could not, no other one can any more."""
        reservation_id, project_id = task.reservation.id, task.lease.project_id
        # At the first start no project has access, so there is nothing to read.
        known = frozenset() if starting else self._compute.flavor_access(reservation_id)
        if project_id in known:
            return
        for other in known:
            # The lease was theirs.
            with suppress(NotFound):
                self._compute.revoke_flavor(reservation_id, other)
        try:
            self._compute.grant_flavor(reservation_id, project_id)
        except Conflict:
            if project_id not in self._compute.flavor_access(reservation_id):
                raise

    def take_access(self, reservation_id: str) -> None:
        """Ensure that no project can use the flavor."""
        try:
            projects = self._compute.flavor_access(reservation_id)
        except NotFound:
            return
        for project_id in projects:
            with suppress(NotFound):
                self._compute.revoke_flavor(reservation_id, project_id)

    def group_ids(self, task: Task) -> list[str]:
        """Return the ids of the server groups of the reservation."""
        found = [group.id for group in self._compute.server_groups(flavor_name(task.reservation.id))]
        known = group_of(task)
        return found if known is None or known in found else [*found, known]

    def delete_group(self, group_id: str) -> None:
        """Ensure that a server group is gone."""
        with suppress(NotFound):
            self._compute.delete_server_group(group_id)

    def delete_flavor(self, reservation_id: str) -> None:
        """Ensure that the flavor is gone."""
        with suppress(NotFound):
            self._compute.delete_flavor(reservation_id)


def group_of(task: Task) -> str | None:
    """Return the server group that is stored; None for none."""
    return stored_maybe_text(task.reservation.cloud_ids, "server_group_id")


def group_obstacle(task: Task) -> str:
    """Return why a reservation with a server group stays with its project while it is in use; empty if it has none.

    A server group cannot change its project, and while it is replaced servers could be booted with either.
    """
    return "" if group_of(task) is None else until_start(task, "its server group is in its project")


def resource_class(reservation_id: str) -> str:
    """Return the name of a reservation's class in Placement."""
    return CLASS_PREFIX + reservation_id.upper().replace("-", "_")


def flavor_name(reservation_id: str) -> str:
    """Return the name of a reservation's flavor, and of its server group."""
    return f"reservation:{reservation_id}"


def _flavor(reservation_id: str, template: ServerTemplate, affinity: Mapping[str, str]) -> Flavor:
    return Flavor(
        id=reservation_id,
        name=flavor_name(reservation_id),
        vcpus=template.vcpus,
        memory_mb=template.memory_mb,
        disk_gb=template.disk_gb,
        ephemeral_gb=template.ephemeral_gb,
        swap_mb=template.swap_mb,
        rxtx_factor=template.rxtx_factor,
        extra_specs={
            **template.extra_specs,
            "aggregate_instance_extra_specs:reservation": reservation_id,
            f"resources:{resource_class(reservation_id)}": "1",
            **affinity,
        },
    )


def _fixed_fields(flavor: Flavor) -> tuple[float, ...]:
    """Return the fields that Nova cannot change in a flavor."""
    sizes = flavor.vcpus, flavor.memory_mb, flavor.disk_gb, flavor.ephemeral_gb, flavor.swap_mb
    return *sizes, flavor.rxtx_factor


def _specs_to_set(found: Flavor, wanted: Flavor, template: ServerTemplate) -> Mapping[str, str | None]:
    surplus = found.extra_specs.keys() - wanted.extra_specs.keys()
    taken_back = {
        name for name in surplus if template.exact or name in template.removable or may_set(name, template.settable)
    }
    return {**specs_to_change(found.extra_specs, wanted.extra_specs), **dict.fromkeys(taken_back)}


def specs_to_change(found: Mapping[str, str], wanted: Mapping[str, str]) -> Mapping[str, str | None]:
    """Return the keys to set or remove to get what is ``wanted``; keys that others added stay."""
    changes: dict[str, str | None] = {key: value for key, value in wanted.items() if found.get(key) != value}
    changes.update(dict.fromkeys((found.keys() - wanted.keys()) & {AFFINITY_ID}))
    return changes
