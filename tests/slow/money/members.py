# SPDX-License-Identifier: Apache-2.0
"""Members of some projects who do with their leases whatever the API lets them do, and hosts that fail."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from random import Random

from blazar.model.base.errors import Conflict
from tests.slow.money.lists import instant_of
from tests.slow.money.site import FLAVORS, Json, Request, Site, date_of

HOUR, DAY = 3600, 86400
PROJECTS = ("physics", "biology", "arts", "history", "law")
WHOLE = ("physical:host", "virtual:floatingip", "network", "device")
ON_HOSTS = ("physical:host", "virtual:instance")
A100 = '["==", "$gpu", "A100"]'


class Members:
    """All members of all projects; ``act`` has one of them ask for something."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site, self.dice, self.asked = site, Random(seed), 0
        often: list[Callable[[], None]] = [self.book] * 6 + [self.prolong] * 3
        self.deeds = (
            *often,
            self.move,
            self.resize,
            self.resize,
            self.delete,
            self.delete,
            self.split,
            self.split_later,
            self.merge,
            self.transfer,
            self.repeat,
            self.fail,
            self.mend,
            self.book_shared,
            self.book_shared,
            self.book_other,
            self.book_other,
            self.boot,
            self.boot,
            self.stop,
        )

    def act(self) -> None:
        """Do something by chance."""
        self.dice.choice(self.deeds)()

    def _minute(self, after: int) -> int:
        """Return an instant so long from now, mostly at a minute."""
        instant = self.site.now + after
        return instant if self.dice.random() < 0.2 else instant - instant % 60 + 60

    def _reservation(self) -> Json:
        if self.dice.random() < 0.15:
            amount = self.dice.choice((1, 2, 5))
            return {"resource_type": "virtual:floatingip", "network_id": "public", "amount": amount}
        count = self.dice.choice((1, 1, 2, 3, 4, 8, 20))
        needs = A100 if self.dice.random() < 0.2 else ""
        if needs:
            count = min(count, 3)
        return {
            "resource_type": "physical:host",
            "min": count,
            "max": count,
            "resource_properties": needs,
            "hypervisor_properties": "",
        }

    def book(self) -> None:
        self._book([self._reservation() for _ in range(self.dice.choice((1, 1, 1, 2)))])

    def book_shared(self) -> None:
        """Book servers on shared hosts, or volumes in a pool."""
        amount = self.dice.randint(1, 4)
        servers: Json = {"vcpus": self.dice.randint(1, 4), "memory_mb": 512, "disk_gb": 5, "affinity": None}
        servers |= {"resource_type": "virtual:instance", "resource_properties": ""}
        volumes: Json = {"resource_type": "virtual:volume", "size": self.dice.randint(1, 3)}
        self._book([{**self.dice.choice((servers, volumes)), "amount": amount}])

    def book_other(self) -> None:
        """Book a network, devices, a thing or units of one, or a stack of servers, volumes and addresses."""
        self.asked += 1
        count = self.dice.randint(1, 3)
        network: Json = {"resource_type": "network", "network_name": f"lab-{self.asked}", "resource_properties": ""}
        device: Json = {"resource_type": "device", "min": count, "max": count, "resource_properties": ""}
        thing: Json = {"resource_type": "generic", "class": "microscope", "min": count, "max": count}
        units: Json = {"resource_type": "generic", "class": "microscope", "amount": count}
        stack = {"resource_type": "virtual:stack", "template": self._template(), "stack_name": f"course-{self.asked}"}
        self._book([self.dice.choice((network, device, thing, units, stack, stack))])

    def _template(self) -> str:
        """Return a template of servers, volumes and addresses."""
        server = {
            "type": "OS::Nova::Server",
            "properties": {"flavor": self.dice.choice(FLAVORS).name, "image": "cirros"},
        }
        disk = {"type": "OS::Cinder::Volume", "properties": {"size": 2, "volume_type": "disks-1"}}
        address = {"type": "OS::Neutron::FloatingIP", "properties": {"floating_network": "public"}}
        kinds = {"server": server, "disk": disk, "address": address}
        found = {
            f"{name}-{number}": one for name, one in kinds.items() for number in range(self.dice.randint(0, 2))
        } or {"server-0": server}
        return json.dumps({"heat_template_version": "2018-08-31", "resources": found})

    def _book(self, reservations: list[Json]) -> None:
        start = self._minute(self.dice.choice((0, self.dice.randint(0, 2 * DAY), self.dice.randint(0, 10 * DAY))))
        end = start + self.dice.choice((1, 2, 5, 24, 48)) * HOUR + self.dice.choice((0, 0, 1234))
        body: Json = {
            "name": "work",
            "start_date": date_of(start),
            "end_date": date_of(end),
            "reservations": reservations,
        }
        self.site.ask(Request("curie", self.dice.choice(PROJECTS), "POST", "/v1/leases", body))

    def repeat(self) -> None:
        """Book a series: each of its leases is paid by itself."""
        local = date_of(self._minute(DAY))[:16]
        body = {"name": "course", "start": local, "rule": "FREQ=DAILY;INTERVAL=2;COUNT=3", "time_zone": "UTC"}
        body |= {"duration": "PT4H", "reservations": [self._reservation()]}
        self.site.ask(Request("curie", self.dice.choice(PROJECTS), "POST", "/v1/series", body))
        self.site.work("run")

    def _any(self, *, in_use: bool | None = None, of: Collection[str] = ()) -> Json | None:
        """Return a lease by chance, one with nothing but what is of some types."""
        now = self.site.now
        found = [
            one
            for _, one in sorted(self.site.leases.items(), key=lambda pair: pair[1]["created_at"])
            if one["status"] in ("PENDING", "ACTIVE") and instant_of(one["end_date"]) > now + 600
            if in_use in (None, one["status"] == "ACTIVE")
            if not of or all(part["resource_type"] in of for part in one["reservations"])
        ]
        return self.dice.choice(found) if found else None

    def _ask(self, lease: Json, method: str, path: str = "", body: Json | None = None, *also: str) -> Json | None:
        request = Request("curie", lease["project_id"], method, f"/v1/leases/{lease['id']}{path}", body)
        return self.site.ask(request, origins=(lease["id"], *also) if path in ("/split", "/merge") else ())

    def prolong(self) -> None:
        """Ask for a later or an earlier end."""
        if lease := self._any():
            by = self.dice.choice((HOUR, 5 * HOUR, 30 * HOUR, -HOUR, -3 * HOUR, -20 * HOUR, 777, -777))
            end = instant_of(lease["end_date"]) + by
            self._ask(lease, "PUT", "", {"end_date": date_of(max(end, self._minute(120)))})

    def move(self) -> None:
        if lease := self._any(in_use=False):
            by = self.dice.choice((-5, -1, 1, 6, 60)) * HOUR
            dates = {key: date_of(instant_of(lease[key]) + by) for key in ("start_date", "end_date")}
            self._ask(lease, "PUT", "", dates)

    def resize(self) -> None:
        """Ask for more, or before the start for less."""
        if lease := self._any():
            part = self.dice.choice(lease["reservations"])
            keys = ("min", "max") if part.get("max") is not None else ("amount",)
            if part.get(keys[-1]) is None:
                return
            count = max(1, part[keys[-1]] + self.dice.choice((-3, -1, 1, 2)))
            self._ask(lease, "PUT", "", {"reservations": [{"id": part["id"], **dict.fromkeys(keys, count)}]})

    def delete(self) -> None:
        if lease := self._any():
            self._ask(lease, "DELETE")

    def split(self) -> None:
        """Make two of one: by a reservation, or before the start by hosts."""
        if lease := self._any(of=WHOLE):
            part = self.dice.choice(lease["reservations"])
            count = {"count": self.dice.randint(1, part["max"])} if "max" in part and self.dice.random() < 0.5 else {}
            self._ask(lease, "POST", "/split", {"reservations": [{"id": part["id"], **count}]})

    def split_later(self) -> None:
        if lease := self._any(in_use=False):
            start, end = instant_of(lease["start_date"]), instant_of(lease["end_date"])
            self._ask(lease, "POST", "/split", {"at": date_of(self.dice.randint(start + 1, end - 1))})

    def merge(self) -> None:
        """Make one of two that have the same dates and owner, or follow each other."""
        # What shared hosts have of several reservations is told apart by the reservation alone.
        leases = [
            one
            for one in self.site.leases.values()
            if all(part["resource_type"] in WHOLE for part in one["reservations"])
        ]
        self.dice.shuffle(leases)
        for one in leases:
            for other in leases:
                same = all(one[key] == other[key] for key in ("start_date", "end_date", "status"))
                after = one["end_date"] == other["start_date"]
                if one is not other and one["project_id"] == other["project_id"] and (same or after):
                    self._ask(one, "POST", "/merge", {"with": other["id"]}, other["id"])
                    return

    def transfer(self) -> None:
        if lease := self._any():
            taker = self.dice.choice(PROJECTS)
            if self._ask(lease, "POST", "/transfer", {"project_id": taker}) is not None:
                self.site.ask(Request("darwin", taker, "POST", f"/v1/transfers/{lease['id']}/accept"))

    def fail(self) -> None:
        """Let a host fail, mostly one that somebody has."""
        if lease := self._any(of=ON_HOSTS):
            part = self.dice.choice(lease["reservations"])
            host = self.dice.choice(part["allocations"])["resource"]["name"]
            if host not in self.site.down and len(self.site.down) < 5:
                self.site.world.simulated.operators.host_down(host)
                self.site.down.add(host)
            self.site.work("poll")

    def mend(self) -> None:
        if self.site.down:
            host = self.dice.choice(sorted(self.site.down))
            self.site.world.simulated.operators.host_up(host)
            self.site.down.discard(host)
            self.site.work("poll")

    def boot(self) -> None:
        """Use a lease by a server."""
        if lease := self._any(in_use=True, of=ON_HOSTS):
            part, project, users = lease["reservations"][0], lease["project_id"], self.site.world.simulated.users
            if part["resource_type"] == "virtual:instance":
                with suppress(Conflict):
                    users.boot_reserved(part["use"]["flavor_id"], project_id=project)
            else:
                host = part["allocations"][0]["resource"]["name"]
                users.boot_server("work", project_id=project, user_id="curie", host=host)

    def stop(self) -> None:
        """Delete a server."""
        with self.site.world.simulated.inspect() as state:
            servers = sorted(state.servers)
        if servers:
            self.site.world.simulated.compute.begin_server_deletion(self.dice.choice(servers))
