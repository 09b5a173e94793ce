# SPDX-License-Identifier: Apache-2.0
"""How a soak ends: everything comes to rest, all that wait are served, all is given back; and what the logs say."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from blazar.model.base.errors import BlazarError, NotFound
from blazar.model.leases.lease import Event
from blazar.model.leases.states import EventStatus, LeaseStatus
from blazar.model.resources.resource import GENERIC, KINDS, VOLUME
from blazar.store.store import Store
from tests.oracle import check_at_rest
from tests.soak.clients import NEWEST, Api
from tests.soak.plan import HOSTS, OFFERED, Plan
from tests.soak.planners import IDLE
from tests.soak.turns import check_maintenance, check_series, check_turns, forgotten, give_back
from tests.soak.watch import Watch

REST = 150
"""Seconds within which everything has to come to rest when the trouble is over."""


def come_to_rest(plan: Plan, store: Store, watch: Watch, admin: Api) -> None:
    """Wait until no work is in progress, and check the state then."""
    limit = time.monotonic() + REST
    while True:
        time.sleep(1)
        now = datetime.now(UTC)
        try:
            leases = store.leases.of_project(None)
            for lease in leases:
                if lease.status is LeaseStatus.ERROR or any(_waits_for_room(event) for event in lease.events):
                    admin.ask("DELETE", f"/v2/leases/{lease.id}")
            due = store.events.next_due()
            begun = [e for lease in leases for e in lease.events if e.status is EventStatus.IN_PROGRESS]
            if begun or (due is not None and due < now + timedelta(seconds=1)) or store.outbox.next_due() is not None:
                raise AssertionError(f"there is still something to do: {begun or due}")
            check_at_rest(store, plan.cloud(), now=now, offered=OFFERED)
            check_turns(store, now)
            check_series(store, now)
            check_maintenance(store, plan.cloud(), now)
        except (AssertionError, BlazarError) as error:
            if time.monotonic() > limit:
                watch.found(f"it does not come to rest: {str(error)[:2000]}")
                return
        else:
            _check_names(store, watch)
            return


def serve_everybody(store: Store, watch: Watch, admin: Api) -> None:
    """Give back all that has been booked: then all that wait are served, and so are some who want all hosts."""
    old = [lease.id for lease in store.leases.of_project(None) if lease.status is not LeaseStatus.WAITING]
    hosts = {"resource_type": "physical:host", "min": HOSTS, "max": HOSTS}
    wanted = {"end_date": "+PT6S", "wait": {"until": "+PT1H"}, "reservations": [hosts]}
    mine = []
    for number in range(3):
        status, answer = admin.ask("POST", "/v1/leases", {"name": f"all hosts {number}", **wanted}, NEWEST)
        if status != 201:
            watch.found(f"an operator cannot wait for all hosts: {status}")
            return
        mine.append(answer["lease"]["id"])
    limit = time.monotonic() + REST
    while True:
        give_back(store, lambda method, path: admin.ask(method, path, None, NEWEST))
        for lease_id in old:
            with suppress(NotFound):
                if store.leases.one(lease_id).status is not LeaseStatus.DELETING:
                    admin.ask("DELETE", f"/v2/leases/{lease_id}")
        time.sleep(1)
        with suppress(BlazarError):
            left = forgotten(store.leases.of_project(None))
            states = {store.leases.one(lease_id).status for lease_id in mine}
            if not left and states == {LeaseStatus.TERMINATED}:
                return
            if time.monotonic() > limit:
                watch.found(f"everything is free, and these wait: {left}; those who want all hosts are {states}")
                return


def _waits_for_room(event: Event) -> bool:
    """Return whether a move before the end is tried again for want of room, as it is until the end of its lease.

    All hosts are registered here, so room may never come, and the end of the lease may be an hour away.
    """
    return event.status is EventStatus.IN_PROGRESS and "has room for it" in (event.reason or "")


def give_all_back(plan: Plan, store: Store, watch: Watch, admin: Api) -> None:
    """Delete every lease: then nothing is in the cloud, nothing is promised, and everything is free."""
    limit = time.monotonic() + REST
    while True:
        open_ = give_back(store, lambda method, path: admin.ask(method, path, None, NEWEST))
        for lease in store.leases.of_project(None):
            if lease.status is not LeaseStatus.DELETING:
                admin.ask("DELETE", f"/v2/leases/{lease.id}")
        time.sleep(1)
        try:
            if open_:
                raise AssertionError(f"{open_} series and maintenance windows do not end")
            if left := store.leases.of_project(None):
                raise AssertionError(f"leases do not end: {left}")
            if held := [a for kind in (*KINDS, GENERIC, VOLUME) for a in store.calendar.load_live(kind)]:
                raise AssertionError(f"more is promised than there are leases: {held}")
            check_at_rest(store, plan.cloud(), now=datetime.now(UTC), offered=OFFERED)
            check_maintenance(store, plan.cloud(), datetime.now(UTC))
        except (AssertionError, BlazarError) as error:
            if time.monotonic() > limit:
                watch.found(f"not everything is given back: {str(error)[:2000]}")
                return
        else:
            return


def _check_names(store: Store, watch: Watch) -> None:
    """Users look before they ask again: whatever they asked for is there once. A series has a name for all."""
    names = Counter(lease.name for lease in store.leases.of_project(None) if lease.series is None)
    for name, number in names.items():
        if number > 1 and name != IDLE:
            watch.found(f"{name} was asked for once, and is there {number} times")


def read_logs(plan: Plan, watch: Watch) -> None:
    """Find what went wrong in a way that nobody had thought of."""
    for log in sorted(plan.folder.glob("*.log")):
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines):
            if line.startswith("Traceback"):
                last = next((after for after in lines[number + 1 :] if not after.startswith(" ")), "")
                watch.found(f"{log.name}: {lines[number - 1] if number else ''}: {last}")


def leave_traces(store: Store, plan: Plan, watch: Watch) -> None:
    """Print where a lease with findings comes from: what the record keeps of it."""
    for what in list(watch.findings):
        # Names of resource classes have the ids in capitals, with underscores.
        named = what + what.lower().replace("_", "-")
        for lease in (*store.leases.of_project(None), *store.leases.load_past()):
            if lease.id in named or any(r.id in named for r in lease.reservations):
                with suppress(NotFound):
                    full = store.leases.one(lease.id, including_deleted=True)
                    with (plan.folder / "findings.log").open("a", encoding="utf-8") as file:
                        print(what, full, sep="\n  ", file=file)
