# SPDX-License-Identifier: Apache-2.0
"""The booting port: servers that the service boots in projects of users, and what their users name for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from blazar.model.base.values import dataclass, field


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A server to boot. ``networks`` are ids; 'auto' and 'none' leave them to Nova, or have none.

    ``key_name`` is a key pair of the service user. ``user_data`` is base64 and secret; ``tag`` marks the server.
    """

    name: str
    flavor_id: str
    image_id: str
    networks: tuple[str, ...] | str
    tag: str
    key_name: str | None = None
    user_data: str | None = field(default=None, repr=False)
    metadata: Mapping[str, str] = field(default_factory=dict, hash=False)
    security_groups: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BootedServer:
    """A server by its id. ``fault`` is what Nova says of one that failed, '' otherwise; it may name hosts."""

    id: str
    project_id: str
    name: str
    status: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class BootImage:
    """An image that a project can use: its least disk and its size, rounded up, in GiB, its least memory in MiB."""

    id: str
    status: str
    min_disk_gb: int = 0
    min_memory_mb: int = 0
    size_gb: int = 0


@dataclass(frozen=True, slots=True)
class BootNetwork:
    """A network that a project sees; members can boot onto an ``external`` one only if it is ``shared``."""

    id: str
    external: bool = False
    shared: bool = False
    subnets: int = 0


CHANGES = frozenset({"begin_boot", "import_key", "delete_key"})
"""The calls that change something: an adapter makes ``context.check_change`` before each."""


class Booting(Protocol):
    """Calls in the project of a user, in which the service user is a member. RoleMissing if it is not."""

    def begin_boot(self, project_id: str, request: ServerRequest) -> str:
        """Begin to boot a server in a project; return its id.

        CloudRefused, with the cause QUOTA_EXCEEDED where that is why: nothing is left of it. NotFound and Conflict
        likewise.
        """

    def booted_server(self, server_id: str) -> BootedServer | None:
        """Return a server of any project; None if it is gone."""

    def boot_image(self, project_id: str, image_id: str) -> BootImage | None:
        """Return an image if the project can use it."""

    def boot_network(self, project_id: str, network_id: str) -> BootNetwork | None:
        """Return a network if the project sees it."""

    def has_security_group(self, project_id: str, name: str) -> bool:
        """Return whether the project has a security group of this name or id."""

    def public_key(self, user_id: str, name: str) -> str | None:
        """Return the public key of a user's key pair, as its text; None if there is none of this name."""

    def import_key(self, name: str, public_key: str) -> None:
        """Give the service user a key pair. Conflict if it has one of this name; CloudRefused for what is no key."""

    def delete_key(self, name: str) -> None:
        """Delete a key pair of the service user; servers keep the key. One that does not exist is no error."""
