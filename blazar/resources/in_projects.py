# SPDX-License-Identifier: Apache-2.0
"""The capability of types whose cloud lists its objects for one project at a time."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol, runtime_checkable


@runtime_checkable
class ListsInProjects(Protocol):
    """A type that can list the reservations with something in given projects. Without it the sweep does not ask."""

    def reservations_in_projects(self, projects: Collection[str]) -> frozenset[str]:
        """Return the ids of the reservations that have something there; as ``reservations_in_cloud``."""
