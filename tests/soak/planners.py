# SPDX-License-Identifier: Apache-2.0
"""Users who wait, who are promised a start, and whose leases recur; and an operator who opens maintenance windows."""

from __future__ import annotations

import random
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.soak.clients import NEWEST, OPERATOR, Api
from tests.soak.plan import HOSTS
from tests.soak.watch import Watch

PROJECTS = ("geology", "botany")
MOST = 5
"""Leases of a project beside its series that its users care for; beyond, they rather delete."""

SERIES = 2
"""Series of a project, and windows of the operator, at a time."""

IDLE = "idle"
"""The name of leases that nobody uses."""

RULES = ("FREQ=DAILY;COUNT=4", "FREQ=DAILY;INTERVAL=2;COUNT=3", "FREQ=WEEKLY;COUNT=3", "FREQ=MONTHLY")
OVER = ("ENDED", "FAILED", "DELETED")

Json = dict[str, Any]


class Caller(threading.Thread):
    """Somebody who asks for one thing after the other."""

    def __init__(self, name: str, api: Api, watch: Watch, seed: int) -> None:
        super().__init__(name=name, daemon=True)
        self.api = api
        self.stopping = threading.Event()
        self.dice = random.Random(f"{seed}:{name}")
        self._watch = watch

    def run(self) -> None:
        """Wish one thing after the other."""
        while not self.stopping.wait(self.dice.uniform(0.2, 1.2)):
            try:
                self.one_wish()
            except Exception as error:
                self._watch.found(f"{self.name} was surprised: {error!r}")

    def one_wish(self) -> None:
        """Ask for something."""
        raise NotImplementedError

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Make a request of the newest microversion; return what came if it was granted, else None."""
        status, found = self.api.ask(method, path, body, version=NEWEST)
        return found if 0 < status < 300 else None

    @property
    def answers(self) -> Counter[str]:
        """What was answered, and how often."""
        return self.api.answers


class Planner(Caller):
    """One of the users of a project who plan ahead. Two have the same project, and get into each other's way."""

    def __init__(self, number: int, url: str, watch: Watch, seed: int) -> None:
        project = PROJECTS[number % len(PROJECTS)]
        super().__init__(f"planner-{number}", Api(url, f"planner-{number}:{project}", watch), watch, seed)
        self._names = (f"plan {number}.{n}" for n in range(10**9))

    def one_wish(self) -> None:
        """Wait, give back, change; or do so with a series."""
        if self.dice.random() < 0.4:
            self._with_series()
            return
        found = self.ask("GET", "/v1/leases")
        if found is None:
            return
        mine = [lease for lease in found["leases"] if lease["series_id"] is None]
        live = [lease for lease in mine if lease["status"] not in ("TERMINATED", "TIMED_OUT")]
        for lease in mine:
            if lease not in live and self.dice.random() < 0.3:
                self._give_back(lease)
        dice = self.dice.random()
        if len(live) > MOST or (dice < 0.15 and live):
            self._give_back(self.dice.choice(live))
        elif dice < 0.75 or not live:
            self._wait()
        else:
            self._change(self.dice.choice(live))

    def _wait(self) -> None:
        dice = self.dice
        now = datetime.now(UTC).replace(microsecond=0)
        start = now + timedelta(seconds=dice.choice((0, 5, 25)))
        least = dice.randint(1, 4)
        wait: Json = {"until": _second(start + timedelta(seconds=dice.randint(20, 120)))}
        body: Json = {
            "name": next(self._names),
            "start_date": "now" if start == now else _second(start),
            "end_date": _second(start + timedelta(seconds=dice.randint(15, 50))),
            "wait": wait,
            "reservations": [dice.choice((_hosts(least, dice.randint(least, 5)), _servers(dice)))],
        }
        if dice.random() < 0.3:
            wait["at_least"] = "PT10S"
        if dice.random() < 0.2:
            wait["latest"] = _second(start + timedelta(seconds=dice.randint(10, 60)))
        if dice.random() < 0.3:
            body["kind"] = "retries"
            wait["tries"] = dice.randint(1, 3)
        if dice.random() < 0.3:
            body["extend_if_free"] = {"until": f"PT{dice.randint(5, 60)}S"}
        self.ask("POST", "/v1/leases", body)

    def _change(self, lease: Json) -> None:
        if lease["release_at"] is not None and self.dice.random() < 0.5:
            self.ask("POST", f"/v1/leases/{lease['id']}/keep")
            return
        later = datetime.now(UTC) + timedelta(seconds=self.dice.randint(10, 60))
        changes: list[Json] = [
            {"name": lease["name"]},
            {"end_date": _second(later)},
            {"extend_if_free": {"until": _second(later + timedelta(seconds=40))}},
            {"extend_if_free": None},
        ]
        self.ask("PUT", f"/v1/leases/{lease['id']}", self.dice.choice(changes))

    def _give_back(self, lease: Json) -> None:
        self.ask("DELETE", f"/v1/leases/{lease['id']}")

    def _with_series(self) -> None:
        found = self.ask("GET", "/v1/series")
        if found is None:
            return
        live = [series for series in found["series"] if series["status"] not in OVER]
        dice = self.dice.random()
        if len(live) < SERIES and (dice < 0.4 or not live):
            self._new_series()
            return
        if not live:
            return
        series = self.dice.choice(live)
        if dice < 0.2:
            self.ask("DELETE", f"/v1/series/{series['id']}?running={self.dice.choice(('true', 'false'))}")
        elif dice < 0.6:
            self._change_series(series)
        else:
            self._change_one_of(series)

    def _new_series(self) -> None:
        dice = self.dice
        rule = dice.choice(RULES)
        # One that begins in a moment has a lease in use soon, the others are far ahead.
        start = datetime.now(UTC) + dice.choice((timedelta(seconds=10), timedelta(hours=dice.randint(2, 20))))
        body = {
            "name": "recurs",
            "rule": rule,
            "start": f"{start:%Y-%m-%dT%H:%M:%S}",
            "duration": dice.choice(("PT30S", "PT2H")),
            "fit": dice.choice(("all", "as_many")) if "COUNT" in rule else "as_many",
            "reservations": [_hosts(least := dice.randint(1, 3), least)],
        }
        self.ask("POST", "/v1/series", body)

    def _change_series(self, series: Json) -> None:
        shown = self.ask("GET", f"/v1/series/{series['id']}")
        if shown is None:
            return
        ahead = [each for each in shown["series"]["occurrences"] if each["state"] == "booked"]
        body: Json = self.dice.choice(
            (
                {"duration": self.dice.choice(("PT30S", "PT1H", "PT3H"))},
                {"reservations": [_hosts(least := self.dice.randint(1, 3), least)]},
                {"name": "recurs otherwise"},
            )
        )
        if self.dice.random() < 0.4 and ahead:
            body["from"] = self.dice.choice(ahead)["recurrence_id"]
        if self.dice.random() < 0.5:
            body["fit"] = "as_many"
        self.ask("PUT", f"/v1/series/{series['id']}", body)

    def _change_one_of(self, series: Json) -> None:
        found = self.ask("GET", f"/v1/leases?series_id={series['id']}")
        if not found or not found["leases"]:
            return
        lease = self.dice.choice(found["leases"])
        if self.dice.random() < 0.5:
            self._give_back(lease)
            return
        end = datetime.fromisoformat(lease["end_date"]) + timedelta(minutes=self.dice.randint(1, 9))
        self.ask("PUT", f"/v1/leases/{lease['id']}", {"end_date": _second(end)})


