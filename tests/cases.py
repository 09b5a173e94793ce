# SPDX-License-Identifier: Apache-2.0
"""How many random cases a property is tried with."""

from __future__ import annotations

import os


def cases(number: int) -> int:
    """Return so many with FULL=1, as each night; a third of them with each change."""
    return number if os.environ.get("FULL") else -(-number // 3)
