# SPDX-License-Identifier: Apache-2.0
"""Servers that the service user boots in projects of users, with tokens of these projects."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.service import CloudService, Json
from blazar.clouds.ports.booting import BootedServer, BootImage, BootNetwork, ServerRequest
from blazar.model.base.errors import NotFound

SERVERS = "2.90"
"""Takes tags with a new server, and 'auto' and 'none' for its networks."""

KEYS = "2.92"
"""Operators see key pairs of any user since 2.10; the name may have any characters that 2.92 allows."""

GIB = 1024**3


class OpenStackBooting:
    """Implements the booting port."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._nova = access.compute

    def begin_boot(self, project_id: str, request: ServerRequest) -> str:
        """Begin to boot a server."""
        nova = self._access.in_project(project_id).compute
        networks: Any = request.networks
        if not isinstance(networks, str):
            networks = [{"uuid": network} for network in networks]
        server: dict[str, Any] = {
            "name": request.name,
            "flavorRef": request.flavor_id,
            "imageRef": request.image_id,
            "networks": networks,
            "metadata": dict(request.metadata),
            "tags": [request.tag],
        }
        if request.key_name is not None:
            server["key_name"] = request.key_name
        if request.user_data is not None:
            server["user_data"] = request.user_data
        if request.security_groups:
            server["security_groups"] = [{"name": name} for name in request.security_groups]
        answer = nova.call("POST", "/servers", body={"server": server}, microversion=SERVERS)
        return str(answer["server"]["id"])

    def booted_server(self, server_id: str) -> BootedServer | None:
        """Return a server."""
        found = _find(self._nova, f"/servers/{quote(server_id, safe='')}", microversion=SERVERS)
        if found is None:
            return None
        item = found["server"]
        fault = str((item.get("fault") or {}).get("message", ""))
        return BootedServer(item["id"], item["tenant_id"], item["name"], item["status"], fault)

    def boot_image(self, project_id: str, image_id: str) -> BootImage | None:
        """Return an image; one that the project cannot see is not found."""
        item = _find(self._access.in_project(project_id).image, f"/images/{quote(image_id, safe='')}")
        if item is None:
            return None
        size = -(-int(item.get("size") or 0) // GIB)
        return BootImage(item["id"], item["status"], item.get("min_disk", 0), item.get("min_ram", 0), size)

    def boot_network(self, project_id: str, network_id: str) -> BootNetwork | None:
        """Return a network; one that the project does not see is not found."""
        found = _find(self._access.in_project(project_id).network, f"/networks/{quote(network_id, safe='')}")
        if found is None:
            return None
        item = found["network"]
        external, shared = bool(item.get("router:external")), bool(item.get("shared"))
        return BootNetwork(item["id"], external, shared, len(item.get("subnets", ())))

    def has_security_group(self, project_id: str, name: str) -> bool:
        """Return whether there is such a group, by name and by id, as Nova looks for it."""
        neutron = self._access.in_project(project_id).network
        for field in ("name", "id"):
            query = {field: name, "project_id": project_id, "fields": "id"}
            if neutron.get("/security-groups", params=query)["security_groups"]:
                return True
        return False

    def public_key(self, user_id: str, name: str) -> str | None:
        """Return the public key of a user's key pair."""
        path = f"/os-keypairs/{quote(name, safe='')}"
        found = _find(self._nova, path, microversion=KEYS, params={"user_id": user_id})
        return None if found is None else str(found["keypair"]["public_key"])

    def import_key(self, name: str, public_key: str) -> None:
        """Import a public key, as a pair of the service user."""
        body = {"keypair": {"name": name, "type": "ssh", "public_key": public_key}}
        self._nova.call("POST", "/os-keypairs", body=body, microversion=KEYS)

    def delete_key(self, name: str) -> None:
        """Delete a key pair of the service user."""
        try:
            self._nova.call("DELETE", f"/os-keypairs/{quote(name, safe='')}", microversion=KEYS)
        except NotFound:
            return


def _find(service: CloudService, path: str, **more: Any) -> Json | None:
    """Return the JSON at a path; None if there is nothing."""
    try:
        return service.get(path, **more)
    except NotFound:
        return None
