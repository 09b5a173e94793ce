# SPDX-License-Identifier: Apache-2.0
"""The journal: its entries get their positions soon after they are committed, and are read by these.

Any number of managers may number. There is no claim, which a manager that is killed would keep for a while: who
numbers holds a row of the database in one short transaction, which ends with its connection. A burst is numbered in
portions, so that others can number or read meanwhile, and who waits to read is told when there is no more.
"""

from __future__ import annotations

from collections.abc import Mapping

from blazar import __version__
from blazar.manager.common.background import BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.model.base.clock import to_second
from blazar.model.base.moments import instant_of
from blazar.model.base.window import check_order
from blazar.model.journal.views import JournalPage, JournalQuestion

BATCH = 500
"""Entries that one transaction numbers."""
PAUSE_SECONDS = 1.0
"""What other managers write is seen so late."""
SETTLE_SECONDS = 0.02
"""What is written within this time is numbered together."""


class JournalNumbering(BackgroundThread):
    """Numbers what was committed: at once what this process writes, and each second what others do.

    It goes on until all other parts have stopped, so that what they write last is numbered, too.
    """

    def __init__(self, runtime: Runtime) -> None:
        super().__init__("journal", work="Entries of the journal cannot be numbered", settle=SETTLE_SECONDS)
        self._journal = runtime.store.journal
        self._clock = runtime.clock
        self._numbered = runtime.signals.entries_numbered
        self._options: Mapping[str, str] | None = None
        # Where no mail is sent, nobody subscribes to it by having a lease.
        self._own_events = runtime.settings.own_events if runtime.mail.enabled else ()

    def tell_configuration(self, options: Mapping[str, str]) -> None:
        """Have it written once that the service is configured otherwise than before, if it is; with the first round.

        ``options`` are fingerprints of the values that are set, by name.
        """
        self._options = options

    def start(self) -> None:
        """Start the thread, which is woken by each commit that has written to the journal."""
        self._journal.listen(self.wake)
        super().start()

    def run_once(self) -> int:
        """Number all that is committed; return how many entries. StoreUnavailable.

        Who reads the journal is told once, when all of it can be read.
        """
        self._note_configuration()
        total = 0
        while not self._stopping.is_set():
            done = self._journal.number(BATCH, now=self._clock.now(), own_events=self._own_events)
            total += done
            if done < BATCH:
                # The rest is of transactions that go on; each is followed by a wake, here or in another manager.
                break
        if total:
            self._numbered()
        return total

    def _note_configuration(self) -> None:
        if self._options is not None:
            self._journal.note_configuration(self._options, version=__version__, at=self._clock.now())
            self._options = None

    def _round(self) -> float:
        self.run_once()
        return PAUSE_SECONDS


class JournalService:
    """Answers the calls about what was done."""

    def __init__(self, runtime: Runtime) -> None:
        self._journal = runtime.store.journal
        self._clock = runtime.clock
        self._zone = runtime.settings.reports.zone

    def page(self, question: JournalQuestion) -> JournalPage:
        """Return a page of what was done, in the order of positions. InvalidInput: unknown marker, no period."""
        now, zone = to_second(self._clock.now()), self._zone
        since = None if question.since is None else instant_of(question.since, zone, now)
        until = None if question.until is None else instant_of(question.until, zone, now)
        if since is not None and until is not None:
            check_order(since, until)
        return self._journal.page(question, since=since, until=until)
