# SPDX-License-Identifier: Apache-2.0
"""Requests to the service whose pages a test opens, to set the scene and to look behind it."""

from __future__ import annotations

import json
import time
import urllib.request
from datetime import UTC, datetime
from typing import Any

from blazar.api.http.microversion import MAX_VERSION, as_text

# How long a test waits for a service, in seconds: a busy machine may take that long.
PATIENCE = 120


VERSION = f"reservation {as_text(MAX_VERSION)}"
"""The version of the API that tests ask with, as the pages do."""


def asked(pages: str, who: str, method: str, path: str, body: object = None, **headers: str) -> dict[str, Any]:
    """Send a request as somebody; return the answer's body, {} if it has none. `pages` ends with ui/."""
    request = urllib.request.Request(
        pages.removesuffix("ui/") + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "X-Auth-Token": who,
            "OpenStack-API-Version": VERSION,
            "Content-Type": "application/json",
            **headers,
        },
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        content = response.read()
    return dict(json.loads(content)) if content else {}


def published(pages: str, operator: str, prices: object) -> None:
    """Publish a price list, and wait until it is in force: what is booked in the second before has no price of it."""
    new = asked(pages, operator, "POST", "v1/price-lists", prices)["price_list"]
    in_force = datetime.fromisoformat(new["published_at"])
    while (left := (in_force - datetime.now(UTC)).total_seconds()) > 0:
        time.sleep(left)


def leases_of(pages: str, who: str, state: str = "current") -> list[dict[str, Any]]:
    """Return the leases that somebody may see."""
    return list(asked(pages, who, "GET", f"v1/leases?state={state}")["leases"])


def booked(pages: str, who: str, name: str, start: str = "now", end: str = "+P2D", **more: object) -> dict[str, Any]:
    """Book one host; return the lease."""
    body = {
        "name": name,
        "start_date": start,
        "end_date": end,
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1, **more}],
    }
    return dict(asked(pages, who, "POST", "v1/leases", body)["lease"])


def emptied(pages: str, operator: str) -> None:
    """Give back all that is booked, so that the next test finds the service as it was after its start."""
    for window in asked(pages, operator, "GET", "v1/maintenances")["maintenances"]:
        if window["status"] == "PLANNED":
            asked(pages, operator, "DELETE", f"v1/maintenances/{window['id']}")
        elif window["status"] in ("STARTING", "ACTIVE"):
            asked(pages, operator, "POST", f"v1/maintenances/{window['id']}/end")
    for series in asked(pages, operator, "GET", "v1/series")["series"]:
        if series["status"] in ("CREATING", "ACTIVE"):
            asked(pages, operator, "DELETE", f"v1/series/{series['id']}?running=true")
    until = time.monotonic() + PATIENCE
    deleted: set[str] = set()
    while left := leases_of(pages, operator):
        for lease in left:
            if lease["id"] not in deleted:
                asked(pages, operator, "DELETE", f"v1/leases/{lease['id']}")
                deleted.add(lease["id"])
        assert time.monotonic() < until, left
        time.sleep(0.1)
