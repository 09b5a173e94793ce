# SPDX-License-Identifier: Apache-2.0
"""What a figure was measured on."""

from __future__ import annotations

import os
import platform
import re
from pathlib import Path


def describe() -> str:
    """Return processor, cores, memory, load and Python of this machine, as a page names them."""
    cpus, memory = (_read(name) for name in ("cpuinfo", "meminfo"))
    model = re.search(r"^model name\s*: (.+)$", cpus, re.M)
    size = re.search(r"^MemTotal: +(\d+) kB", memory, re.M)
    parts = [
        model[1].strip() if model else platform.machine(),
        f"{os.cpu_count()} cores",
        f"{int(size[1]) // 2**20} GiB" if size else "",
        f"load {os.getloadavg()[0]:.0f}",
        f"Python {platform.python_version()}",
    ]
    return ", ".join(part for part in parts if part)


def _read(name: str) -> str:
    path = Path("/proc") / name
    return path.read_text("utf-8") if path.exists() else ""
