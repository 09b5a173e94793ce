# SPDX-License-Identifier: Apache-2.0
"""Servers that are there when their lease starts, and gone when it ends."""

from __future__ import annotations

import base64
import json
from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.simulated.state import BootImageState
from blazar.model.base.errors import CloudUnavailable, Conflict, InvalidInput, NotFound, RoleMissing
from blazar.model.base.reasons import ReasonCode
from blazar.model.leases.requests import LeaseChange, ReservationChange
from blazar.model.leases.states import EventStatus, EventType, LeaseStatus, ReservationStatus
from blazar.resources.servers.boot import MOST_LOOKS, QUOTA_PAUSE
from tests import oracle
from tests.conformance.sites import PUBLIC_KEY
from tests.world import NOON, PROJECT, World, flavored, servers

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
FLAVOR = Flavor("42", "c1.small", 8, 4096, 20, public=True)
SECRET = base64.b64encode(b"password: hunter2").decode()


@pytest.fixture
def world(sqlite) -> World:
    world = World(sqlite)
    world.simulated.operators.offer_flavor(FLAVOR)
    return world


def check_at_rest(world: World) -> None:
    """Check that the cloud has what the calendar promises, and nothing else."""
    oracle.check_at_rest(world.store, world.simulated, now=world.clock.now(), offered=[FLAVOR])


def in_cloud(world: World):
    """Return the servers by name."""
    with world.simulated.inspect() as state:
        now = world.clock.now()
        return {server.name: server for server in state.servers.values() if not server.is_gone(now)}


def boot_state(world: World):
    """Return images, key pairs and quotas, to read."""
    with world.simulated.inspect() as state:
        return state.boot


def ids(world: World, lease) -> list[str]:
    """Return the ids that are shown of a lease's servers."""
    return list(world.now(lease).reservations[0].shown["server_ids"] or ())


def change(world: World, lease, **values):
    """Change the first reservation of a lease."""
    wanted = ReservationChange(id=lease.reservations[0].id, parameters=values)
    return world.manager.leases.update(lease.id, LeaseChange(reservations=(wanted,)))


def closed(world: World, lease) -> bool:
    """Return whether nobody can boot with the flavor of a lease's reservation, and no key pair is left."""
    return not world.simulated.compute.flavor_access(lease.reservations[0].id) and not boot_state(world).keys


def test_from_the_start_to_the_end_the_project_has_servers(world):
    wanted = servers(2, name="web", public_key=PUBLIC_KEY, user_data=SECRET, metadata={"role": "web"}, networks="none")
    lease = world.lease(wanted, start=HOUR)
    assert in_cloud(world) == {}
    world.run_to(NOON + HOUR)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    found = in_cloud(world)
    assert found.keys() == {"web-1", "web-2"}
    for server in found.values():
        assert (server.project_id, server.status_at(world.clock.now())) == (PROJECT, "ACTIVE")
        assert (server.public_key, server.user_data) == (PUBLIC_KEY, SECRET)
        assert (server.metadata, server.networks) == ({"role": "web"}, ["none"])
    assert set(ids(world, lease)) == {server.id for server in found.values()}
    assert closed(world, lease)
    world.run_to(NOON + 3 * HOUR)
    assert (world.now(lease).status, in_cloud(world)) == (LeaseStatus.TERMINATED, {})
    check_at_rest(world)


