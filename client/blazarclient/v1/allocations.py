# SPDX-License-Identifier: Apache-2.0
"""What is promised of resources, at microversion 1.0."""

from __future__ import annotations

from typing import Any

from blazarclient.base import BaseClientManager, part
from blazarclient.utils import sort


class AllocationClientManager(BaseClientManager):
    """Makes requests about allocations; ``resource`` is ``os-hosts``, ``networks`` or ``devices``."""

    def get(self, resource: str, resource_id: str) -> dict[str, Any]:
        """Return what is promised of one resource."""
        _, body = self.request_manager.get(f"/{resource}/{resource_id}/allocation")
        return part(body, "allocation")  # type: ignore[no-any-return]

    def list(self, resource: str, sort_by: str | None = None) -> list[dict[str, Any]]:
        """Return what is promised of every resource."""
        _, body = self.request_manager.get(f"/{resource}/allocations")
        return sort(part(body, "allocations"), sort_by)
