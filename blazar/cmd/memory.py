# SPDX-License-Identifier: Apache-2.0
"""The garbage collector and the allocator, told what kind of program this is."""

from __future__ import annotations

import ctypes
import gc
import logging
import resource
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

LOG = logging.getLogger(__name__)

THRESHOLDS = (50_000, 20, 20)

ARENAS = 2
"""Heaps that the threads of a process share. By itself the C library makes one for each, and what a thread frees in the
middle of its own is of no use to the others."""

INTERVAL = 10.0
"""Seconds between two looks at how much could be given back."""

WORTHWHILE = 2 * 1024 * 1024
"""Bytes that must have come together before anything is given back."""

LARGE = 256 * 1024
"""Bytes from which on a block is one of its own, returned as soon as it is freed. By itself the C library raises this
limit with the largest block that was ever freed, and keeps a hole for the next list."""

SINCE_COLLECTED = 5000
"""Objects that must have been made since the last collection before there is another one."""

_M_ARENA_MAX = -8
_M_MMAP_THRESHOLD = -3


class Allocator(Protocol):
    """What there is to know of the memory of this process, and to do about it."""

    def resident(self) -> int:
        """Return the bytes that the process occupies."""

    def unused(self) -> int:
        """Return the bytes among them that were freed and kept, about; they count also when they were given back."""

    def give_back(self) -> None:
        """Return to the system what was freed."""


class _Mallinfo(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "top",
        )
    ]


class GnuAllocator:
    """The C library of most Linux systems. AttributeError or OSError elsewhere."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._info, self._trim = library.mallinfo2, library.malloc_trim
        self._info.restype = _Mallinfo
        library.mallopt(_M_ARENA_MAX, ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, LARGE)

    def resident(self) -> int:
        """Return the bytes that the process occupies."""
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()

    def unused(self) -> int:
        """Return the bytes that were freed and kept."""
        return int(self._info().fordblks)

    def give_back(self) -> None:
        """Return to the system what was freed."""
        self._trim(0)


class Keeper:
    """Gives memory back once enough has come together: a long list is hundreds of megabytes for a moment."""

    def __init__(self, allocator: Allocator, made: Callable[[], int] | None = None) -> None:
        self._allocator = allocator
        self._made = made or _made
        self._known = allocator.resident(), allocator.unused()

    def look(self) -> bool:
        """Give back what was freed if it is worthwhile; tell whether it was."""
        known = self._known
        now = self._allocator.resident(), self._allocator.unused()
        changed = any(present - before >= WORTHWHILE for present, before in zip(now, known, strict=True))
        # What hangs together in circles is not freed before it is collected, and does not show until then.
        if not changed and self._made() < SINCE_COLLECTED:
            # What was freed last time and is in use again must not hide what is freed next.
            self._known = min(now[0], known[0]), min(now[1], known[1])
            return False
        gc.collect()
        self._allocator.give_back()
        self._known = self._allocator.resident(), self._allocator.unused()
        return True


def _made() -> int:
    """Return how many objects were made since the last collection of all, and not freed; at least so many."""
    youngest, young, old = gc.get_count()
    return youngest + (young + old * THRESHOLDS[1]) * THRESHOLDS[0]


def settle() -> None:
    """Leave what was made at the start out of every collection, collect less often, and give back what was freed.

    A list of ten thousand leases is half a million short-lived values in no cycle; looking through them again and
    again while they are being made takes as long as making them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    try:
        keeper = Keeper(GnuAllocator())
    except (AttributeError, OSError) as error:
        LOG.debug("Memory is left to this system's allocator: %s", error)
        return
    threading.Thread(target=_keep, args=(keeper, threading.Event()), name="memory", daemon=True).start()


def _keep(keeper: Keeper, stopping: threading.Event) -> None:
    while not stopping.wait(INTERVAL):
        try:
            keeper.look()
        except Exception:
            LOG.exception("The memory of this process can not be looked at any more")
            return
