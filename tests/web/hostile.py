# SPDX-License-Identifier: Apache-2.0
"""What people may name as they like, as long as the service takes it: no list may break of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from tests.web.service import asked, booked

LONG = "x" * 80
"""The longest name of a lease, without a place to break it."""

MEMBER = f"{'u' * 60}:{'p' * 60}:member"
OPERATOR = f"{'o' * 60}:{'q' * 60}:admin"


def filled(pages: str) -> dict[str, str]:
    """Fill a service with long names in every text; return the addresses of what has a page of its own."""

    def sent(method: str, path: str, body: object = None, who: str = OPERATOR) -> dict[str, Any]:
        return asked(pages, who, method, f"v1/{path}", body)

    hosts = sent("GET", "resources/host?limit=10")["resources"]
    long_property = {"p" * 64: "v" * 250, "rack": "r" * 250}
    for host in hosts[:2]:
        sent("PUT", f"resources/host/{host['id']}", {"properties": long_property})
    sent("PUT", f"resources/host/{hosts[2]['id']}", {"disabled": {"reason": "w" * 1000}})
    sent("PUT", f"resources/host/{hosts[3]['id']}", {"authorized_projects": ["p" * 255, "q" * 60]})
    thing = {"name": "m" * 60, "class": "c" * 60, "hook_url": f"https://hooks.example/{'h' * 80}"}
    generic = sent("POST", "resources/generic", {**thing, "properties": long_property})["resource"]
    later = {"start": "2031-03-03T08:00:00Z", "end": "2031-03-04T08:00:00Z"}
    lease = booked(pages, MEMBER, LONG, before_end="snapshot", resource_properties=["==", "$rack", "r" * 250], **later)
    told = [{"at": "-PT1H", "text": "t" * 255}, {"at": "+PT1H", "text": "<b>" * 85}]
    sent("PUT", f"leases/{lease['id']}", {"reminders": told}, who=MEMBER)
    booked(pages, MEMBER, LONG, **later)
    booked(pages, OPERATOR, LONG, **later)
    gone = booked(pages, MEMBER, LONG, start="2031-04-03T08:00:00Z", end="2031-04-04T08:00:00Z")
    sent("DELETE", f"leases/{gone['id']}", who=MEMBER)
    wanted = [{"resource_type": "physical:host", "min": 4, "max": 4}]
    blocked = {"name": LONG, "start_date": "now", "end_date": "+P30D", "reservations": wanted}
    sent("POST", "leases", blocked, who=MEMBER)
    sent("POST", "leases", {**blocked, "wait": {"until": "+P7D"}}, who=MEMBER)
    series = {
        "name": LONG,
        "rule": "FREQ=WEEKLY;COUNT=3",
        "start": f"{datetime.now(UTC) + timedelta(days=60):%Y-%m-%d}T08:00",
        "until_local": "12:00",
        "reservations": [{"resource_type": "physical:host", "min": 1, "max": 1}],
    }
    made = sent("POST", "series", series, who=MEMBER)["series"]
    window = {"name": LONG, "reason": "y" * 500, "start_date": "2031-03-03T06:00:00Z", "end_date": "+P2D"}
    window["hosts"] = [hosts[0]["id"]]  # type: ignore[assignment]
    impact = sent("POST", "maintenances?dry_run=true", window)["impact"]["id"]
    closed = sent("POST", "maintenances", {**window, "impact_id": impact})["maintenance"]
    return {
        "lease": f"lease?id={lease['id']}",
        "series": f"series?id={made['id']}",
        "resource": f"resource?kind=generic&id={generic['id']}",
        "host": f"resource?kind=host&id={hosts[0]['id']}",
        "maintenance": f"maintenance?id={closed['id']}",
    }
