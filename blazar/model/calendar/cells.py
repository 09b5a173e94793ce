# SPDX-License-Identifier: Apache-2.0
"""NUMA cells: those that a server needs, and whether amounts of a whole host are enough to promise them.

No inventory of Nova (34) or Placement (16) tells what is free in a cell; Nova looks at the cells when a server arrives
on its host (``nova.virt.hardware.numa_fit_instance_to_host``).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from blazar.model.base.values import dataclass
from blazar.model.resources.resource import Resource

CELLS = "numa_cells"
"""The capability of a host with the number of its equal cells, instead of what Nova says; 0 for cells that differ."""


@dataclass(frozen=True, slots=True)
class GuestCells:
    """The equal NUMA cells of one server, each on another cell of its host; 0 of them are on no host.

    ``paged``: memory is counted in pages, of which no more are given than there are.
    """

    count: int
    paged: bool = False

    def fit(self, resource: Resource) -> bool:
        """Return whether such servers fit into the cells of a host wherever they fit into the whole of it.

        That is so if each takes the same of every cell; the CPUs of the host are divided among its cells.
        """
        cells = count_cells(resource)
        if cells is None or cells != self.count or resource.capacity.get("PCPU") % cells:
            return False
        memory = resource.limits.get("MEMORY_MB")
        return not self.paged or memory is None or resource.capacity.get("MEMORY_MB") <= memory.most


def count_cells(resource: Resource) -> int | None:
    """Return the number of equal NUMA cells of a host, as its operator or else Nova says; None if it is not known."""
    if (declared := resource.capabilities.get(CELLS)) is not None:
        return int(declared) if re.fullmatch(r"[1-9][0-9]{0,2}", declared) else None
    return _parse_cells(str(resource.attributes.get("cpu_info") or ""))


# Hosts of one model have the same text.
@lru_cache(maxsize=1024)
def _parse_cells(cpu_info: str) -> int | None:
    try:
        found = json.loads(cpu_info)
    except ValueError:
        return None
    topology = found.get("topology") if isinstance(found, dict) else None
    cells = topology.get("cells") if isinstance(topology, dict) else None
    return cells if type(cells) is int and cells > 0 else None
