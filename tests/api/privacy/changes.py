# SPDX-License-Identifier: Apache-2.0
"""What others do. Those whose project is another see nothing of it, or only what is free."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from blazar.model.resources.changes import Disabling, ResourceChange
from blazar.model.resources.resource import HOST
from tests.api.privacy.marked import HOUR, MARK, OTHER, RESTRICTED, THEIRS, Marked, host_id, on
from tests.world import NOON, a_host

FAR = timedelta(days=6)


def renames_its_lease(cloud: Marked) -> None:
    _put(cloud, {"name": f"{MARK} again"})


def changes_the_warning_of_its_lease(cloud: Marked) -> None:
    _put(cloud, {"before_end_date": "-PT5H"})


def is_reminded_of_something(cloud: Marked) -> None:
    _put(cloud, {"reminders": [{"at": "-PT5H", "text": f"{MARK} be told"}]})


def books_its_own_host(cloud: Marked) -> None:
    _book(cloud, RESTRICTED)


def ends_what_is_on_its_own_host(cloud: Marked) -> None:
    found = [lease for lease in cloud.world.manager.leases.all(OTHER) if lease.status == "ACTIVE"]
    assert found
    for lease in found:
        cloud.world.manager.leases.delete(lease.id)
    cloud.world.run()


def deletes_a_feed(cloud: Marked) -> None:
    _feed(cloud, "DELETE", f"/v1/feeds/{cloud.theirs['feed']}", 204)


def makes_a_feed(cloud: Marked) -> None:
    _feed(cloud, "POST", "/v1/feeds", 201)


def operator_sets_a_private_property(cloud: Marked) -> None:
    cloud.world.manager.resources.change(HOST, host_id(5), ResourceChange({f"{MARK}_rack": f"{MARK}-r2"}))


def operator_says_more_of_a_host_out_of_use(cloud: Marked) -> None:
    disabling = Disabling(f"{MARK} has mended it", None)
    cloud.world.manager.resources.change(HOST, host_id(4), ResourceChange({}, disabled=True, disabling=disabling))


def its_own_host_fails(cloud: Marked) -> None:
    cloud.world.simulated.operators.host_down(f"{MARK}-host-{RESTRICTED}")
    for _ in range(2):
        cloud.world.manager.monitor.run_once()
    assert not next(each for each in cloud.hosts() if each.external_id == host_id(RESTRICTED)).reservable


UNSEEN = (
    renames_its_lease,
    changes_the_warning_of_its_lease,
    is_reminded_of_something,
    books_its_own_host,
    ends_what_is_on_its_own_host,
    deletes_a_feed,
    makes_a_feed,
    operator_sets_a_private_property,
    operator_says_more_of_a_host_out_of_use,
    its_own_host_fails,
)


def books_an_open_host(cloud: Marked) -> None:
    """Let the other project have a host that is open to all, at a time that nobody has."""
    _book(cloud, 5)


def _book(cloud: Marked, number: int) -> None:
    known = len(cloud.world.manager.leases.all(OTHER))
    start = NOON + FAR + 2 * known * HOUR - cloud.world.clock.now()
    cloud.world.lease(a_host(needs=on(number)), project=OTHER, name=f"new of {MARK}", start=start, hours=1)


def _put(cloud: Marked, body: Mapping[str, object]) -> None:
    answer = cloud.http.put(f"/v1/leases/{cloud.theirs['lease']}", json=body, headers=THEIRS)
    assert answer.status_code == 200, answer.text


def _feed(cloud: Marked, method: str, path: str, status: int) -> None:
    body = {"kind": "user", "name": f"another of {MARK}"} if method == "POST" else None
    answer = cloud.http.open(path, method=method, json=body, headers=THEIRS)
    assert answer.status_code == status, answer.text
