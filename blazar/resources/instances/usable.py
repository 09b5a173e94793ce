# SPDX-License-Identifier: Apache-2.0
"""Flavors that projects can use."""

from __future__ import annotations

from blazar.clouds.ports import Compute, Flavor
from blazar.model.errors import NotFound
from blazar.resources.parameters import quoted


def usable_flavor(compute: Compute, project_id: str, flavor_id: str, field: str) -> Flavor:
    """Return the flavor that a parameter names; NotFound, which names the field, if the project cannot use it."""
    flavor = compute.flavor(flavor_id)
    if flavor is None or not (flavor.public or project_id in _access(compute, flavor_id)):
        raise NotFound(
            f"{field}: there is no flavor {quoted(flavor_id)} that your project can use", pointer=f"/{field}"
        )
    return flavor


def is_usable(compute: Compute, project_id: str, flavor_id: str) -> bool:
    """Return whether a project can use a flavor."""
    try:
        usable_flavor(compute, project_id, flavor_id, "flavor_id")
    except NotFound:
        return False
    return True


def _access(compute: Compute, flavor_id: str) -> frozenset[str]:
    try:
        return compute.flavor_access(flavor_id)
    except NotFound:
        # Deleted or made public since it was read.
        return frozenset()
