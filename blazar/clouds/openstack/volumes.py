# SPDX-License-Identifier: Apache-2.0
"""Cinder: pools, volume types and quotas, which operators see, and volumes in users' projects."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.service import Json, VersionMissing
from blazar.clouds.ports.volumes import (
    Attachment,
    CopyState,
    Volume,
    VolumeCopy,
    VolumePool,
    VolumeQuota,
    VolumeService,
    VolumeType,
)
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.model.base.reasons import ReasonCode

VOLUMES = "3.70"
"""Shows the id of a volume's type, lists messages, and grows volumes in use; of Cinder 20 (Yoga)."""

_BACKUPS, _VOLUMES = "cinder-backup", "cinder-volume"

_UNFINISHED = frozenset({"queued", "saving", "uploading", "importing"})
_COMPLETE = frozenset({"active", "deactivated"})
"""The status of an image that is being made, and of one that is complete."""

_BACKUP_STATES = {"creating": CopyState.MAKING, "available": CopyState.DONE, "restoring": CopyState.DONE}


class OpenStackVolumeTypes:
    """Pools, volume types, and quotas of projects, for operators."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self._cinder = access.volume
        self._nova = access.compute

    def volume_pools(self) -> tuple[VolumePool, ...]:
        """Return all pools."""
        answer = self._get("/scheduler-stats/get_pools", params={"detail": "True"})
        return tuple(_pool(item) for item in answer["pools"])

    def volume_services(self) -> tuple[VolumeService, ...]:
        """Return the cinder-volumes of all backends."""
        found = self._get("/os-services", params={"binary": _VOLUMES})["services"]
        return tuple(_service(item) for item in found)

    def disable_volume_service(self, name: str, reason: str) -> None:
        """Disable a cinder-volume for a reason."""
        self._set_service("disable-log-reason", {"host": name, "disabled_reason": reason})

    def enable_volume_service(self, name: str) -> None:
        """Enable a cinder-volume. CloudRefused if it stays disabled."""
        self._set_service("enable", {"host": name})
        # Cinder 29.0.0 answers that it is enabled, and writes nothing.
        if any(one.name == name and one.mark is not None for one in self.volume_services()):
            raise CloudRefused(
                f"Cinder answers that cinder-volume {name} is enabled, and it is still disabled, as in Cinder 29.0.0: "
                "enable it in the database of Cinder, and let no pool of volumes sleep there"
            )

    def has_volumes(self, name: str) -> bool:
        """Return whether a volume is on a backend: Cinder lists those of a host, or of host@backend, to operators."""
        found = self._get("/volumes", params={"all_tenants": "1", "host": name, "limit": 1})
        return bool(found["volumes"])

    def volume_types(self) -> tuple[VolumeType, ...]:
        """Return all types."""
        pages = self._cinder.pages("/types", "volume_types", params={"is_public": "None"}, microversion=VOLUMES)
        return tuple(_type(item) for item in pages)

    def volume_type(self, type_id: str) -> VolumeType | None:
        """Return the type with this id."""
        try:
            return _type(self._get(_type_path(type_id))["volume_type"])
        except NotFound:
            return None

    def has_backups(self) -> bool:
        """Return whether the service for backups is up."""
        found = self._get("/os-services", params={"binary": _BACKUPS})["services"]
        return any(service["state"] == "up" and service["status"] == "enabled" for service in found)

    def volume_type_access(self, type_id: str) -> frozenset[str]:
        """Return the projects that may use a private type."""
        found = self._get(f"{_type_path(type_id)}/os-volume-type-access")["volume_type_access"]
        return frozenset(str(access["project_id"]) for access in found)

    def grant_volume_type(self, type_id: str, project_id: str) -> None:
        """Let a project use a private type."""
        self._post(f"{_type_path(type_id)}/action", {"addProjectAccess": {"project": project_id}})

    def revoke_volume_type(self, type_id: str, project_id: str) -> None:
        """Let a project no longer use a private type."""
        self._post(f"{_type_path(type_id)}/action", {"removeProjectAccess": {"project": project_id}})

    def volume_quota(self, project_id: str, type_name: str) -> VolumeQuota:
        """Return the quota of a project for a type."""
        found = self._get(_quotas_path(project_id))["quota_set"]
        return _quota(found, type_name, lambda value: value)

    def volume_usage(self, project_id: str, type_name: str) -> VolumeQuota:
        """Return what a project has of a type."""
        found = self._get(_quotas_path(project_id), params={"usage": "True"})["quota_set"]
        return _quota(found, type_name, lambda value: value["in_use"] + value["reserved"])

    def set_volume_quota(self, project_id: str, type_name: str, quota: VolumeQuota) -> None:
        """Set the quota of a project for a type."""
        limits = {f"gigabytes_{type_name}": quota.gigabytes, f"volumes_{type_name}": quota.volumes}
        body = {"quota_set": limits}
        try:
            self._cinder.call("PUT", _quotas_path(project_id), body=body, microversion=VOLUMES)
        except VersionMissing:
            raise
        except CloudRefused as error:
            public = "The project has more volumes than that"
            raise Conflict(error.message, public=public).because(error.cause) from error

    def _set_service(self, what: str, body: Json) -> None:
        path = f"/os-services/{what}"
        self._cinder.call("PUT", path, body={"binary": _VOLUMES, **body}, microversion=VOLUMES)

    def _get(self, path: str, *, params: Mapping[str, Any] | None = None) -> Json:
        return self._cinder.get(path, params=params, microversion=VOLUMES)

    def _post(self, path: str, body: Json) -> Json:
        return self._cinder.call("POST", path, body=body, microversion=VOLUMES)


class OpenStackVolumes(OpenStackVolumeTypes):
    """Implements the volumes port.

    Nobody can create a volume for another project, so that takes a token of the project; all else is done as admin.
    """

    def volume(self, volume_id: str) -> Volume | None:
        """Return a volume."""
        try:
            return self._volume(self._get(_volume_path(volume_id))["volume"])
        except NotFound:
            return None

    def volumes_of_type(self, type_id: str, *, project_id: str | None = None) -> tuple[Volume, ...]:
        """Return the volumes of a type."""
        more = {} if project_id is None else {"project_id": project_id}
        return self._list_volumes({"volume_type_id": type_id, **more})

    def volumes_with(self, key: str, value: str, *, project_id: str) -> tuple[Volume, ...]:
        """Return the volumes of a project with a pair in their metadata."""
        return self._list_volumes({"metadata": json.dumps({key: value}), "project_id": project_id})

    def service_volumes(self) -> tuple[Volume, ...]:
        """Return the volumes that the service user has made."""
        return self._list_volumes({"user_id": self._access.user_id()})

    def begin_volume(
        self,
        *,
        project_id: str,
        type_id: str,
        size_gb: int,
        name: str,
        metadata: Mapping[str, str],
        image_id: str | None = None,
    ) -> Volume:
        """Begin to create a volume, by a token of the project."""
        wanted: dict[str, Any] = {
            "size": size_gb,
            "volume_type": type_id,
            "name": name,
            "metadata": dict(metadata),
        }
        if image_id is not None:
            wanted["imageRef"] = image_id
        cinder = self._access.in_project(project_id).volume
        made = cinder.call("POST", "/volumes", body={"volume": wanted}, microversion=VOLUMES)["volume"]
        # This answer does not say whose it is.
        return self._volume({"os-vol-tenant-attr:tenant_id": project_id, "volume_type_id": type_id, **made})

    def volume_failure(self, volume: Volume) -> str:
        """Return the last message about a volume; messages are shown to the project only."""
        cinder = self._access.in_project(volume.project_id).volume
        params = {"resource_uuid": volume.id, "sort": "created_at:desc", "limit": 1}
        found = cinder.get("/messages", params=params, microversion=VOLUMES)["messages"]
        return str(found[0]["user_message"]) if found else ""

    def begin_volume_growth(self, volume_id: str, size_gb: int) -> None:
        """Begin to grow a volume."""
        path = f"{_volume_path(volume_id)}/action"
        _call_with_conflicts(lambda: self._post(path, {"os-extend": {"new_size": size_gb}}))

    def begin_attachment(self, volume_id: str, server_id: str, *, project_id: str) -> None:
        """Begin to attach a volume, by a token of the project."""
        nova = self._access.in_project(project_id).compute
        path, body = f"/servers/{quote(server_id, safe='')}/os-volume_attachments", {"volumeId": volume_id}
        _call_with_conflicts(lambda: nova.call("POST", path, body={"volumeAttachment": body}))

    def begin_detachment(self, volume_id: str, server_id: str) -> None:
        """Begin to detach a volume, by Nova: Cinder does not detach what Nova uses."""
        # The id of the server is what a user wrote: it must not become another path.
        path = f"/servers/{quote(server_id, safe='')}/os-volume_attachments/{quote(volume_id, safe='')}"
        _call_with_conflicts(lambda: self._nova.call("DELETE", path))

    def drop_attachment(self, attachment_id: str) -> None:
        """Delete an attachment."""
        self._cinder.call("DELETE", f"/attachments/{quote(attachment_id, safe='')}", microversion=VOLUMES)

    def cancel_transfer(self, volume_id: str) -> None:
        """Cancel the offer of a volume."""
        params = {"all_tenants": "1"}
        for item in self._cinder.pages("/volume-transfers/detail", "transfers", params=params, microversion=VOLUMES):
            if item["volume_id"] == volume_id:
                path = f"/volume-transfers/{quote(item['id'], safe='')}"
                self._cinder.call("DELETE", path, microversion=VOLUMES)

    def begin_volume_deletion(self, volume_id: str) -> None:
        """Begin to delete a volume; by force if an earlier deletion failed."""
        path = _volume_path(volume_id)
        found = self._get(path)["volume"]
        if found["status"] == "deleting":
            return
        if found["status"] == "error_deleting":
            _call_with_conflicts(lambda: self._post(f"{path}/action", {"os-force_delete": {}}))
            return
        _call_with_conflicts(
            lambda: self._cinder.call("DELETE", path, params={"cascade": "True"}, microversion=VOLUMES),
        )

    def begin_upload(self, volume: Volume, name: str) -> str:
        """Begin to make an image of a volume."""
        wanted = {
            "image_name": name,
            "container_format": "bare",
            "disk_format": "raw",
            "visibility": "private",
            # Cinder ignores it unless its option enable_force_upload says otherwise.
            "force": True,
        }
        made = self._post_in_project(volume, f"{_volume_path(volume.id)}/action", {"os-volume_upload_image": wanted})
        return str(made["os-volume_upload_image"]["image_id"])

    def images_named(self, project_id: str, name: str) -> tuple[VolumeCopy, ...]:
        """Return the images of a project with a name."""
        glance = self._access.in_project(project_id).image
        pages = glance.pages("/images", "images", params={"name": name, "owner": project_id, "limit": "100"})
        return tuple(VolumeCopy(item["id"], item["name"], _state_of_image(item["status"])) for item in pages)

    def begin_backup(self, volume: Volume, name: str) -> str:
        """Begin to make a backup of a volume."""
        wanted = {"volume_id": volume.id, "name": name, "force": True}
        return str(self._post_in_project(volume, "/backups", {"backup": wanted})["backup"]["id"])

    def backups_of(self, volume_id: str) -> tuple[VolumeCopy, ...]:
        """Return the backups of a volume."""
        params = {"all_tenants": "1", "volume_id": volume_id}
        pages = self._cinder.pages("/backups/detail", "backups", params=params, microversion=VOLUMES)
        return tuple(_backup(item) for item in pages)

    def _post_in_project(self, volume: Volume, path: str, body: Json) -> Json:
        """Make a change of a volume as a member of its project, to which belongs what comes of it."""
        cinder = self._access.in_project(volume.project_id).volume
        return _call_with_conflicts(lambda: cinder.call("POST", path, body=body, microversion=VOLUMES))

    def _list_volumes(self, conditions: Mapping[str, str]) -> tuple[Volume, ...]:
        params = {"all_tenants": "1", "sort": "created_at:asc,id:asc", **conditions}
        pages = self._cinder.pages("/volumes/detail", "volumes", params=params, microversion=VOLUMES)
        return tuple(self._volume(item) for item in pages)

    def _volume(self, item: Json) -> Volume:
        return Volume(
            item["id"],
            item["name"] or "",
            item["os-vol-tenant-attr:tenant_id"],
            item["volume_type_id"] or "",
            item["size"],
            item["status"],
            item["user_id"] == self._access.user_id(),
            dict(item["metadata"]),
            tuple(Attachment(a["attachment_id"], a["server_id"] or "") for a in item["attachments"]),
            item["created_at"],
        )


def _call_with_conflicts(call: Callable[[], Json]) -> Json:
    """Make a call that Cinder and Nova refuse with 400 where others answer 409; return the answer."""
    try:
        return call()
    except VersionMissing:
        raise
    except CloudRefused as error:
        if error.cause.code is ReasonCode.QUOTA_EXCEEDED:
            raise
        raise Conflict(error.message, public="The cloud refuses this in its present state") from error


def _type_path(type_id: str) -> str:
    return f"/types/{quote(type_id, safe='')}"


def _volume_path(volume_id: str) -> str:
    return f"/volumes/{quote(volume_id, safe='')}"


def _quotas_path(project_id: str) -> str:
    return f"/os-quota-sets/{quote(project_id, safe='')}"


def _quota(found: Json, type_name: str, read: Callable[[Any], int]) -> VolumeQuota:
    gigabytes, volumes = found.get(f"gigabytes_{type_name}"), found.get(f"volumes_{type_name}")
    if gigabytes is None or volumes is None:
        raise NotFound(f"Cinder has no quota for volume type {type_name}")
    return VolumeQuota(read(gigabytes), read(volumes))


def _type(item: Json) -> VolumeType:
    return VolumeType(item["id"], item["name"], bool(item["is_public"]), dict(item.get("extra_specs") or {}))


def _service(item: Json) -> VolumeService:
    mark = None if item["status"] == "enabled" else item.get("disabled_reason") or ""
    return VolumeService(item["host"], item["state"] == "up", mark)


def _state_of_image(status: str) -> CopyState:
    if status in _COMPLETE:
        return CopyState.DONE
    return CopyState.MAKING if status in _UNFINISHED else CopyState.FAILED


def _backup(item: Json) -> VolumeCopy:
    state = _BACKUP_STATES.get(item["status"], CopyState.FAILED)
    return VolumeCopy(item["id"], item["name"] or "", state, item.get("fail_reason") or "")


def _pool(item: Json) -> VolumePool:
    has = item["capabilities"]
    name = item["name"]
    provisioned = has.get("provisioned_capacity_gb")
    thin, thick = bool(has.get("thin_provisioning_support")), bool(has.get("thick_provisioning_support"))
    return VolumePool(
        name,
        str(has.get("volume_backend_name") or ""),
        str(has.get("pool_name") or name.partition("#")[2]),
        _size(has.get("total_capacity_gb")),
        _size(has.get("free_capacity_gb")),
        math.ceil(_number(has.get("allocated_capacity_gb") if provisioned is None else provisioned) or 0),
        int(_number(has.get("reserved_percentage")) or 0),
        thin=thin,
        thick=thick or not thin,
        # "auto" is a ratio that Cinder works out from the use of the pool: more than once is not sure.
        ratio=max(1.0, _number(has.get("max_over_subscription_ratio")) or 1.0),
    )


def _size(value: object) -> int | None:
    number = _number(value)
    return None if number is None else math.floor(number)


def _number(value: object) -> float | None:
    """Return a number, which drivers may write as a text; None for words such as infinite and unknown."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return number if math.isfinite(number) else None
