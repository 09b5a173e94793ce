# SPDX-License-Identifier: Apache-2.0
"""The capability of types whose users choose names that a project can have once."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class NamesOnce(Protocol):
    """A type whose reservations name what they make, where a project can have a name only once at a time.

    Leases that overlap are refused the same name. Without it names may repeat.
    """

    @property
    def unique(self) -> str:
        """Return the parameter with the name; it is null where the type makes a name of its own."""
