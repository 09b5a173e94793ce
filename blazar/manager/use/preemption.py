# SPDX-License-Identifier: Apache-2.0
"""The work on notices: one of the managers at a time tells preemptible servers when a start is to delete them.

It looks ahead by the notice and by the time until its next look, so every server that runs when the notice begins gets
the whole notice. Starts do not depend on it and never wait for it.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta

from blazar.context import scope
from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import RARELY, TurnWork
from blazar.manager.common.runtime import Runtime, tasks_of
from blazar.manager.use.lending import LendingWork
from blazar.model.base.errors import BlazarError
from blazar.model.journal.object_entries import tell_preemption
from blazar.model.use.preemption import NoticeChanges, PreemptedPlace, Preemption, compare_notices
from blazar.resources.contract.values import Task

LOG = logging.getLogger(__name__)

STEP = timedelta(seconds=15)
"""The time between two looks."""


class PreemptionWork(TurnWork):
    """Gives and withdraws notices in turn with the other managers."""

    every = STEP
    idle = RARELY

    def __init__(self, runtime: Runtime) -> None:
        store = runtime.store.preemption
        work = "Preemptible servers cannot be told that they go"
        super().__init__("preemption", runtime, store, work=work, retry=STEP.total_seconds())
        self._store = store
        self._lending = LendingWork(runtime)
        self._notice = runtime.settings.preemption_notice
        # Where this manager has kept others away. It is forgotten with the process: then a host whose lease begins
        # later than was told is open again with that start.
        self._closed: frozenset[PreemptedPlace] = frozenset()

    def _is_needed(self) -> bool:
        # What was lent is taken back after notices were switched off.
        return bool(self._notice) or bool(self._runtime.store.lending.read())

    def work(self, claimed: datetime, claim: Claim) -> None:
        """Look at what starts within the notice. StoreUnavailable."""
        self._take_turn(claimed, claim, self._progress, "Preemptible servers were not told")

    def _progress(self, now: datetime, claim: Claim) -> None:
        """Tell what is new, and take back what is not true any more; four statements where there is nothing to do."""
        known = self._store.read()
        starts = tuple(self._find_starts(now))
        seen = [preemption for task in starts for preemption in self._give_notice(task)]
        recall = self._lending.progress(now, claim, known.values())
        coming = frozenset(place for task in starts for place in _list_places(task)) | recall.coming
        coming |= {preemption.place for preemption in recall.told}
        if not self._notice:
            # Who was told before notices were switched off goes all the same.
            coming |= {preemption.place for preemption in known.values()}
        changes = compare_notices(known, [*seen, *recall.told], coming, now, gone=recall.gone)
        self._withdraw_notices(changes.stale, {place for place in self._closed - coming if place.starts_at > now})
        self._closed = coming
        if not changes.is_empty:
            self._write(changes, now, claim)
        self._lending.end(recall, now, claim)

    def _write(self, changes: NoticeChanges, now: datetime, claim: Claim) -> None:
        entries = [tell_preemption(preemption, at=now) for preemption in changes.new]
        entries += [tell_preemption(preemption, at=now, withdrawn=True) for preemption in changes.stale]
        over = [preemption.server.id for preemption in (*changes.over, *changes.stale)]
        self._store.write(claim.token, changes.new, over, entries)
        self._notify(changes.new)

    def _find_starts(self, now: datetime) -> Iterator[Task]:
        """Yield the reservations that start within the notice, or before the next look at it."""
        ids = self._store.list_starts(now, now + self._notice + STEP) if self._notice else ()
        found = self._runtime.store.leases.load_starts(ids, now=now) if ids else {}
        for seen in found.values():
            for task in tasks_of(seen.lease, seen.allocations, seen.resources):
                known = self._runtime.types.get(task.reservation.resource_type)
                if task.resources and known is not None and known.has("give_notice"):
                    yield task

    def _give_notice(self, task: Task) -> Sequence[Preemption]:
        """Return what the servers in the way of a start were told; a cloud that does not answer is asked again."""
        reservation, ends_at = task.reservation, task.lease.window.start
        try:
            with scope(limit=self._runtime.settings.poll_limit):
                servers = self._runtime.type_of(reservation).give_notice(task, ends_at)
        except BlazarError as error:
            LOG.warning(
                "Preemptible servers in the way of reservation %s are not told: %s", reservation.id, error.message
            )
            return ()
        return [Preemption(server, reservation.id, reservation.resource_type, ends_at) for server in servers]

    def _withdraw_notices(self, stale: Sequence[Preemption], opened: Collection[PreemptedPlace]) -> None:
        """Have servers no longer say that they go: what needed their place is gone, or begins at another time."""
        servers: dict[PreemptedPlace, list[str]] = {place: [] for place in opened}
        for preemption in stale:
            servers.setdefault(preemption.place, []).append(preemption.server.id)
        resources = self._runtime.store.resources.by_ids({place.resource_id for place in servers}) if servers else {}
        for place, server_ids in servers.items():
            known = self._runtime.types.get(place.resource_type)
            if known is not None and place.resource_id in resources:
                with scope(limit=self._runtime.settings.poll_limit):
                    known.withdraw_notice(resources[place.resource_id], place.reservation_id, server_ids)

    def _notify(self, told: Collection[Preemption]) -> None:
        by_project: Mapping[str, list[Preemption]] = defaultdict(list)
        for preemption in told:
            by_project[preemption.server.project_id].append(preemption)
        for project_id, theirs in sorted(by_project.items()):
            LOG.info("%d preemptible servers of project %s were told that they go", len(theirs), project_id)
            self._runtime.notifier.notify_preempted(project_id, theirs)


def _list_places(task: Task) -> Iterator[PreemptedPlace]:
    reservation, starts_at = task.reservation, task.lease.window.start
    return (PreemptedPlace(reservation.id, reservation.resource_type, r.id, starts_at) for r in task.resources)
