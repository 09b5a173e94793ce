# SPDX-License-Identifier: Apache-2.0
"""Offers of leases to other projects or users, who accept them."""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Iterator
from typing import Any

from blazarclient.exception import InvalidRequest, NotFound, NoUniqueMatch
from blazarclient.library.decoding import decode
from blazarclient.library.transport import Answer, Transport, is_uuid, named, part_of_path
from blazarclient.library.values import Lease, Transfer
from blazarclient.library.written import id_of


class Transfers:
    """Offers of leases. The project that gets one names it by the id of the lease, as the project that gives it does.

    A lost answer is asked for once more, and no lease goes twice.
    """

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def offer(
        self,
        lease: Lease | str,
        *,
        project_id: str | None = None,
        user_id: str | None = None,
        message: str | None = None,
        dry_run: bool = False,
        if_match: str | None = None,
    ) -> Transfer:
        """Offer a lease to a project, to a user of it, or to another user of its own project; return the offer.

        It takes the place of an earlier one. Conflict if the lease cannot go; ``dry_run`` only asks that.
        PreconditionFailed if the lease has changed since ``if_match`` was read.
        """
        given = {"project_id": project_id, "user_id": user_id, "message": message}
        answer = self._ask(
            "POST",
            f"/leases/{part_of_path(id_of(lease))}/transfer",
            body={key: value for key, value in given.items() if value is not None},
            query=_query(dry_run),
            headers=_headers(if_match),
            # A lease that was offered has another tag: only without one is it the same when it is sent again.
            repeatable=dry_run or if_match is None,
        )
        return _offer(answer)

    def withdraw(self, lease: Lease | str) -> None:
        """Withdraw the offer of a lease. NotFound."""
        self._ask("DELETE", f"/leases/{part_of_path(id_of(lease))}/transfer")

    def get(self, lease: Transfer | Lease | str) -> Transfer:
        """Return the offer of a lease to the user of the session, or to any member of the project. NotFound."""
        return _offer(self._ask("GET", _path(lease)))

    def find(self, name_or_id: str) -> Transfer:
        """Return the offer of the lease of this id, or of the one of this name. NotFound; NoUniqueMatch."""
        named(name_or_id)
        if is_uuid(name_or_id):
            try:
                return self.get(name_or_id)
            except NotFound:
                pass
        found = [str(each.id) for each in self.list() if each.lease and each.lease.name == name_or_id]
        if len(found) > 1:
            raise NoUniqueMatch(f"{len(found)} leases called {name_or_id} are offered; give an id: {', '.join(found)}")
        if not found:
            raise NotFound(f"No lease {name_or_id} is offered to you", code=404)
        return self.get(found[0])

    def list(self, /, *, limit: int | None = None) -> Iterator[Transfer]:
        """Yield the offers to the user of the session, or to any member of the project, the first that expires first.

        ``limit``: the size of a page.
        """
        query = {"limit": limit}
        for item in self._transport.pages("/transfers", "transfers", query=query):
            yield decode(Transfer, item)

    def accept(self, lease: Transfer | Lease | str, *, dry_run: bool = False, if_match: str | None = None) -> Lease:
        """Accept the offer of a lease, and return the lease. Conflict, LimitExceeded, PreconditionFailed.

        ``if_match``: the ``etag`` of the offer that was read; then it is accepted only as it was. If it is refused,
        the offer stands. ``dry_run``: return what the lease would be.
        """
        headers = _headers(if_match) if dry_run else {**_headers(if_match), "Idempotency-Key": str(uuid.uuid4())}
        answer = self._ask("POST", f"{_path(lease)}/accept", query=_query(dry_run), headers=headers, repeatable=True)
        return dataclasses.replace(decode(Lease, answer.part("lease")), etag=answer.etag)

    def decline(self, lease: Transfer | Lease | str) -> None:
        """Decline the offer of a lease. NotFound."""
        self._ask("POST", f"{_path(lease)}/decline", repeatable=True, gone_is_done=True)

    def _ask(self, method: str, path: str, **more: Any) -> Answer:
        return self._transport.ask(method, path, **more)


def _query(dry_run: bool) -> dict[str, bool] | None:
    return {"dry_run": True} if dry_run else None


def _headers(if_match: str | None) -> dict[str, str]:
    return {"If-Match": if_match} if if_match else {}


def _offer(answer: Answer) -> Transfer:
    return dataclasses.replace(decode(Transfer, answer.part("transfer")), etag=answer.etag)


def _path(lease: Transfer | Lease | str) -> str:
    if isinstance(lease, Transfer):
        if lease.id is None:
            raise InvalidRequest("This offer does not tell which lease it is of; give the lease")
        lease = lease.id
    return f"/transfers/{part_of_path(id_of(lease))}"
