# SPDX-License-Identifier: Apache-2.0
"""Limits on attempts to sign in, in each process: token buckets, and a number of concurrent calls."""

from __future__ import annotations

import ipaddress
import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from blazar.api.web.answers import PageRefusal
from blazar.model.base.values import dataclass

MOST_BUCKETS = 20_000
"""Buckets in memory; beyond it the one that was used longest ago is dropped."""


@dataclass(frozen=True, slots=True)
class Rate:
    """At most ``count`` attempts in ``seconds``, then one whenever a part of the time has passed."""

    count: int
    seconds: float


PER_ADDRESS = (Rate(10, 60),)
PER_USER_THERE = (Rate(5, 60), Rate(20, 3600))
"""Of a user from one address: who knows the name of another user cannot keep that one out from elsewhere."""
PER_USER = (Rate(30, 60), Rate(120, 3600))
"""Of a user from all addresses together."""
AT_ONCE = 4
"""Sign-ins at Keystone at the same time: each takes a third of a second of its CPU."""


class Attempts:
    """Counts the attempts of clients and of users; ``monotonic`` is the clock, in seconds."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._left: OrderedDict[tuple[str, Rate], tuple[float, float]] = OrderedDict()
        self._slots = threading.BoundedSemaphore(AT_ONCE)

    def __len__(self) -> int:
        """Return how many buckets are in memory."""
        return len(self._left)

    @contextmanager
    def attempt(self, address: str, user: str | None) -> Iterator[None]:
        """Take an attempt for the block; PageRefusal if there is none left. A block that ends well gives it back."""
        place = f"address {network(address)}"
        buckets = [(place, rate) for rate in PER_ADDRESS]
        if user is not None:
            buckets += [(f"{place} user {user}", rate) for rate in PER_USER_THERE]
            buckets += [(f"user {user}", rate) for rate in PER_USER]
        if wait := self._take(buckets):
            raise _too_many(wait)
        if not self._slots.acquire(blocking=False):
            self._give_back(buckets)
            raise _too_many(1)
        try:
            yield
            self._give_back(buckets)
        finally:
            self._slots.release()

    def _take(self, buckets: Sequence[tuple[str, Rate]]) -> float:
        """Take one from each bucket and return 0; if one is empty, take none and return the seconds to wait."""
        with self._lock:
            now = self._monotonic()
            left = {bucket: self._now_in(bucket, now) for bucket in buckets}
            wait = max((1 - count) * rate.seconds / rate.count for (_, rate), count in left.items())
            if wait > 0:
                return wait
            for bucket, count in left.items():
                self._keep(bucket, count - 1, now)
            return 0.0

    def _give_back(self, buckets: Sequence[tuple[str, Rate]]) -> None:
        with self._lock:
            now = self._monotonic()
            for bucket in buckets:
                self._keep(bucket, min(bucket[1].count, self._now_in(bucket, now) + 1), now)

    def _now_in(self, bucket: tuple[str, Rate], now: float) -> float:
        rate = bucket[1]
        count, since = self._left.get(bucket, (float(rate.count), now))
        return min(rate.count, count + (now - since) * rate.count / rate.seconds)

    def _keep(self, bucket: tuple[str, Rate], count: float, now: float) -> None:
        self._left[bucket] = (count, now)
        self._left.move_to_end(bucket)
        if len(self._left) > MOST_BUCKETS:
            self._left.popitem(last=False)


def network(address: str) -> str:
    """Return what one client may have of addresses: a whole /64 of IPv6."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network(f"{address.partition('%')[0]}/64", strict=False))


def _too_many(wait: float) -> PageRefusal:
    seconds = math.ceil(wait)
    return PageRefusal(
        429,
        "too_many_attempts",
        f"There were too many attempts to sign in; try again in {seconds} second{'' if seconds == 1 else 's'}.",
        retry_after=seconds,
    )
