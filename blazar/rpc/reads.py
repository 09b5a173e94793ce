# SPDX-License-Identifier: Apache-2.0
"""The calls of the interface that only read: what is true of them, and of no other, is decided by this list."""

from __future__ import annotations

from collections.abc import Mapping

_BY_NOUN: Mapping[str, tuple[str, ...]] = {
    "leases": ("all", "revisions", "by_id", "rows", "one", "owner", "details", "history", "page", "verdict", "replay"),
    "resources": (
        "all",
        "page",
        "one",
        "kinds",
        "visible_page",
        "visible",
        "candidates",
        "allocations",
        "allocation_page",
        "properties",
        "property_page",
    ),
    "calendar": ("page", "capacity", "properties"),
    "availability": ("find",),
    # The content of a feed notes that it was read: twice is as good as once.
    "feeds": ("page", "one", "content"),
    "journal": ("page",),
    "subscriptions": ("page", "one", "replay", "mine", "check_link", "failures"),
    "series": ("page", "owner", "one", "replay"),
    "maintenances": ("page", "one"),
    "problems": ("page", "one"),
    "budgets": ("page",),
    "power": ("report", "page", "one", "log"),
    "reports": ("usage", "capacity", "demand", "forecast", "lease_energy"),
    "statements": ("page", "one"),
    "charges": ("page", "replay"),
    "price_lists": ("all", "one"),
    "rules": ("all", "one"),
    "transfers": ("page", "one"),
    "service": ("facts", "ping", "managers"),
}

READS: frozenset[str] = frozenset(f"{noun}.{name}" for noun, names in _BY_NOUN.items() for name in names)
"""Calls that change nothing, and may be made twice without harm."""

FIRST_WAIT = 10.0
"""Seconds that a read waits for the manager that took it, before another one is asked. What a manager reads takes less,
unless it stands still."""

SLOW = frozenset({"availability.find", "resources.candidates", *(f"reports.{name}" for name in _BY_NOUN["reports"])})
"""Reads that may take longer than that, as they compute much or ask a cloud: they are asked once, of one manager."""

QUICK: Mapping[str, float] = {"service.facts": 3.0}
"""Seconds to wait, each of two times, for what a manager has in memory: a page begins with it."""


def share_wait(call: str, seconds: float) -> tuple[float, ...]:
    """Return how long to wait for each manager that is asked, of the ``seconds`` that the caller waits for a call."""
    if call not in READS or call in SLOW:
        return (seconds,)
    first = min(QUICK.get(call, FIRST_WAIT), seconds / 2)
    return (first, first if call in QUICK else seconds - first)
