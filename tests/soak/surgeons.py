# SPDX-License-Identifier: Apache-2.0
"""Users and an operator who swap hosts of leases, split and merge them, while others book, change and delete these."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from blazar.model.journal.entries import Verb
from blazar.store.store import Store
from tests.soak.clients import NEWEST, OPERATOR, Api
from tests.soak.operations import Before, Operations
from tests.soak.planners import PROJECTS, Caller
from tests.soak.watch import Watch

PATIENTS = 5
"""Leases of the surgeons' own project at a time."""

OWN = "surgery"
WHERE = (OWN, PROJECTS[0], "physics")
"""Projects in which somebody operates: one in which nobody else books, and others."""

HOST = "physical:host"
ASKS = 6
"""How often the same is asked, with its key, while nobody says whether it is done."""

UNKNOWN = (0, 503)
"""Answers that do not say whether it was done."""

Json = dict[str, Any]


class Surgeon(Caller):
    """Somebody who operates on the leases of a project, or, as an operator, on all."""

    def __init__(
        self, project: str | None, url: str, store: Store, watch: Watch, operations: Operations, seed: int
    ) -> None:
        name = f"surgeon-{project or 'operator'}"
        token = OPERATOR if project is None else f"{name}:{project}"
        super().__init__(name, Api(url, token, watch), watch, seed)
        self._project = project
        self._store = store
        self._operations = operations
        self._names = (f"{name} {n}" for n in range(10**9))

    def one_wish(self) -> None:
        """Book, if it is the own project; else operate on what is there."""
        found = self.ask("GET", "/v1/leases?status=in:PENDING,ACTIVE")
        if found is None:
            return
        leases = found["leases"]
        dice = self.dice.random()
        if self._project == OWN and (len(leases) > PATIENTS or dice < 0.1) and leases:
            self.ask("DELETE", f"/v1/leases/{self.dice.choice(leases)['id']}")
        elif self._project == OWN and (dice < 0.5 or not leases):
            self._book()
        elif leases:
            operate = self.dice.choice((self._swap, self._swap, self._exchange, self._split, self._cut, self._merge))
            operate(leases)

    def _book(self) -> None:
        dice = self.dice
        # Some are in use soon, others stay as they are for long.
        start = datetime.now(UTC) + timedelta(seconds=dice.choice((3, 12, 7200 * dice.randint(1, 4))))
        least = dice.randint(1, 3)
        rooms: list[Json] = [{"resource_type": HOST, "min": least, "max": least}]
        if dice.random() < 0.5:
            rooms.append(
                dice.choice(
                    (
                        {"resource_type": HOST, "min": 1, "max": 1},
                        {"resource_type": "virtual:instance", "amount": 2, "vcpus": 1, "memory_mb": 512, "disk_gb": 5},
                    )
                )
            )
        self.ask(
            "POST",
            "/v1/leases",
            {
                "name": next(self._names),
                "start_date": _second(start),
                "end_date": _second(start + timedelta(seconds=dice.choice((40, 90)))),
                "reservations": rooms,
            },
        )

    def _swap(self, leases: Sequence[Json]) -> None:
        lease = self.dice.choice(leases)
        if (given := self._host_of(lease)) is None:
            return
        reservation, host = given
        body: Json = {"host": host}
        if self._project is None and self.dice.random() < 0.5:
            hosts = self.ask("GET", "/v1/resources/host")
            body["for"] = self.dice.choice(hosts["resources"])["id"] if hosts else None
        self._operate(Verb.SWAPPED, f"/v1/leases/{lease['id']}/reservations/{reservation}/swap", body, lease)

    def _exchange(self, leases: Sequence[Json]) -> None:
        ahead = [lease for lease in leases if lease["status"] == "PENDING" and self._host_of(lease)]
        if len(ahead) < 2:
            return
        lease, other = self.dice.sample(ahead, 2)
        mine, theirs = self._host_of(lease), self._host_of(other)
        assert mine is not None
        assert theirs is not None
        where = {"lease_id": other["id"], "reservation_id": theirs[0]}
        body = {"host": mine[1], "for": theirs[1], "with": where}
        self._operate(Verb.SWAPPED, f"/v1/leases/{lease['id']}/reservations/{mine[0]}/swap", body, lease, other)

    def _split(self, leases: Sequence[Json]) -> None:
        """Split by units: a whole reservation, a number of hosts, or certain ones."""
        lease = self.dice.choice(leases)
        parts: list[Json] = [{"id": each["id"]} for each in lease["reservations"]]
        for each in lease["reservations"]:
            parts += [{"id": each["id"], "count": 1}] * 2
            parts += [{"id": each["id"], "resources": [one["resource"]["id"]]} for one in _held(each)[:2]]
        body = {"name": next(self._names), "reservations": [self.dice.choice(parts)]}
        self._operate(Verb.SPLIT, f"/v1/leases/{lease['id']}/split", body, lease)

    def _cut(self, leases: Sequence[Json]) -> None:
        """Split by time."""
        ahead = [lease for lease in leases if lease["status"] == "PENDING"]
        if not ahead:
            return
        lease = self.dice.choice(ahead)
        start, end = (datetime.fromisoformat(lease[key]) for key in ("start_date", "end_date"))
        at = start + self.dice.choice((0.25, 0.5, 0.75)) * (end - start)
        self._operate(
            Verb.SPLIT, f"/v1/leases/{lease['id']}/split", {"name": next(self._names), "at": _second(at)}, lease
        )

    def _merge(self, leases: Sequence[Json]) -> None:
        like = [
            (one, other)
            for one in leases
            for other in leases
            if one["id"] != other["id"] and one["project_id"] == other["project_id"] and _adjoin(one, other)
        ]
        if not like and len(leases) < 2:
            return
        one, other = self.dice.choice(like) if like else self.dice.sample(list(leases), 2)
        self._operate(Verb.MERGED, f"/v1/leases/{one['id']}/merge", {"with": other["id"]}, one, other)

    def _host_of(self, lease: Json) -> tuple[str, str] | None:
        """Return a reservation of whole hosts and one of its hosts; None if there is none."""
        found = [
            (reservation["id"], held["resource"]["id"])
            for reservation in lease["reservations"]
            if reservation["resource_type"] == HOST
            for held in _held(reservation)
        ]
        return self.dice.choice(found) if found else None

    def _operate(self, verb: Verb, path: str, body: Json, lease: Json, other: Json | None = None) -> None:
        """Ask for an operation until it is known whether it is done, and note what it has to leave."""
        involved = [lease["id"], *([other["id"]] if other else [])]
        if self.dice.random() < 0.15:
            self.api.ask("POST", f"{path}?dry_run=true", body, version=NEWEST)
            return
        before = Before.of(self._store, involved)
        key = {"Idempotency-Key": str(uuid.uuid4())}
        answers: list[int] = []
        while len(answers) < ASKS and (not answers or answers[-1] in UNKNOWN):
            status, found = self.api.ask("POST", path, body, version=NEWEST, headers=key)
            answers.append(status)
        if found is None:
            if answers[0] in UNKNOWN:
                self._operations.unsure(verb, involved)
            return
        # Of an exchange that is asked for again only the first lease is shown.
        left = {*(each["id"] for each in found["leases"]), *(involved if verb == Verb.SWAPPED else ())}
        self._operations.done(verb, {*involved, *left})
        self._operations.compare(verb, before, left)


def _adjoin(one: Json, other: Json) -> bool:
    """Return whether two leases have the same window, or the other begins where this one ends."""
    same = (one["start_date"], one["end_date"]) == (other["start_date"], other["end_date"])
    return same or one["end_date"] == other["start_date"]


def _held(reservation: Json) -> list[Json]:
    return [each for each in reservation["allocations"] if each["resource"]["id"]]


def _second(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
