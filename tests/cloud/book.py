# SPDX-License-Identifier: Apache-2.0
"""Books leases with dates to the second, as the API would ask a manager to: API 1.0 itself speaks in minutes.

    python -m tests.cloud.book FILE_OF_BLAZAR_CONF < leases.json

Each lease is a project, a host, and a start and an end in seconds from now; the ids are printed.
"""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime, timedelta
from typing import Any

from oslo_config import cfg

from blazar.cmd import config
from blazar.messaging import transport
from blazar.model.leases.requests import LeaseRequest, ReservationRequest
from blazar.rpc.client import RemoteManager
from tests.cloud.deployment import a_host


def request(wish: dict[str, Any], now: datetime) -> LeaseRequest:
    room = {key: value for key, value in a_host(host=wish["host"]).items() if key != "resource_type"}
    return LeaseRequest(
        name=f"on {wish['host']}",
        user_id="somebody",
        project_id=wish["project"],
        start=now + timedelta(seconds=wish["start"]),
        end=now + timedelta(seconds=wish["end"]),
        reservations=(ReservationRequest("physical:host", {**room, "before_end": "none"}),),
    )


def main() -> None:
    conf = config.load(["--config-file", sys.argv[1]], program="book", conf=cfg.CONF)
    bus = transport(conf)
    manager = RemoteManager(conf, bus)
    now = datetime.now(UTC).replace(microsecond=0)
    print(json.dumps([manager.leases.create(request(wish, now)).id for wish in json.load(sys.stdin)]))
    bus.cleanup()


if __name__ == "__main__":
    main()
