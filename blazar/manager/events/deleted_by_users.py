# SPDX-License-Identifier: Apache-2.0
"""Deleted by users: records what reservations in use have made and what is not in the cloud any more.

It is not made again. Its users are told, as somebody else of their project may have deleted it. What the cloud does
not say is never taken for a deletion: a type whose lists fail is looked at the next time.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from blazar.context import scope
from blazar.manager.common.runtime import Runtime
from blazar.manager.leases import lifecycle
from blazar.model.base.errors import BlazarError, NotFound, StaleLease
from blazar.model.base.log_lines import log_level
from blazar.model.leases.lease import Lease
from blazar.model.leases.reservation import Gone, Reservation
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.store.leases.pages import CloudObjects

LOG = logging.getLogger(__name__)

GoneById = Mapping[str, frozenset[str]]
"""The ids of what is gone, by reservation id; a reservation that is missing here was not looked at."""


class DeletedByUsers:
    """Looks what is gone in a region. Any number of managers may do so at a time."""

    def __init__(self, runtime: Runtime, region: str = "") -> None:
        self._runtime = runtime
        self._region = region

    def run_once(self) -> int:
        """Look once; return how many leases have changed. One statement if there is nothing new."""
        types = [name for name, kind in self._runtime.types.items() if kind.has("gone")]
        every = self._runtime.store.cloud_objects.objects_in_use(types) if types else ()
        default = self._runtime.regions.default
        here = [objects for objects in every if (objects.region or default) == (self._region or default)]
        by_type: defaultdict[str, list[CloudObjects]] = defaultdict(list)
        for cloud_objects in here:
            by_type[cloud_objects.resource_type].append(cloud_objects)
        by_lease: defaultdict[str, dict[str, frozenset[str]]] = defaultdict(dict)
        for resource_type, made in by_type.items():
            if (gone := self._gone(resource_type, made)) is None:
                continue
            for cloud_objects in made:
                if (found := gone & frozenset(cloud_objects.ids)) != cloud_objects.gone:
                    by_lease[cloud_objects.lease_id][cloud_objects.reservation_id] = found
        return sum(self._record(lease_id, found) for lease_id, found in sorted(by_lease.items()))

    def _gone(self, resource_type: str, made: list[CloudObjects]) -> frozenset[str] | None:
        """Return the ids of a type that are gone; None if that is not known."""
        try:
            with scope(limit=self._runtime.settings.poll_limit):
                kind = self._runtime.types[resource_type].within(self._region)
                return kind.gone({cloud_objects.reservation_id: cloud_objects.ids for cloud_objects in made})
        except BlazarError as error:
            LOG.log(
                log_level(error, logging.WARNING),
                "It is not known which %s users have deleted: %s",
                resource_type,
                error.message,
            )
        except Exception:
            # Code of other packages may raise anything; the other types are looked at all the same.
            LOG.exception("It is not known which %s users have deleted", resource_type)
        return None

    def _record(self, lease_id: str, gone: GoneById) -> bool:
        """Write what is gone of a lease; return whether that was new. A lease that is busy is looked at later."""
        now = self._runtime.clock.now()
        try:
            lease = self._runtime.store.leases.one(lease_id)
            if lease.status is not LeaseStatus.ACTIVE or lifecycle.live_claim(lease, now) is not None:
                return False
            after = self._noted(lease, gone)
            if after is lease:
                return False
            self._runtime.store.leases.save(lease, replace(after, updated_at=now), at=now)
        except (NotFound, StaleLease):
            LOG.debug("Lease %s has changed meanwhile; it is looked at again", lease_id)
            return False
        for reservation in after.reservations:
            before = lease.reservation(reservation.id)
            for one in reservation.gone:
                if before is not None and one not in before.gone:
                    LOG.info(
                        "Lease %s: %s %s is gone; it is not made again", lease_id, reservation.resource_type, one.id
                    )
        return True

    def _noted(self, lease: Lease, gone: GoneById) -> Lease:
        changed = [
            after
            for reservation in lease.reservations
            if reservation.status is ReservationStatus.ACTIVE
            and reservation.id in gone
            and (after := self._with_gone(reservation, gone[reservation.id])).gone != reservation.gone
        ]
        return lifecycle.with_reservations(lease, changed) if changed else lease

    def _with_gone(self, reservation: Reservation, ids: frozenset[str]) -> Reservation:
        """Return a reservation with what is gone; what was known before keeps its time."""
        now, known = self._runtime.clock.now(), {thing.id: thing for thing in reservation.gone}
        gone = tuple(known.get(id_) or Gone(id_, now) for id_ in reservation.made_ids if id_ in ids)
        return replace(reservation, gone=gone)
