# SPDX-License-Identifier: Apache-2.0
"""The simulated Nova: flavors and server groups."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from blazar.clouds.ports.compute import Flavor, ServerGroup
from blazar.clouds.simulated.service import SimulatedService, look_up
from blazar.clouds.simulated.state import FlavorState, GroupState
from blazar.model.base.errors import CloudRefused, Conflict, NotFound


class SimulatedFlavors(SimulatedService):
    """Implements the roles of flavors and server groups."""

    def flavor(self, flavor_id: str) -> Flavor | None:
        """Return a flavor."""
        with self._calls.reading("flavor") as state:
            found = state.flavors.get(flavor_id)
            return _flavor(found) if found else None

    def create_flavor(self, flavor: Flavor) -> None:
        """Create a private flavor."""
        with self._calls.changing("create_flavor") as state:
            if flavor.vcpus < 1 or flavor.memory_mb < 1 or flavor.disk_gb < 0:
                raise CloudRefused(f"a flavor cannot have {flavor.vcpus} VCPUs and {flavor.memory_mb} MiB")
            if any(flavor.id == known.id or flavor.name == known.name for known in state.flavors.values()):
                raise Conflict(f"there is a flavor {flavor.id} or {flavor.name} already")
            specs = dict(flavor.extra_specs)
            state.flavors[flavor.id] = FlavorState(**{**fields_of(flavor), "extra_specs": specs, "public": False})

    def set_flavor_specs(self, flavor_id: str, specs: Mapping[str, str | None]) -> None:
        """Set and remove extra specs."""
        with self._calls.changing("set_flavor_specs") as state:
            known = look_up(state.flavors, flavor_id, "flavor").extra_specs
            for key, value in specs.items():
                if value is None:
                    known.pop(key, None)
                else:
                    known[key] = value

    def delete_flavor(self, flavor_id: str) -> None:
        """Delete a flavor."""
        with self._calls.changing("delete_flavor") as state:
            look_up(state.flavors, flavor_id, "flavor")
            del state.flavors[flavor_id]

    def flavor_access(self, flavor_id: str) -> frozenset[str]:
        """Return the projects that have access."""
        with self._calls.reading("flavor_access") as state:
            found = look_up(state.flavors, flavor_id, "flavor")
            if found.public:
                raise NotFound(f"flavor {flavor_id} is public and has no list of projects")
            return frozenset(found.projects)

    def grant_flavor(self, flavor_id: str, project_id: str) -> None:
        """Give a project access."""
        with self._calls.changing("grant_flavor") as state:
            projects = look_up(state.flavors, flavor_id, "flavor").projects
            if project_id in projects:
                raise Conflict(f"project {project_id} has access to flavor {flavor_id} already")
            projects.append(project_id)

    def revoke_flavor(self, flavor_id: str, project_id: str) -> None:
        """Remove the access of a project."""
        with self._calls.changing("revoke_flavor") as state:
            projects = look_up(state.flavors, flavor_id, "flavor").projects
            if project_id not in projects:
                raise NotFound(f"project {project_id} has no access to flavor {flavor_id}")
            projects.remove(project_id)

    def flavor_names(self) -> Mapping[str, str]:
        """Return the names of all flavors."""
        with self._calls.reading("flavor_names") as state:
            return {flavor.id: flavor.name for flavor in state.flavors.values()}

    def server_groups(self, name: str | None = None) -> tuple[ServerGroup, ...]:
        """Return the groups of this name, or all."""
        with self._calls.reading("server_groups") as state:
            groups = state.groups.values()
            return tuple(ServerGroup(g.id, g.name, g.policy, g.project_id) for g in groups if name in (None, g.name))

    def create_server_group(self, name: str, policy: str, project_id: str) -> str:
        """Create a group."""
        with self._calls.changing("create_server_group") as state:
            group = GroupState(str(uuid.uuid4()), name, policy, project_id)
            state.groups[group.id] = group
            return group.id

    def delete_server_group(self, group_id: str) -> None:
        """Delete a group."""
        with self._calls.changing("delete_server_group") as state:
            look_up(state.groups, group_id, "server group")
            del state.groups[group_id]


def _flavor(flavor: FlavorState) -> Flavor:
    return Flavor(
        flavor.id,
        flavor.name,
        flavor.vcpus,
        flavor.memory_mb,
        flavor.disk_gb,
        flavor.ephemeral_gb,
        flavor.swap_mb,
        dict(flavor.extra_specs),
        flavor.rxtx_factor,
        flavor.public,
    )


def fields_of(flavor: Flavor) -> dict[str, Any]:
    """Return the fields of a flavor that a cloud has: not what its aliases mean."""
    return {name: value for name, value in asdict(flavor).items() if name != "cards"}
