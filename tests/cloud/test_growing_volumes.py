# SPDX-License-Identifier: Apache-2.0
"""Volumes in use that grow, or cannot, on a real OpenStack: what is left in Cinder, and what others are notified of."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from blazar.clouds.openstack.volumes import VOLUMES
from blazar.clouds.ports.volumes import VolumeQuota
from tests import openstack
from tests.cloud.deployment import NEWEST, Deployment, deployed
from tests.cloud.test_reserving_volumes import POOLS
from tests.cloud.test_reserving_volumes import nothing_left as nothing_left
from tests.conftest import fresh_database
from tests.contract.storage import NAME, THICK, RealStorage

MORE = "\n[oslo_messaging_notifications]\ndriver = log\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One manager that writes its notifications to its log."""
    folder = tmp_path_factory.mktemp("blazar")
    for url in fresh_database("postgresql", folder):
        with deployed(folder, url, hosts=0, more=MORE) as running:
            yield running


def notifications(service: Deployment) -> list[str]:
    """Return the types of the notifications so far."""
    return re.findall(r'"event_type": "(lease[.][a-z_.]+)"', service.log("manager-0"))


@contextmanager
def volumes_at_most(project: str, number: int) -> Iterator[None]:
    """The project may have no more volumes than this, of whatever type."""
    cinder, path = openstack.access("admin").volume, f"/os-quota-sets/{project}"
    before = cinder.get(path, microversion=VOLUMES)["quota_set"]["volumes"]
    cinder.call("PUT", path, body={"quota_set": {"volumes": number}}, microversion=VOLUMES)
    try:
        yield
    finally:
        cinder.call("PUT", path, body={"quota_set": {"volumes": before}}, microversion=VOLUMES)


@pytest.mark.nightly
def test_volumes_that_grow_or_cannot(service: Deployment, storage: RealStorage, away: Callable[[], None]):
    volumes = storage.cloud.volumes
    pool = next(each for each in volumes.volume_pools() if each.pool_name == THICK)
    away()
    given = {"pool": pool.name, "volume_type": NAME, "gigabytes": 30}
    assert service.call("admin", "POST", POOLS, given, version=NEWEST).status == 201
    made = {"resource_type": "virtual:volume", "size": 3, "amount": 2, "volume_type": NAME}
    own = {"resource_type": "virtual:volume", "size": 2, "amount": 2, "volume_type": NAME, "mode": "quota"}
    lease = service.create(body={"reservations": [made, own]})
    first, second = service.reaches(lease["id"], "ACTIVE")["reservations"]

    def quota() -> VolumeQuota:
        return volumes.volume_quota(storage.project, NAME)

    def change(**values: int):
        wanted = [{"id": first["id"], **values}, {"id": second["id"], "size": 4}]
        return service.call("demo", "PUT", f"/leases/{lease['id']}", {"reservations": wanted})

    def sizes() -> list[int]:
        return [volume.size_gb for volume in volumes.volumes_of_type(storage.type_id, project_id=storage.project)]

    assert (sizes(), quota()) == ([3, 3], VolumeQuota(10, 4))
    before = len(notifications(service))
    there = openstack.access("demo").volume.get("/volumes", microversion=VOLUMES)["volumes"]
    with volumes_at_most(storage.project, len(there)):
        answer = change(size=4, amount=3)
    assert 400 <= answer.status < 504, answer
    assert service.reaches(lease["id"], "ACTIVE")["degraded"] is False
    # As if nobody had asked.
    assert (sizes(), quota(), notifications(service)[before:]) == ([3, 3], VolumeQuota(10, 4), [])

    answer = change(size=4, amount=3)
    assert (answer.status, answer["lease"]["degraded"]) == (200, False), answer
    assert (sorted(sizes()), quota()) == ([4, 4, 4], VolumeQuota(20, 5))
    assert notifications(service)[before:] == ["lease.update"]
    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert (sizes(), quota()) == ([], VolumeQuota(0, 0))
