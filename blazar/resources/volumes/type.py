# SPDX-License-Identifier: Apache-2.0
"""virtual:volume: volumes on pools of Cinder, or a quota for them, for as long as the lease lasts."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Self

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.projects import Quota
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import Conflict, InvalidInput
from blazar.model.calendar.demand import Affinity, Demand
from blazar.model.leases.reservation import Content, Reservation
from blazar.model.leases.states import ReservationStatus
from blazar.model.resources.requirements import Requirement, matches, property_keys
from blazar.model.resources.resource import VOLUME, Resource
from blazar.resources.contract.actions import RECHECK_LATER, action_of, find_request_time, update_values, with_action
from blazar.resources.contract.probes import MadeById, States
from blazar.resources.contract.type import Needs, ResourceType
from blazar.resources.contract.values import (
    Action,
    Before,
    Done,
    Given,
    NotYet,
    Progress,
    Rank,
    ResolutionNeeded,
    Task,
    UsageNeeded,
)
from blazar.resources.hosts.options import IMAGE_PREFIX, read_before_end
from blazar.resources.volumes.assignment import Record, VolumeAssignment, types_of
from blazar.resources.volumes.checks import VolumeChecks, check_image, needs_cloud
from blazar.resources.volumes.copies import Saving
from blazar.resources.volumes.parameters import (
    AMOUNT,
    DEFAULTS,
    IMAGE,
    MODE,
    NAME,
    PROPERTIES,
    SCHEMA,
    SIZE,
    VolumeParameters,
)
from blazar.resources.volumes.quotas import PoolQuotas, type_id_of
from blazar.resources.volumes.registration import ASKED_FOR, ATTRIBUTES, TYPE


class VirtualVolume(ResourceType):
    """The resource type ``virtual:volume``."""

    resource_type = "virtual:volume"
    kind = VOLUME
    rank = Rank.ATTACHED
    schema = SCHEMA
    reads_shares = True

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return the type as configured; the default action is that of hosts."""
        return cls(cloud, before_end=read_before_end(conf), prefix=conf.nova.image_prefix)

    def __init__(self, cloud: Cloud, *, before_end: str = "", prefix: str = IMAGE_PREFIX) -> None:
        self._before_end = before_end
        self.quotas = cloud.quotas
        self._checks = VolumeChecks(cloud)
        self._saving = Saving(cloud.volumes, prefix)
        self._quotas = PoolQuotas(cloud.volumes)
        self._assignment = VolumeAssignment(cloud.volumes)
        self._volumes = cloud.volumes

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None = None) -> Given:
        """Return the request with its image, if the service can do what it says in the project.

        RoleMissing, NotFound, InvalidInput.
        """
        return self._checks.resolve(given, project_id=project_id, reservation=reservation)

    def parameters(self, given: Given) -> Content:
        """Return size, amount, mode, names and requirement; other keys are left out. InvalidInput."""
        if SIZE not in given.values:
            raise InvalidInput(
                "Missing parameter size (a virtual:volume reservation needs the size of a volume in GiB)"
            )
        wanted = VolumeParameters.checked({**DEFAULTS, **with_action(given.values)})
        check_image(given, wanted)
        return wanted.content

    def needs(self, parameters: Content) -> Needs:
        """Return the volumes and their size, also of a quota of a type: its volumes count for all types, too."""
        wanted = VolumeParameters.of(parameters)
        return {Quota.VOLUMES: wanted.amount, Quota.GIGABYTES: wanted.amount * wanted.size}

    def requirement(self, parameters: Content) -> Requirement:
        """Return what a pool must have."""
        return VolumeParameters.of(parameters).requirement

    def action(self, parameters: Content) -> Action:
        """Return the action before the end; an operator's default that saves servers becomes a notification."""
        stated = VolumeParameters.of(parameters).before_end
        action = action_of(stated, self._before_end)
        return Action.NOTIFICATION if action.saves_work and action != stated else action

    def demand(self, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return a demand for the GiB of each volume; a quota is of one pool."""
        wanted = VolumeParameters.of(parameters)
        if unknown := sorted(property_keys(wanted.properties) - ASKED_FOR - (known - ATTRIBUTES)):
            raise InvalidInput(
                f"{PROPERTIES} asks for {', '.join('$' + key for key in unknown)}, which no volume pool has; use "
                f"${TYPE}, $gigabytes, or one of their capabilities",
                code="unknown_property",
                at=f"/{PROPERTIES}",
            )
        return Demand(
            kind=self.kind,
            min_count=wanted.amount,
            max_count=wanted.amount,
            requirement=wanted.requirement,
            per_instance=wanted.each,
            affinity=Affinity.ANY if wanted.makes_volumes else Affinity.TOGETHER,
            reference=TYPE if wanted.volume_type is not None and not property_keys(wanted.properties) else None,
        )

    def changed(self, current: Content, change: Given) -> Content:
        """Return the current parameters, updated with the known ones of ``change``; InvalidInput."""
        before = VolumeParameters.of(current)
        after = VolumeParameters.checked(update_values(before.content.values, change))
        for field in (MODE, TYPE, IMAGE):
            if getattr(before, field) != getattr(after, field):
                raise InvalidInput(f"{field} cannot be changed; make another lease for it", at=f"/{field}")
        if needs_cloud(change, before, after):
            raise ResolutionNeeded
        check_image(change, after)
        return after.content

    def demand_again(self, task: Task, parameters: Content, *, known: frozenset[str]) -> Demand:
        """Return the demand after a change; what is in use stays where it is, and only grows. Conflict."""
        fresh = self.demand(parameters, known=known)
        if task.reservation.status is ReservationStatus.PENDING:
            return replace(fresh, preferred=frozenset(task.counts))
        before, after = VolumeParameters.of(task.reservation.parameters), VolumeParameters.of(parameters)
        if after.size < before.size:
            raise Conflict(
                f"{SIZE} cannot be {after.size}: volumes of reservation {task.reservation.id} have {before.size} GiB, "
                f"and volumes do not shrink",
                at=f"/{SIZE}",
            )
        if after.name != before.name:
            raise Conflict(
                f"{NAME} of reservation {task.reservation.id} cannot be changed while it is in use; rename the volumes",
                at=f"/{NAME}",
            )
        misfits = sorted(r.name for r in task.resources if not matches(fresh.requirement, r.properties))
        if misfits and after.requirement != before.requirement:
            raise Conflict(
                f"{PROPERTIES} cannot be changed to this: reservation {task.reservation.id} is in use on a pool that "
                f"would no longer match",
                at=f"/{PROPERTIES}",
            )
        count = max(1, sum(task.counts.values()))
        if after.amount == before.amount:
            # New dates alone add no volumes, even if a pool has failed.
            return replace(fresh, min_count=count, max_count=count, kept=dict(task.counts))
        if after.amount < count:
            return replace(fresh, kept=_volumes_to_keep(task, after.amount))
        return replace(fresh, kept=dict(task.counts))

    def in_use(self, task: Task) -> Mapping[int, int]:
        """Return how many of its volumes there are on each pool; of a quota, all that it was given.

        Cinder cannot tell whether a volume has data, so that each counts from the moment that it is there.
        """
        if not VolumeParameters.of(task.reservation.parameters).makes_volumes:
            return dict(task.counts)
        return {
            resource.id: min(len(self._assignment.find_volumes(task, resource)), task.counts.get(resource.id, 1))
            for resource in task.resources
        }

    def probe(self, task: Task) -> States:
        """Return how many of its volumes are attached, or busy; of a quota, how many volumes there are of the type."""
        project = task.lease.project_id
        if not VolumeParameters.of(task.reservation.parameters).makes_volumes:
            made = sum(len(self._volumes.volumes_of_type(type_id_of(r), project_id=project)) for r in task.resources)
            return {"made": made} if made else {}
        there = [volume for r in task.resources for volume in self._assignment.find_volumes(task, r)]
        busy = sum(bool(volume.attachments) or volume.status != "available" for volume in there)
        return {"attached": busy} if busy else {}

    def start(self, task: Task) -> Progress:
        """Ensure that the project may use the pools' types, has a quota for them, and its volumes.

        While a change may still be undone the quota does not grow further than for the volumes that are made for it.
        """
        wanted = VolumeParameters.of(task.reservation.parameters)
        record = replace(Record.of(task.reservation.cloud_ids), types=types_of(task.resources))
        first, left = 1, set[int]()
        for resource in task.resources:
            whole = wanted.each.times(task.counts[resource.id])
            now = _amounts_until_final(task.before, wanted, resource, task.counts) if task.before is not None else whole
            self._quotas.give_quota(task, resource, now + _amounts_beside(task.before, resource))
            if now != whole:
                left.add(resource.id)
            if wanted.makes_volumes:
                made = self._assignment.ensure_volumes(task, resource, record, first)
                if isinstance(made, NotYet):
                    return made
                record = made.record
                first += task.counts[resource.id]
                if not made.all_grown:
                    left.add(resource.id)
        return Done(replace(record, tries=0).content, frozenset(left))

    def before_end(self, task: Task) -> Progress:
        """Ensure an image or a backup of each of its volumes, if the reservation says so."""
        action = self.action(task.reservation.parameters)
        if not action.saves_work:
            return Done()
        found = [volume for resource in task.resources for volume in self._assignment.find_volumes(task, resource)]
        name = VolumeParameters.of(task.reservation.parameters).name or "volume"
        return self._saving.ensure_copies(task, found, action, name=name[:120], since=find_request_time(task))

    def restore(self, task: Task, surplus: tuple[Resource, ...]) -> Progress:
        """Ensure quotas from before a change, and delete what it has made; none has grown for it yet."""
        if task.reservation.status is not ReservationStatus.ACTIVE:
            return Done()
        wanted = VolumeParameters.of(task.reservation.parameters)
        for resource in task.resources:
            self._quotas.give_quota(task, resource, wanted.each.times(task.counts[resource.id]))
        left = self._assignment.delete_new_volumes(task, (*task.resources, *surplus)) if wanted.makes_volumes else {}
        if left:
            return _not_yet(left)
        for resource in task.resources:
            # Once more: at first it may have been what the project still had.
            self._quotas.give_quota(task, resource, wanted.each.times(task.counts[resource.id]))
        self._quotas.take_quotas(task, surplus)
        self._quotas.revoke_access(task, surplus)
        return Done()

    def end(self, task: Task) -> Progress:
        """Ensure that no volume of the reservation is left, nor access and quota."""
        # At first, so that users make no new ones.
        self._quotas.take_quotas(task, task.resources)
        self._quotas.revoke_access(task, task.resources)
        left: dict[str, str] = {}
        for resource in task.resources:
            left |= self._assignment.delete_volumes(task, resource)
        if left:
            return _not_yet(left)
        # Once more: at first it may have been what the project still had.
        self._quotas.take_quotas(task, task.resources)
        return Done()

    def gone(self, made: MadeById) -> frozenset[str]:
        """Return which volumes are gone: one list of all."""
        there = {volume.id for volume in self._volumes.service_volumes()}
        every = frozenset(id_ for ids in made.values() for id_ in ids)
        # Its users may have transferred it to another project.
        return frozenset(id_ for id_ in every - there if self._volumes.volume(id_) is None)

    def reservations_in_cloud(self, resources: Collection[Resource]) -> frozenset[str]:
        """Return the reservations that have volumes, by their marks: one call."""
        return self._assignment.reservations_with_volumes(resources) if resources else frozenset()

    def projects_in_cloud(self, resources: Collection[Resource]) -> Mapping[int, frozenset[str]]:
        """Return the projects that may use the types of pools: one call for each pool."""
        return {resource.id: self._quotas.projects_with_access(resource) for resource in resources}


def _amounts_until_final(
    before: Before, wanted: VolumeParameters, resource: Resource, counts: Mapping[int, int]
) -> Amounts:
    """Return what a project may have of a pool while a change may still be undone.

    What users make with a quota is not taken from them: so it is that of before, and what the service itself needs at
    once to make more volumes.
    """
    count, had = counts[resource.id], before.counts.get(resource.id, 0)
    kept = VolumeParameters.of(before.parameters).each.times(min(count, had))
    return kept + _amounts_of_new_volumes(before, wanted, resource, counts)


def _amounts_of_new_volumes(
    before: Before, wanted: VolumeParameters, resource: Resource, counts: Mapping[int, int]
) -> Amounts:
    """Return what volumes have that the service makes on a pool for a change."""
    more = counts[resource.id] - before.counts.get(resource.id, 0) if wanted.makes_volumes else 0
    return wanted.each.times(max(0, more))


def _amounts_beside(before: Before | None, resource: Resource) -> Amounts:
    """Return what the volumes have that the same change has made on a pool for other reservations.

    These count as they were before the change, but the quota is for theirs, too.
    """
    made = Amounts()
    for task in () if before is None else before.begun:
        of_volumes = task.reservation.resource_type == VirtualVolume.resource_type
        if of_volumes and task.before is not None and resource.id in task.counts:
            made += _amounts_of_new_volumes(
                task.before, VolumeParameters.of(task.reservation.parameters), resource, task.counts
            )
    return made


def _volumes_to_keep(task: Task, amount: int) -> Mapping[int, int]:
    """Return how many volumes to keep on each pool: those that there are."""
    if task.in_use is None:
        raise UsageNeeded(task)
    kept = {id_: min(count, task.in_use.get(id_, 0)) for id_, count in task.counts.items()}
    if (there := sum(kept.values())) > amount:
        raise Conflict(
            f"{AMOUNT} cannot be {amount}: reservation {task.reservation.id} has {there} volumes; delete "
            f"{there - amount} of them first",
            at=f"/{AMOUNT}",
        )
    for id_ in sorted(kept):
        kept[id_] = min(task.counts[id_], kept[id_] + amount - sum(kept.values()))
    return {id_: count for id_, count in kept.items() if count}


def _not_yet(left: Mapping[str, str]) -> NotYet:
    reasons = "; ".join(f"volume {id_} {why}" for id_, why in sorted(left.items()))
    return NotYet(RECHECK_LATER, reasons)
