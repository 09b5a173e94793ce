# SPDX-License-Identifier: Apache-2.0
"""Nova's flavors and server groups."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.service import CloudService, Json
from blazar.clouds.ports.compute import Flavor, ServerGroup
from blazar.model.base.errors import NotFound, RoleMissing

FLAVORS = "2.61"
"""Shows the extra specs of a flavor with the flavor."""
GROUPS = "2.64"
"""Has one policy for a group instead of a list."""

PAGE = 500

LOG = logging.getLogger(__name__)


class OpenStackFlavors:
    """Implements the roles of flavors and server groups."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._nova = access.compute

    def flavor(self, flavor_id: str) -> Flavor | None:
        """Return the flavor with this id."""
        try:
            return _flavor(self._nova.get(_path(flavor_id), microversion=FLAVORS)["flavor"])
        except NotFound:
            return None

    def create_flavor(self, flavor: Flavor) -> None:
        """Create a private flavor. Its extra specs take a second call, so callers set them on one that has none."""
        body = {
            "flavor": {
                "id": flavor.id,
                "name": flavor.name,
                "vcpus": flavor.vcpus,
                "ram": flavor.memory_mb,
                "disk": flavor.disk_gb,
                "OS-FLV-EXT-DATA:ephemeral": flavor.ephemeral_gb,
                "swap": flavor.swap_mb,
                "rxtx_factor": flavor.rxtx_factor,
                "os-flavor-access:is_public": False,
            }
        }
        self._nova.call("POST", "/flavors", body=body, microversion=FLAVORS)
        self.set_flavor_specs(flavor.id, flavor.extra_specs)

    def set_flavor_specs(self, flavor_id: str, specs: Mapping[str, str | None]) -> None:
        """Set and remove extra specs."""
        path = f"{_path(flavor_id)}/os-extra_specs"
        given = {key: value for key, value in specs.items() if value is not None}
        if given:
            self._nova.call("POST", path, body={"extra_specs": given}, microversion=FLAVORS)
        for key in specs.keys() - given.keys():
            self._remove_spec(flavor_id, key)

    def _remove_spec(self, flavor_id: str, key: str) -> None:
        try:
            path = f"{_path(flavor_id)}/os-extra_specs/{quote(key, safe='')}"
            self._nova.call("DELETE", path, microversion=FLAVORS)
        except NotFound:
            if self.flavor(flavor_id) is None:
                raise

    def delete_flavor(self, flavor_id: str) -> None:
        """Delete a flavor."""
        self._nova.call("DELETE", _path(flavor_id), microversion=FLAVORS)

    def flavor_access(self, flavor_id: str) -> frozenset[str]:
        """Return the projects that may use a private flavor."""
        answer = self._nova.get(f"{_path(flavor_id)}/os-flavor-access", microversion=FLAVORS)
        return frozenset(str(item["tenant_id"]) for item in answer["flavor_access"])

    def grant_flavor(self, flavor_id: str, project_id: str) -> None:
        """Let a project use a private flavor."""
        self._change_access(flavor_id, {"addTenantAccess": {"tenant": project_id}})

    def revoke_flavor(self, flavor_id: str, project_id: str) -> None:
        """Let a project no longer use a private flavor."""
        self._change_access(flavor_id, {"removeTenantAccess": {"tenant": project_id}})

    def _change_access(self, flavor_id: str, action: Mapping[str, object]) -> None:
        self._nova.call("POST", f"{_path(flavor_id)}/action", body=action, microversion=FLAVORS)

    def flavor_names(self) -> Mapping[str, str]:
        """Return the names of all flavors."""
        found = self._nova.pages("/flavors", "flavors", microversion=FLAVORS, params={"is_public": "None"})
        return {str(item["id"]): str(item["name"]) for item in found}

    def server_groups(self, name: str | None = None) -> tuple[ServerGroup, ...]:
        """Return the groups of all projects with this name, or all."""
        found, own = group_pages(self._nova), self._access.log_in()
        return tuple(
            ServerGroup(g["id"], g["name"], g["policy"], None if g["project_id"] == own else g["project_id"])
            for g in found
            if name in (None, g["name"])
        )

    def create_server_group(self, name: str, policy: str, project_id: str) -> str:
        """Create a group in a project if the service user has a role there, else in the service user's own project.

        Nova creates a group in the project of the token, and only operators may use that of another project in a hint.
        """
        try:
            nova = self._access.in_project(project_id).compute
        except RoleMissing:
            LOG.warning(
                "Server group %s is not in project %s, where the service user has no role: no hint can name the group",
                name,
                project_id,
            )
            nova = self._nova
        body = {"server_group": {"name": name, "policy": policy}}
        answer = nova.call("POST", "/os-server-groups", body=body, microversion=GROUPS)
        return str(answer["server_group"]["id"])

    def delete_server_group(self, group_id: str) -> None:
        """Delete a group."""
        self._nova.call("DELETE", f"/os-server-groups/{quote(group_id, safe='')}", microversion=GROUPS)


def group_pages(nova: CloudService) -> Iterator[Json]:
    """Yield the server groups of all projects, as Nova shows them."""
    offset = 0
    while True:
        query = {"all_projects": "true", "limit": PAGE, "offset": offset}
        page = nova.get("/os-server-groups", microversion=GROUPS, params=query)["server_groups"]
        yield from page
        if not page:
            return
        # A cloud may have a smaller limit.
        offset += len(page)


def _path(flavor_id: str) -> str:
    return f"/flavors/{quote(flavor_id, safe='')}"


def _flavor(item: Json) -> Flavor:
    return Flavor(
        id=item["id"],
        name=item["name"],
        vcpus=item["vcpus"],
        memory_mb=item["ram"],
        disk_gb=item["disk"],
        ephemeral_gb=item.get("OS-FLV-EXT-DATA:ephemeral", 0),
        # Nova shows no swap as an empty string.
        swap_mb=int(item.get("swap") or 0),
        extra_specs=dict(item.get("extra_specs") or {}),
        rxtx_factor=float(item.get("rxtx_factor") or 1.0),
        public=bool(item.get("os-flavor-access:is_public")),
    )
