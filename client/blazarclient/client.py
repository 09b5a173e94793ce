# SPDX-License-Identifier: Apache-2.0
"""The client of a version of the API, whose methods return dicts."""

from __future__ import annotations

from typing import Any

from oslo_utils import importutils

from blazarclient import exception

_CLASSES = dict.fromkeys(("1", "1a0"), "blazarclient.v1.client.Client")


def Client(version: str | int = 1, service_type: str = "reservation", *args: Any, **kwargs: Any) -> Any:
    """Return a client of a version of the API; UnsupportedVersion if there is none.

    ``session``: a keystoneauth session or adapter. The rest goes to the adapter: ``interface``, ``region_name``,
    ``endpoint_override``, ``default_microversion``, ``global_request_id`` and others.
    """
    name = _CLASSES.get(str(version))
    if name is None:
        known = ", ".join(sorted(_CLASSES))
        raise exception.UnsupportedVersion(f"There is no version {version} of the client; choose one of: {known}")
    return importutils.import_object(name, *args, service_type=service_type, **kwargs)
