# SPDX-License-Identifier: Apache-2.0
"""Counts what was asked for and refused, in memory, and writes it each minute."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator

from blazar.manager.changing.new_leases import NewLease
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import BlazarError
from blazar.model.leases.requests import LeaseRequest
from blazar.model.reports.demand import RefusalCounts, RefusedDemand, begin_of_hour, shorten_requirement
from blazar.model.resources.requirements import render_requirement

LOG = logging.getLogger(__name__)

INTERVAL = 60.0
"""Seconds between two writes: a manager that is killed loses what it has counted since the last one."""


class RefusedRequests(BackgroundThread):
    """The refused requests of a manager: any thread counts, one writes.

    A reservation of a refused lease counts, whichever of them it was refused for.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("refused-requests", work="Refused requests cannot be written", retry=INTERVAL)
        self._runtime = runtime
        self._zone = runtime.settings.reports.zone
        self._counts = RefusalCounts()
        self._lock = threading.Lock()

    def count_lease(self, code: str, request: LeaseRequest, new: NewLease | None) -> None:
        """Count a new lease that was refused; no statement."""
        if new is None:
            self._add(self._refuse(code, request.project_id, asked.resource_type) for asked in request.reservations)
        else:
            self._add(self._describe(code, new))

    def count_change(self, code: str, lease_id: str) -> None:
        """Count a change of a lease that was refused: how much more it would have been is not known. One statement."""
        try:
            lease = self._runtime.store.leases.one(lease_id)
        except BlazarError as error:
            # It is gone by now, or the database does not answer, which is no reason to answer something else.
            LOG.debug("A refused change of lease %s is not counted: %s", lease_id, error.message)
            return
        self._add(
            self._refuse(code, lease.project_id, reservation.resource_type)
            for reservation in lease.reservations
            if reservation.parent is None
        )

    def _refuse(self, code: str, project_id: str, resource_type: str) -> RefusedDemand:
        return RefusedDemand(begin_of_hour(self._runtime.clock.now(), self._zone), code, project_id, resource_type)

    def _describe(self, code: str, new: NewLease) -> Iterator[RefusedDemand]:
        types = {reservation.id: reservation.resource_type for reservation in new.lease.reservations}
        seconds = int(new.lease.window.duration.total_seconds())
        hour = begin_of_hour(self._runtime.clock.now(), self._zone)
        for asked in new.placement_requests:
            demand = asked.demand
            yield RefusedDemand(
                hour,
                code,
                new.lease.project_id,
                types[asked.reservation_id],
                shorten_requirement(render_requirement(demand.requirement)),
                demand.min_count,
                seconds,
                demand.per_instance or Amounts(),
            )

    def _add(self, refused: Iterable[RefusedDemand]) -> None:
        with self._lock:
            for one in refused:
                self._counts.add(one)

    def write(self) -> None:
        """Write what was counted; it is counted again if that fails. StoreUnavailable."""
        with self._lock:
            counted = self._counts.take()
        if not counted:
            return
        try:
            self._runtime.store.demand.add(counted, self._zone, now=self._runtime.clock.now())
        except BlazarError:
            with self._lock:
                for refused, times in counted:
                    self._counts.add(refused, times)
            raise

    def stop(self) -> None:
        """Stop, and write what was counted until then; what cannot be written is lost, which is logged."""
        super().stop()
        try:
            self.write()
        except BlazarError as error:
            LOG.warning("The last refused requests cannot be written: %s", error.message)

    def _round(self) -> float:
        self.write()
        return INTERVAL
