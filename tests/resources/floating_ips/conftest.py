# SPDX-License-Identifier: Apache-2.0
"""A world with addresses."""

from __future__ import annotations

import pytest


@pytest.fixture
def world(a_world):
    """Ten addresses, .10 to .19, and no hosts."""
    made = a_world(hosts=0)
    made.register_addresses(*range(10, 20))
    return made
