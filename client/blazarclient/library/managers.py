# SPDX-License-Identifier: Apache-2.0
"""The managers of the service, for operators: which run, how they get on, what each works on."""

from __future__ import annotations

from collections.abc import Iterator

from blazarclient.exception import NotFound, NoUniqueMatch
from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, named
from blazarclient.library.values import Manager


class Managers:
    """The running managers, and those that were seen within a day."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(self) -> Iterator[Manager]:
        """Yield the managers, the longest running first."""
        for item in self._transport.pages("/managers", "managers"):
            yield decode(Manager, item)

    def find(self, host_or_id: str) -> Manager:
        """Return the manager with this id, or the only one on this host; of several there the only one that is up.

        NotFound; NoUniqueMatch if several are up on the host, or none of several.
        """
        named(host_or_id)
        found = [manager for manager in self.list() if host_or_id in (manager.id, manager.host)]
        if len(found) > 1:
            found = [manager for manager in found if manager.up] or found
        if len(found) > 1:
            ids = ", ".join(manager.id for manager in found)
            raise NoUniqueMatch(f"{len(found)} managers are on the host {host_or_id}; give an id: {ids}")
        if not found:
            raise NotFound(f"There is no manager {host_or_id}", code=404)
        return found[0]
