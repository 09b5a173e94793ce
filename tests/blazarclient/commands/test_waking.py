# SPDX-License-Identifier: Apache-2.0
"""What is said of a lease whose hosts sleep."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from blazarclient.commands.listing import describe_waking
from blazarclient.library.decoding import decode
from blazarclient.library.values import WakingHosts


def test_it_is_said_how_many_hosts_sleep_and_when_it_begins() -> None:
    told = {"hosts": 2, "ready_at": "2030-04-01T12:11:00Z", "message": "2 of its hosts sleep"}
    zone = ZoneInfo("Europe/Berlin")
    assert describe_waking(decode(WakingHosts, told), zone).startswith(
        "2 hosts that sleep; it begins at about 2030-04-01"
    )
    assert describe_waking(decode(WakingHosts, {**told, "hosts": 1}), zone).startswith("1 host that sleeps")
