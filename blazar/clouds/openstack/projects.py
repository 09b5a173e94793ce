# SPDX-License-Identifier: Apache-2.0
"""The roles of the service user in projects of users."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.ports.projects import OF_COMPUTE, OF_NETWORK, OF_VOLUMES, Limits, Quota, QuotaLimit


class OpenStackProjects:
    """Implements the projects port."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def check_role(self, project_id: str) -> None:
        """Ask for a token of the project, unless one was given lately."""
        self._access.in_project(project_id, recent=True)


class OpenStackQuotas:
    """Implements the quotas port."""

    def __init__(self, access: Access) -> None:
        self._access = access

    def compute_quotas(self, project_id: str) -> Limits:
        """Return the quotas of Nova."""
        path = f"/os-quota-sets/{quote(project_id, safe='')}/detail"
        return _limits(self._access.compute.get(path)["quota_set"], OF_COMPUTE, used="in_use")

    def volume_quotas(self, project_id: str) -> Limits:
        """Return the quotas of Cinder."""
        path = f"/os-quota-sets/{quote(project_id, safe='')}"
        return _limits(self._access.volume.get(path, params={"usage": "True"})["quota_set"], OF_VOLUMES, used="in_use")

    def network_quotas(self, project_id: str) -> Limits:
        """Return the quotas of Neutron."""
        path = f"/quotas/{quote(project_id, safe='')}/details"
        return _limits(self._access.network.get(path)["quota"], OF_NETWORK, used="used")


def _limits(found: Mapping[str, Any], wanted: Collection[Quota], *, used: str) -> Limits:
    """Return what the answer of a service says of quotas; one that it does not have is left out."""
    return {
        quota: QuotaLimit(int(item["limit"]), int(item[used]) + int(item["reserved"]))
        for quota in wanted
        if (item := found.get(quota)) is not None
    }
