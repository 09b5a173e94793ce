# SPDX-License-Identifier: Apache-2.0
"""The simulated Keystone: the projects in which the service user has a role."""

from __future__ import annotations

from blazar.clouds.simulated.service import SimulatedService
from blazar.clouds.simulated.state import State
from blazar.model.errors import RoleMissing


class SimulatedProjects(SimulatedService):
    """Implements the projects port: there is a role in every project but those that operators have closed."""

    def check(self, project_id: str) -> None:
        """Check that there is a role."""
        with self._calls.reading("check") as state:
            check_role(state, project_id)


def check_role(state: State, project_id: str) -> None:
    """Raise RoleMissing if the service user has no role in a project."""
    if project_id in state.closed_projects:
        raise RoleMissing(f"the service user has no role in project {project_id}")
