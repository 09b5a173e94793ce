# SPDX-License-Identifier: Apache-2.0
"""The ports of projects of users: where the service may make something as a member, and what quotas they have."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Protocol

from blazar.model.base.values import dataclass

CHANGES: frozenset[str] = frozenset()
"""No call changes anything."""

NO_LIMIT = -1


class Projects(Protocol):
    """The roles of the service user in projects that are not its own.

    Servers, volumes and stacks belong to the project of the token that made them. A type that makes some calls
    ``check`` in ``resolve``, so that a lease is refused whose start would fail.
    """

    def check_role(self, project_id: str) -> None:
        """Raise RoleMissing if the service user has no role in a project, or if there is no such project."""


class Quota(StrEnum):
    """What a project has a quota for, named as in Nova, Cinder and Neutron."""

    SERVERS = "instances"
    VCPUS = "cores"
    MEMORY_MB = "ram"
    VOLUMES = "volumes"
    GIGABYTES = "gigabytes"
    NETWORKS = "network"
    SUBNETS = "subnet"
    PORTS = "port"


OF_COMPUTE = (Quota.SERVERS, Quota.VCPUS, Quota.MEMORY_MB)
OF_VOLUMES = (Quota.VOLUMES, Quota.GIGABYTES)
OF_NETWORK = (Quota.NETWORKS, Quota.SUBNETS, Quota.PORTS)


@dataclass(frozen=True, slots=True)
class QuotaLimit:
    """How much a project may have of something, -1 for any amount, and how much of that is in use or spoken for."""

    limit: int = NO_LIMIT
    used: int = 0


Limits = Mapping[Quota, QuotaLimit]
"""Limits of one project; what is not in it is not limited."""


class Quotas(Protocol):
    """The quotas of a project in each service: one call each."""

    def compute_quotas(self, project_id: str) -> Limits:
        """Return those of ``OF_COMPUTE``."""

    def volume_quotas(self, project_id: str) -> Limits:
        """Return those of ``OF_VOLUMES``, which are for volumes of all types together."""

    def network_quotas(self, project_id: str) -> Limits:
        """Return those of ``OF_NETWORK``."""


class NoQuotas:
    """Quotas of a cloud without any."""

    def compute_quotas(self, project_id: str) -> Limits:
        """Return none."""
        return {}

    def volume_quotas(self, project_id: str) -> Limits:
        """Return none."""
        return {}

    def network_quotas(self, project_id: str) -> Limits:
        """Return none."""
        return {}
