# SPDX-License-Identifier: Apache-2.0
"""Computes once more, each night, what closed accounts were charged, so that a line that was lost is missed.

It writes nothing but what differs. One manager does it at a time, some accounts a night.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from datetime import UTC, datetime, time, timedelta

from blazar.manager.common.claims import Claim
from blazar.manager.common.due_work import RARELY, TurnWork
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import to_second
from blazar.model.base.errors import ClaimLost
from blazar.model.base.reasons import spell_count
from blazar.model.billing.recomputation import list_differences
from blazar.model.reports.periods import DAY

LOG = logging.getLogger(__name__)

MOST = 2000
"""Accounts that are looked at in a night."""

BATCH = 50
"""Accounts that are read together: few enough that a manager needs little memory for it, and lets others write."""

LONGEST_NIGHT = timedelta(hours=26)
"""From one night to the next, where clocks are put back by as much as they are anywhere."""

HOUR = time(3)
"""When the night is quiet, in the time zone of reports."""


class Recomputation(TurnWork):
    """Looks at closed accounts in turn with the other managers.

    ``most`` are looked at in a turn, ``batch`` at a time.
    """

    every = LONGEST_NIGHT
    idle = RARELY

    def __init__(self, runtime: Runtime) -> None:
        store = runtime.store.recomputations
        super().__init__("recomputation", runtime, store, work="Charges cannot be computed once more", retry=60.0)
        self._store = store
        self.most, self.batch = MOST, BATCH

    def _is_needed(self) -> bool:
        return bool(self._runtime.store.price_lists.read())

    def work(self, claimed: datetime, claim: Claim) -> None:
        """Look at some accounts. StoreUnavailable."""
        # Who has lost the claim leaves the rest to the other manager.
        with self._runtime.claims.held(claim), suppress(ClaimLost):
            found = self._look(to_second(claimed), claim)
            if found:
                LOG.warning(
                    "Charges are not what is on record of leases (%s): see the problems", spell_count(found, "month")
                )
            self._store.release_turn(claim.token, due_at=self._find_next_night(claimed))

    def _look(self, began: datetime, claim: Claim) -> int:
        """Look at accounts, a batch at a time; return how many differences there are."""
        left, after, found = self.most, "", 0
        while left > 0 and not self._stopping.is_set():
            looked_at = self._store.list_next(began, min(self.batch, left), after=after)
            if not looked_at.ids:
                break
            checked = self._store.read(looked_at.lease_ids)
            differences = [one for lease in checked.leases for one in list_differences(lease, checked.lists)]
            self._store.record(claim.token, looked_at, checked, differences, at=began)
            left, after = left - len(looked_at.ids), looked_at.after
            found += len(differences)
        return found

    def _find_next_night(self, now: datetime) -> datetime:
        zone = self._runtime.settings.reports.zone
        return datetime.combine(now.astimezone(zone).date() + DAY, HOUR, zone).astimezone(UTC)
