# SPDX-License-Identifier: Apache-2.0
"""Turns at booking, of the threads of a process: what one of them plans, no other one changes meanwhile.

Between processes the generations of resources decide. Within one, taking turns is cheaper than losing races. Who only
takes resources for a new lease passes the turn on before they are written: the next one plans as if they were taken,
and waits for that write only if there is nothing else.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

from blazar.model.base.values import dataclass

NOTHING: Mapping[int, frozenset[int]] = MappingProxyType({})


class BookingTurns:
    """Gives turns, one after the other, and knows what is being written by those who have passed theirs on."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Who holds it has the turn."""
        self.changed = threading.Condition(threading.Lock())
        self.writing: Mapping[int, frozenset[int]] = NOTHING
        """What is written, by turn: a value that is replaced, so that who looks at it sees it whole."""

    @property
    def in_flight(self) -> frozenset[int]:
        """The resources that are being written; to be asked in one's turn, before the calendar is read.

        What is not among them any more is found there, and nobody but who has the turn adds some.
        """
        return frozenset().union(*self.writing.values())

    def wait_for_writes(self) -> None:
        """Wait in one's turn until nothing is being written."""
        with self.changed:
            self.changed.wait_for(lambda: not self.writing)


@dataclass(slots=True, eq=False)
class BookingTurn:
    """One turn, while it is entered: the others wait for its end, but for those that it lets go before."""

    turns: BookingTurns
    _is_passed_on: bool = False

    def __enter__(self) -> BookingTurn:
        self.turns.lock.acquire()
        return self

    def __exit__(self, *failure: object) -> None:
        if not self._is_passed_on:
            self.turns.lock.release()
            return
        with self.turns.changed:
            self.turns.writing = {other: ids for other, ids in self.turns.writing.items() if other != id(self)}
            self.turns.changed.notify_all()

    @contextmanager
    def interrupted(self) -> Iterator[None]:
        """Let others have their turn while the block runs."""
        self.turns.lock.release()
        try:
            yield
        finally:
            self.turns.lock.acquire()

    def pass_on(self, resource_ids: Iterable[int]) -> None:
        """Let the others have their turn for good; these resources are written until the end of this one."""
        with self.turns.changed:
            self.turns.writing = {**self.turns.writing, id(self): frozenset(resource_ids)}
        self._is_passed_on = True
        self.turns.lock.release()
