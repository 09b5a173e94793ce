# SPDX-License-Identifier: Apache-2.0
"""A cache of leases rendered as JSON.

The id and the revision of a lease determine its JSON. A list of thousands of leases of which a few have changed since
the last list takes milliseconds: one statement reads the revisions, and only new or changed leases are read and
rendered.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from blazar.api.leases import render
from blazar.model.lease import Lease
from blazar.rpc.interface import Manager

MOST_BYTES = 128 * 1024 * 1024
"""Room for about 80 000 leases of typically 1.5 KB."""

MOST_BY_ID = 500
"""If more leases than this are missing from the cache, the whole list is read instead."""

_OVERHEAD = 300
"""Approximate overhead of a cached lease in bytes."""

_encode = json.JSONEncoder(separators=(",", ":")).encode
"""One shared encoder: ``json.dumps`` creates a new one at every call."""


@dataclass(frozen=True, slots=True)
class _Kept:
    revision: int
    project_id: str
    text: bytes

    @property
    def size(self) -> int:
        return len(self.text) + _OVERHEAD


class RenderedLeases:
    """A thread-safe cache of leases rendered by ``shown``, at most ``most_bytes`` large.

    It drops the leases rendered longest ago first. A deleted lease is dropped by the first list that lacks it.
    """

    def __init__(
        self, shown: Callable[[Lease], dict[str, Any]] = render.lease, *, most_bytes: int = MOST_BYTES
    ) -> None:
        self._shown = shown
        self._most_bytes = most_bytes
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._of_project: dict[str, set[str]] = {}
        self._bytes = 0
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """The approximate size of the cache in bytes."""
        return self._bytes

    def all(self, manager: Manager, project_id: str | None) -> list[bytes]:
        """Return the JSON of a project's leases (None: all leases), oldest first. The caller may modify the list."""
        wanted = manager.leases.revisions(project_id)
        with self._lock:
            found = {w.id: kept.text for w in wanted if (kept := self._kept.get(w.id)) and kept.revision == w.revision}
            known = self._kept.keys() if project_id is None else self._of_project.get(project_id, set())
            if len(known) > len(found):
                for lease_id in known - {w.id for w in wanted}:
                    self._drop(lease_id)
        missing = [w.id for w in wanted if w.id not in found]
        if missing:
            fresh = manager.leases.by_id(missing) if len(missing) <= MOST_BY_ID else manager.leases.all(project_id)
            # One that went to another project since is no lease of this one any more.
            ours = (lease for lease in fresh if project_id in (None, lease.project_id))
            found |= {lease.id: self._keep(lease) for lease in ours if lease.id not in found}
        # A lease that was deleted between the two reads is in neither.
        return [found[w.id] for w in wanted if w.id in found]

    def drop(self, lease_id: str) -> None:
        """Remove a lease from the cache."""
        with self._lock:
            self._drop(lease_id)

    def forget(self) -> None:
        """Empty the cache."""
        with self._lock:
            self._kept.clear()
            self._of_project.clear()
            self._bytes = 0

    def _drop(self, lease_id: str) -> None:
        if (kept := self._kept.pop(lease_id, None)) is not None:
            self._bytes -= kept.size
            of_project = self._of_project[kept.project_id]
            of_project.discard(lease_id)
            if not of_project:
                del self._of_project[kept.project_id]

    def _keep(self, lease: Lease) -> bytes:
        text = _encode(self._shown(lease)).encode()
        kept = _Kept(lease.revision, lease.project_id, text)
        with self._lock:
            self._drop(lease.id)
            self._kept[lease.id] = kept
            self._of_project.setdefault(lease.project_id, set()).add(lease.id)
            self._bytes += kept.size
            while self._bytes > self._most_bytes:
                self._drop(next(iter(self._kept)))
        return text
