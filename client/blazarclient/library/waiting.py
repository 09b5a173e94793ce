# SPDX-License-Identifier: Apache-2.0
"""Looking at something again and again, for as long as there is time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TypeVar

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
