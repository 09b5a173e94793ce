"""Images of servers, made before a reservation ends."""

from __future__ import annotations

from collections.abc import Iterable

from blazar.clouds.ports import Compute
from blazar.model.errors import NotFound

RESERVATION = "blazar:reservation"
SERVER = "blazar:server"


class Snapshots:
    """Makes one image of every server of a reservation.

    An image carries the ids of its reservation and its server in its metadata, so that a repeated run, after a crash
    or after an extension of the lease, makes none twice.
    """

    def __init__(self, compute: Compute, prefix: str) -> None:
        self._compute = compute
        self._prefix = prefix

    def ensure(self, reservation_id: str, *, hosts: Iterable[str]) -> int:
        """Ensure an image of every server on the hosts; return how many are not finished yet."""
        images = self._compute.images_of_reservation(reservation_id)
        pictured = {image.metadata.get(SERVER) for image in images}
        started = 0
        for host in hosts:
            for server in self._compute.servers_on(host):
                if server.id in pictured:
                    continue
                name = self._prefix + server.name
                try:
                    self._compute.snapshot_server(server.id, name, {RESERVATION: reservation_id, SERVER: server.id})
                except NotFound:
                    # Its owner deleted it a moment ago: nothing to save.
                    continue
                started += 1
        return started + sum(1 for image in images if image.status in ("queued", "saving"))
