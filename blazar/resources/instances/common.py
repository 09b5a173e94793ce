# SPDX-License-Identifier: Apache-2.0
"""The common part of the resource types that reserve capacity for servers on shared hosts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import ClassVar, Protocol, Self

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Compute, Server
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.calendar.cards import Cards
from blazar.model.calendar.cells import GuestCells
from blazar.model.calendar.demand import Affinity, Demand, TraitRequirements
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.requirements import Requirement, matches
from blazar.model.resources.resource import HOST, Resource
from blazar.model.use.preemption import PreemptedServer
from blazar.resources.contract.actions import (
    BEFORE_END,
    RECHECK_SOON,
    action_of,
    checked_action,
    deletion_progress,
    find_request_time,
    progress_of_tally,
)
from blazar.resources.contract.parameters import by_service, check_property_names, quote, whole_number
from blazar.resources.contract.probes import ReportsUse, States, is_quiet, servers_of_project, states_of
from blazar.resources.contract.type import ResourceType
from blazar.resources.contract.values import Action, Done, NotYet, Progress, Task, Unusable, UsageNeeded
from blazar.resources.hosts.aggregates.freepool import NotInFreepool
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.preemption import PreemptionNotices
from blazar.resources.hosts.snapshots import Snapshots
from blazar.resources.instances.reservation_flavor import ServerTemplate, flavor_name
from blazar.resources.instances.reserved_capacity import CapacityEnsurer

REQUIREMENTS = ("resource_properties",)
"""The parameters that say what a host must have."""

_AFFINITIES = {None: Affinity.ANY, True: Affinity.TOGETHER, False: Affinity.APART}
_POLICIES = {None: None, True: "affinity", False: "anti-affinity"}
_WORDS: Mapping[str, bool | None] = {
    **dict.fromkeys(("none", ""), None),
    **dict.fromkeys(("true", "t", "yes", "y", "on", "1"), True),
    **dict.fromkeys(("false", "f", "no", "n", "off", "0"), False),
}
"""The strings that OpenStack's services accept as true and false."""


class InstanceParameters(Protocol):
    """The parameters that all instance reservations have, named as in the API."""

    @property
    def amount(self) -> int:
        """The number of servers."""

    @property
    def affinity(self) -> bool | None:
        """True: all on one host; False: each on another; None: any."""

    @property
    def before_end(self) -> str:
        """The action before the end, as the client named it."""

    @property
    def requirement(self) -> Requirement:
        """What a host must have."""

    @property
    def per_instance(self) -> Amounts:
        """What one server takes of its host."""

    @property
    def traits(self) -> TraitRequirements:
        """The traits that a host must have, or must not."""

    @property
    def cards(self) -> tuple[Cards, ...]:
        """What one server takes of providers nested in its host."""

    @property
    def cells(self) -> GuestCells | None:
        """The NUMA cells of one server; None if it has none of its own."""


class InstanceUse(ReportsUse):
    """The use of reserved capacity: the servers with the flavor of the reservation, or booted into it."""

    _compute: Compute
    _capacity: CapacityEnsurer

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return how many servers use the reservation on each host, by calendar id."""
        return self._capacity.in_use(task)

    def probe(self, task: Task) -> States:
        """Return the states of the reservation's servers: those with its flavor, or booted into it.

        If none of these runs, the flavor is asked for, too: a server that was resized has another name of it.
        """
        ours = self._servers_of_project(task)
        states = states_of(ours.values())
        return states if not is_quiet(states) else states_of(self._add_resized(task, ours).values())

    def servers_in_use(self, task: Task) -> Collection[Server]:
        """Return the reservation's servers: those with its flavor, or booted into it."""
        return self._add_resized(task, self._servers_of_project(task)).values()

    def _servers_of_project(self, task: Task) -> dict[str, Server]:
        id_ = task.reservation.id
        on_hosts, nowhere = servers_of_project(self._compute, task.lease, id_)
        name = flavor_name(id_)
        return {s.id: s for s in (*on_hosts, *nowhere) if s.flavor == name or id_ in (s.hints or ())}

    def _add_resized(self, task: Task, ours: Mapping[str, Server]) -> dict[str, Server]:
        return {**{server.id: server for server in self._capacity.list_servers(task)}, **ours}


