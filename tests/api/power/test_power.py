# SPDX-License-Identifier: Apache-2.0
"""``/v1/power``: what sleeps and why, by what each host is switched, and wakes, as operators ask for it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.manager.common.settings import Settings
from blazar.model.power.settings import PowerMode, PowerSettings
from blazar.model.power.spare_rules import parse_rule
from blazar.model.power.states import PowerReason, PowerState
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from blazar.observe import metrics
from blazar.store.power.states import PowerMove
from tests.api.conftest import app_of, client_of, token
from tests.counted import growing
from tests.statements import counted
from tests.world import PROJECT, World

OPERATOR = token("root", "admin", "admin")
SWITCH = {"adapter": "simulated", "target": "node-1"}
HOUR = timedelta(hours=1)
FIXED = {"spare_source": "fixed", "spare_rule": None, "asked_at_once": 0}


@pytest.fixture
def world(a_world) -> World:
    return a_world(hosts=3, settings=Settings(power=PowerSettings(mode=PowerMode.ON)))


@pytest.fixture
def http(world):
    return client_of(app_of(world.manager))


def call(http, method: str, path: str, body=None, *, who=OPERATOR):
    version = {"OpenStack-API-Version": "reservation 1.1"}
    return http.open(f"/v1/power{path}", method=method, json=body, headers={**version, **who})


def code(answer):
    (error,) = answer.json["errors"]
    return answer.status_code, error["code"].removeprefix("reservation."), error.get("pointer"), error["detail"]


def move(world: World, number: int, *moves: tuple[PowerState, PowerReason], rehearsed: bool = False) -> None:
    """Let the host with this id go on through states, an hour each."""
    store = world.store.power
    for state, reason in moves:
        now = world.clock.now()
        assert store.claim_turn("me", now=now, until=now + HOUR)
        hosts = {
            world.store.resources.by_ids([h.resource_id])[h.resource_id].external_id: h
            for h in store.read_view(now, rehearsed=rehearsed).hosts
        }
        before = hosts[str(number)]
        store.move("me", [PowerMove(before, before.move(state, reason, now))], rehearsed=rehearsed)
        store.release_turn("me", due_at=now)
        world.clock.by(hours=1)


ASLEEP = ((PowerState.GOING_OFF, PowerReason.IDLE), (PowerState.OFF, PowerReason.DONE))


def changes_of(world: World, http, host_id: str, kind: str = "host"):
    path = f"/v1/history?object_type=resource&object_id={kind}/{host_id}&verb=changed"
    world.manager.journal_numbering.run_once()
    answer = http.get(path, headers={"OpenStack-API-Version": "reservation 1.1", **OPERATOR})
    return [
        [(c["field"].removeprefix("power."), c["before"], c["after"]) for c in e["changes"]]
        for e in answer.json["history"]
    ]


def test_a_host_has_no_switch_until_an_operator_gives_it_one(world, http):
    assert call(http, "GET", "/hosts/1").json["host"] == {
        "id": "1",
        "name": "node-1",
        "adapter": None,
        "target": None,
        "policy": "auto",
        "state": "on",
        "since": "2030-04-01T12:00:00Z",
        "reason": "done",
        "kept_until": None,
        "rehearsed": None,
    }
    made = call(http, "PUT", "/hosts/1", {**SWITCH, "policy": "keep"}).json["host"]
    assert (made["adapter"], made["target"], made["policy"]) == ("simulated", "node-1", "keep")
    assert call(http, "PUT", "/hosts/1", {"policy": "auto"}).json["host"]["target"] == "node-1"
    assert call(http, "PUT", "/hosts/1", {"policy": "auto"}).status_code == 200
    gone = call(http, "PUT", "/hosts/1", {"adapter": None, "target": None}).json["host"]
    assert (gone["adapter"], gone["target"]) == (None, None)
    assert changes_of(world, http, "1") == [
        [
            ("policy", "auto", "keep"),
            ("adapter", None, "simulated"),
            ("target", None, "node-1"),
        ],
        [("policy", "keep", "auto")],
        [("adapter", "simulated", None), ("target", "node-1", None)],
    ]


@pytest.mark.parametrize(
    ("body", "pointer", "sentence"),
    [
        ({"adapter": "redfish", "target": "https://198.51.100.7/redfish/v1/Systems/1"}, "/adapter", "does not have"),
        ({"adapter": "ipmi", "target": "x"}, "/adapter", "redfish, hook, ironic, simulated"),
        ({"adapter": "simulated"}, "/adapter", "target is missing; give adapter and target together"),
        ({"target": "node-1"}, "/target", "adapter is missing; give adapter and target together"),
        ({"policy": "never"}, "/policy", "keep"),
        ({"state": "off"}, "/state", "state"),
        ({}, "", "adapter and target, or policy"),
    ],
)
def test_what_cannot_be_set_is_refused_with_a_sentence(http, body, pointer, sentence):
    status, _, at, detail = code(call(http, "PUT", "/hosts/1", body))
    assert (status, at or "") == (400, pointer)
    assert sentence in detail


def test_a_host_that_sleeps_is_woken_and_stays_on_for_a_while(world, http):
    call(http, "PUT", "/hosts/1", SWITCH)
    move(world, 1, *ASLEEP)
    now = world.clock.now()
    assert call(http, "GET", "/hosts?state=off").json["hosts"][0]["name"] == "node-1"
    status, _, at, detail = code(call(http, "PUT", "/hosts/1", {"adapter": None, "target": None}))
    assert (status, at) == (409, "/adapter")
    assert "wake it first" in detail
    with growing(metrics.POWER_MOVES, state="waking", reason="operator"):
        woken = call(http, "POST", "/hosts/1/wake").json["host"]
    assert (woken["state"], woken["reason"], woken["kept_until"]) == ("waking", "operator", "2030-04-01T18:00:00Z")
    assert changes_of(world, http, "1")[-1] == [
        ("state", "off", "waking"),
        ("kept_until", None, "2030-04-01T18:00:00Z"),
    ]
    again = call(http, "POST", "/hosts/1/wake").json["host"]
    assert again == woken
    moves = call(http, "GET", "/hosts/1/log?sort_dir=desc").json["log"]
    assert [(m["before"], m["after"], m["reason"], m["seconds"]) for m in moves] == [
        ("off", "waking", "operator", 3600),
        ("going_off", "off", "done", 3600),
        ("on", "going_off", "idle", 0),
    ]
    page = call(http, "GET", "/hosts/1/log?limit=2&with_count=true").json
    assert (len(page["log"]), page["count"]) == (2, 3)
    following = page["links"][-1]["href"].partition("/v1/power")[2]
    assert [m["after"] for m in call(http, "GET", following).json["log"]] == ["waking"]
    assert now == world.clock.now()


@pytest.mark.parametrize(("path", "version"), [("/v1/resources/host/1", "1.1"), ("/v1/os-hosts/1", "1.0")])
@pytest.mark.parametrize("moves", [1, 2, 3], ids=["going off", "off", "waking"])
def test_a_host_that_is_not_on_stays_registered(world, http, path, version, moves):
    call(http, "PUT", "/hosts/1", SWITCH)
    way = (*ASLEEP, (PowerState.WAKING, PowerReason.START))
    move(world, 1, *way[:moves])
    headers = {"OpenStack-API-Version": f"reservation {version}", **OPERATOR}
    refused = http.delete(path, headers=headers)
    assert refused.status_code == 409
    assert "wake it first, and wait until it is on" in refused.text
    assert world.manager.resources.one(HOST, "1").reservable
    move(world, 1, *way[moves:], (PowerState.ON, PowerReason.DONE))
    assert http.delete(path, headers=headers).status_code in (200, 204)


def test_a_host_that_a_dry_run_would_have_off_can_be_unregistered(world, http):
    move(world, 1, *ASLEEP, rehearsed=True)
    assert http.delete("/v1/os-hosts/1", headers=OPERATOR).status_code in (200, 204)


def test_a_host_that_is_on_stays_on(world, http):
    kept = call(http, "POST", "/hosts/2/wake").json["host"]
    assert (kept["state"], kept["kept_until"]) == ("on", "2030-04-01T16:00:00Z")


@pytest.mark.parametrize("mode", [PowerMode.OFF, PowerMode.DRY_RUN])
def test_nobody_is_told_that_a_host_wakes_where_none_is_switched(a_world, mode):
    world = a_world(hosts=1, settings=Settings(power=PowerSettings(mode=mode)))
    status, _, _, detail = code(call(client_of(app_of(world.manager)), "POST", "/hosts/1/wake"))
    assert status == 409
    assert "[power] mode is" in detail


def test_the_report_tells_what_sleeps_and_what_that_has_saved(world, http):
    call(http, "PUT", "/hosts/1", SWITCH)
    call(http, "PUT", "/hosts/3", {"policy": "keep"})
    move(world, 1, *ASLEEP, (PowerState.WAKING, PowerReason.START), (PowerState.ON, PowerReason.DONE), *ASLEEP)
    move(world, 2, (PowerState.GOING_OFF, PowerReason.IDLE), rehearsed=True)
    call(http, "GET", "")
    with counted(world.engine) as statements:
        report = call(http, "GET", "").json["power"]
    assert statements.count <= 5
    assert report["classes"] == [
        {
            "group": {},
            "hosts": 3,
            "asleep": 1,
            "spare": 1,
            **FIXED,
            "spare_source": "share",
            "lead_seconds": 1800,
            "wake_seconds": 600,
        }
    ]
    assert (report["mode"], report["switched_hosts"], report["kept_hosts"]) == ("on", 1, 1)
    done, rehearsed = report["done"], report["rehearsed"]
    assert done == {
        "hosts": [
            {"state": "on", "reason": "done", "hosts": 2},
            {"state": "off", "reason": "done", "hosts": 1},
        ],
        "slept_hours": 3.0,
        "switched_off": 2,
        "woken": 1,
        "failed_wakes": 0,
        "missed_starts": 0,
    }
    assert rehearsed["hosts"] == [{"state": "going_off", "reason": "idle", "hosts": 1}]
    assert (rehearsed["switched_off"], rehearsed["slept_hours"]) == (1, 0.0)
    # The first sleep ended five hours ago, and the second began two hours ago.
    assert call(http, "GET", "?from=-PT5H30M").json["power"]["done"]["slept_hours"] == 2.5
    assert call(http, "GET", "?from=-PT1H").json["power"]["done"]["slept_hours"] == 1.0
    assert code(call(http, "GET", "?from=%2BPT1H"))[0] == 400
    assert "only" not in code(call(http, "GET", "?from=2031-01-01T00:00:00Z"))[3]


def test_the_report_tells_the_classes_of_hosts(a_world):
    world = a_world(hosts=3, settings=Settings(power=PowerSettings(mode=PowerMode.ON, spare=1, class_by=("gpu",))))
    world.manager.resources.change(HOST, "3", ResourceChange(capabilities={"gpu": "A100"}))
    http = client_of(app_of(world.manager))
    move(world, 1, *ASLEEP)
    times = {"spare": 1, **FIXED, "lead_seconds": 1800, "wake_seconds": 600}
    assert call(http, "GET", "").json["power"]["classes"] == [
        {"group": {"gpu": None}, "hosts": 2, "asleep": 1, **times},
        {"group": {"gpu": "A100"}, "hosts": 1, "asleep": 0, **times},
    ]
    # What is seen to have changed is learned at once.
    world.manager.resources.change(HOST, "3", ResourceChange(capabilities={"gpu": None}))
    assert len(call(http, "GET", "").json["power"]["classes"]) == 1


def test_the_report_says_why_a_spare_is_as_large_as_it_is(a_world):
    rules = tuple(parse_rule(text, ("gpu",)) for text in ("gpu=none; SU: 2", "gpu=none; MO-SA: 1"))
    world = a_world(
        hosts=12, settings=Settings(power=PowerSettings(mode=PowerMode.ON, class_by=("gpu",), spare_rules=rules))
    )
    world.manager.resources.change(HOST, "12", ResourceChange(capabilities={"gpu": "A100"}))
    http = client_of(app_of(world.manager))

    def told() -> list[tuple[object, ...]]:
        keys = ("spare", "spare_source", "spare_rule", "asked_at_once")
        return [tuple(one[key] for key in keys) for one in call(http, "GET", "").json["power"]["classes"]]

    # It is Monday; of hosts with a GPU nobody has asked for one at once.
    assert told() == [(1, "fixed", "gpu=none; MO-SA", 0), (1, "share", None, 0)]
    world.clock.by(days=6)
    assert told()[0] == (2, "fixed", "gpu=none; SU", 0)


def test_pools_of_volumes_have_power_of_the_same_form(a_world):
    world = a_world(hosts=1, settings=Settings(power=PowerSettings(mode=PowerMode.ON)))
    world.register_pools(1)
    http = client_of(app_of(world.manager))
    (found,) = call(http, "GET", "/pools").json["pools"]
    assert (found["name"], found["state"], found["adapter"]) == ("node@disks#1", "on", None)
    path, switch = f"/pools/{found['id']}", {"adapter": "simulated", "target": "node@disks#1"}
    assert call(http, "PUT", path, switch).json["pool"]["adapter"] == "simulated"
    refused = call(http, "PUT", path, {"adapter": "redfish", "target": "https://10.0.0.1/redfish/v1/Systems/1"})
    status, _, at, detail = code(refused)
    assert (status, at) == (400, "/adapter")
    assert "a volume pool is switched by a hook: give hook" in detail
    assert call(http, "POST", f"{path}/wake").json["pool"]["kept_until"] == "2030-04-01T16:00:00Z"
    assert call(http, "GET", path).json["pool"]["name"] == "node@disks#1"
    assert changes_of(world, http, found["id"], "volume") == [
        [("adapter", None, "simulated"), ("target", None, "node@disks#1")],
        [("kept_until", None, "2030-04-01T16:00:00Z")],
    ]
    assert call(http, "GET", f"{path}/log").json["log"] == []
    # Each is found among its own kind only.
    assert call(http, "GET", "/pools/1").status_code == 404
    assert call(http, "GET", f"/hosts/{found['id']}").status_code == 404
    pools = call(http, "GET", "").json["power"]["pools"]
    assert (pools["switched"], pools["kept"], pools["asleep"]) == (1, 0, 0)


def test_the_list_is_filtered_and_has_pages(world, http):
    call(http, "PUT", "/hosts/2", SWITCH)
    call(http, "GET", "/hosts")
    with counted(world.engine) as statements:
        found = call(http, "GET", "/hosts?limit=2&with_count=true").json
    assert statements.count <= 2
    assert ([h["id"] for h in found["hosts"]], found["count"]) == (["1", "2"], 3)
    rest = call(http, "GET", found["links"][-1]["href"].partition("/v1/power")[2]).json["hosts"]
    assert [h["id"] for h in rest] == ["3"]
    assert [h["id"] for h in call(http, "GET", "/hosts?adapter=none").json["hosts"]] == ["1", "3"]
    assert [h["id"] for h in call(http, "GET", "/hosts?adapter=simulated&text=NODE").json["hosts"]] == ["2"]
    assert call(http, "GET", "/hosts?policy=keep").json["hosts"] == []
    assert call(http, "GET", "/hosts?fields=state").json["hosts"][0] == {"id": "1", "state": "on"}


@pytest.mark.parametrize(("method", "path"), [("GET", "/hosts/99"), ("PUT", "/hosts/99"), ("POST", "/hosts/99/wake")])
def test_a_host_that_is_not_registered_is_not_found(http, method, path):
    body = {"policy": "keep"} if method == "PUT" else None
    assert code(call(http, method, path, body))[0] == 404


@pytest.mark.parametrize("path", ["", "/hosts", "/hosts/1", "/hosts/1/log"])
def test_members_see_nothing_of_it(http, path):
    assert call(http, "GET", path, who=token("curie", PROJECT)).status_code == 403
