# SPDX-License-Identifier: Apache-2.0
"""Gives servers the volumes and addresses that their lease has reserved with them."""

from __future__ import annotations

from collections.abc import Sequence

from blazar.clouds.ports import Cloud
from blazar.model.errors import CloudRefused, CloudUnavailable, Conflict, NotFound
from blazar.resources.actions import RECHECK_SOON
from blazar.resources.base import NotYet, Task
from blazar.resources.floating_ips.registration import mark
from blazar.resources.servers.parameters import ServerParameters
from blazar.resources.volumes.record import Record as Volumes


class Ties:
    """Ties to servers what reservations of the same lease have: once, at the start."""

    def __init__(self, cloud: Cloud) -> None:
        self._volumes = cloud.volumes
        self._network = cloud.network

    def ensure(self, task: Task, servers: Sequence[str]) -> NotYet | None:
        """Ensure that servers have their volumes and addresses; return what is waited for, None if they have.

        The volumes of a reservation go to the servers in turn, and are attached one after the other, so that devices
        are in the order of the request. Of addresses each server gets one, as far as there are any. CloudRefused.
        """
        wanted = ServerParameters.of(task.reservation.parameters)
        for reference in wanted.volumes:
            ids = Volumes.of(task.referent(str(reference.reservation)).cloud_ids).ids
            for number, volume_id in enumerate(ids):
                if waiting := self._attached(task, volume_id, servers[number % len(servers)]):
                    return waiting
        if wanted.floating_ip is not None:
            self._addressed(str(wanted.floating_ip.reservation), servers)
        return None

    def _attached(self, task: Task, volume_id: str, server_id: str) -> NotYet | None:
        found = self._volumes.volume(volume_id)
        if found is None:
            raise CloudRefused(f"volume {volume_id}, which server {server_id} was to have, is gone")
        if any(each.server_id == server_id for each in found.attachments) and found.status == "in-use":
            return None
        if found.status == "available":
            try:
                self._volumes.attach_volume(volume_id, server_id, project_id=task.lease.project_id)
            except Conflict as error:
                raise CloudUnavailable(f"volume {volume_id} cannot be attached yet: {error.message}") from error
            except NotFound as error:
                raise CloudRefused(f"volume {volume_id} cannot be attached: {error.message}") from error
            found = self._volumes.volume(volume_id)
            if found is not None and found.status == "in-use":
                return None
        return NotYet(RECHECK_SOON, f"volume {volume_id} is being attached to server {server_id}")

    def _addressed(self, reservation_id: str, servers: Sequence[str]) -> None:
        found = sorted(self._network.floating_ips(tag=mark(reservation_id)), key=lambda each: each.address)
        for address, server_id in zip(found, servers, strict=False):
            if not address.attached:
                self._network.attach_floating_ip(address.id, server_id)
