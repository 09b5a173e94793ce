# SPDX-License-Identifier: Apache-2.0
"""What exists before the start, and what is refused."""

from __future__ import annotations

import pytest

from blazar.model.base.errors import InvalidInput, NotEnoughResources
from blazar.model.leases.states import LeaseStatus, ReservationStatus
from tests.resources.instances.steps import HOUR, class_of, id_of, nothing_is_left, slots
from tests.world import PROJECT, instances


def test_before_the_start_everything_exists_by_the_names_that_others_know_and_nobody_can_use_it(world):
    lease = world.lease(instances(3, vcpus=2, memory_mb=4096, disk_gb=20, affinity=False), start=HOUR)
    reservation = lease.reservations[0]
    assert (lease.status, reservation.status) == (LeaseStatus.PENDING, ReservationStatus.PENDING)

    flavor = world.simulated.compute.flavor(reservation.id)
    (group,) = world.simulated.compute.server_groups(f"reservation:{reservation.id}")
    assert (flavor.name, flavor.vcpus, flavor.memory_mb, flavor.disk_gb) == (
        f"reservation:{reservation.id}",
        2,
        4096,
        20,
    )
    assert flavor.extra_specs == {
        "aggregate_instance_extra_specs:reservation": reservation.id,
        f"resources:{class_of(lease)}": "1",
        "affinity_id": group.id,
    }
    assert group.policy == "anti-affinity"
    assert world.simulated.compute.flavor_access(reservation.id) == frozenset()
    aggregate = world.simulated.compute.aggregate(reservation.id)
    assert (aggregate.hosts, aggregate.availability_zone) == ((), None)
    assert aggregate.metadata == {
        "reservation": reservation.id,
        "filter_tenant_id": PROJECT,
        "affinity_id": group.id,
        "blazar:owner": PROJECT,
    }
    assert reservation.cloud_ids.values == {
        "flavor_id": reservation.id,
        "aggregate_id": aggregate.id,
        "server_group_id": group.id,
    }
    assert slots(world, lease) == {}


def test_without_affinity_there_is_no_server_group(world):
    lease = world.lease(instances(affinity=None), start=HOUR)
    assert lease.reservations[0].cloud_ids.values["server_group_id"] is None
    assert "affinity_id" not in world.simulated.compute.flavor(id_of(lease)).extra_specs


@pytest.mark.parametrize(
    ("given", "kept"),
    [(None, None), ("None", None), ("none", None), ("", None), (True, True), ("True", True), ("false", False)],
)
def test_affinity_comes_as_clients_write_it(world, given, kept):
    assert world.lease(instances(affinity=given), start=HOUR).reservations[0].parameters.values["affinity"] is kept


@pytest.mark.parametrize(
    "wrong",
    [
        {"amount": 0},
        {"amount": -1},
        {"amount": ""},
        {"amount": 2**31},
        {"vcpus": 0},
        {"vcpus": -2},
        {"vcpus": 1.5},
        {"vcpus": True},
        {"memory_mb": 0},
        {"memory_mb": 10**12},
        {"disk_gb": -1},
        {"disk_gb": "much"},
        {"affinity": "perhaps"},
        {"affinity": 2},
        {"before_end": "migration"},
        {"before_end": "email"},
        {"needs": '["==", "$colour", "red"]'},
    ],
    ids=str,
)
def test_what_makes_no_sense_is_refused_and_the_field_named(world, wrong):
    field = "resource_properties" if "needs" in wrong else next(iter(wrong))
    with pytest.raises(InvalidInput, match=field):
        world.lease(instances(**wrong))
    nothing_is_left(world)


def test_more_than_there_is_is_refused_whatever_the_number(world):
    with pytest.raises(NotEnoughResources, match="2147483647 instances requested"):
        world.lease(instances(2**31 - 1))
    with pytest.raises(NotEnoughResources):
        world.lease(instances(vcpus=2**31 - 1))
    nothing_is_left(world)
