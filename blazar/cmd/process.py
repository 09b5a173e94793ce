# SPDX-License-Identifier: Apache-2.0
"""A process of this kind of program: garbage collector, allocator, number of open files, and its state for systemd.

That is for units with ``Type=notify``, by the protocol of sd_notify(3).
"""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import resource
import socket
import sys
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Protocol

from blazar.cmd import THRESHOLDS

LOG = logging.getLogger(__name__)

ARENAS = 2
"""Number of heaps that the threads share. By default the C library creates one per thread, and the other threads cannot
use memory that is freed in the middle of it."""

INTERVAL = 10.0
"""Seconds between two checks of how much memory could be returned to the system."""

WORTHWHILE = 2 * 1024 * 1024
"""Minimum growth in bytes before memory is returned to the system."""

LARGE = 256 * 1024
"""Minimum size in bytes of a block that is mapped separately and returned as soon as it is freed. By default the C
library raises this limit to the largest block ever freed, and keeps such memory for the next list."""

SINCE_COLLECTED = 5000
"""Minimum number of objects created since the last collection before the next one."""

_M_ARENA_MAX = -8
_M_MMAP_THRESHOLD = -3


class Allocator(Protocol):
    """Measures the memory of this process and returns free memory to the system."""

    def resident(self) -> int:
        """Return the resident memory of the process in bytes."""

    def unused(self) -> int:
        """Return the approximate bytes that are free in the allocator, including those returned to the system."""

    def give_back(self) -> None:
        """Return free memory to the system."""


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
    """The allocator of the GNU C library. Raises AttributeError or OSError on other systems."""

    def __init__(self) -> None:
        library = ctypes.CDLL(None)
        self._info, self._trim = library.mallinfo2, library.malloc_trim
        self._info.restype = _Mallinfo
        library.mallopt(_M_ARENA_MAX, ARENAS)
        library.mallopt(_M_MMAP_THRESHOLD, LARGE)

    def resident(self) -> int:
        """Return the resident memory of the process in bytes."""
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * resource.getpagesize()

    def unused(self) -> int:
        """Return the bytes that are free in the allocator."""
        return int(self._info().fordblks)

    def give_back(self) -> None:
        """Return free memory to the system."""
        self._trim(0)


class Keeper:
    """Returns free memory to the system when there is enough: a long list briefly takes hundreds of megabytes."""

    def __init__(self, allocator: Allocator, made: Callable[[], int] | None = None) -> None:
        self._allocator = allocator
        self._made = made or _count_objects
        self._known = allocator.resident(), allocator.unused()

    def look(self) -> bool:
        """Collect garbage and return free memory if it is worthwhile; return whether it was."""
        known = self._known
        now = self._allocator.resident(), self._allocator.unused()
        changed = any(present - before >= WORTHWHILE for present, before in zip(now, known, strict=True))
        # Reference cycles are freed, and become measurable, only by a collection.
        if not changed and self._made() < SINCE_COLLECTED:
            # Memory that was free and is in use again must not hide what is freed next.
            self._known = min(now[0], known[0]), min(now[1], known[1])
            return False
        gc.collect()
        self._allocator.give_back()
        self._known = self._allocator.resident(), self._allocator.unused()
        return True


def _count_objects() -> int:
    """Return a lower bound of the objects created since the last full collection and not freed."""
    youngest, young, old = gc.get_count()
    return youngest + (young + old * THRESHOLDS[1]) * THRESHOLDS[0]


def settle() -> None:
    """Exclude the objects of the start from collections, and return free memory periodically."""
    gc.collect()
    gc.freeze()
    try:
        keeper = Keeper(GnuAllocator())
    except (AttributeError, OSError) as error:
        LOG.debug("Allocator of this system is not tuned: %s", error)
        return
    threading.Thread(target=_keep, args=(keeper, threading.Event()), name="memory", daemon=True).start()


def _keep(keeper: Keeper, stopping: threading.Event) -> None:
    while not stopping.wait(INTERVAL):
        try:
            keeper.look()
        except Exception:
            LOG.exception("Memory of this process cannot be measured any more")
            return


def allow_open_files(wanted: int) -> int:
    """Raise the limit of open files to ``wanted`` or the system's hard limit; return the limit that applies."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return sys.maxsize
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(hard, wanted)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def say_ready(status: str) -> None:
    """Say that the process serves."""
    _notify(f"READY=1\nSTATUS={status}")


def say_status(status: str) -> None:
    """Say what the process does or waits for; ``systemctl status`` shows it."""
    _notify(f"STATUS={status}")


def say_stopping() -> None:
    """Say that the process finishes its work and ends."""
    _notify("STOPPING=1")


def feed_watchdog(list_stuck: Callable[[], Collection[str]], stopping: threading.Event) -> threading.Thread | None:
    """Tell systemd in a thread that the process lives, as long as nothing is stuck; None if it does not watch us.

    A unit with ``WatchdogSec`` kills a process that has not been heard of for so long.
    """
    microseconds, pid = os.environ.get("WATCHDOG_USEC", ""), os.environ.get("WATCHDOG_PID", "")
    if not microseconds or pid not in ("", str(os.getpid())):
        return None
    # As sd_watchdog_enabled(3) advises: half of it, so that one that is late does no harm.
    interval = int(microseconds) / 1_000_000 / 2 if microseconds.isascii() and microseconds.isdigit() else 0.0
    if not 0 < interval <= threading.TIMEOUT_MAX:
        LOG.warning(
            "systemd is not told that this process lives: WATCHDOG_USEC %r is no number that it sets", microseconds
        )
        return None

    def feed() -> None:
        told: tuple[str, ...] = ()
        while True:
            stuck = tuple(list_stuck())
            if not stuck:
                _notify("WATCHDOG=1")
            elif not told:
                LOG.error("systemd is not told any more that this process lives: %s", "; ".join(stuck))
            told = stuck
            if stopping.wait(interval):
                return

    thread = threading.Thread(target=feed, name="watchdog", daemon=True)
    thread.start()
    return thread


def _notify(state: str) -> None:
    """Send a state; do nothing where nobody listens, as in a shell or a container."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    if address.startswith("@"):
        # The abstract namespace of Linux.
        address = f"\0{address[1:]}"
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
            channel.sendto(state.encode(), address)
    except OSError as error:
        LOG.warning("systemd cannot be told at NOTIFY_SOCKET %r: %s", address, error)
