# SPDX-License-Identifier: Apache-2.0
"""What the script of the demo acts on: a manager, its store, a simulated cloud, and the clock that the script moves."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any

from oslo_config import cfg

from blazar.clouds.simulated import SimulatedCloud
from blazar.manager.service import ManagerService
from blazar.model.base.errors import BlazarError
from blazar.model.base.moments import NOW, Moment
from blazar.model.base.values import dataclass
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseRequest, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import PowerChange
from blazar.model.power.settings import PowerMode
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST, Resource
from blazar.store.store import Store

HOURS = {"host": 5000, "device": 400}
AT_ONCE = {"gigabyte": 5000}
SPEND = "25000.00"
SWITCHED_EVERY = timedelta(seconds=20)
PROMISES = 2
"""So few that others wait without one."""


def set_defaults(conf: cfg.ConfigOpts) -> None:
    """Set the limits of the demo, and that its hosts sleep, unless a configuration file says otherwise."""
    conf.set_default("enabled_filters", ["ResourceHoursFilter", "MaxUnitsFilter", "SpendFilter"], group="enforcement")
    conf.set_default("max_resource_hours", HOURS, group="enforcement")
    conf.set_default("max_units_of", AT_ONCE, group="enforcement")
    conf.set_default("max_spend", SPEND, group="enforcement")
    conf.set_default("promises", PROMISES, group="api")
    conf.set_default("mode", str(PowerMode.ON), group="power")
    conf.set_default("class_by", ["gpu"], group="power")


def give_switch(manager: ManagerService, resource: Resource) -> None:
    """Let the simulated cloud switch the power of a host or a pool, so that it sleeps while nobody needs it."""
    address = PowerAddress(PowerAdapter.SIMULATED, resource.name)
    manager.power.change(resource.external_id, PowerChange(address), resource.kind)


@dataclass(slots=True)
class DemoClock:
    """A clock that the script moves."""

    instant: datetime

    def now(self) -> datetime:
        """Return where the script is."""
        return self.instant

    def elapsed(self) -> float:
        """Return the seconds of the script's time."""
        return self.instant.timestamp()

    def synchronize(self) -> None:
        """Do nothing: there is no reference clock."""

    def offset(self) -> timedelta:
        """Return zero."""
        return timedelta(0)


@dataclass(frozen=True, slots=True)
class Stage:
    """Runs a manager to an instant, and acts as users and operators do."""

    manager: ManagerService
    store: Store
    cloud: SimulatedCloud
    clock: DemoClock

    @property
    def minute(self) -> datetime:
        """Return the present minute."""
        return self.clock.now().replace(second=0, microsecond=0)

    def not_before(self, instant: datetime) -> datetime:
        """Return the minute of an instant, or the next minute if that is later."""
        return max(instant.replace(second=0, microsecond=0), self.minute + timedelta(minutes=1))

    def run_to(self, instant: datetime) -> None:
        """Let time pass until then; the manager works on events when they are due."""
        while (due := self.store.events.next_due()) is not None and due <= instant:
            self.clock.instant = max(due, self.clock.instant)
            self.manager.engine.run_due()
        self.clock.instant = max(instant, self.clock.instant)

    def let_sleep(self, instant: datetime) -> None:
        """Let time pass until then, and hosts that nobody needs be switched off."""
        while self.clock.now() < instant:
            self.run_to(min(instant, self.clock.now() + SWITCHED_EVERY))
            for part in self.manager.power_work:
                part.run_once()

    def settle(self) -> None:
        """Work on all that is due now besides events: series, the waiting list, leases that go on, maintenance."""
        manager = self.manager
        parts = (manager.series_work, manager.waiting_list, manager.prolongation, manager.maintenance_work)
        for part in parts:
            while part.run_once():
                manager.engine.run_due()

    def book(
        self,
        owner: tuple[str, str],
        name: str,
        start: Moment,
        hours: float,
        *reservations: ReservationRequest,
        **more: Any,
    ) -> Lease | None:
        """Book a lease for a user of a project, from the next minute at the earliest.

        None if it is refused, as in life. ``more`` are further values of ``LeaseRequest``.
        """
        project, user = owner
        # As long as it is asked for, however late it begins.
        begin = self.clock.now().replace(microsecond=0) if start is NOW else self.not_before(start)
        request = LeaseRequest(
            name=name,
            user_id=user,
            project_id=project,
            start=start if start is NOW else begin,
            end=begin + timedelta(hours=hours),
            reservations=reservations,
            **more,
        )
        with suppress(BlazarError):
            return self.manager.leases.create(request)
        return None

    def host(self, name: str) -> Resource:
        """Return the host of a name."""
        return next(one for one in self.manager.resources.all(HOST) if one.name == name)

    def change_host(self, name: str, change: ResourceChange) -> None:
        """Change a host as its operator does."""
        self.manager.resources.change(HOST, self.host(name).external_id, change)

    def hosts_in_use(self, until: datetime) -> list[str]:
        """Return the names of hosts that active leases use, and go on using until then, in order."""
        leases = self.manager.leases.all(None)
        active = [one for one in leases if one.status is LeaseStatus.ACTIVE and one.window.end > until]
        ids = {use.resource_id for lease in active for use in self.store.calendar.of_lease(lease.id)}
        return sorted(resource.name for resource in self.store.resources.by_ids(ids).values())
