# SPDX-License-Identifier: Apache-2.0
"""Images of servers, made before a reservation ends."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from blazar.clouds.ports import Compute, Image, Server
from blazar.model.errors import CloudRefused, Conflict, NotFound
from blazar.resources.actions import Tally

RESERVATION = "blazar:reservation"
SERVER = "blazar:server"
ASKED_AT = "blazar:asked_at"

UNFINISHED = frozenset({"queued", "saving", "uploading", "importing"})
FAILED = frozenset({"killed", "deleted", "pending_delete"})


class Snapshots:
    """Makes one image of every server of a reservation.

    An image carries the ids of its reservation and its server in its metadata, so that a repeated run, after a crash
    or after an extension of the lease, makes none twice; and the instant at which it was asked for, if somebody asked
    for another one.
    """

    def __init__(self, compute: Compute, prefix: str) -> None:
        self._compute = compute
        self._prefix = prefix

    def ensure(
        self, reservation_id: str, servers: Iterable[Server], *, project_id: str, since: datetime | None
    ) -> Tally:
        """Ensure an image of every server, asked for at ``since`` or later (None: whenever), owned by its project."""
        asked = since.isoformat() if since else ""
        images = [
            image
            for image in self._compute.images_of_reservation(reservation_id)
            if image.status not in FAILED and image.metadata.get(ASKED_AT, "") >= asked
        ]
        pictured = {image.metadata.get(SERVER) for image in images}
        servers = tuple(servers)
        begun = 0
        failures = []
        for server in servers:
            if server.id in pictured:
                continue
            metadata = {RESERVATION: reservation_id, SERVER: server.id} | ({ASKED_AT: asked} if asked else {})
            try:
                self._compute.snapshot_server(server.id, self._prefix + server.name, metadata)
            except NotFound:
                # Its owner deleted it a moment ago: nothing to save.
                continue
            except (Conflict, CloudRefused) as error:
                failures.append(f"no image of server {server.id}: {error.message}")
            else:
                begun += 1
        self._hand_over(images, {server.id: server.project_id for server in servers}, project_id)
        unfinished = sum(1 for image in images if image.status in UNFINISHED)
        return Tally(begun, begun + unfinished, tuple(failures))

    def _hand_over(self, images: Iterable[Image], owners: Mapping[str, str], project_id: str) -> None:
        """Give images to the projects of their servers, where a crash came between the image and its owner."""
        for image in images:
            owner = owners.get(image.metadata.get(SERVER, ""), project_id)
            if image.project_id != owner:
                try:
                    self._compute.give_image(image.id, owner)
                except NotFound:
                    # Deleted a moment ago; if it is still wanted, the next look makes another.
                    continue
