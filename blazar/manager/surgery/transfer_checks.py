# SPDX-License-Identifier: Apache-2.0
"""A lease goes to another project: what keeps it from that, and how the change is granted.

In the calendar nothing changes. For enforcement the lease of the one project ends, and one of the other begins; all
else is the machinery of changes: what is in the cloud is given to the other project while the lease is UPDATING, and
back if anything fails.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from blazar.enforcement import Occasion
from blazar.manager.booking.lease_changes import DecidedChange, Unchanged
from blazar.manager.booking.quotas import LeaseNeeds, RegionNeed, check_quotas, find_leaving, needs_of, starts_at_once
from blazar.manager.booking.unique_names import check_names
from blazar.manager.changing.change_grants import ChangeGrant
from blazar.manager.common.notifications import TRANSFERRED, Parties
from blazar.manager.common.runtime import Runtime
from blazar.manager.outbox.enforcement_check import Examined
from blazar.manager.outbox.messages import make_messages, plan_messages
from blazar.manager.surgery.common import LIVE
from blazar.manager.surgery.swap import MOST_NAMED
from blazar.model.base.errors import Conflict
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from blazar.model.use.resource_hours import OutboxMessage, ProjectUse
from blazar.resources.contract.values import Task


def check_transferable(
    runtime: Runtime, lease: Lease, tasks: tuple[Task, ...], project_id: str, *, names: bool
) -> None:
    """Raise Conflict if a lease cannot go to another project as it is. Asks the cloud, outside of any turn.

    ``names``: servers of the lease's project may be named, as that project asks.
    """
    if lease.series is not None:
        raise Conflict(
            f"the lease is an occurrence of series {lease.series.series_id}, which would book it again; only leases of "
            "their own go to another project",
            code="not_transferable",
        )
    going = [task for task in tasks if task.reservation.status in LIVE]
    for task in going:
        if obstacle := runtime.type_of(task.reservation).transfer_obstacle(task, project_id):
            raise Conflict(f"reservation {task.reservation.id} {obstacle}", code="not_transferable")
        if closed := sum(not resource.is_open_to(project_id) for resource in task.resources):
            raise Conflict(
                f"reservation {task.reservation.id} has {closed} resources that are not open to project {project_id}",
                code="not_transferable",
            )
    check_empty(runtime, lease, going, project_id, names=names)


def check_empty(runtime: Runtime, lease: Lease, tasks: list[Task], project_id: str, *, names: bool) -> None:
    """Raise Conflict if servers run in reservations in use: they belong to the giver, and nothing moves them.

    Those of the project that gets the lease stay where they are. It may boot them as soon as it can, a moment before
    the lease is its own: if these were in the way, they would go on in the lease of the giver.
    """
    found = {
        server.id: server
        for task in tasks
        if task.reservation.status is ReservationStatus.ACTIVE
        for server in runtime.type_of(task.reservation).servers_in_use(task) or ()
        if server.project_id != project_id
    }
    if not found:
        return
    if not names:
        raise Conflict(
            f"servers run in the lease ({len(found)}) and stay with their project; it can go when they are gone",
            code="lease_has_servers",
        )
    theirs = sorted(server.id for server in found.values() if server.project_id == lease.project_id)
    listed = ", ".join(theirs[:MOST_NAMED]) or "some of other projects"
    raise Conflict(
        f"the lease has servers: {listed}; they stay with their project, so delete or move them before the lease goes "
        "to another one",
        code="lease_has_servers",
        data={"servers": theirs[:MOST_NAMED]},
    )


class GrantToUser(ChangeGrant):
    """The grant of a lease to another user of its project: an ordinary change."""

    told = TRANSFERRED

    def parties(self, found: DecidedChange) -> Parties | None:
        """Return the project, twice."""
        return Parties(found.lease.project_id, found.draft.after.project_id)


class GrantToProject(ChangeGrant):
    """The grant of a lease to another project. That project is asked as for a new lease."""

    told = TRANSFERRED

    @property
    def checked(self) -> bool:
        """Return that there is something to check, whatever the filters are."""
        return True

    def parties(self, found: DecidedChange) -> Parties | None:
        """Return who gave the lease, and who has it now."""
        return Parties(found.lease.project_id, found.draft.after.project_id)

    def check_change(self, found: DecidedChange | Unchanged) -> None:
        """Check that the lease can go, and that the other project may have it. Conflict, UsageDenied, CloudError."""
        assert isinstance(found, DecidedChange)
        after = found.draft.after
        self.runtime.enforcement.check_transfer()
        check_transferable(self.runtime, found.lease, found.tasks, after.project_id, names=False)
        check_names(self.runtime, after)
        self._check_quotas(after)
        self.outbox.catch_up(after.id)
        self._check_use(found)

    def must_accept(self, found: DecidedChange) -> bool:
        """Tell whether a filter has to accept the lease of the other project."""
        return self.runtime.enforcement.needs_acceptance(Occasion.CREATED, found.draft.after.project_id)

    def messages(self, found: DecidedChange, after: Lease) -> tuple[OutboxMessage, ...]:
        """Return that the other project has a new lease, and that the one of the first has ended."""
        ended = replace(found.lease, status=LeaseStatus.DELETING)
        return (
            *plan_messages(self.runtime, Occasion.CREATED, after, found.plan.allocations, by=self.caller(after)),
            *make_messages(self.runtime, Occasion.ENDED, ended, found.allocations),
        )

    def confirm(self, found: DecidedChange) -> None:
        """Look once more for servers: since the lease has its new owner, the old one boots no more."""
        check_empty(self.runtime, found.lease, list(found.tasks), found.draft.after.project_id, names=False)

    def check_last(self, found: DecidedChange) -> ProjectUse | None:
        """Check the use of the other project once more: the lease has not counted for it so far."""
        self._check_use(found)
        return self.enforcement_check.use

    def _check_use(self, found: DecidedChange) -> None:
        after = found.draft.after
        runtime, bounds = self.runtime, self.runtime.bounds_of(after.project_id)
        if bounds.depends_on_project:
            so_far = runtime.store.calendar.count_leases(after.project_id, runtime.clock.now())
            bounds.check_project(*so_far, more=len(after.reservations))
        if runtime.enforcement.enabled:
            self.enforcement_check.check(Examined(self._taker(after), after, found.plan.allocations))

    def _taker(self, after: Lease) -> Actor:
        return self.change.asked_by or Actor(after.user_id, after.project_id)

    def _check_quotas(self, after: Lease) -> None:
        needs = []
        for reservation in after.reservations:
            kind = self.runtime.type_of(reservation).within(reservation.region)
            amounts = needs_of(kind, reservation.parameters, part=reservation.parent is not None)
            if amounts and kind.quotas is not None:
                needs.append(RegionNeed(reservation.region, kind.quotas, amounts, None))
        if needs:
            start = after.window.start
            at_once = starts_at_once(start, self.runtime.clock.now())
            going = partial(find_leaving, self.runtime, after.project_id, start)
            check_quotas(LeaseNeeds(after.project_id, tuple(needs), at_once, going))
