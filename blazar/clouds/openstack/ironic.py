# SPDX-License-Identifier: Apache-2.0
"""The port of power by Ironic, for hosts that are its nodes: it keeps their state, and would undo what others do."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.ports.power import MachinePower, PowerReading, PowerRef
from blazar.model.base.errors import BlazarError, CloudRefused, CloudUnavailable, Conflict, InvalidInput, NotFound
from blazar.model.base.json_text import Json
from blazar.model.power.addresses import PowerAddress

VERSION = "1.27"
"""The microversion that has the soft power off, with a time limit."""

FIELDS = "uuid,name,power_state,target_power_state"
FEW = 5
"""Nodes up to which each is asked for by itself, instead of all in pages of a thousand."""

STATES = {"power on": MachinePower.ON, "power off": MachinePower.OFF}
TARGETS = {
    (MachinePower.ON, False): "power on",
    (MachinePower.ON, True): "power on",
    (MachinePower.OFF, False): "power off",
    (MachinePower.OFF, True): "soft power off",
}
NODE = re.compile(r"[A-Za-z0-9._~-]{1,255}")


class IronicPower:
    """Implements the port of power for nodes of Ironic, which the target names by id or name.

    While a node shuts down, Ironic takes nothing else of it: by default for ten minutes if that hangs, and here for as
    long as ``shutdown_timeout``.
    """

    def __init__(self, access: Access, *, shutdown_timeout: timedelta) -> None:
        self._access = access
        self._shutdown_seconds = int(shutdown_timeout.total_seconds())

    def check_address(self, address: PowerAddress) -> None:
        """Raise InvalidInput if the target is no name or id of a node."""
        if not NODE.fullmatch(address.target):
            raise InvalidInput("target is not the name or id of a node of Ironic", at="/target")

    def power_states(self, refs: Collection[PowerRef]) -> Mapping[str, PowerReading]:
        """Return what Ironic knows of the nodes."""
        if not refs:
            return {}
        try:
            nodes = self._list_nodes() if len(refs) > FEW else self._find_nodes(refs)
        except BlazarError as error:
            return {ref.resource_id: PowerReading(MachinePower.UNKNOWN, error.message) for ref in refs}
        return {ref.resource_id: _read(nodes.get(ref.address.target)) for ref in refs}

    def begin_switch(self, ref: PowerRef, to: MachinePower, *, soft: bool) -> None:
        """Set the target of a node. CloudUnavailable while Ironic is at work on it, CloudRefused."""
        path = f"/nodes/{quote(ref.address.target, safe='')}/states/power"
        limit: Json = {"timeout": self._shutdown_seconds} if soft and to is MachinePower.OFF else {}
        body = {"target": TARGETS[to, soft], **limit}
        try:
            self._access.baremetal.call("PUT", path, body=body, microversion=VERSION)
        except Conflict as error:
            raise CloudUnavailable(f"Ironic is at work on its node: {error.message}") from error
        except NotFound as error:
            raise CloudRefused("Ironic has no such node") from error

    def power_watts(self, refs: Collection[PowerRef]) -> Mapping[str, float]:
        """Return nothing: Ironic measures no watts that it tells by its API."""
        return {}

    def _list_nodes(self) -> Mapping[str, Mapping[str, Any]]:
        params = {"fields": FIELDS, "limit": 1000}
        found: dict[str, Mapping[str, Any]] = {}
        for node in self._access.baremetal.pages("/nodes", "nodes", microversion=VERSION, params=params):
            found |= {str(key): node for key in (node.get("uuid"), node.get("name")) if key}
        return found

    def _find_nodes(self, refs: Collection[PowerRef]) -> Mapping[str, Mapping[str, Any]]:
        found = {}
        for ref in refs:
            path = f"/nodes/{quote(ref.address.target, safe='')}"
            try:
                found[ref.address.target] = self._access.baremetal.get(
                    path, microversion=VERSION, params={"fields": FIELDS}
                )
            except NotFound:
                continue
        return found


def _read(node: Mapping[str, Any] | None) -> PowerReading:
    if node is None:
        return PowerReading(MachinePower.UNKNOWN, "Ironic has no such node")
    said = str(node.get("power_state"))
    if said not in STATES:
        return PowerReading(MachinePower.UNKNOWN, f"Ironic says that its power is {said[:40]}")
    if said == "power off" and node.get("target_power_state"):
        return PowerReading(MachinePower.UNKNOWN, "Ironic is at work on its power")
    return PowerReading(STATES[said])
