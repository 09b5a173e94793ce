# SPDX-License-Identifier: Apache-2.0
"""Subscriptions over HTTP: made, listed, changed, deleted; what is refused, and with which sentence."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from blazar.api.http.answers import PAGES
from blazar.clouds.ports.webhooks import NoWebhooks
from blazar.model.base.errors import InvalidInput, ManagerUnavailable, NotFound, OutOfTime, StoreUnavailable
from blazar.model.subscriptions.details import MOST_SUBSCRIPTIONS, SubscriptionRequest, own_id
from blazar.model.subscriptions.events import list_event_names
from blazar.store.subscriptions import subscriptions
from tests.api.conftest import app_of, client_of, token
from tests.observed import FailingManager
from tests.statements import counted
from tests.world import World

VERSION = {"OpenStack-API-Version": "reservation 1.1"}
CURIE, FRIDA = {**VERSION, **token("curie", "physics")}, {**VERSION, **token("frida", "art")}
ADMIN = {**VERSION, **token("root", "demo", "admin")}
ASKED = {"url": "https://ci.example/blazar", "events": ["lease.started", "lease.failed"]}


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def make(http, headers=CURIE, **body: object) -> dict:
    answer = http.post("/v1/subscriptions", json={**ASKED, **body}, headers=headers)
    assert answer.status_code == 201, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["Location"].endswith(f"/v1/subscriptions/{answer.json['subscription']['id']}")
    return answer.json["subscription"]


def fault(answer) -> tuple[int, str, str | None, str]:
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error.get("pointer"), error["detail"]


def test_a_new_subscription_has_a_secret_that_is_shown_once(http):
    made = make(http)
    assert made["secret"].startswith("whsec_")
    assert (made["state"], made["project_id"], made["user_id"]) == ("unconfirmed", "physics", "curie")
    shown = http.get(f"/v1/subscriptions/{made['id']}", headers=CURIE).json["subscription"]
    assert shown == {**made, "secret": None}
    assert http.get("/v1/subscriptions", headers=CURIE).json["subscriptions"] == [shown]


def test_the_only_lease_to_be_told_of_is_one_of_the_project(world, http):
    ours = world.lease(start=timedelta(hours=1), hours=1, project="physics")
    theirs = world.lease(start=timedelta(hours=1), hours=1, project="chemistry")
    assert make(http, lease_id=ours.id)["lease_id"] == ours.id
    wrong = (theirs.id, "00000000-0000-0000-0000-000000000000")
    refused = [http.post("/v1/subscriptions", json={**ASKED, "lease_id": id_}, headers=CURIE) for id_ in wrong]
    assert {fault(answer)[:3] for answer in refused} == {(400, "invalid_value", "/lease_id")}
    sentences = {fault(answer)[3].replace(id_, "ID") for answer, id_ in zip(refused, wrong, strict=True)}
    assert sentences == {"lease_id is 'ID', and the project has no such lease; give the id of one of its leases"}
    make(http, ADMIN, lease_id=theirs.id, project_id=None)


def test_the_same_request_with_its_key_makes_one(http):
    headers = {**CURIE, "Idempotency-Key": "k-1"}
    first, second = (http.post("/v1/subscriptions", json=ASKED, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json == second.json
    assert second.headers["Idempotency-Replayed"] == "true"
    other = http.post("/v1/subscriptions", json={**ASKED, "batch": True}, headers=headers)
    assert fault(other)[:2] == (409, "idempotency_key_reused")
    assert len(http.get("/v1/subscriptions", headers=CURIE).json["subscriptions"]) == 1


@pytest.mark.parametrize(
    ("body", "code", "pointer", "words"),
    [
        ({"url": "http://ci.example/"}, "invalid_value", "/url", "https:// URL"),
        ({"url": "https://127.0.0.1/"}, "invalid_value", "/url", "this machine"),
        ({"events": ["lease.exploded"]}, "invalid_value", "/events/0", "as docs/history.md lists them"),
        ({"events": ["lease.*", "maintenance.*"]}, "invalid_value", "/events/1", "is for operators"),
        ({"events": ["lease.left_out"]}, "invalid_value", "/events/0", "there is no event"),
        ({"events": ["resource.*"]}, "invalid_value", "/events/0", "who give project_id null"),
        ({"events": []}, "invalid_value", "/events", "events"),
        ({"events": ["lease.*"] * 500}, "out_of_bounds", "/events", "500 entries, and 50 at most"),
        ({"lease_id": "x"}, "invalid_value", "/lease_id", "lease_id"),
        ({"secret": "mine"}, "unknown_field", "/secret", "secret"),
        ({"state": "active"}, "unknown_field", "/state", "state"),
        ({"channel": "pigeon"}, "invalid_value", "/channel", "webhook"),
    ],
)
def test_a_mistake_is_named_by_its_field(http, body, code, pointer, words):
    answer = http.post("/v1/subscriptions", json={**ASKED, **body}, headers=CURIE)
    status, found, at, detail = fault(answer)
    assert (status, found, at) == (400, code, pointer)
    assert words in detail
    assert http.get("/v1/subscriptions", headers=CURIE).json["subscriptions"] == []


def test_operators_subscribe_to_everything_and_name_hosts_of_the_site(http):
    made = make(http, ADMIN, project_id=None, events=["maintenance.*", "lease.*"], url="https://localhost/x")
    assert made["project_id"] is None
    assert http.get(f"/v1/subscriptions/{made['id']}", headers=CURIE).status_code == 404
    assert http.get("/v1/subscriptions", headers=CURIE).json["subscriptions"] == []
    make(http)
    assert len(http.get("/v1/subscriptions", headers=ADMIN).json["subscriptions"]) == 2
    (own,) = http.get("/v1/subscriptions?project_id=physics", headers=ADMIN).json["subscriptions"]
    assert own["project_id"] == "physics"


def test_a_project_has_twenty_at_most(http):
    for _ in range(MOST_SUBSCRIPTIONS):
        make(http)
    answer = http.post("/v1/subscriptions", json=ASKED, headers=CURIE)
    assert fault(answer)[:2] == (400, "out_of_bounds")
    make(http, FRIDA)


def test_without_a_master_secret_members_are_told_so(world):
    world.webhooks = NoWebhooks()
    http = client_of(app_of(world.another_manager()))
    status, code, _, detail = fault(http.post("/v1/subscriptions", json=ASKED, headers=CURIE))
    assert (status, code) == (403, "forbidden")
    assert "[webhooks] master_secrets is not set" in detail


def test_the_page_that_a_refused_event_names_lists_all_events():
    page = (Path(__file__).parents[3] / "docs/history.md").read_text(encoding="utf-8")
    words = {word for name in list_event_names(operator=True) for word in name.split(".")} - {"*"}
    assert {word for word in words if f"`{word}`" not in page} == set()


def test_of_two_requests_that_delete_a_subscription_one_finds_it(world, http, monkeypatch):
    made = world.manager.subscriptions.one(make(http)["id"])
    assert http.delete(f"/v1/subscriptions/{made.id}", headers=CURIE).status_code == 204
    monkeypatch.setattr(subscriptions, "read_subscription", lambda connection, subscription_id: made)
    with pytest.raises(NotFound):
        world.manager.subscriptions.delete(made.id)


def test_a_change_needs_the_present_tag_if_one_is_sent(http):
    made = make(http)
    url = f"/v1/subscriptions/{made['id']}"
    tag = http.get(url, headers=CURIE).headers["ETag"]
    changed = http.patch(url, json={"batch": True}, headers={**CURIE, "If-Match": tag})
    assert (changed.status_code, changed.json["subscription"]["batch"]) == (200, True)
    assert changed.json["subscription"]["revision"] == made["revision"] + 1
    late = http.patch(url, json={"batch": False}, headers={**CURIE, "If-Match": tag})
    assert late.status_code == 412
    assert http.delete(url, headers={**CURIE, "If-Match": tag}).status_code == 412
    assert http.delete(url, headers={**CURIE, "If-Match": changed.headers["ETag"]}).status_code == 204
    assert http.get(url, headers=CURIE).status_code == 404


def test_a_subscription_is_paused_and_resumed_and_gets_another_secret(http):
    made = make(http)
    url = f"/v1/subscriptions/{made['id']}"
    assert http.patch(url, json={"state": "paused"}, headers=CURIE).json["subscription"]["state"] == "paused"
    # Its receiver has accepted nothing yet.
    assert http.patch(url, json={"state": "active"}, headers=CURIE).json["subscription"]["state"] == "unconfirmed"
    new = http.patch(url, json={"new_secret": True}, headers=CURIE).json["subscription"]["secret"]
    assert new not in (None, made["secret"])
    assert http.get(url, headers=CURIE).json["subscription"]["secret"] is None
    assert http.patch(url, json={"events": ["lease.nothing"]}, headers=CURIE).status_code == 400
    assert http.patch(url, json={"url": "https://127.0.0.1/"}, headers=CURIE).status_code == 400
    assert http.patch(url, json={"state": "disabled"}, headers=CURIE).status_code == 400


def test_a_list_takes_the_same_statements_however_long_it_is(world, http):
    make(http)
    with counted(world.engine) as few:
        http.get("/v1/subscriptions", headers=CURIE)
    for _ in range(9):
        make(http)
    with counted(world.engine) as many:
        http.get("/v1/subscriptions", headers=CURIE)
    assert many.count == few.count > 0
    page = http.get("/v1/subscriptions?limit=4&state=unconfirmed&with_count=true", headers=CURIE).json
    assert (len(page["subscriptions"]), page["count"]) == (4, 10)


def test_members_may_name_events_of_their_leases_and_operators_all():
    members, operators = list_event_names(operator=False), list_event_names(operator=True)
    assert {"lease.*", "lease.started", "series.*"} <= set(members) < set(operators)
    assert {"resource.*", "maintenance.*", "service.*"} <= set(operators) - set(members)


def test_a_test_and_a_replay_are_asked_for_and_failures_listed(world, http):
    made = make(http)
    world.manager.delivery.run_due()
    url = f"/v1/subscriptions/{made['id']}"
    assert http.get(url, headers=CURIE).json["subscription"]["state"] == "active"
    world.clock.by(minutes=1)
    answer = http.post(f"{url}/test", headers=CURIE)
    assert answer.status_code == 202, answer.text
    world.manager.delivery.run_due()
    assert len(world.webhooks.accepted) == 2
    assert http.post(f"{url}/replay", json={"after": 0}, headers=CURIE).status_code == 202
    since = {"from": "2030-04-01T00:00:00Z"}
    assert http.post(f"{url}/replay", json=since, headers=CURIE).json["subscription"]["position"] == 0
    for body, at in (
        ({}, "/after"),
        ({"after": 1, **since}, "/from"),
        ({"from": "x"}, "/from"),
        ({"after": 9}, "/after"),
    ):
        status, _, pointer, detail = fault(http.post(f"{url}/replay", json=body, headers=CURIE))
        assert (status, pointer) == (400, at)
        assert "'now'" not in detail
    assert http.get(f"{url}/failures?with_count=true", headers=CURIE).json["failures"] == []


def test_a_subscription_by_mail_has_no_url_and_no_secret(world, http):
    asked = {"channel": "mail", "events": ["lease.*"]}
    refused = fault(http.post("/v1/subscriptions", json=asked, headers=CURIE))
    assert refused[:3] == (400, "invalid_value", "/channel")
    world.people.addresses["curie"] = "curie@physics.example"
    made = http.post("/v1/subscriptions", json=asked, headers=CURIE).json["subscription"]
    assert (made["channel"], made["url"], made["secret"], made["state"]) == ("mail", None, None, "active")
    assert "physics.example" not in http.get("/v1/subscriptions", headers=CURIE).text
    for body, at in (({**asked, "url": "https://ci.example/"}, "/url"), ({"events": ["lease.*"]}, "/url")):
        assert fault(http.post("/v1/subscriptions", json=body, headers=CURIE))[2] == at
    answer = http.post(f"/v1/subscriptions/{made['id']}/test", headers=CURIE)
    assert fault(answer)[:2] == (409, "invalid_state")


def test_mail_to_somebody_else_of_the_project_is_theirs_to_change(world, http):
    world.people.addresses["curie"] = "curie@physics.example"
    made = http.post("/v1/subscriptions", json={"channel": "mail", "events": ["lease.*"]}, headers=CURIE).json
    url, colleague = f"/v1/subscriptions/{made['subscription']['id']}", {**VERSION, **token("langevin", "physics")}
    assert http.get(url, headers=colleague).status_code == 200
    for method, path, body in (
        ("PATCH", url, {"events": ["series.*"]}),
        ("POST", f"{url}/replay", {"after": 0}),
        ("POST", f"{url}/test", None),
        ("DELETE", url, None),
    ):
        status, code, _, sentence = fault(http.open(path, method=method, json=body, headers=colleague))
        assert (status, code) == (403, "forbidden"), path
        assert "only they and operators may change it" in sentence
    hook = make(http)
    assert http.delete(f"/v1/subscriptions/{hook['id']}", headers=colleague).status_code == 204
    assert http.patch(url, json={"state": "paused"}, headers=ADMIN).status_code == 200
    assert http.delete(url, headers=CURIE).status_code == 204


# What one is told of one's own leases.


def test_what_one_is_told_of_own_leases_is_shown_and_changed(world, http):
    world.people.addresses["curie"] = "curie@physics.example"
    shown = http.get("/v1/subscriptions/mine", headers=CURIE)
    found = shown.json["subscription"]
    assert (found["channel"], found["project_id"], found["user_id"]) == ("mail", None, "curie")
    assert (found["digest"], found["time_zone"], found["reason"]) == ("none", "UTC", None)
    wanted = {"events": ["lease.before_end"], "digest": "daily", "time_zone": "Europe/Paris"}
    answer = http.patch("/v1/subscriptions/mine", json=wanted, headers={**CURIE, "If-Match": shown.headers["ETag"]})
    assert answer.status_code == 200, answer.text
    assert {key: answer.json["subscription"][key] for key in wanted} == wanted
    again = http.get("/v1/subscriptions/mine", headers=CURIE)
    assert again.json == answer.json
    late = http.patch(
        "/v1/subscriptions/mine", json={"events": []}, headers={**CURIE, "If-Match": shown.headers["ETag"]}
    )
    assert late.status_code == 412
    assert http.get("/v1/subscriptions/mine", headers=FRIDA).json["subscription"]["events"] == found["events"]
    assert http.get("/v1/subscriptions", headers=CURIE).json["subscriptions"] == []
    assert http.get(f"/v1/subscriptions/{found['id']}", headers=CURIE).status_code == 404


def test_an_operator_does_not_undo_that_somebody_wants_no_mail(world, http):
    world.people.addresses["curie"] = "curie@physics.example"
    url = "/v1/subscriptions/mine"
    assert http.patch(url, json={"events": []}, headers=CURIE).status_code == 200
    own = http.get(url, headers=CURIE).json["subscription"]
    status, _, _, sentence = fault(http.delete(f"/v1/subscriptions/{own['id']}", headers=ADMIN))
    assert (status, "change its events instead" in sentence) == (403, True)
    assert http.get(url, headers=CURIE).json["subscription"]["events"] == []


@pytest.mark.parametrize(
    ("body", "pointer", "words"),
    [
        ({"time_zone": "Mars/Olympus"}, "/time_zone", "Europe/Paris"),
        ({"digest": "hourly"}, "/digest", "none, or daily"),
        ({"state": "disabled"}, "/state", "active, or paused"),
        ({"events": ["resource.failed"]}, "/events/0", "is for operators"),
        ({"url": "https://ci.example/"}, "/url", "url"),
    ],
)
def test_what_cannot_be_chosen_is_refused_with_its_field(http, body, pointer, words):
    status, _, at, sentence = fault(http.patch("/v1/subscriptions/mine", json=body, headers=CURIE))
    assert (status, at) == (400, pointer)
    assert words in sentence


def test_the_link_in_a_mail_asks_and_its_button_ends_them_without_a_token(world, http):
    world.people.addresses["curie"] = "curie@physics.example"
    http.patch("/v1/subscriptions/mine", json={"events": ["lease.created"]}, headers=CURIE)
    world.lease()
    world.manager.journal_numbering.run_once()
    world.manager.delivery.run_due()
    ((_, mail),) = world.mail.sent
    path = mail["List-Unsubscribe"].strip("<>").removeprefix("https://cloud.example/reservation")
    asked = http.get(path)
    assert (asked.status_code, asked.content_type) == (200, "text/html; charset=utf-8")
    assert 'method="post"' in asked.text
    assert http.get("/v1/subscriptions/mine", headers=CURIE).json["subscription"]["events"] == ["lease.created"]
    assert http.get(f"{path[:-1]}x").status_code == http.post(f"{path[:-1]}x").status_code == 404
    done = http.post(path, data={"List-Unsubscribe": "One-Click"})
    assert done.status_code == 200, done.text
    assert "No more mail is sent" in done.text
    assert http.get("/v1/subscriptions/mine", headers=CURIE).json["subscription"]["events"] == []
    for answer in (asked, done):
        assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_the_link_in_another_mail_removes_its_subscription(world, http):
    world.people.addresses["curie"] = "curie@physics.example"
    made = http.post("/v1/subscriptions", json={"channel": "mail", "events": ["lease.*"]}, headers=CURIE).json[
        "subscription"
    ]
    assert http.post(f"/unsubscribe/{made['id']}/{'s' * 43}").status_code == 200
    assert http.get(f"/v1/subscriptions/{made['id']}", headers=CURIE).status_code == 404
    hook = make(http)
    assert http.post(f"/unsubscribe/{hook['id']}/{'s' * 43}").status_code == 404


@pytest.mark.parametrize(("pages", "place"), [(None, "Notifications"), ("/r/ui/", 'href="/r/ui/notifications"')])
def test_a_link_that_leads_nowhere_says_in_a_browser_what_to_do(http, pages, place):
    served = {} if pages is None else {PAGES: pages}
    # Ended already, of another subscription, and cut off by a mail program.
    for path in (f"/unsubscribe/{own_id('frida')}/{'s' * 43}", f"/unsubscribe/{own_id('frida')}/s", "/unsubscribe/x/y"):
        for method in ("GET", "POST"):
            shown = http.open(path, method=method, headers={"Accept": "text/html,*/*;q=0.8"}, environ_overrides=served)
            assert (shown.status_code, shown.mimetype) == (404, "text/html")
            assert "This link does not work" in shown.text
            assert place in shown.text
            told = http.open(path, method=method, headers={"Accept": "*/*"})
            assert (told.status_code, told.mimetype) == (404, "application/json")


@pytest.mark.parametrize("error", [OutOfTime("away"), ManagerUnavailable("away"), StoreUnavailable("away")], ids=repr)
def test_the_link_of_a_mail_is_a_page_in_a_browser_also_while_nobody_answers(world, error):
    calls = {"subscriptions.check_link": error, "subscriptions.unsubscribe": error}
    http = client_of(app_of(FailingManager(world.manager, calls)))
    for method in ("GET", "POST"):
        path = f"/unsubscribe/{own_id('curie')}/{'s' * 43}"
        shown = http.open(path, method=method, headers={"Accept": "text/html,*/*;q=0.8"})
        assert (shown.status_code, shown.mimetype, shown.headers["Retry-After"]) == (503, "text/html", "60")
        assert "open the link once more in a few minutes" in shown.text
        told = http.open(path, method=method, headers={"Accept": "*/*"})
        assert (told.status_code, told.mimetype) == (503, "application/json")


def test_no_project_has_more_than_twenty_also_of_requests_at_one_time(engine):
    world = World(engine)
    managers = [world.another_manager() for _ in range(4)]
    request = SubscriptionRequest("physics", "curie", "https://ci.example/x", ("lease.*",))

    def ask(number: int) -> bool:
        try:
            managers[number % 4].subscriptions.create(request)
        except InvalidInput:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(ask, range(40)))
    assert made.count(True) == MOST_SUBSCRIPTIONS
