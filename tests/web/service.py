# SPDX-License-Identifier: Apache-2.0
"""Requests to the service whose pages a test opens, to set the scene and to look behind it."""

from __future__ import annotations

import json
import urllib.request
from typing import Any


def asked(pages: str, who: str, method: str, path: str, body: object = None, **headers: str) -> dict[str, Any]:
    """Send a request of 1.1 as somebody; return the answer's body, {} if it has none. `pages` ends with ui/."""
    request = urllib.request.Request(
        pages.removesuffix("ui/") + path,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "X-Auth-Token": who,
            "OpenStack-API-Version": "reservation 1.1",
            "Content-Type": "application/json",
            **headers,
        },
    )
    with urllib.request.urlopen(request, timeout=60) as response:
        content = response.read()
    return dict(json.loads(content)) if content else {}


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
