# SPDX-License-Identifier: Apache-2.0
"""What reservations of volumes rely on: pools, private types with quotas, and volumes of users' projects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from blazar.clouds.ports.volumes import (
    PROVISIONING,
    CopyState,
    Volume,
    VolumeCopy,
    VolumePool,
    VolumeQuota,
    VolumeService,
    VolumeType,
    service_of,
)
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict, NotFound
from tests.contract.storage import NAME, THICK, THIN, RealStorage, Storage, is_refused, made, nowhere, ready, storage_on


@pytest.fixture(params=["memory", "file", pytest.param("openstack", marks=pytest.mark.cloud)])
def storage(request, tmp_path) -> Iterator[Storage]:
    yield from storage_on(request.param, tmp_path)


@pytest.fixture
def volumes(storage):
    return storage.cloud.volumes


@pytest.fixture
def open_storage(storage, volumes) -> Storage:
    """One whose project may use its type."""
    volumes.grant_volume_type(storage.type_id, storage.project)
    return storage


def test_pools_say_how_much_cinder_lets_volumes_have(volumes):
    by_name = {pool.pool_name: pool for pool in volumes.volume_pools()}
    thick, thin = by_name[THICK], by_name[THIN]
    assert (thick.name.partition("#")[2], thick.backend_name, thick.total_gb) == (THICK, "fake", 100)
    assert (thick.capacity_gb({}), thin.capacity_gb({})) == (90, 200)
    assert thick.unprovisioned_gb({}) <= 90
    assert not volumes.has_backups()


def test_a_service_that_is_disabled_gets_no_volumes_and_says_why(open_storage, volumes):
    if isinstance(open_storage, RealStorage):
        # Nobody but its database could enable it again, and all tests of volumes after this one would fail.
        pytest.skip("Cinder 29.0.0 enables no service: it answers so, and writes nothing")
    name = service_of(next(pool for pool in volumes.volume_pools() if pool.pool_name == THICK).name)
    assert VolumeService(name, up=True) in volumes.volume_services()
    assert not volumes.has_volumes(name)
    volumes.disable_volume_service(name, "blazar test")
    try:
        assert VolumeService(name, up=True, mark="blazar test") in volumes.volume_services()
        open_storage.soon(lambda: not [pool for pool in volumes.volume_pools() if service_of(pool.name) == name])
    finally:
        volumes.enable_volume_service(name)
    assert VolumeService(name, up=True) in volumes.volume_services()
    open_storage.soon(lambda: [pool for pool in volumes.volume_pools() if service_of(pool.name) == name])
    found = ready(open_storage, made(open_storage).id)
    assert volumes.has_volumes(name)
    assert not volumes.has_volumes("nowhere@fake")
    volumes.begin_volume_deletion(found.id)
    open_storage.soon(lambda: not volumes.has_volumes(name))


def test_nobody_disables_a_service_that_there_is_not(volumes):
    with pytest.raises(NotFound):
        volumes.disable_volume_service("nowhere@fake", "blazar test")


def test_a_type_leads_to_the_pools_that_its_extra_specs_allow(storage, volumes):
    found = next(each for each in volumes.volume_types() if each.name == NAME)
    assert (found.id, found.public, found.is_specific) == (storage.type_id, False, True)
    assert volumes.volume_type(storage.type_id) == found
    assert [pool.pool_name for pool in volumes.volume_pools() if found.leads_to(pool)] == [THICK]
    assert volumes.volume_type(nowhere()) is None


def test_a_project_uses_a_private_type_only_with_access(storage, volumes):
    with pytest.raises(NotFound):
        made(storage)
    assert is_refused(lambda: storage.create(1))
    volumes.grant_volume_type(storage.type_id, storage.project)
    with pytest.raises(Conflict):
        volumes.grant_volume_type(storage.type_id, storage.project)
    assert volumes.volume_type_access(storage.type_id) == {storage.project}
    found = ready(storage, made(storage).id)
    volumes.revoke_volume_type(storage.type_id, storage.project)
    with pytest.raises(NotFound):
        volumes.revoke_volume_type(storage.type_id, storage.project)
    assert volumes.volume_type_access(storage.type_id) == frozenset()
    assert volumes.volume(found.id) == found
    with pytest.raises(NotFound):
        made(storage)


def test_a_volume_is_of_the_project_and_has_its_mark_from_the_first_call(open_storage, volumes):
    begun = made(open_storage, 2)
    found = ready(open_storage, begun.id)
    assert (found.name, found.project_id, found.size_gb, found.ours) == (NAME, open_storage.project, 2, True)
    assert (found.type_id, begun.type_id, found.metadata) == (open_storage.type_id,) * 2 + (begun.metadata,)
    theirs = ready(open_storage, open_storage.create(1))
    assert not theirs.ours
    assert set(volumes.volumes_of_type(open_storage.type_id)) == {found, theirs}
    assert set(volumes.volumes_of_type(open_storage.type_id, project_id=open_storage.project)) == {found, theirs}
    assert volumes.volumes_of_type(open_storage.type_id, project_id=nowhere()) == ()
    assert volumes.volumes_with("blazar:reservation", "r-1", project_id=open_storage.project) == (found,)
    assert volumes.volumes_with("blazar:reservation", "r-2", project_id=open_storage.project) == ()
    assert found in volumes.service_volumes()
    assert theirs not in volumes.service_volumes()


def test_a_quota_by_type_limits_users_and_service_alike(open_storage, volumes):
    volumes.set_volume_quota(open_storage.project, NAME, VolumeQuota(2, 3))
    assert volumes.volume_quota(open_storage.project, NAME) == VolumeQuota(2, 3)
    ready(open_storage, made(open_storage, 2).id)
    assert volumes.volume_usage(open_storage.project, NAME) == VolumeQuota(2, 1)
    with pytest.raises(CloudRefused) as raised:
        made(open_storage)
    assert raised.value.cause.code == "quota_exceeded"
    assert not isinstance(raised.value, CloudUnavailable)
    assert is_refused(lambda: open_storage.create(1))
    for less in (VolumeQuota(1, 1), VolumeQuota(2, 0)):
        with pytest.raises(Conflict):
            volumes.set_volume_quota(open_storage.project, NAME, less)
    assert volumes.volume_quota(open_storage.project, NAME) == VolumeQuota(2, 3)


def test_a_volume_without_room_fails_later_and_says_why(open_storage, volumes):
    found = ready(open_storage, made(open_storage, 91).id, "error")
    assert "available" in volumes.volume_failure(found)
    volumes.begin_volume_deletion(found.id)
    open_storage.soon(lambda: volumes.volume(found.id) is None)
    assert volumes.volumes_of_type(open_storage.type_id) == ()


def test_an_image_that_there_is_not_is_refused(open_storage, volumes):
    with pytest.raises(CloudRefused):
        made(open_storage, image_id=nowhere())
    assert volumes.volumes_of_type(open_storage.type_id) == ()


def test_a_volume_grows_within_the_quota_also_in_use(open_storage, volumes):
    volumes.set_volume_quota(open_storage.project, NAME, VolumeQuota(3, 1))
    found = ready(open_storage, made(open_storage).id)
    volumes.begin_volume_growth(found.id, 2)
    open_storage.soon(lambda: volumes.volume(found.id), lambda seen: (seen.size_gb, seen.status) == (2, "available"))
    with pytest.raises(CloudRefused) as raised:
        volumes.begin_volume_growth(found.id, 4)
    assert raised.value.cause.code == "quota_exceeded"


def test_an_attached_volume_leaves_by_its_server_and_only_then_is_deleted(open_storage, volumes):
    found, server = ready(open_storage, made(open_storage).id), open_storage.server()
    with pytest.raises(NotFound):
        volumes.begin_detachment(found.id, server)
    open_storage.attach(found.id, server)
    (attachment,) = volumes.volume(found.id).attachments
    assert attachment.server_id == server
    for refused in (lambda: volumes.begin_volume_deletion(found.id), lambda: volumes.drop_attachment(attachment.id)):
        with pytest.raises(Conflict):
            refused()
    volumes.begin_detachment(found.id, server)
    ready(open_storage, found.id)
    volumes.begin_volume_deletion(found.id)
    open_storage.soon(lambda: volumes.volume(found.id) is None)


def test_a_volume_is_deleted_with_its_snapshots_but_not_while_it_is_offered(open_storage, volumes):
    found = ready(open_storage, made(open_storage).id)
    open_storage.snapshot(found.id)
    assert volumes.volume_usage(open_storage.project, NAME).gigabytes == 2
    open_storage.offer(found.id)
    ready(open_storage, found.id, "awaiting-transfer")
    with pytest.raises(Conflict):
        volumes.begin_volume_deletion(found.id)
    for _ in range(2):
        volumes.cancel_transfer(found.id)
    volumes.begin_volume_deletion(found.id)
    open_storage.soon(lambda: volumes.volume(found.id) is None)
    assert volumes.volume_usage(open_storage.project, NAME) == VolumeQuota(0, 0)


def test_an_image_of_a_volume_is_in_its_project_and_survives_the_volume(open_storage, volumes):
    found, name = ready(open_storage, made(open_storage).id), f"test-volumes-{nowhere()}"
    assert volumes.images_named(open_storage.project, name) == ()
    image = volumes.begin_upload(found, name)
    look = lambda: volumes.images_named(open_storage.project, name)  # noqa: E731
    (seen,) = open_storage.soon(look, lambda them: [each.state for each in them] == [CopyState.DONE])
    assert seen == VolumeCopy(image, name, CopyState.DONE)
    ready(open_storage, found.id)
    volumes.begin_volume_deletion(found.id)
    open_storage.soon(lambda: volumes.volume(found.id) is None)
    assert look() == (seen,)
    open_storage.delete_image(image)
    assert look() == ()


def test_an_attached_volume_is_not_made_an_image(open_storage, volumes):
    found, server = ready(open_storage, made(open_storage).id), open_storage.server()
    open_storage.attach(found.id, server)
    with pytest.raises(Conflict):
        volumes.begin_upload(found, "test-volumes")
    assert volumes.images_named(open_storage.project, "test-volumes") == ()


def test_what_does_not_exist_is_not_found(storage, volumes):
    gone = nowhere()
    unknown = Volume(gone, NAME, storage.project, storage.type_id, 1, "available", True)
    for call in (
        lambda: volumes.volume_type_access(gone),
        lambda: volumes.grant_volume_type(gone, storage.project),
        lambda: volumes.revoke_volume_type(gone, storage.project),
        lambda: volumes.begin_volume_growth(gone, 2),
        lambda: volumes.begin_detachment(gone, gone),
        lambda: volumes.drop_attachment(gone),
        lambda: volumes.begin_volume_deletion(gone),
        lambda: volumes.begin_upload(unknown, NAME),
        lambda: volumes.begin_backup(unknown, NAME),
    ):
        with pytest.raises(NotFound):
            call()
    volumes.cancel_transfer(gone)
    assert volumes.volume(gone) is None
    assert volumes.volumes_of_type(gone) == ()
    assert volumes.backups_of(gone) == ()


@pytest.mark.parametrize(
    ("pool", "specs", "expected"),
    [
        (VolumePool("p", "b", "p", 100, 60, 50, 10), {}, (90, 40)),
        (VolumePool("p", "b", "p", 100, 20, 50, 10), {}, (90, 20)),
        (VolumePool("p", "b", "p", 100, 20, 50, 10, thin=True, ratio=2.0), {}, (180, 130)),
        (VolumePool("p", "b", "p", 99, 20, 50, 10, thin=True, thick=True, ratio=2.0), {}, (180, 130)),
        (VolumePool("p", "b", "p", 100, 20, 50, thin=True, thick=True, ratio=2.0), {PROVISIONING: "thick"}, (100, 20)),
        (VolumePool("p", "b", "p", 100, None, 150), {}, (100, 0)),
        (VolumePool("p", "b", "p", None, None, 150), {}, (None, None)),
    ],
)  # fmt: skip
def test_the_room_of_a_pool_follows_the_rule_of_cinders_scheduler(pool, specs, expected):
    assert (pool.capacity_gb(specs), pool.unprovisioned_gb(specs)) == expected


def test_a_type_without_a_pool_leads_to_all_of_its_backend_and_one_without_a_backend_anywhere():
    pool = VolumePool("h@b#p", "b", "p", 1, 1)
    leads = {"volume_backend_name": "b"}, {}, {"pool_name": "q"}, {"volume_backend_name": "c"}
    assert [VolumeType("t", "t", False, specs).leads_to(pool) for specs in leads] == [True, True, False, False]


def test_a_volume_is_attached_to_a_server_of_its_project(open_storage, volumes):
    found, server, project = ready(open_storage, open_storage.create(1)), open_storage.server(), open_storage.project
    volumes.begin_attachment(found.id, server, project_id=project)
    used = open_storage.soon(lambda: volumes.volume(found.id), lambda each: each.status == "in-use")
    assert [each.server_id for each in used.attachments] == [server]
    with pytest.raises(Conflict):
        volumes.begin_attachment(found.id, server, project_id=project)
    for missing in ((nowhere(), server), (found.id, nowhere())):
        with pytest.raises(NotFound):
            volumes.begin_attachment(*missing, project_id=project)
    volumes.begin_detachment(found.id, server)
