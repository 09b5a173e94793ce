# SPDX-License-Identifier: Apache-2.0
"""``/v1/problems``: what operators see and do, and nobody else."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.subscriptions.details import SubscriptionRequest
from blazar.resources.instances.reservation_flavor import flavor_name
from tests.api.conftest import app_of, client_of, token
from tests.world import PROJECT, World, a_host

HOUR = timedelta(hours=1)
URL = "/v1/problems"
UNKNOWN = "0" * 36


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def call(http, method: str, path: str = URL, body=None, *, version: str = "1.1", who=None):
    headers = {"OpenStack-API-Version": f"reservation {version}", **(who or token("root", "admin", "admin"))}
    return http.open(path, method=method, json=body, headers=headers)


def code(answer):
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error.get("pointer")


@pytest.fixture
def late(world: World):
    """A lease whose start is due for two minutes, and that nobody works on."""
    lease = world.lease(a_host(), start=HOUR)
    world.clock.to(lease.window.start + timedelta(minutes=2))
    return lease


def test_a_late_start_is_listed_shown_and_retried(world, http, late):
    problem_id = f"event:{late.event(EventType.START).id}"
    (problem,) = call(http, "GET").json["problems"]
    assert (problem["id"], problem["kind"], problem["lease_id"]) == (problem_id, "event", late.id)
    assert problem["since"] == "2030-04-01T13:00:00Z"
    assert problem["actions"] == ["retry"]
    assert call(http, "GET", f"{URL}/{problem_id}").json == {"problem": problem}
    dry = call(http, "POST", f"{URL}/{problem_id}/retry", {"reason": "ticket 4711"})
    assert dry.status_code == 200
    assert dry.json["repair"]["dry_run"] is True
    assert dry.json["repair"]["said"] == ["start_lease of lease a lease would be tried again at once."]
    done = call(http, "POST", f"{URL}/{problem_id}/retry", {"reason": "ticket 4711", "dry_run": False})
    assert done.json["repair"]["dry_run"] is False
    world.run()
    assert world.now(late).status is LeaseStatus.ACTIVE
    assert call(http, "GET", f"{URL}?with_count=true").json["count"] == 0
    assert code(call(http, "GET", f"{URL}/{problem_id}")) == (404, "problem_not_found", None)
    history = call(http, "GET", f"/v1/leases/{late.id}/history").json["history"]
    (retried,) = [entry for entry in history if entry["verb"] == "retried"]
    assert (retried["by"]["kind"], retried["changes"][0]["after"]) == ("operator", "ticket 4711")


def test_the_owner_of_a_lease_is_told_what_an_operator_did_and_not_the_reason(world, http, late):
    problem_id = f"event:{late.event(EventType.START).id}"
    call(http, "POST", f"{URL}/{problem_id}/retry", {"reason": "ticket 4711", "dry_run": False})
    history = call(http, "GET", f"/v1/leases/{late.id}/history", who=token("curie", PROJECT)).json["history"]
    (retried,) = [entry for entry in history if entry["verb"] == "retried"]
    assert retried["changes"] == []


def test_filters_narrow_the_list(world, http, late):
    world.simulated.compute.create_flavor(Flavor(UNKNOWN, flavor_name(UNKNOWN), 1, 1, 1))
    world.manager.sweep.run_once()

    def found(query: str) -> list[str]:
        return [problem["kind"] for problem in call(http, "GET", f"{URL}?{query}").json["problems"]]

    assert found("") == ["event", "unknown"]
    assert found("kind=unknown") == ["unknown"]
    assert found("kind=in:unknown,event&kind=event") == ["event"]
    assert found("kind=unknown&kind=event") == []
    assert found(f"lease_id={late.id}") == ["event"]
    assert code(call(http, "GET", f"{URL}?region=north"))[0] == 400
    assert found("older_than=2030-04-01T13:01:00Z") == ["event"]
    assert call(http, "GET", f"{URL}?fields=summary&limit=1").json["problems"][0].keys() == {"id", "summary"}
    assert code(call(http, "GET", f"{URL}?kind=nothing"))[:2] == (400, "invalid_query")


def test_mistakes_are_told_with_the_field(world, http, late):
    url = f"{URL}/event:{late.event(EventType.START).id}"
    assert code(call(http, "POST", f"{url}/retry", {})) == (400, "missing_field", "/reason")
    assert code(call(http, "POST", f"{url}/retry", {"reason": " "}))[::2] == (400, "/reason")
    assert code(call(http, "POST", f"{url}/retry", {"reason": "x", "dry_run": "no"}))[::2] == (400, "/dry_run")
    burnt = call(http, "POST", f"{url}/burn", {"reason": "x"})
    assert code(burnt) == (404, "uri_not_found", None)
    assert "give one of retry, release, give_up, end, mend" in burnt.json["errors"][0]["detail"]
    assert call(http, "POST", f"{url}/mend", {"reason": "x"}).status_code == 409
    assert call(http, "POST", f"{url}/give_up", {"reason": "x"}).status_code == 409
    for strange in ("nothing", "event:", "event:%00", "event:" + "x" * 300, "é"):
        assert code(call(http, "GET", f"{URL}/{strange}")) == (404, "problem_not_found", None)


def test_what_is_not_on_record_is_named_once_more(world, http):
    world.simulated.compute.create_flavor(Flavor(UNKNOWN, flavor_name(UNKNOWN), 1, 1, 1))
    world.manager.sweep.run_once()
    world.clock.by(seconds=7200)
    url = f"{URL}/unknown::{UNKNOWN}/end"
    assert code(call(http, "POST", url, {"reason": "x", "dry_run": False}))[::2] == (400, "/confirm")
    assert call(http, "POST", url, {"reason": "x", "dry_run": False, "confirm": UNKNOWN}).status_code == 200
    world.run()
    assert world.simulated.compute.flavor(UNKNOWN) is None


@pytest.fixture
def refused(world: World) -> str:
    """The id of a subscription of the project whose receiver has refused a message for good."""
    request = SubscriptionRequest(PROJECT, "curie", "https://ci.example/x", ("lease.*",))
    made = world.manager.subscriptions.create(request).subscription
    world.manager.delivery.run_due()
    world.webhooks.answers["https://ci.example/x"] = lambda message: WebhookReceipt(Reception.REFUSED, "no")
    world.lease(a_host(), start=24 * HOUR)
    for _ in range(9):
        world.manager.journal_numbering.run_once()
        world.manager.delivery.run_due()
        world.clock.by(seconds=60)
    return made.id


def test_operators_settle_what_receivers_of_others_have_refused(world, http, refused):
    (problem,) = call(http, "GET", f"{URL}?kind=delivery").json["problems"]
    assert problem["actions"] == ["retry", "drop"]
    assert problem["lease_id"] is None
    url = f"{URL}/{problem['id']}"
    assert call(http, "POST", f"{url}/drop", {"reason": "x"}, who=token("curie", PROJECT)).status_code == 403
    dropped = call(http, "POST", f"{url}/drop", {"reason": "x", "dry_run": False})
    assert dropped.json["repair"]["said"][0] == "The message is forgotten."
    assert code(call(http, "GET", url)) == (404, "problem_not_found", None)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_members_and_readers_see_and_do_nothing(world, http, late, method):
    url = f"{URL}/event:{late.event(EventType.START).id}"
    path = url if method == "GET" else f"{url}/retry"
    body = None if method == "GET" else {"reason": "x", "dry_run": False}
    assert call(http, method, path, body, who=token("curie", PROJECT)).status_code == 403
    assert call(http, "GET", who=token("curie", PROJECT)).status_code == 403


@pytest.mark.parametrize("version", ["1.0"])
def test_earlier_versions_do_not_have_it(http, version):
    assert call(http, "GET", version=version).status_code == 404
