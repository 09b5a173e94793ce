# SPDX-License-Identifier: Apache-2.0
"""Looking at something again and again, for as long as there is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from blazarclient.exception import ServiceUnavailable
from blazarclient.library.connections import NotTrusted

S = TypeVar("S")

EVERY = 2.0
"""Seconds between two looks, unless another pause is asked for."""


def looks(
    look: Callable[[], S],
    *,
    timeout: float | None = None,
    every: float = EVERY,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[S]:
    """Yield what ``look`` returns, now and after each pause; the last one is at the end of ``timeout`` seconds.

    Without a ``timeout`` there is no end to it: the caller stops when it has seen what it waits for.
    """
    begun = clock()
    while True:
        yield look()
        left = None if timeout is None else timeout - (clock() - begun)
        if left is not None and left <= 0:
            return
        sleep(every if left is None else min(every, left))


class Outages:
    """Outages of the service that do not end looks without an end: ``when_silent`` is called once in each.

    Only the first look has to succeed, so that a wrong URL is told at once.
    """

    def __init__(self, when_silent: Callable[[ServiceUnavailable], None] | None) -> None:
        self._when_silent = when_silent
        self._is_answered = self._is_silent = False

    @contextmanager
    def bridge(self) -> Iterator[None]:
        """Have one look within; ServiceUnavailable if the looks cannot go on."""
        try:
            yield
        except ServiceUnavailable as error:
            if self._when_silent is None or not self._is_answered or isinstance(error, NotTrusted):
                raise
            if not self._is_silent:
                self._when_silent(error)
            self._is_silent = True
        else:
            self._is_answered, self._is_silent = True, False
