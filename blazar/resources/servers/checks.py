# SPDX-License-Identifier: Apache-2.0
"""What a request for servers names in the cloud, looked up as the project sees it."""

from __future__ import annotations

from blazar.clouds.ports import Cloud
from blazar.clouds.ports.booting import BootImage
from blazar.clouds.ports.compute import Flavor
from blazar.context import current
from blazar.model.base.errors import InvalidInput, NotFound, pointing_at
from blazar.model.base.json_text import Json
from blazar.model.base.values import dataclass
from blazar.model.leases.reservation import Reservation
from blazar.resources.contract.parameters import cloud_id, quote, text_of
from blazar.resources.contract.values import Given
from blazar.resources.hosts.flavors import usable_flavor
from blazar.resources.servers.access import PUBLIC_KEY
from blazar.resources.servers.parameters import (
    FLAVOR,
    GROUPS,
    IMAGE,
    KEY_NAME,
    NETWORKS,
    groups_of,
    networks_of,
)
from blazar.resources.volumes.checks import usable_image

LOOKED_UP = (IMAGE, FLAVOR, NETWORKS, KEY_NAME, GROUPS)
"""Parameters that name something in the cloud."""

FITTING = (FLAVOR, "memory_mb", "disk_gb")
"""Parameters that images make demands on."""


@dataclass(frozen=True, slots=True)
class ResolvedServers(Given):
    """The parameters of a request, with what those of them that are new name; None where they name nothing."""

    image: BootImage | None = None
    flavor: Flavor | None = None
    public_key: str | None = None


class ServerChecks:
    """Looks up, with the token of the project, what users name for servers: nothing of others can be named."""

    def __init__(self, cloud: Cloud) -> None:
        self._compute = cloud.compute
        self._projects = cloud.projects
        self._booting = cloud.booting

    def resolve(self, given: Given, *, project_id: str, reservation: Reservation | None) -> Given:
        """Return the parameters with what they name. InvalidInput, NotFound, RoleMissing."""
        if isinstance(given, ResolvedServers):
            return given
        known: Json = {} if reservation is None else reservation.parameters.values
        new = {key: given.values[key] for key in LOOKED_UP if is_new(given.values, known, key)}
        if reservation is not None and any(is_new(given.values, known, key) for key in FITTING):
            # The image is as before, and may no longer fit.
            new.setdefault(IMAGE, known[IMAGE])
        if not new and reservation is not None:
            return ResolvedServers(given.values)
        self._projects.check_role(project_id)
        self._check_networks(project_id, new.get(NETWORKS))
        self._check_groups(project_id, new.get(GROUPS))
        return ResolvedServers(
            given.values,
            image=usable_image(self._booting, project_id, new[IMAGE]) if IMAGE in new else None,
            flavor=self._find_flavor(project_id, new[FLAVOR]) if new.get(FLAVOR) is not None else None,
            public_key=self._find_public_key(new) if given.values.get(PUBLIC_KEY) is None else None,
        )

    def _find_flavor(self, project_id: str, value: object) -> Flavor:
        return usable_flavor(self._compute, project_id, cloud_id(value, FLAVOR, "a flavor"), FLAVOR)

    def _check_networks(self, project_id: str, value: object) -> None:
        networks = () if value is None else networks_of(value)
        for index, network in enumerate(() if isinstance(networks, str) else networks):
            if isinstance(network, str):
                with pointing_at(f"/{NETWORKS}/{index}"):
                    self._check_network(project_id, network)

    def _check_network(self, project_id: str, network_id: str) -> None:
        found = self._booting.boot_network(project_id, network_id)
        if found is None:
            raise NotFound(f"{NETWORKS}: there is no network {quote(network_id)} that your project can use")
        if found.external and not found.shared:
            raise InvalidInput(
                f"{NETWORKS}: network {quote(network_id)} is external; use one of your project, and a floating IP"
            )
        if not found.subnets:
            raise InvalidInput(f"{NETWORKS}: network {quote(network_id)} has no subnet; create one first")

    def _check_groups(self, project_id: str, value: object) -> None:
        for index, name in enumerate(() if value is None else groups_of(value)):
            if not self._booting.has_security_group(project_id, name):
                raise NotFound(f"{GROUPS}: your project has no security group {quote(name)}", at=f"/{GROUPS}/{index}")

    def _find_public_key(self, new: Json) -> str | None:
        """Return the public key of a key pair of the user who asks; key pairs belong to users, not to projects."""
        name = text_of(new, KEY_NAME)
        if not name:
            return None
        user_id = current().user_id
        found = None if user_id is None else self._booting.public_key(user_id, name)
        if found is None:
            raise NotFound(
                f"{KEY_NAME}: you have no key pair {quote(name)}; create it, or give {PUBLIC_KEY}", at=f"/{KEY_NAME}"
            )
        return found


def is_new(values: Json, known: Json, key: str) -> bool:
    """Return whether a request gives a parameter another value than is known."""
    return key in values and (key not in known or values[key] != known[key])
