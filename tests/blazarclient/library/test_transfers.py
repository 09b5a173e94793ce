# SPDX-License-Identifier: Apache-2.0
"""``reservations.transfers``: offers that are made, found, accepted and declined once, whatever is lost on the way."""

from __future__ import annotations

import pytest
from blazarclient.exception import Conflict, InvalidRequest, NotFound, PreconditionFailed, ServiceUnavailable
from blazarclient.library import Lease, Reservations, Transfer
from blazarclient.library.values import OfferedLease

from tests.blazarclient.library.stub import SPOKEN, Hangs, Says, Stub, lease, refused

ID = lease()["id"]
NEW = {"OpenStack-API-Version": SPOKEN, "ETag": '"1.m"'}
OFFER = {"project_id": "chemistry", "user_id": None, "expires_at": "2030-05-01T10:00:00Z", "lease": lease()}
GONE = refused(404, "transfer_not_found", "There is no offer", headers=NEW)


def offered(**values: object) -> Says:
    return Says(200, {"transfer": {**OFFER, **values}}, NEW)


def test_an_offer_is_returned_with_its_tag_and_the_id_of_its_lease(reservations: Reservations, stub: Stub) -> None:
    stub.says(offered())
    made = reservations.transfers.offer(ID, project_id="chemistry", if_match='"0.m"')
    assert (made.project_id, made.id, made.etag) == ("chemistry", ID, '"1.m"')
    (asked,) = stub.asked
    assert (asked.method, asked.path, asked.body) == ("POST", f"/v1/leases/{ID}/transfer", {"project_id": "chemistry"})
    assert asked.headers["If-Match"] == '"0.m"'


def test_an_offer_whose_answer_was_lost_is_sent_again(reservations: Reservations, stub: Stub) -> None:
    stub.says(Hangs(), offered())
    assert reservations.transfers.offer(ID, user_id="marie").id == ID
    assert [asked.body for asked in stub.asked] == [{"user_id": "marie"}] * 2


def test_an_offer_of_a_lease_as_it_was_read_is_not_sent_again(reservations: Reservations, stub: Stub) -> None:
    stub.says(Hangs(), refused(412, "precondition_failed", "The lease has changed", headers=NEW))
    with pytest.raises(ServiceUnavailable):
        reservations.transfers.offer(ID, user_id="marie", if_match='"0.m"')
    assert len(stub.asked) == 1


def test_a_lease_whose_answer_was_lost_is_accepted_once(reservations: Reservations, stub: Stub) -> None:
    stub.says(Hangs(), Says(200, {"lease": lease(project_id="chemistry")}, NEW))
    taken = reservations.transfers.accept(Transfer(lease=OfferedLease(id=ID)), if_match='"1.m"')
    assert (taken.project_id, taken.etag) == ("chemistry", '"1.m"')
    first, second = stub.asked
    assert first.path == f"/v1/transfers/{ID}/accept"
    assert first.headers["If-Match"] == '"1.m"'
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]


def test_what_has_changed_is_not_accepted(reservations: Reservations, stub: Stub) -> None:
    stub.says(refused(412, "precondition_failed", "The lease has changed", headers=NEW))
    with pytest.raises(PreconditionFailed):
        reservations.transfers.accept(ID, if_match='"1.m"')


def test_an_offer_is_declined_once_though_the_answer_was_lost(reservations: Reservations, stub: Stub) -> None:
    stub.says(Hangs(), GONE)
    reservations.transfers.decline(Lease(id=ID))
    assert [asked.path for asked in stub.asked] == [f"/v1/transfers/{ID}/decline"] * 2


@pytest.mark.parametrize("verb", ["decline", "withdraw", "get", "accept"])
def test_an_offer_that_never_was_is_not_found(reservations: Reservations, stub: Stub, verb: str) -> None:
    stub.says(GONE)
    with pytest.raises(NotFound):
        getattr(reservations.transfers, verb)(ID)


def test_an_acceptance_that_finds_no_offer_after_a_lost_answer_is_none(reservations: Reservations, stub: Stub) -> None:
    stub.says(Hangs(), GONE)
    with pytest.raises(NotFound):
        reservations.transfers.accept(ID)


def test_offers_are_read_page_by_page(reservations: Reservations, stub: Stub) -> None:
    link = {"rel": "next", "href": "http://elsewhere/v1/transfers?marker=m"}
    stub.says(
        Says(200, {"transfers": [OFFER], "links": [link]}, NEW), Says(200, {"transfers": [OFFER], "links": []}, NEW)
    )
    assert [each.project_id for each in reservations.transfers.list(limit=1)] == ["chemistry", "chemistry"]
    assert [asked.path for asked in stub.asked] == ["/v1/transfers?limit=1", "/v1/transfers?limit=1&marker=m"]


def test_a_refusal_has_its_code(reservations: Reservations, stub: Stub) -> None:
    stub.says(refused(409, "lease_has_servers", "Server web runs on it", headers=NEW))
    with pytest.raises(Conflict, match="web") as refusal:
        reservations.transfers.offer(ID, project_id="chemistry", dry_run=True)
    assert refusal.value.faults[0].code == "reservation.lease_has_servers"


def test_the_offer_that_a_lease_tells_has_no_id(reservations: Reservations, stub: Stub) -> None:
    stub.says(Says(200, {"lease": lease(transfer={"project_id": "chemistry"})}, NEW))
    found = reservations.leases.get(ID)
    assert found.transfer == Transfer(project_id="chemistry")
    with pytest.raises(InvalidRequest, match="does not tell which lease"):
        reservations.transfers.accept(found.transfer)
