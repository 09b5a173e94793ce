# SPDX-License-Identifier: Apache-2.0
"""How much a call costs: its CPU, and for how much of that it lets no other thread run."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

TRIES = 12
"""Other work on the machine only adds to what is measured, so that the least of some tries counts."""


PIECE_SECONDS = 0.006
"""Of CPU, of the machine on which our limits were set."""
_PIECE = json.dumps({str(number): [number, {"text": str(number)}] for number in range(3000)})


@dataclass(frozen=True, slots=True)
class Work:
    """Seconds of CPU of a call, and the longest part of them in which no other thread ran.

    Both are of the CPU of its thread, and of a machine that does our piece of work in ``PIECE_SECONDS``: neither what
    other processes take of the machine is in them, nor that a core which they share is slower meanwhile.
    """

    cpu: float
    gap: float


def work_of(call: Callable[[], object], *, most: Work) -> Work:
    """Return the least work of a call in some tries, or of the first that is within ``most``."""
    best = Work(float("inf"), float("inf"))
    for _ in range(TRIES):
        before = slowness()
        with _ticking() as looks:
            began = time.thread_time()
            call()
            cpu = time.thread_time() - began
        # All of them have been written by now.
        parts = [later - earlier for earlier, later in zip(looks, looks[1:], strict=False)]
        slow = max(before, slowness())
        best = Work(min(best.cpu, cpu / slow), min(best.gap, max(parts) / slow))
        if best.cpu <= most.cpu and best.gap <= most.gap:
            break
    return best


def slowness() -> float:
    """Return how many times as long as on the machine of our limits a piece of work takes now; at least 1."""
    began = time.thread_time()
    pieces = json.loads(_PIECE, object_pairs_hook=dict)
    sorted(pieces, key=lambda piece: (pieces[piece][1]["text"], len(piece)))
    return max(1.0, (time.thread_time() - began) / PIECE_SECONDS)


@contextmanager
def _ticking() -> Iterator[list[float]]:
    """Let another thread look at the CPU of this one all the time; yield what it has seen."""
    looks = [time.thread_time()]
    clock = time.pthread_getcpuclockid(threading.get_ident())
    runs, over = threading.Event(), threading.Event()

    def tick() -> None:
        runs.set()
        while not over.wait(0.001):
            looks.append(time.clock_gettime(clock))

    thread = threading.Thread(target=tick)
    thread.start()
    runs.wait()
    try:
        yield looks
    finally:
        over.set()
        thread.join()
        looks.append(time.thread_time())
