# SPDX-License-Identifier: Apache-2.0
"""The journal over HTTP: what is told to whom, and that each route that changes something leaves an entry."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from blazar.api.parts import BUILTIN
from blazar.model.base.clock import zulu
from blazar.model.journal.entries import ObjectType, Verb
from blazar.model.resources.resource import HOST as HOST_KIND
from tests.api.conftest import app_of, client_of, token
from tests.prices import a_document
from tests.rules import a_rule
from tests.statements import counted
from tests.world import NOON, PROJECT, World

HOUR = timedelta(hours=1)
VERSION = {"OpenStack-API-Version": "reservation 1.1"}
MEMBER = {**VERSION, **token("curie", PROJECT)}
OTHER = {**VERSION, **token("turing", "computing")}
OPERATOR = {**VERSION, **token("root", "admin", "admin")}
HOST = {"resource_type": "physical:host", "min": 1, "max": 1}
OLD_HOST = {**HOST, "hypervisor_properties": "", "resource_properties": ""}


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=6)


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def a_lease(**more: Any) -> dict[str, Any]:
    dates = {"start_date": zulu(NOON + HOUR), "end_date": zulu(NOON + 3 * HOUR)}
    return {"name": "plan", **dates, "reservations": [HOST], **more}


def told(world, http, query: str = "", who=OPERATOR) -> list[dict[str, Any]]:
    world.manager.journal_numbering.run_once()
    answer = http.get(f"/v1/history{query}", headers=who)
    assert answer.status_code == 200, answer.json
    return answer.json["history"]


def brief(entries) -> list[str]:
    return [f"{entry['object']['type']} {entry['verb']}" for entry in entries]


def test_members_are_told_of_their_project_and_operators_of_all(world, http):
    lease_id = http.post("/v1/leases", json=a_lease(), headers=MEMBER).json["lease"]["id"]
    http.put(f"/v1/leases/{lease_id}", json={"name": "by an operator"}, headers=OPERATOR)
    assert brief(told(world, http, who=MEMBER)) == ["lease created", "lease changed"]
    created, changed = told(world, http, who=MEMBER)
    assert created["object"] == {"type": "lease", "id": lease_id, "name": "plan", "revision": 0}
    assert (created["by"]["user_id"], created["project_id"]) == ("curie", PROJECT)
    assert created["request_id"].startswith("req-")
    assert changed["by"] == {"kind": "operator", "user_id": None, "project_id": None}
    assert (changed["request_id"], changed["global_request_id"]) == (None, None)
    assert told(world, http, "?by=root", who=MEMBER) == []
    assert brief(told(world, http, "?by=curie", who=MEMBER)) == ["lease created"]
    assert brief(told(world, http, "?by=root&object_type=lease")) == ["lease changed"]
    assert told(world, http, "?by=root&object_type=lease")[0]["request_id"].startswith("req-")
    assert told(world, http, who=OTHER) == []
    assert brief(told(world, http)) == ["resource registered"] * 6 + ["lease created", "lease changed"]
    assert told(world, http)[-1]["by"]["user_id"] == "root"
    refused = http.get("/v1/history?project_id=computing", headers=MEMBER)
    assert (refused.status_code, refused.json["errors"][0]["detail"].endswith("; leave it out")) == (403, True)
    assert brief(told(world, http, f"?project_id={PROJECT}")) == ["lease created", "lease changed"]


def test_a_reader_goes_on_after_the_last_position_and_pages_lead_through_all(world, http):
    for number in range(5):
        http.post(
            "/v1/leases", json=a_lease(name=f"n{number}", start_date=zulu(NOON + number * 4 * HOUR)), headers=MEMBER
        )
    every = told(world, http)
    assert [entry["position"] for entry in every] == list(range(1, len(every) + 1))
    assert told(world, http, f"?after={every[3]['position']}") == every[4:]
    assert told(world, http, f"?after={len(every)}") == []
    found: list[Any] = []
    link = "/v1/history?limit=2"
    while link:
        page = http.get(link, headers=OPERATOR).json
        found += page["history"]
        link = next((one["href"] for one in page["links"] if one["rel"] == "next"), "")
        assert len(page["history"]) <= 2
    assert found == every
    assert told(world, http, "?sort_dir=desc&limit=2") == [every[-1], every[-2]]
    assert told(world, http, f"?marker={every[1]['id']}") == every[2:]
    assert http.get("/v1/history?marker=nonsense", headers=OPERATOR).status_code == 400
    answer = http.get("/v1/history?limit=1&with_count=true", headers=OPERATOR).json
    assert answer["count"] == len(every)


def test_filters_choose_what_is_told(world, http):
    lease_id = http.post("/v1/leases", json=a_lease(), headers=MEMBER).json["lease"]["id"]
    world.clock.by(hours=1)
    http.put(f"/v1/leases/{lease_id}", json={"name": "other"}, headers=MEMBER)
    assert brief(told(world, http, "?object_type=lease&verb=changed")) == ["lease changed"]
    assert brief(told(world, http, f"?object_type=lease&object_id={lease_id}")) == ["lease created", "lease changed"]
    assert brief(told(world, http, "?by=curie&verb=created")) == ["lease created"]
    assert brief(told(world, http, f"?object_type=lease&from={zulu(NOON + HOUR / 2)}")) == ["lease changed"]
    assert brief(told(world, http, f"?object_type=lease&to={zulu(NOON + HOUR / 2)}")) == ["lease created"]
    day = f"{NOON:%Y-%m-%d}"
    assert told(world, http, f"?from={day}") == told(world, http)
    assert told(world, http, f"?to={day}") == []
    assert told(world, http, "?from=now") == told(world, http, f"?from={zulu(world.clock.now())}")
    for query in ("?verb=eaten", "?object_type=cake", "?after=-1", "?from=yesterday", "?colour=red"):
        answer = http.get(f"/v1/history{query}", headers=MEMBER)
        assert answer.status_code == 400
        assert query[1:].partition("=")[0] in str(answer.json)
    old = {**MEMBER, "OpenStack-API-Version": "reservation 1.0"}
    assert http.get("/v1/history", headers=old).status_code == 404


def test_nothing_of_the_taker_is_told_to_the_giver(world, http):
    lease_id = http.post("/v1/leases", json=a_lease(), headers=MEMBER).json["lease"]["id"]
    http.post(f"/v1/leases/{lease_id}/transfer", json={"project_id": "computing"}, headers=MEMBER)
    assert http.post(f"/v1/transfers/{lease_id}/accept", headers=OTHER).status_code == 200
    giver, taker = (told(world, http, who=who)[-1] for who in (MEMBER, OTHER))
    assert [entry["verb"] for entry in (giver, taker)] == ["transferred"] * 2
    assert "computing" not in str(giver)
    assert "turing" not in str(giver)
    assert "curie" not in str(taker)
    assert (giver["project_id"], taker["project_id"]) == (PROJECT, "computing")
    history = http.get(f"/v1/leases/{lease_id}/history", headers=OTHER).json["history"]
    assert [entry["verb"] for entry in history].count("transferred") == 1


def test_a_page_is_a_few_statements(world, http, sqlite):
    for number in range(6):
        http.post(
            "/v1/leases", json=a_lease(name=f"n{number}", start_date=zulu(NOON + number * 4 * HOUR)), headers=MEMBER
        )
    told(world, http)
    counts = []
    for limit in (1, 9):
        with counted(sqlite) as statements:
            http.get(f"/v1/history?limit={limit}&after=4", headers=MEMBER)
        counts.append(statements.count)
    assert counts[0] == counts[1] <= 3


@dataclass(frozen=True)
class Step:
    """A request of an operator, by the name of its route, and the entry that it leaves.

    ``keep`` is the name under which the id in the answer is kept for the paths after it.
    """

    route: str
    method: str
    path: str
    body: Any
    entry: str
    keep: str = ""

    @property
    def version(self) -> str:
        """Return the version that serves it: the old routes of one kind have another way in the new one."""
        return "1.0" if self.path.split("/")[2] in ("os-hosts", "floatingips", "networks", "devices") else "1.1"


def _old(days: int) -> dict[str, Any]:
    dates = {"start_date": f"2030-06-{days:02} 10:00", "end_date": f"2030-06-{days:02} 12:00"}
    return {"name": "mine", **dates, "reservations": [OLD_HOST], "events": []}


SERIES = {
    "name": "courses",
    "start": "2030-04-02T08:00",
    "time_zone": "Europe/Berlin",
    "duration": "PT2H",
    "rule": "FREQ=WEEKLY;COUNT=3",
    "reservations": [HOST],
}
WINDOW = {"name": "cables", "start_date": "2031-01-01T10:00:00Z", "end_date": "2031-01-01T12:00:00Z"}
NOW_ON = {"name": "leak", "start_date": "now", "end_date": "2031-01-01T12:00:00Z"}
RECEIVER = {"url": "https://ci.example/hooks/geheim", "events": ["lease.*"], "project_id": None}

STORY = (
    Step("create_lease", "POST", "/v1/leases", a_lease(), "lease created", "lease"),
    Step("update_lease", "PUT", "/v1/leases/{lease}", {"name": "other"}, "lease changed"),
    Step("delete_lease", "DELETE", "/v1/leases/{lease}", None, "lease deleted"),
    Step("create_lease_v2", "POST", "/v2/leases", _old(1), "lease created", "lease"),
    Step("update_lease_v2", "PUT", "/v2/leases/{lease}", {"name": "other"}, "lease changed"),
    Step("delete_lease_v2", "DELETE", "/v2/leases/{lease}", None, "lease deleted"),
    Step("create_host", "POST", "/v1/os-hosts", {"name": "{free}"}, "resource registered", "host"),
    Step("update_host", "PUT", "/v1/os-hosts/{host}", {"rack": "7"}, "resource changed"),
    Step("set_property", "PATCH", "/v1/os-hosts/properties/rack", {"private": True}, "property changed"),
    Step("delete_host", "DELETE", "/v1/os-hosts/{host}", None, "resource removed"),
    Step("create_host_v2", "POST", "/v2/os-hosts", {"name": "{free}"}, "resource registered", "host"),
    Step("update_host_v2", "PUT", "/v2/os-hosts/{host}", {"extra_capas": {"rack": "8"}}, "resource changed"),
    Step("delete_host_v2", "DELETE", "/v2/os-hosts/{host}", None, "resource removed"),
    Step("register_resource", "POST", "/v1/resources/host", {"name": "{free}"}, "resource registered", "host"),
    Step("update_resource", "PUT", "/v1/resources/host/{host}", {"disabled": {"reason": "fan"}}, "resource disabled"),
    Step("update_resource", "PUT", "/v1/resources/host/{host}", {"disabled": None}, "resource enabled"),
    Step(
        *("set_property_of_resources", "PATCH", "/v1/resources/host/properties/rack", {"private": False}),
        "property changed",
    ),
    Step("unregister_resource", "DELETE", "/v1/resources/host/{host}", None, "resource removed"),
    Step(
        *("create_floating_ip", "POST", "/v1/floatingips"),
        {"floating_network_id": "public", "floating_ip_address": "203.0.113.13"},
        "resource registered",
        "address",
    ),
    Step("delete_floating_ip", "DELETE", "/v1/floatingips/{address}", None, "resource removed"),
    Step(
        *("create_network", "POST", "/v1/networks"),
        {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 102},
        "resource registered",
        "network",
    ),
    Step("update_network", "PUT", "/v1/networks/{network}", {"rack": "7"}, "resource changed"),
    Step("set_network_property", "PATCH", "/v1/networks/properties/rack", {"private": True}, "property changed"),
    Step("delete_network", "DELETE", "/v1/networks/{network}", None, "resource removed"),
    Step(
        *("create_device", "POST", "/v1/devices"),
        {"name": "edge-1", "hook_url": "https://edge.example/edge-1"},
        "resource registered",
        "device",
    ),
    Step("update_device", "PUT", "/v1/devices/{device}", {"rack": "7"}, "resource changed"),
    Step("set_device_property", "PATCH", "/v1/devices/properties/rack", {"private": True}, "property changed"),
    Step("delete_device", "DELETE", "/v1/devices/{device}", None, "resource removed"),
    Step("create_feed", "POST", "/v1/feeds", {"kind": "user", "name": "phone"}, "feed created", "feed"),
    Step("delete_feed", "DELETE", "/v1/feeds/{feed}", None, "feed deleted"),
    Step("create_series", "POST", "/v1/series", SERIES, "series created", "series"),
    Step("update_series", "PUT", "/v1/series/{series}", {"name": "lessons"}, "series changed"),
    Step("delete_series", "DELETE", "/v1/series/{series}", None, "series deleted"),
    Step("create_maintenance", "POST", "/v1/maintenances", WINDOW, "maintenance created", "window"),
    Step("update_maintenance", "PATCH", "/v1/maintenances/{window}", {"name": "plugs"}, "maintenance changed"),
    Step("delete_maintenance", "DELETE", "/v1/maintenances/{window}", None, "maintenance deleted"),
    Step("create_maintenance", "POST", "/v1/maintenances", NOW_ON, "maintenance created", "window"),
    Step("end_maintenance", "POST", "/v1/maintenances/{window}/end", None, "maintenance changed"),
    Step("update_power_of_host", "PUT", "/v1/power/hosts/1", {"policy": "keep"}, "resource changed"),
    Step("publish_price_list", "POST", "/v1/price-lists", a_document(), "price_list created"),
    Step("write_rule", "PUT", "/v1/rules/nights", a_rule(), "rule created"),
    Step("delete_rule", "DELETE", "/v1/rules/nights", None, "rule deleted"),
    Step("create_subscription", "POST", "/v1/subscriptions", RECEIVER, "subscription created", "told"),
    Step("update_subscription", "PATCH", "/v1/subscriptions/{told}", {"state": "paused"}, "subscription changed"),
    Step("replay_subscription", "POST", "/v1/subscriptions/{told}/replay", {"after": 0}, "subscription changed"),
    Step("update_own_subscription", "PATCH", "/v1/subscriptions/mine", {"digest": "daily"}, "subscription changed"),
    Step("delete_subscription", "DELETE", "/v1/subscriptions/{told}", None, "subscription deleted"),
)

ELSEWHERE = {
    "correct_charge": "tests/api/billing/test_statements.py",
    "confirm_lease": "tests/manager/changing/test_confirming.py",
    **dict.fromkeys(("keep_lease", "hold_lease", "let_go_of_lease"), "tests/manager/use/test_unused.py"),
    **dict.fromkeys(("swap_host", "split_lease", "merge_leases"), "tests/manager/surgery/test_told.py"),
    **dict.fromkeys(
        ("offer_lease", "withdraw_lease_offer", "accept_transfer", "decline_transfer"),
        "tests/manager/surgery/test_transfer.py",
    ),
    **dict.fromkeys(
        ("move_reservation", "move_device_reservation", "move_resource_reservation"), "tests/store/test_history.py"
    ),
    **dict.fromkeys(("wake_host", "update_power_of_pool", "wake_pool"), "tests/api/power/test_power.py"),
    "act_on_problem": "tests/manager/repair/test_actions.py",
}
"""What is an operation on a lease that such a story does not get to: the tests that read of it in histories."""

NOTHING = {
    "find_availability": "it only reads",
    "refresh_host": "what the cloud says is told where it has changed, as by each poll",
    "refresh_resource": "as for hosts",
    "test_subscription": "it sends a test, and changes nothing",
    "unsubscribe": "it takes all events from one's own subscription, as update_own_subscription may",
}
"""Routes that leave no entry of their own, and why."""


def test_each_route_that_changes_something_leaves_an_entry(world, http):
    first, *_, last = world.manager.resources.all(HOST_KIND)
    known: dict[str, str] = {"some_host": first.external_id}
    world.manager.resources.unregister(HOST_KIND, last.external_id)
    seen = 0
    for step in STORY:
        told(world, http)
        seen = world.store.journal.last_position()
        body = step.body
        if body == {"name": "{free}"}:
            body = {"name": last.name}
        if step.route == "create_maintenance":
            body = {**body, "hosts": [known["some_host"]]}
        path = step.path.format(**known)
        headers = {**OPERATOR, "OpenStack-API-Version": f"reservation {step.version}"}
        answer = http.open(path, method=step.method, json=body, headers=headers)
        assert answer.status_code < 300, (step, answer.status_code, answer.text)
        world.run()
        world.manager.maintenance_work.run_once()
        new = told(world, http, f"?after={seen}")
        assert step.entry in brief(new), (step, brief(new))
        (entry, *_) = [one for one in new if step.entry in brief([one])]
        assert entry["by"] == {"kind": "operator", "user_id": "root", "project_id": "admin"}, step
        assert entry["request_id"].startswith("req-")
        if step.keep:
            found = [answer.json, *answer.json.values()]
            known[step.keep] = next(str(made["id"]) for made in found if isinstance(made, dict) and "id" in made)
    every = str(told(world, http, "?limit=1000"))
    assert "secret" not in every.replace("secret_generation", "")
    assert "geheim" not in every


def test_the_story_and_the_lists_beside_it_have_every_route_that_changes_something():
    changing = {row.name for part in BUILTIN for row in part.routes if row.method not in ("GET", "HEAD")}
    told_of = {step.route for step in STORY}
    assert told_of | ELSEWHERE.keys() | NOTHING.keys() == changing
    assert not told_of & (ELSEWHERE.keys() | NOTHING.keys())
    root = Path(__file__).parents[3]
    assert all("history" in (root / path).read_text("utf-8") for path in ELSEWHERE.values())


def test_the_page_of_history_has_all_that_may_be_done_to_choose_from():
    choices = (Path(__file__).parents[3] / "web/src/words/history-choices.ts").read_text("utf-8")
    words = set(re.findall(r'"([a-z_]+)"', choices))
    assert {str(verb) for verb in Verb if verb is not Verb.LEFT_OUT} <= words
    assert set(map(str, ObjectType)) <= words
