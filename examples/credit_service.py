#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small, strict credit service: every project has an account of resource-hours by resource class.

It represents the credit services of sites, and is as strict as they are: it rejects incomplete bodies, leases that were
not committed, and repeated messages. Start it, and configure Blazar to call it:

    python examples/credit_service.py --port 8080 --token secret --credits VCPU=1000 --credits MEMORY_MB=4000000

    [enforcement]
    enabled_filters = ExternalServiceFilter
    external_service_base_endpoint = http://127.0.0.1:8080/
    external_service_commit_create_endpoint = http://127.0.0.1:8080/commit-create
    external_service_commit_update_endpoint = http://127.0.0.1:8080/commit-update
    external_service_token = secret

A lease costs ``resource_requests`` times its hours; ``on-end`` refunds unused hours. Answers:

    204   granted, or recorded
    400   the body is malformed
    403   the account has too few credits; the message is for the user
    404   no such lease was committed, or there are no credits of this class
    409   the lease was already committed or has ended, or the message is a duplicate
"""

from __future__ import annotations

import argparse
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import urlsplit

from enforcement_service import Denied, Handler, Json, server

CHECKS = ("/check-create", "/check-update")
CREATES = ("/check-create", "/commit-create")
UPDATES = ("/check-update", "/commit-update")


class Malformed(Denied):
    """The body is malformed."""

    status = 400


class Unknown(Denied):
    """No such lease or resource class is recorded."""

    status = 404


class Repeated(Denied):
    """The message was received before."""

    status = 409


@dataclass(frozen=True)
class Consumer:
    """A lease as recorded in the accounts."""

    project_id: str
    start: datetime
    end: datetime
    requests: Mapping[str, int]
    ended: bool = False

    @property
    def cost(self) -> Mapping[str, float]:
        """Return the resource-hours by resource class."""
        hours = max(0.0, (self.end - self.start).total_seconds() / 3600)
        return {name: amount * hours for name, amount in self.requests.items()}


class Books:
    """The accounts of all projects. ``credits`` are the hours of each project, by resource class."""

    def __init__(self, credits: Mapping[str, float]) -> None:
        self.credits = dict(credits)
        # By id and project: a lease that goes to another project keeps its id, and is another account.
        self.consumers: dict[tuple[str, str], Consumer] = {}
        self._earlier: list[Consumer] = []
        self._heard: set[str] = set()
        self._lock = threading.Lock()

    def hear(self, path: str, body: Json, request_id: str | None) -> None:
        """Record a message of Blazar, or raise Denied."""
        with self._lock:
            asked = _consumer(body, "lease")
            lease_id = body["lease"]["id"]
            if path not in CHECKS:
                if not request_id:
                    raise Malformed("a message needs an X-OpenStack-Request-ID")
                if request_id in self._heard:
                    raise Repeated(f"request {request_id} was received before")
            key = lease_id, asked.project_id
            known = self.consumers.get(key)
            if path in CREATES:
                if known is not None and not known.ended:
                    raise Repeated(f"lease {lease_id} is already recorded")
            elif known is None:
                raise Unknown(f"lease {lease_id} is not recorded")
            elif known.ended:
                raise Repeated(f"lease {lease_id} has ended")
            if path in UPDATES:
                _consumer(body, "current_lease")
                if body["current_lease"]["id"] != lease_id:
                    raise Malformed("lease and current_lease are two different leases")
            if known is not None and not known.ended:
                asked = replace(asked, start=max(asked.start, known.start))
            match path:
                case "/check-create" | "/check-update":
                    self._check(lease_id, asked)
                case "/commit-create" | "/commit-update":
                    if path in CREATES and any(each == lease_id for each, _ in self.consumers):
                        # It comes from another project, which has paid up to now.
                        asked = replace(asked, start=min(asked.end, max(asked.start, _date(body, "occurred_at"))))
                    self._check(lease_id, asked)
                    if known is not None and known.ended:
                        # The project has the lease for the second time.
                        self._earlier.append(known)
                    self.consumers[key] = asked
                case "/on-end":
                    at = _date(body, "occurred_at")
                    self.consumers[key] = replace(asked, end=max(asked.start, min(asked.end, at)), ended=True)
                case _:
                    raise Unknown(f"there is no path {path}")
            if path not in CHECKS and request_id:
                self._heard.add(request_id)

    def left(self, project_id: str, *, besides: str | None = None) -> dict[str, float]:
        """Return the remaining hours of a project by class, not counting one lease."""
        left = dict(self.credits)
        current = [c for (lease_id, _), c in self.consumers.items() if lease_id != besides or c.ended]
        for consumer in (*self._earlier, *current):
            if consumer.project_id == project_id:
                for name, hours in consumer.cost.items():
                    left[name] -= hours
        return left

    def _check(self, lease_id: str, asked: Consumer) -> None:
        left = self.left(asked.project_id, besides=lease_id)
        for name, hours in asked.cost.items():
            if name not in left:
                raise Unknown(f"there are no credits of {name}")
            if hours > left[name]:
                raise Denied(f"the lease costs {hours:g} {name} hours, and the project has {left[name]:g} left")


def _consumer(body: Json, name: str) -> Consumer:
    """Return the lease that a body describes. Raises Malformed."""
    context, lease = _part(body, "context"), _part(body, name)
    url = urlsplit(_text(context, "auth_url"))
    if url.scheme not in ("http", "https") or not url.netloc:
        raise Malformed("auth_url is not a URL")
    for key in ("user_id", "region_name"):
        _text(context, key)
    for key in ("id", "name"):
        _text(lease, key)
    if _text(lease, "project_id") != _text(context, "project_id") or lease["user_id"] != context["user_id"]:
        raise Malformed("the context is not that of the lease")
    if not isinstance(lease.get("reservations"), list):
        raise Malformed("reservations are missing")
    for reservation in lease["reservations"]:
        if not isinstance(_part({"r": reservation}, "r").get("allocations"), list):
            raise Malformed("allocations are missing")
    requests = _part(lease, "resource_requests")
    if not all(isinstance(amount, int) and amount > 0 for amount in requests.values()):
        raise Malformed("resource_requests has a value that is not a positive integer")
    start, end = _date(lease, "start_date"), _date(lease, "end_date")
    if end <= start:
        raise Malformed("the lease ends before it starts")
    return Consumer(lease["project_id"], start, end, requests)


def _part(body: Json, name: str) -> Json:
    part = body.get(name)
    if not isinstance(part, dict):
        raise Malformed(f"{name} is missing")
    return part


def _text(body: Json, name: str) -> str:
    text = body.get(name)
    if not isinstance(text, str) or not text:
        raise Malformed(f"{name} is missing")
    return text


def _date(body: Json, name: str) -> datetime:
    try:
        return datetime.fromisoformat(_text(body, name))
    except ValueError:
        raise Malformed(f"{name} is not a date") from None


def _credit(text: str) -> tuple[str, float]:
    name, _, hours = text.partition("=")
    return name, float(hours)


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--token", default="")
    parser.add_argument("--credits", type=_credit, action="append", metavar="CLASS=HOURS", required=True)
    options = parser.parse_args()
    with server(Books(dict(options.credits)), port=options.port, token=options.token, handler=Handler) as serving:
        print(f"http://127.0.0.1:{serving.server_port}/ gives every project {dict(options.credits)}")
        try:
            serving.serve_forever()
        except KeyboardInterrupt:
            print("bye")


if __name__ == "__main__":
    main()
