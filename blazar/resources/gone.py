# SPDX-License-Identifier: Apache-2.0
"""The capability of types that can tell what of the things that they have made is gone from the cloud."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

MadeById = Mapping[str, Sequence[str]]
"""The ids of what reservations have made, by reservation id."""


@runtime_checkable
class TellsGone(Protocol):
    """A type that can tell what users have deleted of what it has made. Without it nothing is told."""

    def gone(self, made: MadeById) -> frozenset[str]:
        """Return which of these ids the cloud does not have any more. CloudError.

        A list may be incomplete, as when a cell is down: what it lacks is looked up by its id, and only what the cloud
        then says it does not know is gone.
        """
