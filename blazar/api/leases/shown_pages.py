# SPDX-License-Identifier: Apache-2.0
"""Pages of leases as they were last answered: a page that is asked for again is one statement, and nothing is rendered.

A lease of a page is known by its mark, which is read each time. Nothing depends on what is kept here: a page that is
gone is read as a whole.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Mapping

from blazar.model.leases.details import LeaseMark

MOST_BYTES = 8 * 1024 * 1024
"""Room for some forty pages of 100 leases."""

_OVERHEAD = 400
"""Approximate bytes of a lease beside its text."""

Texts = Mapping[LeaseMark, str]
"""Leases as JSON, by their marks."""

_NOTHING: Texts = {}


class ShownPages:
    """The leases of the last pages, by the question that they answer, at most ``most_bytes`` large; thread-safe.

    A question has in it all that else decides how a lease is shown: who asks, what they may see, and at which URL.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._pages: OrderedDict[Hashable, tuple[Texts, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        """Return how many pages are kept."""
        return len(self._pages)

    @property
    def size(self) -> int:
        """The approximate size in bytes, with the questions."""
        return self._bytes

    def find(self, question: Hashable) -> Texts:
        """Return the leases of the last answer to a question; none if it is not kept."""
        with self._lock:
            if (kept := self._pages.get(question)) is None:
                return _NOTHING
            self._pages.move_to_end(question)
            return kept[0]

    def forget(self) -> None:
        """Keep nothing any more."""
        with self._lock:
            self._pages.clear()
            self._bytes = 0

    def keep(self, question: Hashable, texts: Texts) -> None:
        """Keep the leases of an answer, instead of those before; pages that nobody asked for longest give way.

        Of an answer without leases there is nothing to keep.
        """
        size = len(str(question)) + sum(len(text) + _OVERHEAD for text in texts.values())
        with self._lock:
            self._bytes -= self._pages.pop(question, (_NOTHING, 0))[1]
            if not texts:
                return
            self._bytes += size
            self._pages[question] = texts, size
            while self._bytes > self._most_bytes:
                self._bytes -= self._pages.popitem(last=False)[1][1]
