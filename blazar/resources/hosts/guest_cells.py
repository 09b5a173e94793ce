# SPDX-License-Identifier: Apache-2.0
"""The NUMA cells of a server, by the rules of Nova (34): ``nova.virt.hardware.numa_get_constraints``.

What an image asks for is not seen here: its ``hw_numa_nodes``, ``hw_cpu_policy`` and ``hw_mem_page_size``.
"""

from __future__ import annotations

import re

from blazar.clouds.ports.compute import Flavor
from blazar.model.calendar.cells import GuestCells
from blazar.resources.contract.parameters import quote

NODES = "hw:numa_nodes"
PAGES = "hw:mem_page_size"
_PART = re.compile(r"hw:numa_(cpus|mem)\.\d+")
_NOWHERE = GuestCells(0)


def cells_of(flavor: Flavor) -> GuestCells | None:
    """Return the cells of a server; None if it has none of its own, and 0 cells if they cannot be promised.

    Reservations from before the latter was refused stay where they are.
    """
    if find_cell_obstacle(flavor) is not None:
        return _NOWHERE
    specs = flavor.extra_specs
    if not specs.keys() & {NODES, PAGES} and specs.get("hw:cpu_policy") != "dedicated":
        return None
    return GuestCells(int(specs.get(NODES, "1")), paged=PAGES in specs)


def find_cell_obstacle(flavor: Flavor) -> tuple[str, str] | None:
    """Return the extra spec that asks for cells that cannot be promised, and why; None if there is none."""
    specs = flavor.extra_specs
    if PAGES in specs and specs[PAGES] not in ("small", "any"):
        return PAGES, "asks for huge pages, which no service counts, so that they cannot be reserved"
    for key in specs:
        if _PART.fullmatch(key):
            return key, "sizes one NUMA cell, and only servers whose cells are equal can be reserved"
    if (text := specs.get(NODES)) is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,2}", text, re.ASCII):
        return NODES, f"is {quote(text)}; a number of NUMA cells is 1 or more"
    count = int(text)
    for what, amount in (("VCPUs", flavor.vcpus), ("MiB", flavor.memory_mb)):
        if amount % count:
            return NODES, f"is {count}, among which its {amount} {what} cannot be divided evenly"
    if count > 1 and specs.get("hw:emulator_threads_policy") == "isolate" and specs.get("hw:cpu_policy") == "dedicated":
        return NODES, "is more than 1 and its emulator threads need one more CPU of one cell, which is not even"
    return None
