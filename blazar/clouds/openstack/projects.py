# SPDX-License-Identifier: Apache-2.0
"""The roles of the service user in projects of users."""

from __future__ import annotations

from blazar.clouds.openstack.access import Access


class OpenStackProjects:
    """Implements the projects port."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def check(self, project_id: str) -> None:
        """Ask for a token of the project, unless one was given lately."""
        self._access.in_project(project_id, recent=True)
