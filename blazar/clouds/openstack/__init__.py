# SPDX-License-Identifier: Apache-2.0
"""The adapter of a real OpenStack cloud. Only this package uses keystoneauth."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from blazar.clouds.openstack.cloud import Access, Credentials, OpenStackCompute, open_cloud

__all__ = ["Access", "Credentials", "OpenStackCompute", "open_cloud"]


def __getattr__(name: str) -> object:
    """Import the adapters when one of them is used: who reads only the options of this package has none of it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.cloud"), name)