def test_a_lease_is_active_when_its_servers_are_and_ids_are_recorded_at_once(world):
    world.simulated.durations.boot = MINUTE
    lease = world.lease(servers(2, name="web"))
    world.run_to(NOON)
    # The second is booted when the first is ACTIVE.
    assert world.now(lease).status is LeaseStatus.STARTING
    assert ids(world, lease) == [in_cloud(world)["web-1"].id]
    assert len(in_cloud(world)) == 1
    assert closed(world, lease)
    world.run_to(NOON + 4 * MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert len(ids(world, lease)) == len(in_cloud(world)) == 2


def test_a_server_that_fails_is_deleted_and_made_again(world):
    with world.simulated.change_state() as state:
        state.boot.failing = 2
    lease = world.lease(servers())
    world.run_to(NOON)
    assert world.now(lease).status is LeaseStatus.STARTING
    world.run_to(NOON + MINUTE)
    assert world.now(lease).status is LeaseStatus.ACTIVE
    assert ids(world, lease) == [server.id for server in in_cloud(world).values()]
    check_at_rest(world)


def test_servers_that_fail_again_and_again_fail_the_reservation_with_the_reason_of_nova(world):
    with world.simulated.change_state() as state:
        state.boot.failing = 9
    lease = world.lease(servers())
    world.run_to(NOON + MINUTE)
    found = world.now(lease)
    assert found.reservations[0].status is ReservationStatus.ERROR
    assert "No valid host was found" in found.event(EventType.START).reason
    assert in_cloud(world) == {}
    world.run_to(NOON + 2 * HOUR)
    check_at_rest(world)


@pytest.mark.slow
def test_a_server_that_is_built_for_too_long_is_made_again(world):
    world.simulated.durations.boot = HOUR
    lease = world.lease(servers(name="web"), hours=5)
    world.run_to(NOON)
    first = in_cloud(world)["web"].id
    world.run_to(NOON + 12 * MINUTE)
    assert first not in {server.id for server in in_cloud(world).values()}
    assert world.now(lease).event(EventType.START).attempts <= MOST_LOOKS + 10


def test_what_the_quota_refuses_is_tried_again_slowly_and_is_not_planned_again(world):
    lease = world.lease(servers(2))
    with world.simulated.change_state() as state:
        state.boot.most_servers = 1
    world.run_to(NOON)
    start = world.now(lease).event(EventType.START)
    assert (start.cause.code, len(in_cloud(world))) == (ReasonCode.QUOTA_EXCEEDED, 1)
    assert start.due_at == world.clock.now() + QUOTA_PAUSE
    assert closed(world, lease)
    with world.simulated.change_state() as state:
        state.boot.most_servers = None
    world.run_to(NOON + 2 * QUOTA_PAUSE)
    assert (world.now(lease).status, len(in_cloud(world))) == (LeaseStatus.ACTIVE, 2)


def test_more_servers_are_booted_one_by_one_and_recorded(world):
    lease = world.lease(servers(name="web"), hours=4)
    world.run_to(NOON)
    assert change(world, lease, amount=3).status is LeaseStatus.ACTIVE
    found = in_cloud(world)
    assert found.keys() == {"web", "web-1", "web-2"}
    assert set(ids(world, lease)) == {server.id for server in found.values()}
    assert closed(world, lease)
    world.run_to(NOON + 4 * HOUR)
    assert in_cloud(world) == {}
    check_at_rest(world)


def test_growth_beyond_the_quota_is_refused_and_undone(world):
    lease = world.lease(servers(name="web"), hours=4)
    world.run_to(NOON)
    with world.simulated.change_state() as state:
        state.boot.most_servers = 2
    with pytest.raises(Conflict, match="no more servers"):
        change(world, lease, amount=3)
    world.run_to(NOON + MINUTE)
    assert (in_cloud(world).keys(), world.now(lease).status) == ({"web"}, LeaseStatus.ACTIVE)
    check_at_rest(world)


def test_servers_that_their_users_deleted_are_not_made_again_unless_asked(world):
    lease = world.lease(servers(2, name="web"), hours=4)
    world.run_to(NOON)
    with pytest.raises(Conflict, match="delete 1 of them first"):
        change(world, lease, amount=1)
    world.simulated.compute.begin_server_deletion(in_cloud(world)["web-1"].id)
    world.manager.monitor.run_once()
    assert (len(ids(world, lease)), world.now(lease).degraded) == (2, False)
    assert change(world, lease, amount=3).status is LeaseStatus.ACTIVE
    assert len(in_cloud(world)) == 2
    assert change(world, lease, amount=2).status is LeaseStatus.ACTIVE
    assert change(world, lease, amount=3).status is LeaseStatus.ACTIVE
    assert len(in_cloud(world)) == len(ids(world, lease)) == 3


def test_a_resized_server_is_deleted_at_the_end_all_the_same(world):
    lease = world.lease(servers(name="web"))
    world.run_to(NOON)
    with world.simulated.change_state() as state:
        for server in state.servers.values():
            server.flavor, server.flavor_name = "42", "c1.small"
    world.run_to(NOON + 2 * HOUR)
    assert (in_cloud(world), world.now(lease).status) == ({}, LeaseStatus.TERMINATED)


def test_a_deletion_before_the_start_leaves_nothing(world):
    lease = world.lease(servers(2, public_key=PUBLIC_KEY), start=HOUR)
    world.manager.leases.delete(lease.id)
    world.run()
    check_at_rest(world)
    with world.simulated.inspect() as state:
        assert lease.reservations[0].id not in state.flavors


def test_a_key_pair_is_read_when_the_lease_is_made_and_is_gone_after_the_boot(world):
    with world.simulated.change_state() as state:
        state.boot.user_keys["curie/mine"] = PUBLIC_KEY
    lease = world.lease(servers(name="web", key_name="mine"), start=HOUR)
    with world.simulated.change_state() as state:
        del state.boot.user_keys["curie/mine"]
    world.run_to(NOON + HOUR)
    assert in_cloud(world)["web"].public_key == PUBLIC_KEY
    assert closed(world, lease)


def test_a_lost_answer_while_a_server_is_booted_makes_no_second_one_and_leaves_nothing_open(world):
    lease = world.lease(servers(public_key=PUBLIC_KEY))
    world.faults.fail_after("begin_boot", CloudUnavailable("lost"))
    world.run_to(NOON)
    world.run_to(NOON + MINUTE)
    assert (world.now(lease).status, len(in_cloud(world))) == (LeaseStatus.ACTIVE, 1)
    assert ids(world, lease) == [server.id for server in in_cloud(world).values()]
    assert closed(world, lease)


@pytest.mark.parametrize(
    ("values", "error"),
    [
        ({"image": "no-such-image"}, NotFound),
        ({"key_name": "theirs"}, NotFound),
        ({"flavor": "no-such-flavor", "vcpus": None, "memory_mb": None, "disk_gb": None}, NotFound),
        ({"flavor": "42", "vcpus": 4}, InvalidInput),
        ({"networks": [{"uuid": "theirs"}]}, NotFound),
        ({"security_groups": ["theirs"]}, NotFound),
        ({"disk_gb": 0}, InvalidInput),
        ({"image": "large"}, InvalidInput),
    ],
)
def test_what_the_project_cannot_use_is_refused_before_anything_is_booked(world, values, error):
    with world.simulated.change_state() as state:
        state.boot.user_keys["marie/theirs"] = PUBLIC_KEY
        state.boot.images["large"] = BootImageState("large", min_disk_gb=100)
    with pytest.raises(error) as refused:
        world.lease(servers(**values))
    assert next(iter(values)) in refused.value.message or "disk_gb" in refused.value.message
    assert world.manager.leases.all(None) == ()
    check_at_rest(world)


@pytest.mark.parametrize("values", [{"disk_gb": 9}, {"disk_gb": "9"}, {"memory_mb": 1023}, {"flavor": "43"}])
def test_servers_cannot_be_made_too_small_for_their_image(world, values):
    """They could not be booted, which nobody would hear of before the start."""
    world.simulated.operators.offer_flavor(Flavor("43", "c1.tiny", 1, 512, 1, public=True))
    with world.simulated.change_state() as state:
        state.boot.images["large"] = BootImageState("large", min_disk_gb=10, min_memory_mb=1024)
    lease = world.lease(servers(image="large"), start=HOUR)
    if "flavor" in values:
        values = {**values, **dict.fromkeys(("vcpus", "memory_mb", "disk_gb"))}
    with pytest.raises(InvalidInput, match="image large needs"):
        change(world, lease, **values)
    assert world.now(lease).reservations[0].parameters == lease.reservations[0].parameters
    assert change(world, lease, disk_gb=10, memory_mb=1024).reservations[0].shown["disk_gb"] == 10


def test_a_project_in_which_the_service_has_no_role_is_told(world):
    world.simulated.operators.close_project(PROJECT)
    with pytest.raises(RoleMissing):
        world.lease(servers())


@pytest.mark.parametrize("flavor", [42, "42"])
def test_a_flavor_may_be_a_number(world, flavor):
    sizes = dict.fromkeys(("vcpus", "memory_mb", "disk_gb"))
    lease = world.lease(servers(flavor=flavor, **sizes), start=HOUR)
    shown = lease.reservations[0].shown
    assert (shown["flavor"], shown["vcpus"], shown["memory_mb"], shown["disk_gb"]) == ("42", 8, 4096, 20)
    assert change(world, lease, flavor=flavor).reservations[0].parameters == lease.reservations[0].parameters


@pytest.mark.parametrize(
    ("specs", "why"),
    [
        ({"hw:mem_encryption": "true"}, "its extra spec hw:mem_encryption"),
        ({"trait:X": "maybe"}, "its extra spec trait:X"),
    ],
)
def test_a_flavor_that_cannot_be_promised_is_refused_where_it_is_named(world, specs, why):
    world.simulated.operators.offer_flavor(Flavor("7", "odd", 1, 512, 1, public=True, extra_specs=specs))
    sizes = dict.fromkeys(("vcpus", "memory_mb", "disk_gb"))
    for wanted, field in ((servers(flavor="7", **sizes), "flavor"), (flavored(flavor_id="7"), "flavor_id")):
        with pytest.raises(InvalidInput, match=f"^flavor 7: {why}") as refused:
            world.lease(wanted, start=HOUR)
        assert refused.value.pointer == f"/reservations/0/{field}"


def test_user_data_is_never_shown(world):
    lease = world.lease(servers(user_data=SECRET), start=HOUR)
    (kept,) = lease.reservations
    assert SECRET not in json.dumps(dict(kept.shown))
    assert kept.parameters.values["secret"] == {"user_data": SECRET}
    after = change(world, lease, user_data=None)
    assert "secret" not in after.reservations[0].parameters.values


def test_before_the_end_images_of_the_servers_are_made(world):
    lease = world.lease(servers(2, name="web", before_end="snapshot"), before_end=NOON + HOUR)
    world.run_to(NOON + HOUR + MINUTE)
    assert world.now(lease).event(EventType.BEFORE_END).status is EventStatus.DONE
    with world.simulated.inspect() as state:
        assert len(state.images) == 2


def test_a_server_with_another_flavor_is_saved_before_the_end_as_the_others(world):
    """It is deleted at the end as they are, so that its work would be lost."""
    lease = world.lease(servers(2, name="web", before_end="snapshot"), before_end=NOON + HOUR)
    world.run_to(NOON)
    with world.simulated.change_state() as state:
        resized = next(iter(state.servers.values()))
        resized.flavor, resized.flavor_name = "42", "c1.small"
    world.run_to(NOON + 3 * HOUR)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    with world.simulated.inspect() as state:
        saved = {image.metadata["blazar:server"]: image.project_id for image in state.images.values()}
    assert saved == dict.fromkeys(ids(world, lease), PROJECT)


@pytest.mark.parametrize(
    ("action", "told", "images"),
    [("notification", True, 0), ("default", True, 0), ("none", False, 0), ("snapshot", True, 1)],
)
def test_each_action_before_the_end(world, action, told, images):
    lease = world.lease(servers(name="web", before_end=action), before_end=NOON + HOUR)
    world.run_to(NOON + HOUR + MINUTE)
    assert ("lease.event.before_end_lease" in world.notifier.types) is told
    with world.simulated.inspect() as state:
        assert [image.name.endswith("web") for image in state.images.values()] == [True] * images
    # It is a server until the end.
    assert in_cloud(world).keys() == {"web"}
    assert world.now(lease).status is LeaseStatus.ACTIVE