class Instances(InstanceUse, ResourceType, ABC):
    """An instance resource type. A subclass defines its parameters and the flavor of its servers."""

    kind = HOST

    fixed: ClassVar[tuple[str, ...]]
    """Parameters that cannot change while servers may exist."""
    free: ClassVar[tuple[str, ...]]
    """Parameters that can."""
    word: ClassVar[str] = "instance"
    """What a refusal calls one of what is asked for."""
    opens_flavor: ClassVar[bool] = True
    """Whether the project can boot servers with the flavor in use."""

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the type as configured."""
        return cls(cloud, HostSettings.configured(conf))

    def __init__(self, cloud: Cloud, settings: HostSettings) -> None:
        self._settings = settings
        self._compute = cloud.compute
        self._capacity = CapacityEnsurer(cloud, settings.aggregates, settings.pci)
        self._snapshots = Snapshots(cloud.compute, settings.image_prefix)
        self._notices = PreemptionNotices(cloud.compute, self._snapshots)

    # What differs

    @abstractmethod
    def read(self, content: Content) -> InstanceParameters:
        """Return the parameters that a reservation keeps."""

    @abstractmethod
    def template(self, parameters: Content) -> ServerTemplate:
        """Return the template of the reservation's servers."""

    # What is the same

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return a demand for ``amount`` servers on hosts that meet the requirement."""
        wanted = self.read(parameters)
        requirement = wanted.requirement
        check_property_names(requirement, known, REQUIREMENTS)
        return Demand(
            kind=self.kind,
            min_count=wanted.amount,
            max_count=wanted.amount,
            requirement=requirement,
            per_instance=wanted.per_instance,
            affinity=affinity_of(wanted.affinity),
            traits=wanted.traits,
            cells=wanted.cells,
            cards=wanted.cards,
            word=self.word,
        )

    def requirement(self, parameters: Content) -> Requirement:
        """Return what a host must have."""
        return self.read(parameters).requirement

    def action(self, parameters: Content) -> Action:
        """Return the action before the end; a default of migration, which needs whole hosts, becomes a notification."""
        action = action_of(self.read(parameters).before_end, self._settings.before_end)
        return Action.NOTIFICATION if action is Action.MIGRATION else action

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change; a reservation in use keeps all capacity that is in use."""
        fresh = self.demand(parameters, known=known)
        if task.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=frozenset(task.counts))
        self._check_changeable(task, parameters, fresh)
        held = sum(task.counts.values())
        amount = fresh.min_count
        if amount == self.read(task.reservation.parameters).amount:
            # New dates alone add no capacity, even if some has failed.
            return replace(fresh, min_count=max(1, held), max_count=max(1, held), kept=dict(task.counts))
        return replace(fresh, kept=dict(task.counts) if amount >= held else _servers_to_keep(task, amount))

    def must_prepare_again(self, before: Content, after: Content) -> bool:
        """Return whether the flavor or the server group changes."""
        return bool(self._fixed_changes(before, after))

    def prepare(self, task: Task) -> Content:
        """Ensure flavor, server group, aggregate and resource class, which no project can use before the start."""
        return self._capacity.ensure_prerequisites(task, self.template(task.reservation.parameters), starting=False)

    def start(self, task: Task) -> Progress:
        """Ensure the reserved capacity on the hosts, and that the project can boot servers with the flavor."""
        starting = task.reservation.status is ReservationStatus.PENDING
        try:
            opened = self._capacity.open_capacity(task, self.template(task.reservation.parameters), starting=starting)
        except NotInFreepool as error:
            raise Unusable(by_service(task.resources, error.reasons)) from error
        if opened.missing:
            return NotYet(RECHECK_SOON, opened.missing)
        return Done(opened.cloud_ids)

    def give_notice(self, task: Task, ends_at: datetime) -> tuple[PreemptedServer, ...]:
        """Ensure that the preemptible servers for which the reserved capacity leaves no room say when they go."""
        found = self._capacity.find_preempted(task)
        return tuple(told for host, servers in found for told in self._notices.give(host, servers, ends_at))

    def withdraw_notice(self, resource: Resource, reservation_id: str, server_ids: Collection[str]) -> None:
        """Ensure that servers on a host no longer say when they go."""
        self._notices.withdraw(server_ids)

    def before_end(self, task: Task) -> Progress:
        """Ensure an image of every server, if that is the action."""
        if self.action(task.reservation.parameters) is not Action.SNAPSHOT:
            return Done()
        tally = self._snapshots.ensure_images(
            task.reservation.id,
            self.servers_to_save(task),
            project_id=task.lease.project_id,
            since=find_request_time(task),
        )
        return progress_of_tally(task, tally, "images being made")

    def servers_to_save(self, task: Task) -> tuple[Server, ...]:
        """Return the servers that may have work on them: one that got no host has never run."""
        return tuple(s for s in self._capacity.list_servers(task) if s.host is not None or s.status != "ERROR")

    def end(self, task: Task) -> Progress:
        """Ensure that all servers are gone, then flavor, server group, aggregate and reserved capacity."""
        left = self._capacity.remove_capacity(task)
        return deletion_progress(left) if left else Done()

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure the capacity from before the change; before the start, only flavor, group, aggregate and class."""
        if task.reservation.status is ReservationStatus.PENDING:
            return Done(self.prepare(task))
        if task.reservation.status is not ReservationStatus.ACTIVE:
            return Done()
        restored = self._capacity.restore_capacity(task, surplus, access=self.opens_flavor)
        if restored.evicted:
            return deletion_progress(restored.evicted)
        return Done(restored.cloud_ids)

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have a flavor, a server group, an aggregate or a resource class."""
        return self._capacity.reservations_in_cloud()

    def _fixed_changes(self, before: Content, after: Content) -> list[str]:
        one, other = self.read(before), self.read(after)
        return [field for field in self.fixed if getattr(one, field) != getattr(other, field)]

    def _check_changeable(self, task: Task, parameters: Content, fresh: Demand) -> None:
        changed = self._fixed_changes(task.reservation.parameters, parameters)
        if changed:
            raise Conflict(
                f"{', '.join(changed)} cannot be changed: reservation {task.reservation.id} is "
                f"{task.reservation.status}, and only {', '.join(self.free[:-1])} and {self.free[-1]} can",
                at=f"/{changed[0]}",
            )
        if fresh.requirement != self.read(task.reservation.parameters).requirement:
            misfits = sorted(r.name for r in task.resources if not matches(fresh.requirement, r.properties))
            if misfits:
                raise Conflict(
                    f"resource_properties cannot be changed to this: reservation {task.reservation.id} is in use on "
                    f"{', '.join(misfits)}, which would no longer match",
                    public="resource_properties cannot be changed to this: what is in use would no longer match",
                    at="/resource_properties",
                )


