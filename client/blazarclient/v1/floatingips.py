# SPDX-License-Identifier: Apache-2.0
"""Floating IPs at microversion 1.0."""

from __future__ import annotations

from typing import Any

from blazarclient.base import BaseClientManager, part
from blazarclient.utils import sort


class FloatingIPClientManager(BaseClientManager):
    """Makes requests about floating IPs."""

    def create(self, network_id: str, floating_ip_address: str, **kwargs: Any) -> dict[str, Any]:
        """Register a floating IP of an external network, and return it."""
        values = {"floating_network_id": network_id, "floating_ip_address": floating_ip_address, **kwargs}
        _, body = self.request_manager.post("/floatingips", body=values)
        return part(body, "floatingip")  # type: ignore[no-any-return]

    def get(self, floatingip_id: str) -> dict[str, Any]:
        """Return a floating IP."""
        _, body = self.request_manager.get(f"/floatingips/{floatingip_id}")
        return part(body, "floatingip")  # type: ignore[no-any-return]

    def delete(self, floatingip_id: str) -> None:
        """Take a floating IP out of the service."""
        self.request_manager.delete(f"/floatingips/{floatingip_id}")

    def list(self, sort_by: str | None = None) -> list[dict[str, Any]]:
        """Return all floating IPs."""
        _, body = self.request_manager.get("/floatingips")
        return sort(part(body, "floatingips"), sort_by)
