# SPDX-License-Identifier: Apache-2.0
"""How many random cases a property is tried with."""

from __future__ import annotations

import os

PERCENT = int(os.environ.get("BLAZAR_PERCENT", "5"))
"""Of the cases of each property: a few with each save, more with each change, all each night."""


def cases(number: int) -> int:
    """Return the share of a number of cases that this run tries, and at least five of them."""
    return min(number, max(5, -(-number * PERCENT // 100)))
