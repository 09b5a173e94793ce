# SPDX-License-Identifier: Apache-2.0
"""A lease of volumes from the registration of their pool to its end on a real OpenStack."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from blazar.clouds.ports.volumes import VolumeQuota
from tests.cloud.deployment import NEWEST, Deployment
from tests.contract.storage import NAME, THICK, RealStorage, ready

POOLS = "/resources/volume"


@pytest.fixture(autouse=True)
def nothing_left(service: Deployment, storage: RealStorage):
    """Each test begins without leases and registered pools."""
    yield
    service.forget_leases()
    for pool in service.call("admin", "GET", POOLS, version=NEWEST)["resources"]:
        assert service.call("admin", "DELETE", f"{POOLS}/{pool['id']}", version=NEWEST).status == 204


def test_volumes_from_registration_to_release(service: Deployment, storage: RealStorage, away: Callable[[], None]):
    volumes = storage.cloud.volumes
    pool = next(each for each in volumes.volume_pools() if each.pool_name == THICK)
    given = {"pool": pool.name, "volume_type": NAME, "gigabytes": 1000}
    refused = service.call("admin", "POST", POOLS, given, version=NEWEST)
    assert (refused.status, "is used by volume type fake, too" in str(refused.body)) == (400, True)
    away()
    refused = service.call("admin", "POST", POOLS, given, version=NEWEST)
    assert (refused.status, "give at most" in str(refused.body)) == (400, True)
    assert service.call("admin", "POST", POOLS, {**given, "gigabytes": 20}, version=NEWEST).status == 201

    room = {"resource_type": "virtual:volume", "size": 3, "amount": 2, "volume_type": NAME, "name": "data"}
    lease = service.create(body={"reservations": [room]})
    (reservation,) = service.reaches(lease["id"], "ACTIVE")["reservations"]
    found = [ready(storage, id_) for id_ in reservation["volume_ids"]]
    assert [(each.name, each.size_gb, each.project_id) for each in found] == [
        ("data-1", 3, storage.project),
        ("data-2", 3, storage.project),
    ]
    assert volumes.volume_type_access(storage.type_id) == {storage.project}
    assert volumes.volume_quota(storage.project, NAME) == VolumeQuota(6, 2)
    with pytest.raises(Exception, match="quota"):
        storage.create(1)

    change = {"reservations": [{"id": reservation["id"], "size": 4}]}
    answer = service.call("demo", "PUT", f"/leases/{lease['id']}", change)
    assert answer.status == 200, answer
    assert [ready(storage, each.id).size_gb for each in found] == [4, 4]

    storage.attach(found[0].id, storage.server())
    service.end(lease["id"])
    service.reaches(lease["id"], "TERMINATED")
    assert [volumes.volume(each.id) for each in found] == [None, None]
    assert volumes.volume_type_access(storage.type_id) == frozenset()
    assert volumes.volume_quota(storage.project, NAME) == VolumeQuota(0, 0)
