# SPDX-License-Identifier: Apache-2.0
"""Projects with volumes, in the simulated cloud and in the real one of ``make cloud``: both have two small pools."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from blazar.clouds.openstack import open_cloud
from blazar.clouds.openstack.volumes import VOLUMES
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.volumes import Volume, VolumeQuota
from blazar.clouds.simulated import FileStorage, MemoryStorage, of_size
from blazar.clouds.simulated.volume_state import PoolState
from blazar.model.base.errors import BlazarError, Conflict, NotFound
from tests import openstack
from tests.people import PeopledCloud
from tests.world import ManualClock

NAME = "test-volumes"
THICK, THIN = "thick", "thin"
"""Pools of 100 GiB: of one a tenth is kept free, the other may be promised twice."""


class Storage(Protocol):
    """A project that has volumes, and a private type of a pool that leads only there."""

    cloud: Cloud
    project: str
    type_id: str

    def create(self, size_gb: int) -> str: ...

    def server(self) -> str: ...

    def remove_server(self, server_id: str) -> None: ...

    def attach(self, volume_id: str, server_id: str) -> None: ...

    def snapshot(self, volume_id: str) -> None: ...

    def offer(self, volume_id: str) -> None: ...

    def delete_image(self, image_id: str) -> None: ...

    def soon(self, look: Callable[[], Any], good: Callable[[Any], bool] = bool) -> Any: ...


def pools() -> list[PoolState]:
    """Return the pools of the test cloud."""
    return [
        PoolState("controller@fake#thick", "fake", THICK, 100, 10),
        PoolState("controller@fake#thin", "fake", THIN, 100, ratio=2.0),
    ]


class SimulatedStorage:
    """The one of the simulated cloud."""

    project = "p"

    def __init__(self, simulated: PeopledCloud) -> None:
        self.cloud = simulated.cloud
        self._simulated = simulated
        thick, thin = pools()
        self.type_id = simulated.volume_users.add_pool(thick, type_name=NAME)
        simulated.volume_users.add_pool(thin, type_name="test-thin")

    def create(self, size_gb: int) -> str:
        return self._simulated.volume_users.create(self.project, self.type_id, size_gb).id

    def server(self) -> str:
        return self._simulated.users.boot_server("work", project_id="p", user_id="u", host="node-1").id

    def remove_server(self, server_id: str) -> None:
        self._simulated.compute.begin_server_deletion(server_id)

    def attach(self, volume_id: str, server_id: str) -> None:
        self._simulated.volume_users.attach(volume_id, server_id)

    def snapshot(self, volume_id: str) -> None:
        self._simulated.volume_users.snapshot(volume_id)

    def offer(self, volume_id: str) -> None:
        self._simulated.volume_users.offer(volume_id)

    def delete_image(self, image_id: str) -> None:
        with self._simulated.change_state() as state:
            del state.images[image_id]

    def soon(self, look: Callable[[], Any], good: Callable[[Any], bool] = bool) -> Any:
        return openstack.eventually(look, good, patience=0)


class RealStorage:
    """The project ``demo`` of the test cloud."""

    def __init__(self) -> None:
        self.cloud = open_cloud(openstack.access("blazar"))
        user = openstack.access("demo")
        self.project = str(user.session.get_project_id())
        self._user, self._admin = user.volume, openstack.access("admin").volume
        self._servers = openstack.servers("demo")
        self._booter = self._servers.__enter__()
        self.clean_volumes()
        specs = {"volume_backend_name": "fake", "pool_name": THICK}
        wanted = {"name": NAME, "os-volume-type-access:is_public": False, "extra_specs": specs}
        self.type_id = str(self._call(self._admin, "POST", "/types", {"volume_type": wanted})["volume_type"]["id"])
        # Cinder keeps the quotas of a type that is gone for the next one of its name.
        self.cloud.volumes.set_volume_quota(self.project, NAME, VolumeQuota(-1, -1))

    def create(self, size_gb: int) -> str:
        wanted = {"size": size_gb, "volume_type": self.type_id, "name": NAME}
        return str(self._call(self._user, "POST", "/volumes", {"volume": wanted})["volume"]["id"])

    def server(self) -> str:
        return str(self._booter.boot()["id"])

    def remove_server(self, server_id: str) -> None:
        self.cloud.compute.begin_server_deletion(server_id)

    def attach(self, volume_id: str, server_id: str) -> None:
        path, body = f"/servers/{server_id}/os-volume_attachments", {"volumeAttachment": {"volumeId": volume_id}}
        openstack.access("demo").compute.call("POST", path, body=body)
        self.soon(lambda: self.cloud.volumes.volume(volume_id), lambda found: found.status == "in-use")

    def snapshot(self, volume_id: str) -> None:
        self._call(self._user, "POST", "/snapshots", {"snapshot": {"volume_id": volume_id, "name": NAME}})
        self.soon(lambda: self._snapshots(volume_id), lambda found: found == ["available"])

    def offer(self, volume_id: str) -> None:
        self._call(self._user, "POST", "/volume-transfers", {"transfer": {"volume_id": volume_id, "name": NAME}})

    def delete_image(self, image_id: str) -> None:
        openstack.access("demo").image.call("DELETE", f"/images/{image_id}")

    def soon(self, look: Callable[[], Any], good: Callable[[Any], bool] = bool) -> Any:
        return openstack.eventually(look, good)

    def close(self) -> None:
        """Delete everything."""
        self._booter.clean()
        self._servers.__exit__(None, None, None)
        self.clean_volumes()

    def clean_volumes(self) -> None:
        """Delete what was made, also by a run that was killed."""
        volumes = self.cloud.volumes
        for found in [each for each in volumes.volume_types() if each.name == NAME]:
            self.soon(lambda found=found: self._gone(found.id))
            self._call(self._admin, "DELETE", f"/types/{found.id}")

    def _gone(self, type_id: str) -> bool:
        left = self.cloud.volumes.volumes_of_type(type_id)
        for volume in left:
            with suppress(NotFound, Conflict):
                for attachment in volume.attachments:
                    self.cloud.volumes.begin_detachment(volume.id, attachment.server_id)
                self.cloud.volumes.cancel_transfer(volume.id)
                self.cloud.volumes.begin_volume_deletion(volume.id)
        return not left

    def _snapshots(self, volume_id: str) -> list[str]:
        found = self._user.get("/snapshots/detail", params={"volume_id": volume_id}, microversion=VOLUMES)
        return [each["status"] for each in found["snapshots"]]

    @staticmethod
    def _call(service: Any, method: str, path: str, body: object = None) -> Any:
        return service.call(method, path, body=body, microversion=VOLUMES)


def storage_on(where: str, folder: Path) -> Iterator[Storage]:
    """Yield the project with volumes of the cloud of this name."""
    if where == "openstack":
        real = RealStorage()
        try:
            yield real
        finally:
            real.close()
        return
    state = of_size(1)
    storage = MemoryStorage(state) if where == "memory" else FileStorage(folder / "cloud.json", state)
    yield SimulatedStorage(PeopledCloud(storage, clock=ManualClock()))


def made(storage: Storage, size_gb: int = 1, **more: Any) -> Volume:
    """Create a volume as the service does for a reservation."""
    metadata = {"blazar:reservation": "r-1"}
    return storage.cloud.volumes.begin_volume(
        project_id=storage.project, type_id=storage.type_id, size_gb=size_gb, name=NAME, metadata=metadata, **more
    )


def ready(storage: Storage, volume_id: str, status: str = "available") -> Volume:
    """Return a volume once it has a status."""
    found = storage.soon(lambda: storage.cloud.volumes.volume(volume_id), lambda seen: seen.status == status)
    assert isinstance(found, Volume)
    return found


def is_refused(call: Callable[[], object]) -> bool:
    """Return whether a call is refused."""
    try:
        call()
    except BlazarError:
        return True
    return False


def nowhere() -> str:
    """Return an id that nothing has."""
    return str(uuid.uuid4())
