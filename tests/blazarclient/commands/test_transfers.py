# SPDX-License-Identifier: Apache-2.0
"""``lease transfer`` and ``transfer``: leases offered to other projects or users, who accept them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from blazarclient import table_fit
from keystoneauth1 import fixture

from tests.blazarclient.commands.conftest import ID, LEASE, NEW, SPOKEN, URL, Run, refusal, sent

RESERVATION = {
    "id": "b7e4d0a2-1d7c-4b0e-9a53-6f2f5d0c8e21",
    "resource_type": "physical:host",
    "status": "pending",
    "region": None,
    "count": 2,
    "parameters": {"min": 2, "max": 2, "resource_properties": ["==", "$gpu", "A100"]},
}
OFFER: dict[str, Any] = {
    "project_id": "chemistry",
    "user_id": None,
    "message": "for your course",
    "offered_at": "2026-11-23T10:15:42Z",
    "expires_at": "2026-11-24T10:15:42Z",
    "from_project_id": "physics",
    "from_user_id": "curie",
    "lease": {
        "id": ID,
        "name": "training",
        "kind": "scheduled",
        "status": "PENDING",
        "start_date": "2026-12-01T08:00:00Z",
        "end_date": "2026-12-03T08:00:00Z",
        "before_end_date": None,
        "extend_if_free": {"until": "2026-12-04T08:00:00Z", "reason": None},
        "revision": 3,
        "reservations": [RESERVATION],
    },
}
TAG = {**NEW, "ETag": '"3.1.m"'}
TAKEN = {**LEASE, "project_id": "chemistry", "user_id": "lavoisier"}


@pytest.fixture
def offers(service: Any) -> Any:
    """A service at which ``training`` is offered to the project that asks."""
    offer = {"transfer": OFFER}
    service.post(f"{URL}/leases/{ID}/transfer", json=offer, headers=NEW, status_code=201)
    service.delete(f"{URL}/leases/{ID}/transfer", headers=NEW, status_code=204)
    service.get(f"{URL}/transfers", json={"transfers": [OFFER]}, headers=NEW)
    service.get(f"{URL}/transfers/{ID}", json=offer, headers=TAG)
    service.post(f"{URL}/transfers/{ID}/accept", json={"lease": TAKEN}, headers=TAG)
    service.post(f"{URL}/transfers/{ID}/decline", headers=NEW, status_code=204)
    return service


def test_a_lease_is_offered_by_its_name(run: Run, offers: Any) -> None:
    words = ("--to-project", "chemistry", "--to-user", "lavoisier", "--message", "for your course")
    code, out, err = run("lease", "transfer", "training", *words)
    assert (code, err) == (
        0,
        f"They accept it with: transfer accept {ID}\n"
        "Nobody has checked that there is a project chemistry; see that its id is right.\n",
    )
    for told in (ID, "training", "chemistry", "for your course", "2026-11-24 11:15:42+01:00"):
        assert told in out
    (request,) = sent(offers, "POST")
    assert request.json() == {"project_id": "chemistry", "user_id": "lavoisier", "message": "for your course"}
    assert request.headers["OpenStack-API-Version"] == SPOKEN


def test_a_dry_run_only_says_whether_the_lease_could_go(run: Run, offers: Any) -> None:
    tried = {**OFFER, "offered_at": None, "expires_at": None}
    offers.post(f"{URL}/leases/{ID}/transfer", json={"transfer": tried}, headers=NEW)
    code, out, err = run("lease", "transfer", "training", "--to-project", "chemistry", "--dry-run")
    assert err.startswith("Nothing was changed. The lease could go; the offer would be:\n")
    assert (code, err.endswith("has checked that there is a project chemistry; see that its id is right.\n")) == (
        0,
        True,
    )
    assert "chemistry" in out
    (request,) = sent(offers, "POST")
    assert request.qs == {"dry_run": ["true"]}


def test_an_offer_to_nobody_is_refused_before_anything_is_sent(run: Run, offers: Any) -> None:
    code, _, err = run("lease", "transfer", "training")
    assert (code, err) == (1, "Say to whom it is offered: with --to-project, --to-user, or both\n")
    assert offers.request_history == []


@pytest.mark.parametrize(
    ("pointer", "detail", "sentence"),
    [
        (
            "/project_id",
            "node-1 is not open to project chemistry",
            "--to-project: node-1 is not open to project chemistry",
        ),
        ("/message", "message has more than 255 characters", "message has more than 255 characters"),
    ],
)
def test_a_refusal_names_the_option(run: Run, offers: Any, pointer: str, detail: str, sentence: str) -> None:
    offers.post(f"{URL}/leases/{ID}/transfer", **refusal("invalid", detail, 400, pointer=pointer))
    code, out, err = run("lease", "transfer", "training", "--to-project", "chemistry")
    assert (code, out) == (1, "")
    assert err.startswith(sentence)


def test_a_lease_that_cannot_go_is_a_conflict(run: Run, offers: Any) -> None:
    detail = "Server web runs on the lease, and belongs to your project"
    offers.post(f"{URL}/leases/{ID}/transfer", **refusal("lease_has_servers", detail))
    assert run("lease", "transfer", "training", "--to-project", "chemistry") == (6, "", f"{detail}\n")


def test_a_name_that_keystone_does_not_tell_is_named_with_its_option(
    run: Run, offers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    auth = "https://keystone.example/v3"
    token = fixture.V3Token(user_id="c0ffee", user_name="curie", project_id="beef", project_name="physics")
    token.add_service("identity").add_standard_endpoints(public=auth, internal=auth, admin=auth)
    for key, value in {
        "AUTH_URL": auth,
        "USERNAME": "curie",
        "PASSWORD": "secret",
        "PROJECT_NAME": "physics",
        "USER_DOMAIN_ID": "default",
        "PROJECT_DOMAIN_ID": "default",
    }.items():
        monkeypatch.setenv(f"OS_{key}", value)
    offers.get(auth, json={"version": fixture.V3Discovery(auth)})
    offers.post(f"{auth}/auth/tokens", json=token, headers={"X-Subject-Token": "t"}, status_code=201)
    offers.get(f"{auth}/projects", status_code=403, json={"error": {"message": "no", "code": 403}})
    code, _, err = run("--os-endpoint-override", URL, "lease", "transfer", "training", "--to-project", "chemistry")
    assert code == 4
    assert err.startswith("--to-project: the id of chemistry is not known, Keystone does not let you look it up")


def test_an_offer_is_withdrawn(run: Run, offers: Any) -> None:
    assert run("transfer", "withdraw", "training") == (0, "Withdrew the offer of lease: training\n", "")
    (request,) = sent(offers, "DELETE")
    assert request.path == f"/v1/leases/{ID}/transfer"


def test_offers_are_listed_with_who_makes_them_and_until_when(run: Run, offers: Any) -> None:
    code, out, err = run("transfer", "list", "-f", "csv")
    header, row = out.splitlines()
    assert (code, err) == (0, "")
    assert header == '"id","name","from_project_id","message","start_date","end_date","expires_at"'
    dates = '"2026-12-01T08:00:00Z","2026-12-03T08:00:00Z","2026-11-24T10:15:42Z"'
    assert row == f'"{ID}","training","physics","for your course",{dates}'
    assert run("transfer", "list", "-f", "value", "-c", "message", "-c", "nothing")[1] == "for your course\n"
    code, _, err = run("transfer", "list", "-c", "nothing")
    assert (code, err.startswith("There is no column nothing; choose from before_end_date, ")) == (1, True)


def test_a_terminal_says_that_nothing_is_offered(run: Run, offers: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    offers.get(f"{URL}/transfers", json={"transfers": []}, headers=NEW)
    assert run("transfer", "list") == (0, "\n", "")
    monkeypatch.setattr(table_fit, "width_of", lambda _: 80)
    assert run("transfer", "list") == (0, "No lease is offered to you.\n", "")


def test_an_offer_is_shown_by_the_name_of_the_lease_with_what_one_gets(run: Run, offers: Any) -> None:
    code, out, err = run("transfer", "show", "training")
    assert (code, err) == (0, "")
    for told in (
        "up to 2026-12-04 09:00+01:00",
        "physical:host x 2, pending",
        "min=2, max=2, resource_properties=['==', '$gpu', 'A100']",
        "curie",
        "for your course",
    ):
        assert told in out
    told = json.loads(run("transfer", "show", ID, "-f", "json")[1])
    assert (told["reservations"], told["id"], told["revision"]) == ([RESERVATION], ID, 3)
    assert told["extend_if_free"] == {"until": "2026-12-04T08:00:00Z", "reason": None}


def test_what_is_not_offered_is_not_there(run: Run, offers: Any) -> None:
    offers.get(f"{URL}/transfers", json={"transfers": []}, headers=NEW)
    offers.get(f"{URL}/transfers/{ID}", **refusal("transfer_not_found", "There is no offer", 404))
    for text in ("training", ID):
        for verb in ("show", "accept", "decline"):
            assert run("transfer", verb, text) == (3, "", f"No lease {text} is offered to you\n")


def test_of_two_leases_of_one_name_the_id_is_asked_for(run: Run, offers: Any) -> None:
    other = {**OFFER, "lease": {**OFFER["lease"], "id": "other"}}
    offers.get(f"{URL}/transfers", json={"transfers": [OFFER, other]}, headers=NEW)
    code, _, err = run("transfer", "accept", "training")
    assert (code, err) == (3, f"2 leases called training are offered; give an id: {ID}, other\n")


def test_an_accepted_lease_is_shown_with_its_new_owner(run: Run, offers: Any) -> None:
    code, out, err = run("transfer", "accept", "training")
    assert (code, err) == (0, "")
    assert all(told in out for told in (ID, "training", "chemistry", "lavoisier"))
    (request,) = sent(offers, "POST")
    assert "If-Match" not in request.headers
    assert request.headers["Idempotency-Key"]
    assert request.body is None


def test_what_the_lease_would_be_is_told_without_accepting_it(run: Run, offers: Any) -> None:
    code, out, err = run("transfer", "accept", "training", "--dry-run")
    assert (code, "chemistry" in out, err) == (0, True, "Nothing was changed. It would be:\n")
    assert sent(offers, "POST")[0].qs == {"dry_run": ["true"]}


def test_a_lease_is_accepted_only_as_it_was_shown(run: Run, offers: Any) -> None:
    assert run("transfer", "accept", "training", "--revision", "3")[0] == 0
    (request,) = sent(offers, "POST")
    assert request.headers["If-Match"] == '"3.1.m"'
    code, _, err = run("transfer", "accept", "training", "--revision", "2")
    assert (code, len(sent(offers, "POST"))) == (6, 1)
    assert err.startswith("The lease has changed since: its revision is 3, not 2. Nothing was done;")


def test_a_limit_of_the_project_leaves_the_lease_where_it_is(run: Run, offers: Any) -> None:
    detail = "Project chemistry may have 3 leases at once, and has 3"
    offers.post(f"{URL}/transfers/{ID}/accept", **refusal("limit_exceeded", detail, 403))
    assert run("transfer", "accept", "training") == (5, "", f"{detail}\n")


def test_an_offer_is_declined(run: Run, offers: Any) -> None:
    assert run("transfer", "decline", "training") == (0, "Declined the offer of lease: training\n", "")
    assert [request.path for request in sent(offers, "POST")] == [f"/v1/transfers/{ID}/decline"]


@pytest.mark.parametrize(
    ("offer", "sentence"),
    [
        ({"project_id": "chemistry", "user_id": None, "message": "for you"}, "to project chemistry, until 2026-11-24 "),
        (
            {"project_id": "chemistry", "user_id": "lavoisier"},
            "to project chemistry, user lavoisier, until 2026-11-24 ",
        ),
        ({"project_id": "physics", "user_id": "marie"}, "to user marie, until 2026-11-24 "),
    ],
)
def test_a_lease_tells_to_whom_it_is_offered(run: Run, offers: Any, offer: dict[str, Any], sentence: str) -> None:
    dates = {key: OFFER[key] for key in ("offered_at", "expires_at")}
    offers.get(f"{URL}/leases/{ID}", json={"lease": {**LEASE, "transfer": {**dates, **offer}}}, headers=NEW)
    assert sentence in run("lease", "show", "training", "--long")[1]
    over = {**dates, **offer, "expires_at": "2026-11-23T10:15:42Z"}
    offers.get(f"{URL}/leases/{ID}", json={"lease": {**LEASE, "transfer": over}}, headers=NEW)
    assert ", expired 2026-11-23 11:15:42+01:00" in run("lease", "show", "training", "--long")[1]
    offers.get(f"{URL}/leases/{ID}", json={"lease": {**LEASE, "transfer": None}}, headers=NEW)
    assert "offered" not in run("lease", "show", "training", "--long")[1]


def test_a_service_before_it_is_named_in_a_sentence(run: Run, offers: Any) -> None:
    unknown = {"errors": [{"status": 406, "title": "Not acceptable", "detail": "Version 1.1 is not known"}]}
    for register, path in ((offers.get, "/transfers"), (offers.post, f"/leases/{ID}/transfer")):
        register(f"{URL}{path}", json=unknown, status_code=406)
    for words in (("transfer", "list"), ("lease", "transfer", "training", "--to-user", "marie")):
        code, _, err = run(*words)
        assert (code, "does not speak microversion 1.1, which this needs" in err) == (1, True)
