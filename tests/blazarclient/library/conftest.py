# SPDX-License-Identifier: Apache-2.0
"""The library before a service that says what the test tells it to; nothing sleeps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from blazarclient.library import Reservations
from blazarclient.library.leases import Leases
from keystoneauth1 import noauth, session

from tests.blazarclient.library.stub import Stub


@pytest.fixture
def stub() -> Iterator[Stub]:
    stub = Stub()
    yield stub
    stub.stop()


@pytest.fixture
def pauses() -> list[float]:
    """The seconds that the library would have slept."""
    return []


@pytest.fixture
def at(pauses: list[float]) -> Callable[[str], Reservations]:
    """Make the library of a service at a URL, without a login."""

    def make(url: str) -> Reservations:
        connected = session.Session(auth=noauth.NoAuth(endpoint=url))
        made = Reservations(connected, sleep=pauses.append, dice=lambda: 0.0)
        made.leases = Leases(made.transport, clock=lambda: sum(pauses), sleep=pauses.append)
        return made

    return make


@pytest.fixture
def reservations(stub: Stub, at: Callable[[str], Reservations]) -> Reservations:
    return at(stub.url)
