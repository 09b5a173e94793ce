# SPDX-License-Identifier: Apache-2.0
"""Images of servers, made before a reservation ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from blazar.clouds.ports.compute import Compute, Image, Server
from blazar.model.base.errors import CloudRefused, Conflict, NotFound
from blazar.resources.contract.actions import Tally

RESERVATION = "blazar:reservation"
SERVER = "blazar:server"
ASKED_AT = "blazar:asked_at"

UNFINISHED = frozenset({"queued", "saving", "uploading", "importing"})
FAILED = frozenset({"killed", "deleted", "pending_delete"})


class Snapshots:
    """Creates one image of every server of a reservation.

    The metadata of an image has the ids of its reservation and its server, so that a retry, after a crash or an
    extension of the lease, creates no second one; and the time of the request, if a user requested another one.
    """

    def __init__(self, compute: Compute, prefix: str) -> None:
        self._compute = compute
        self._prefix = prefix

    def ensure_images(
        self, reservation_id: str, servers: Iterable[Server], *, project_id: str, since: datetime | None
    ) -> Tally:
        """Ensure an image of every server, requested at ``since`` or later (None: any time), owned by its project."""
        asked = since.isoformat() if since else ""
        servers = tuple(servers)
        owners = {server.id: server.project_id for server in servers}
        images = [
            image
            for image in self._compute.images_of_reservation(reservation_id)
            if image.status not in FAILED and image.metadata.get(ASKED_AT, "") >= asked
            # A mark on what another project owns is that project's own word.
            if image.project_id in (None, _owner_of(image, owners, project_id))
        ]
        pictured = {image.metadata.get(SERVER) for image in images}
        begun = 0
        failures = []
        for server in servers:
            if server.id in pictured:
                continue
            metadata = {RESERVATION: reservation_id, SERVER: server.id} | ({ASKED_AT: asked} if asked else {})
            try:
                self._compute.begin_snapshot(server.id, self._prefix + server.name, metadata)
            except NotFound:
                # Its owner has just deleted it: there is nothing to save.
                continue
            except (Conflict, CloudRefused) as error:
                failures.append(f"no image of server {server.id}: {error.message}")
            else:
                begun += 1
        self._give_to_project(images, owners, project_id)
        unfinished = sum(1 for image in images if image.status in UNFINISHED)
        return Tally(begun, begun + unfinished, tuple(failures))

    def _give_to_project(self, images: Iterable[Image], owners: Mapping[str, str], project_id: str) -> None:
        """Assign images to the projects of their servers, as a crash may have prevented after the creation."""
        for image in images:
            if image.project_id is None:
                try:
                    self._compute.set_image_owner(image.id, _owner_of(image, owners, project_id))
                except NotFound:
                    # Just deleted; if it is still needed, the next attempt creates another.
                    continue


def _owner_of(image: Image, owners: Mapping[str, str], project_id: str) -> str:
    """Return the project of an image's server: that of the lease if the server is gone."""
    return owners.get(image.metadata.get(SERVER, ""), project_id)
