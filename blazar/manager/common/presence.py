# SPDX-License-Identifier: Apache-2.0
"""The presence of a manager: the row by which others, and operators, see that it runs, and what it does.

The thread that renews claims writes it: it is the last to stop, and a manager that cannot renew is not seen either.
"""

from __future__ import annotations

import hashlib
import logging
import os
import socket
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from dataclasses import fields, is_dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from blazar import __version__
from blazar.manager.common.background import LONGEST_ERROR, BackgroundThread
from blazar.manager.common.runtime import Runtime
from blazar.model.base.errors import StoreUnavailable
from blazar.model.base.log_lines import Trouble, printable
from blazar.model.managers.presence import KEPT, ConditionKind, ManagerCondition, ManagerFacts, ManagerState

LOG = logging.getLogger(__name__)

DROP_INTERVAL = timedelta(hours=1)
"""How often the rows of managers are dropped that have not been seen for long."""


TRY_LOG = 30.0
"""Seconds between two tries to write a log that cannot be written."""


class Presence:
    """Tells of one manager what it is and does, how its ``threads`` get on, and what it lacks, with each heartbeat.

    ``log_troubles`` are those of what writes the log of the process; ``list_more`` returns what else it lacks.
    """

    def __init__(
        self,
        runtime: Runtime,
        threads: Collection[BackgroundThread],
        log_troubles: Collection[Trouble] = (),
        list_more: Callable[[], Iterable[ManagerCondition]] = tuple,
    ) -> None:
        self._store = runtime.store
        self._clock = runtime.clock
        self._threads = tuple(threads)
        self._log_troubles = tuple(log_troubles)
        self._log_tried_at = float("-inf")
        self._list_more = list_more
        self._enforcement = runtime.enforcement
        self._drop_at: datetime | None = None
        self._claims = runtime.claims
        self._facts = ManagerFacts(
            id=runtime.claims.owner,
            host=socket.gethostname(),
            pid=os.getpid(),
            version=__version__,
            started_at=runtime.clock.now(),
            regions=tuple(runtime.regions),
            options_hash=hash_options(runtime),
        )

    def appear(self) -> None:
        """Write the row with each heartbeat from now on."""
        self._claims.beaten.connect(self.beat)

    @property
    def state(self) -> ManagerState:
        """Return what the manager does."""
        return self._facts.state

    def facts(self) -> ManagerFacts:
        """Return the facts about the manager as they are now."""
        now = self._clock.now()
        threads = tuple(thread.describe(now) for thread in self._threads)
        conditions = tuple(self._list_conditions(now))
        return replace(self._facts, clock_offset=self._clock.offset(), threads=threads, conditions=conditions)

    def _list_conditions(self, now: datetime) -> Iterator[ManagerCondition]:
        """Yield what this process lacks of what is not its own."""
        yield from self._list_more()
        lasting = (trouble.describe(now) for trouble in self._log_troubles)
        for trouble in filter(None, lasting):
            yield ManagerCondition(ConditionKind.LOG, "", trouble.since, printable(trouble.sentence, LONGEST_ERROR))
        for name, trouble in self._enforcement.list_silent(now).items():
            sentence = printable(trouble.sentence, LONGEST_ERROR)
            yield ManagerCondition(ConditionKind.ENFORCEMENT, name, trouble.since, sentence)

    def enter(self, state: ManagerState) -> None:
        """Change the state; it is told at once."""
        self._facts = replace(self._facts, state=state)
        self._claims.wake()

    def beat(self) -> None:
        """Write the row: one statement, and another one each hour. StoreUnavailable."""
        self._try_log()
        now = self._clock.now()
        self._store.managers.beat(self.facts(), at=now)
        if self._drop_at is None or now >= self._drop_at:
            self._store.managers.drop_unseen(since=now - KEPT)
            self._drop_at = now + DROP_INTERVAL

    def _try_log(self) -> None:
        """Write a line now and then while the log cannot be written: one with little to say would not see that it can.

        Other outputs of the log, which work, get these lines, too.
        """
        here = self._clock.elapsed()
        if here - self._log_tried_at >= TRY_LOG and any(trouble.lasts for trouble in self._log_troubles):
            self._log_tried_at = here
            LOG.warning("The log could not be written: lines before this one may be missing")

    def forget_others(self) -> None:
        """Remove the rows of all managers, none of which runs any more."""
        self._store.managers.drop_unseen(since=self._clock.now())

    def leave(self) -> None:
        """Remove the row of a manager that has finished its work: what is left behind is of those that crashed."""
        if self._drop_at is None:
            return
        try:
            self._store.managers.remove(self._facts.id)
        except StoreUnavailable as error:
            LOG.warning("This manager stays on the list of managers for a day, as stopping: %s", error.message)


def hash_options(runtime: Runtime) -> str:
    """Return a hash of what managers of one database must have in common: what they decide about leases by."""
    filters = [type(rule).__name__ for rule in runtime.enforcement.filters]
    common = (runtime.settings, sorted(runtime.types), runtime.regions, runtime.store.calendar.cleaning_time, filters)
    return hashlib.sha256(spell_options(common).encode()).hexdigest()[:16]


def spell_options(value: Any) -> str:
    """Return a text that is the same in every process that has the same options; functions are left out."""
    if is_dataclass(value) and not isinstance(value, type):
        return spell_options({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, Mapping):
        kept = {str(key): part for key, part in value.items() if not callable(part)}
        return f"{{{', '.join(f'{key}: {spell_options(kept[key])}' for key in sorted(kept))}}}"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(spell_options(part) for part in value))}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(spell_options(part) for part in value)}]"
    return str(value)
