# SPDX-License-Identifier: Apache-2.0
"""Ports of other packages: services that only resource types of theirs call."""

from __future__ import annotations

import threading
from typing import Any

from oslo_config import cfg

from blazar.model import extensions
from blazar.model.errors import InvalidInput

NAMESPACE = "blazar.clouds"
ADVICE = "docs/contributing/add-a-resource-type.md"


class OtherPorts:
    """Ports by name, each made when it is first asked for and then shared.

    A package offers the implementation for a cloud by an entry point of ``blazar.clouds.openstack`` or
    ``blazar.clouds.simulated``: a callable that takes the configuration.
    """

    def __init__(self, adapter: str = "openstack") -> None:
        self.adapter = adapter
        self._made: dict[str, Any] = {}
        self._lock = threading.Lock()

    def port(self, name: str, conf: cfg.ConfigOpts) -> Any:
        """Return the port; InvalidInput, with the real reason, if it is not installed or cannot be made."""
        with self._lock:
            if name not in self._made:
                namespace = f"{NAMESPACE}.{self.adapter}"
                point = extensions.offered(namespace).get(name)
                if point is None:
                    raise InvalidInput(f"no package offers the port {name} by an entry point of {namespace}")
                make = extensions.load(
                    point, object, named=namespace, advice="docs/contributing/add-a-resource-type.md"
                )
                self._made[name] = make(conf)
            return self._made[name]
