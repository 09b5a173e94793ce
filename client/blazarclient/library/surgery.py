# SPDX-License-Identifier: Apache-2.0
"""Surgery on leases: other hosts, one lease made two, two made one."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from blazarclient.library.decoding import decode
from blazarclient.library.transport import Transport, part_of_path
from blazarclient.library.values import Lease
from blazarclient.library.written import Date, id_of, written


class Surgery:
    """Operations on leases, each all or nothing. A lost answer is asked for once more, and nothing is done twice."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def swap(
        self,
        lease: Lease | str,
        reservation_id: str,
        host: str,
        target: str | None = None,
        *,
        partner: tuple[Lease | str, str] | None = None,
        dry_run: bool = False,
        if_match: str | None = None,
    ) -> tuple[Lease, ...]:
        """Give up a host of a reservation for another one, any or ``target``; return the leases that have changed.

        ``partner``: another lease and its reservation, which gets the host and gives up ``target``. Conflict if servers
        run on the host, or nothing else fits.
        """
        body: dict[str, Any] = {"host": host}
        if target is not None:
            body["for"] = target
        if partner is not None:
            body["with"] = {"lease_id": id_of(partner[0]), "reservation_id": partner[1]}
        path = f"/leases/{part_of_path(id_of(lease))}/reservations/{part_of_path(reservation_id)}/swap"
        return self._operate(path, body, dry_run, if_match)

    def split(
        self,
        lease: Lease | str,
        reservations: Sequence[Mapping[str, Any]] = (),
        *,
        at: Date | None = None,
        name: str | None = None,
        dry_run: bool = False,
        if_match: str | None = None,
    ) -> tuple[Lease, ...]:
        """Make two leases of one, and return both.

        ``reservations`` say what goes to the second: ``{"id": …}`` a whole reservation, with ``"resources"``
        or a ``"count"`` some of what it has. Or ``at``: the second begins then, with the same. Conflict.
        """
        body: dict[str, Any] = {"reservations": [dict(each) for each in reservations]} if reservations else {}
        if at is not None:
            body["at"] = written(at)
        if name is not None:
            body["name"] = name
        return self._operate(f"/leases/{part_of_path(id_of(lease))}/split", body, dry_run, if_match)

    def merge(
        self, lease: Lease | str, other: Lease | str, *, dry_run: bool = False, if_match: str | None = None
    ) -> Lease:
        """Make one lease of two, and return it; the other one is deleted. Conflict if they do not belong together."""
        path = f"/leases/{part_of_path(id_of(lease))}/merge"
        (merged,) = self._operate(path, {"with": id_of(other)}, dry_run, if_match)
        return merged

    def _operate(self, path: str, body: Mapping[str, Any], dry_run: bool, if_match: str | None) -> tuple[Lease, ...]:
        headers = {"If-Match": if_match} if if_match else {}
        if not dry_run:
            headers["Idempotency-Key"] = str(uuid.uuid4())
        answer = self._transport.ask(
            "POST",
            path,
            body=body,
            query={"dry_run": True} if dry_run else None,
            headers=headers,
            repeatable=True,
        )
        first, *rest = (decode(Lease, each) for each in answer.part("leases"))
        return dataclasses.replace(first, etag=answer.etag), *rest
