# SPDX-License-Identifier: Apache-2.0
"""A store as one manager sees it: a function of the test is called for every operation."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from blazar.store.store import Store

NOUNS = ("leases", "calendar", "resources", "outbox", "events")


class ObservedStore:
    """Calls ``around`` for every operation, with its name, like ``leases.save``, the operation, and its arguments."""

    def __init__(self, store: Store, around: Callable[..., Any]) -> None:
        for noun in NOUNS:
            setattr(self, noun, _Noun(noun, getattr(store, noun), around))


class _Noun:
    def __init__(self, noun: str, operations: object, around: Callable[..., Any]) -> None:
        self._noun = noun
        self._operations = operations
        self._around = around

    def __getattr__(self, name: str) -> Any:
        return partial(self._around, f"{self._noun}.{name}", getattr(self._operations, name))