def checked_amount(given: Json) -> int:
    """Return the number of servers; InvalidInput if it is none."""
    return whole_number(given["amount"], "amount", least=1, what="a whole number of servers")


def checked_affinity(given: Json) -> bool | None:
    """Return the affinity, which clients may also give as a string or as 1 or 0; InvalidInput for anything else."""
    value = given["affinity"]
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str | int) and (word := str(value).strip().lower()) in _WORDS:
        return _WORDS[word]
    raise InvalidInput(
        f"affinity is {quote(value)}; give true (all servers on one host), false (each on another) or null",
        at="/affinity",
    )


def stored_affinity(content: Content) -> bool | None:
    """Return the affinity that a reservation keeps."""
    value = content.values.get("affinity")
    return None if value is None else bool(value)


def checked_before_end(given: Json) -> str:
    """Return the action before the end; InvalidInput if servers of instance reservations cannot do it."""
    action = checked_action(given)
    if action == Action.MIGRATION:
        raise InvalidInput(
            f"{BEFORE_END} is 'migration', which servers of an instance reservation cannot do: they need its "
            f"reserved capacity, which other hosts do not have; use 'snapshot', 'notification' or 'none'",
            at=f"/{BEFORE_END}",
        )
    return action


def affinity_of(affinity: bool | None) -> Affinity:
    """Return how the servers are placed relative to each other."""
    return _AFFINITIES[affinity]


def policy_of(affinity: bool | None) -> str | None:
    """Return the policy of the server group; None for no group."""
    return _POLICIES[affinity]


def _servers_to_keep(task: Task, amount: int) -> Mapping[int, int]:
    """Return how many servers to keep on each host: all in use, and the rest on as few hosts as possible."""
    if task.in_use is None:
        raise UsageNeeded(task)
    kept = {id_: min(count, task.in_use.get(id_, 0)) for id_, count in task.counts.items()}
    used = sum(kept.values())
    if used > amount:
        raise Conflict(
            f"amount cannot be {amount}: {used} servers use reservation {task.reservation.id}; delete "
            f"{used - amount} of them first",
            at="/amount",
        )
    for id_ in sorted(kept, key=lambda id_: (-kept[id_], -task.counts[id_], id_)):
        more = min(task.counts[id_], kept[id_] + amount - sum(kept.values()))
        kept[id_] = more
    return {id_: count for id_, count in kept.items() if count}
