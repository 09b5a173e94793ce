"""Leases as JSON texts, kept while they are true.

What a lease looks like follows from its id and its revision alone. A list of thousands, of which a few have changed
since the last one, is then a matter of milliseconds: one statement for the revisions, and only what is new is read
and rendered.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from blazar.api import render
from blazar.model.lease import Lease
from blazar.rpc.interface import Manager

MOST_KEPT = 100_000
"""About 1.5 KB each."""

MOST_BY_ID = 500
"""Beyond so many that are missing, the whole list is read instead."""

_encode = json.JSONEncoder(separators=(",", ":")).encode
"""One encoder for all: ``json.dumps`` makes a new one at every call."""


class RenderedLeases:
    """Keeps the JSON texts of leases, the latest used ones, as ``shown`` renders them. Safe for several threads."""

    def __init__(self, shown: Callable[[Lease], dict[str, Any]] = render.lease, *, most: int = MOST_KEPT) -> None:
        self._shown = shown
        self._most = most
        self._texts: OrderedDict[str, tuple[int, str]] = OrderedDict()
        self._lock = threading.Lock()

    def all(self, manager: Manager, project_id: str | None) -> list[str]:
        """Return the JSON texts of a project's leases (None: of all), oldest first."""
        wanted = manager.lease_revisions(project_id)
        with self._lock:
            found = {w.id: kept[1] for w in wanted if (kept := self._texts.get(w.id)) and kept[0] == w.revision}
        missing = [w.id for w in wanted if w.id not in found]
        if missing:
            fresh = manager.leases_by_id(missing) if len(missing) <= MOST_BY_ID else manager.leases(project_id)
            found |= {lease.id: self._keep(lease) for lease in fresh if lease.id not in found}
        # What was deleted between the two looks is in neither.
        return [found[w.id] for w in wanted if w.id in found]

    def forget(self) -> None:
        """Keep nothing, as after a start."""
        with self._lock:
            self._texts.clear()

    def _keep(self, lease: Lease) -> str:
        text = _encode(self._shown(lease))
        with self._lock:
            self._texts[lease.id] = lease.revision, text
            self._texts.move_to_end(lease.id)
            while len(self._texts) > self._most:
                self._texts.popitem(last=False)
        return text
