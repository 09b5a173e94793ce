# SPDX-License-Identifier: Apache-2.0
"""What of the state of a simulated cloud only servers need that the service boots: images and key pairs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class BootImageState:
    """An image to boot from; one without a project is public. Sizes in GiB and MiB."""

    id: str
    status: str = "active"
    project_id: str = ""
    min_disk_gb: int = 0
    min_memory_mb: int = 0
    size_gb: int = 0


def _images() -> dict[str, BootImageState]:
    return {"cirros": BootImageState("cirros")}


@dataclass(slots=True)
class BootState:
    """Images and key pairs.

    ``keys`` are the public keys of the service user by name, ``user_keys`` those of users by user and name
    (``user/name``). ``most_servers``, ``most_vcpus`` and ``most_memory_mb`` are the quotas of each project, None for no
    limit; so many of the next servers as ``failing`` says get no host.
    """

    images: dict[str, BootImageState] = field(default_factory=_images)
    keys: dict[str, str] = field(default_factory=dict)
    user_keys: dict[str, str] = field(default_factory=dict)
    most_servers: int | None = None
    most_vcpus: int | None = None
    most_memory_mb: int | None = None
    failing: int = 0

    @classmethod
    def from_json(cls, data: dict[str, Any] | None) -> BootState:
        """Return the state from its fields; that of a new cloud if there are none."""
        if data is None:
            return cls()
        return cls(**{**data, "images": {key: BootImageState(**value) for key, value in data["images"].items()}})
