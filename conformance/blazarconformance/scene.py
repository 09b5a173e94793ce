# SPDX-License-Identifier: Apache-2.0
"""A manager on a database of its own, with the type of a trial and all its resources registered."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from blazar.enforcement import Enforcement, Filter
from blazar.manager.common.notifications import SERVERS_MOVED, SERVERS_PREEMPTED, Parties
from blazar.manager.common.settings import Settings
from blazar.manager.service import ManagerService, Plugins
from blazar.model.base.json_text import Json
from blazar.model.base.moments import NOW
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import LeaseChange, LeaseRequest, ReservationChange, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.resources.changes import Registration
from blazar.model.resources.resource import Resource
from blazar.model.use.preemption import Preemption
from blazar.resources.contract.evacuation import MovedServer
from blazar.resources.contract.type import ResourceType
from blazar.store.store import Store
from blazarconformance.databases import new_sqlite
from blazarconformance.harness import HasChildren
from blazarconformance.trial import HOUR, PROJECT, Trial

OTHERS = "chemistry-of-others"
SECRET = "geese-in-autumn"
"""A project and the name of a lease that nobody else may read."""

MOST_ROUNDS = 200


@dataclass(slots=True)
class _Told:
    types: list[str] = field(default_factory=list)

    def notify(
        self,
        notification: str,
        lease: Lease,
        *,
        extendable_until: datetime | None = None,
        transfer: Parties | None = None,
        reminder: str | None = None,
    ) -> None:
        self.types.append(notification)

    def notify_moved(self, project_id: str, servers: Collection[MovedServer]) -> None:
        self.types.append(SERVERS_MOVED)

    def notify_preempted(self, project_id: str, told: Collection[Preemption]) -> None:
        self.types.append(SERVERS_PREEMPTED)


class Scene:
    """A manager whose events run when the check calls ``run_to``."""

    def __init__(
        self,
        trial: Trial,
        *,
        filters: Sequence[Filter] = (),
        cleaning_time: timedelta = timedelta(0),
        register: bool = True,
    ) -> None:
        folder = TemporaryDirectory()
        trial.at_end(folder.cleanup)
        engine = new_sqlite(Path(folder.name) / "blazar.sqlite")
        trial.at_end(engine.dispose)
        self.trial = trial
        self.clock = trial.clock
        self.told = _Told()
        self.store = Store(engine, cleaning_time=cleaning_time)
        self.settings = Settings(claim_ttl=timedelta(seconds=30), patience=timedelta(0))
        self._enforcement = Enforcement(filters)
        self.manager = self._manager(trial.site.type)
        if register:
            self.register()

    def take_over(self) -> None:
        """Go on with another manager on the same database and cloud."""
        self.manager = self._manager(self.trial.site.another_type())

    def register(self) -> tuple[Resource, ...]:
        """Register all resources of the harness."""
        resources, kind = self.manager.resources, self.trial.kind.kind
        return tuple(resources.register(kind, Registration(values)) for values in self.trial.harness.registrations)

    def lease(
        self,
        *values: Json,
        start: timedelta | None = None,
        hours: float = 2,
        project: str = PROJECT,
        name: str = "a lease",
        before_end: datetime | None = None,
    ) -> Lease:
        """Create a lease of these reservations, by default of one plain request; from now on, or after a time."""
        now = self.clock.now().replace(second=0, microsecond=0)
        begins = now + (start or timedelta(0))
        requests = values or (self.trial.harness.request,)
        return self.manager.leases.create(
            LeaseRequest(
                name=name,
                user_id="curie",
                project_id=project,
                start=NOW if start is None else begins,
                end=begins + timedelta(hours=hours),
                before_end=before_end,
                reservations=tuple(ReservationRequest(self.trial.type.resource_type, each) for each in requests),
            )
        )

    def resize(self, lease: Lease, values: Json) -> Lease:
        """Change the first reservation of a lease."""
        change = ReservationChange(id=lease.reservations[0].id, parameters=values)
        return self.manager.leases.update(lease.id, LeaseChange(reservations=(change,)))

    def run_to(self, instant: datetime) -> None:
        """Let time pass until then, working on events as they fall due."""
        for _ in range(MOST_ROUNDS):
            due = self.store.events.next_due()
            if due is None or due > instant:
                break
            self.clock.to(due)
            self._run()
        self.clock.to(instant)
        self._run()
        if self.trial.harness.waits:
            self._wait()

    def run(self) -> None:
        """Work on all that is due now or in the next minutes: retries are soon."""
        self.run_to(self.clock.now() + timedelta(minutes=5))

    def now(self, lease: Lease) -> Lease:
        """Return a lease as it is by now, deleted or not."""
        return self.store.leases.one(lease.id, including_deleted=True)

    def promised(self, lease: Lease) -> frozenset[str]:
        """Return the names of the resources that are promised to a lease."""
        held = {each.resource_id for each in self.store.calendar.of_lease(lease.id)}
        return frozenset(resource.name for resource in self.store.resources.by_ids(held).values())

    def usable(self, lease: Lease) -> frozenset[str]:
        """Return the names of the resources that the project of a lease can use by it."""
        return frozenset(name for each in lease.reservations for name in self.trial.site.usable(each.id))

    def poll(self) -> None:
        """Poll as often as it takes for a change to count."""
        for _ in range(self.settings.failures_before_healing):
            self.manager.monitor.run_once()

    def _wait(self) -> None:
        """Let the starts and ends under way come to their end, if that takes minutes at most."""
        limit = self.clock.now() + timedelta(minutes=5)
        for _ in range(MOST_ROUNDS):
            due = self.store.events.next_due()
            if due is None or due > limit or not self._under_way():
                return
            self.clock.to(due)
            self._run()

    def _under_way(self) -> bool:
        under_way = (LeaseStatus.STARTING, LeaseStatus.TERMINATING, LeaseStatus.DELETING)
        return any(each.status in under_way for each in self.manager.leases.all(None))

    def _manager(self, plain: ResourceType) -> ManagerService:
        kind = self.trial.site.kind
        beside = self.trial.site.beside() if isinstance(self.trial.site, HasChildren) else ()
        plugins = Plugins((plain, *beside), {kind.kind: kind}, self.told, self._enforcement)
        return ManagerService(self.store, self.clock, self.settings, plugins)

    def _run(self) -> None:
        self.manager.engine.run_due()
        self.manager.outbox.run_due()


LATER = HOUR
"""After what time leases of checks start that start later."""
