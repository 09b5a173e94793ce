# SPDX-License-Identifier: Apache-2.0
"""Measures changes of leases against the waiting list: what a lease gets more must delay nobody who waits.

Otherwise who does not want to wait would book what is free for a minute, and prolong that.
"""

from __future__ import annotations

from collections.abc import Collection

from blazar.calendar.queue.values import Grant, Part
from blazar.calendar.timeline import second
from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.change_decisions import Change, Unchanged
from blazar.manager.requests.waiting_board import PROTECT, Boards
from blazar.model.demand import Allocation
from blazar.model.errors import OthersWait
from blazar.model.lease import Lease


class Line:
    """The line of those that wait, as a change of a lease meets it."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._boards = Boards(runtime)

    def check(self, found: Change | Unchanged) -> None:
        """Raise OthersWait if a lease gets more by a change, and one that waits would be delayed.

        One statement if nobody waits, and none if it gets no more.
        """
        if not isinstance(found, Change) or not self._takes_more(found):
            return
        if not self._runtime.store.waiting_list.anybody():
            return
        after = found.draft.after
        board = self._boards.board(without=after.id)
        delayed = board.delayed(_grant(found.lease, found.allocations), _grant(after, found.plan.allocations))
        if delayed:
            count = len(delayed)
            raise OthersWait(
                f"{count} {'lease waits' if count == 1 else 'leases wait'} for the same resources and would be delayed "
                "by this change; ask for less, or retry later",
                data={"before": count, "opening": None},
            )

    def _takes_more(self, found: Change) -> bool:
        window = found.draft.after.window
        if not found.draft.replan or window.start > self._runtime.clock.now() + PROTECT:
            return False
        return not found.lease.window.covers(window) or not _within(found.plan.allocations, found.allocations)


def _within(some: Collection[Allocation], others: Collection[Allocation]) -> bool:
    """Return whether others have all that some have, whenever that is."""
    known = {(each.reservation_id, each.resource_id, each.per_instance): each.count for each in others}
    return all(each.count <= known.get((each.reservation_id, each.resource_id, each.per_instance), 0) for each in some)


def _grant(lease: Lease, allocations: Collection[Allocation]) -> Grant:
    parts = tuple(Part(0, each.kind, each.resource_id, each.count, each.per_instance) for each in allocations)
    return Grant(lease.id, second(lease.window.start), second(lease.window.end), parts)
