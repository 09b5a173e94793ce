# SPDX-License-Identifier: Apache-2.0
"""What is needed to reach a cloud; reading it from the configuration takes no openstacksdk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from keystoneauth1.identity.base import BaseIdentityPlugin


@dataclass(frozen=True, slots=True)
class Credentials:
    """The service user and the endpoints of the cloud.

    ``auth`` is any keystoneauth plugin for the service user; ``interfaces`` names the interface in the catalog to use
    for each service. ``verify`` is False, True, or the path of a bundle of certificates.
    """

    auth: BaseIdentityPlugin
    region: str | None = None
    interfaces: Mapping[str, str] = field(default_factory=dict)
    compute_service: str = "compute"
    identity_service: str = "identity"
    verify: bool | str = True
    cert: str | tuple[str, str] | None = None
    timeout: float = 20.0
    """Seconds that a call may take to connect, and again to answer."""
    attempts: int = 3
