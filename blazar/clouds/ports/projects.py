# SPDX-License-Identifier: Apache-2.0
"""The projects port: in which projects of users the service may make something as one of their members."""

from __future__ import annotations

from typing import Protocol

CHANGES: frozenset[str] = frozenset()
"""No call changes anything."""


class Projects(Protocol):
    """The roles of the service user in projects that are not its own.

    Servers, volumes and stacks belong to the project of the token that made them. A type that makes some calls
    ``check`` in ``resolve``, so that a lease is refused whose start would fail.
    """

    def check(self, project_id: str) -> None:
        """Raise RoleMissing if the service user has no role in a project, or if there is no such project."""