class Idler(Caller):
    """Somebody who books for long, and uses nothing of it."""

    def __init__(self, url: str, watch: Watch, seed: int) -> None:
        super().__init__("idler", Api(url, "idler:sociology", watch), watch, seed)

    def one_wish(self) -> None:
        """Book if there is little left, or keep what would be released."""
        found = self.ask("GET", "/v1/leases?status=in:PENDING,ACTIVE") if self.dice.random() < 0.2 else None
        if found is None:
            return
        threatened = [lease for lease in found["leases"] if lease["release_at"] is not None]
        if len(found["leases"]) < 3:
            room = self.dice.choice((_hosts(1, 1), _servers(self.dice)))
            body = {"name": IDLE, "end_date": "+PT10M", "reservations": [room]}
            self.ask("POST", "/v1/leases", body)
        elif threatened and self.dice.random() < 0.1:
            self.ask("POST", f"/v1/leases/{threatened[0]['id']}/keep")


class Operator(Caller):
    """Opens maintenance windows over hosts, changes, ends and cancels them."""

    def __init__(self, url: str, watch: Watch, seed: int) -> None:
        super().__init__("operator", Api(url, OPERATOR, watch), watch, seed)

    def one_wish(self) -> None:
        """Do one of these."""
        found = self.ask("GET", "/v1/maintenances?status=in:PLANNED,STARTING,ACTIVE,ENDING")
        if found is None:
            return
        live, dice = found["maintenances"], self.dice.random()
        if len(live) < SERIES and dice < 0.3:
            self._open()
        elif live and dice < 0.6:
            self._alter(self.dice.choice(live))

    def _open(self) -> None:
        hosts = self.ask("GET", "/v1/resources/host")
        if not hosts:
            return
        now = datetime.now(UTC)
        # One of now closes hosts, one of later days moves what series have booked.
        begin = now + self.dice.choice((timedelta(seconds=4), timedelta(hours=self.dice.randint(1, 40))))
        length = self.dice.choice(("+PT20S", "+PT6H"))
        body = {
            "name": "firmware",
            "start_date": _second(begin),
            "end_date": length,
            "hosts": [host["id"] for host in self.dice.sample(hosts["resources"], self.dice.randint(1, HOSTS // 4))],
            "disable_service": self.dice.random() < 0.7,
            "pending": self.dice.choice(("move", "move", "leave")),
        }
        self.ask("POST", "/v1/maintenances", body)

    def _alter(self, window: Json) -> None:
        path = f"/v1/maintenances/{window['id']}"
        match self.dice.choice(("end", "delete", "change")):
            case "end":
                self.ask("POST", f"{path}/end")
            case "delete":
                self.ask("DELETE", path)
            case "change":
                later = datetime.now(UTC) + timedelta(seconds=self.dice.choice((20, 7200)))
                self.ask("PATCH", path, {"end_date": _second(later)})


def _hosts(least: int, most: int) -> Json:
    return {"resource_type": "physical:host", "min": least, "max": most}


def _servers(dice: random.Random) -> Json:
    size = {"vcpus": dice.randint(1, 6), "memory_mb": 2048, "disk_gb": 10}
    return {"resource_type": "virtual:instance", "amount": dice.randint(1, 4), **size}


def _second(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"
