# SPDX-License-Identifier: Apache-2.0
"""A world whose leases a recording filter hears of."""

from __future__ import annotations

import pytest

from tests.manager.enforcement.recording import RecordingFilter
from tests.world import World


@pytest.fixture
def books() -> RecordingFilter:
    return RecordingFilter()


@pytest.fixture
def world(sqlite, books) -> World:
    return World(sqlite, filters=[books])
