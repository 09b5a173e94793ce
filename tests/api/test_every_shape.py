# SPDX-License-Identifier: Apache-2.0
"""Leases without reservations, of a second, of 15 years, of most reservations: a feature serves them or says why not.

Somebody waits for something else all the time. The table is ``every_shape.py``; a route that it lacks fails a test.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

import pytest
from werkzeug.test import TestResponse

from blazar.api.http.context import EXTENSION
from blazar.enforcement import FilterNotification, Occasion, Question
from blazar.manager.common.settings import Settings
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from tests.api.conftest import app_of, client_of
from tests.api.every_shape import (
    BESIDE_LEASES,
    MADE_BEFORE,
    MAKING,
    OF_A_FEED,
    OF_A_LEASE,
    OF_A_SERIES,
    OF_A_WINDOW,
    OPERATOR,
    OTHERS,
    SHAPES,
    START,
    WINDOW,
    WINDOWS,
    Ask,
    Scene,
    Shape,
    ids_of,
)

STATES = ("past", "pending", "active", "waiting")


class Reading:
    """A filter that grants everything, and reads all of what it is asked."""

    options: ClassVar[list[Any]] = []
    needs_use = True
    occasions: frozenset[Occasion] = frozenset()
    """None: where a service is told of each change, series cannot be changed at once."""

    def __init__(self) -> None:
        self.read = 0

    def check(self, question: Question) -> None:
        self.read += bool(repr(question))

    def notify(self, notification: FilterNotification) -> None:
        """Receive nothing."""


def marked(shape: Shape) -> Any:
    return pytest.param(shape, id=shape.name, marks=[pytest.mark.slow] if len(shape.reservations) > 9 else [])


@pytest.fixture(params=map(marked, SHAPES))
def scene(a_world, request) -> Scene:
    settings = Settings(promises=0, use_policies=UsePolicies(UsePolicy(UseMode.ON)))
    return Scene(a_world(hosts=6, settings=settings, filters=[Reading()]), request.param)


def outcome(answer: TestResponse) -> int | None:
    """Return the status of a refusal, which is a sentence; None: served."""
    if answer.status_code < 400:
        return None
    if answer.status_code < 500:
        said = answer.json["errors"][0]["detail"] if "errors" in answer.json else answer.json["error_message"]
        assert len(said.split()) > 4, said
    return answer.status_code


def surprises(scene: Scene, asks: Iterable[Ask], ids: Mapping[str, str], state: str = "") -> Iterator[str]:
    """Yield what is not answered as expected."""
    for asked in asks:
        answer = scene.ask(asked, ids)
        found, expected = outcome(answer), asked.expected(scene.shape.name, state)
        if found != expected:
            yield f"{asked}: {found}, not {expected}: {answer.text[:400]}"


@pytest.mark.slow
@pytest.mark.parametrize("state", STATES)
def test_what_is_asked_of_a_lease_is_answered(scene, state):
    if state == "waiting" and not scene.shape.reservations:
        pytest.skip("a request for nothing does not wait")
    lease = scene.in_state(state)
    twin = lease if state == "waiting" else scene.in_state(state)
    ids = {**ids_of(lease), "twin_id": twin["id"]}
    assert "\n".join(surprises(scene, OF_A_LEASE, ids, state)) == ""
    assert scene.ask(Ask("DELETE", "/v1/leases/{lease_id}"), ids).status_code in (204, 404)
    assert scene.told() > 2


@pytest.mark.slow
def test_what_shows_leases_shows_these(scene):
    for state in STATES[: 4 if scene.shape.waits_beside else 3]:
        scene.in_state(state)
    ids = {"host_id": "1", "kind": "host", "resource_id": "1"}
    feed = scene.ask(Ask("POST", "/v1/feeds", {"name": "f", "kind": "user"}), {}).json["feed"]
    assert "\n".join(surprises(scene, BESIDE_LEASES, ids)) == ""
    ids = {"feed_id": feed["id"], "secret": feed["url"].rpartition("/")[2].removesuffix(".ics")}
    assert "\n".join(surprises(scene, OF_A_FEED, ids)) == ""


@pytest.mark.slow
def test_every_kind_of_lease_is_made_or_refused(scene):
    for asked in MAKING:
        answer = scene.ask(asked, {})
        assert outcome(answer) == asked.expected(scene.shape.name, ""), (asked, answer.text[:400])
        scene.world.run()
        if answer.status_code == 201 and "lease" in answer.json:
            assert (
                scene.ask(
                    Ask("DELETE", "/v1/leases/{lease_id}", who=OPERATOR), ids_of(answer.json["lease"])
                ).status_code
                == 204
            )
        if answer.status_code == 201 and "series" in answer.json:
            ids = {"series_id": answer.json["series"]["id"]}
            assert "\n".join(surprises(scene, OF_A_SERIES, ids)) == ""
        scene.world.run()


@pytest.mark.sample(1)
def test_such_leases_are_in_maintenance_windows(scene):
    scene.in_state("pending")
    made = scene.ask(Ask("POST", WINDOWS, WINDOW, who=OPERATOR), {})
    assert made.status_code == 201, made.text
    scene.world.run()
    ids = {"maintenance_id": made.json["maintenance"]["id"]}
    assert "\n".join(surprises(scene, OF_A_WINDOW, ids)) == ""


@pytest.mark.slow
def test_such_leases_start_are_prolonged_and_end(scene):
    lease = scene.in_state("pending")
    more = Ask("PUT", "/v1/leases/{lease_id}", {"extend_if_free": {"until": "+P1D"}})
    assert scene.ask(more, ids_of(lease)).status_code == 200
    start = datetime.fromisoformat(START)
    scene.world.run_to(start)
    scene.world.run_to(scene.world.now_of(lease["id"]).window.end - timedelta(seconds=1))
    scene.world.manager.prolongation.run_once()
    end = scene.world.now_of(lease["id"]).window.end
    scene.world.run_to(end + timedelta(minutes=5))
    shown = scene.ask(Ask("GET", "/v1/leases/{lease_id}"), ids_of(lease)).json["lease"]
    assert shown["status"] == "TERMINATED"
    history = scene.ask(Ask("GET", "/v1/leases/{lease_id}/history"), ids_of(lease)).json["history"]
    assert [history[0]["verb"], history[-1]["verb"]] == ["created", "ended"]


def test_every_route_about_leases_is_in_the_table():
    served = client_of(app_of(None)).application.extensions[EXTENSION].served
    asked = (*OF_A_LEASE, *BESIDE_LEASES, *MAKING, *OF_A_SERIES, *OF_A_WINDOW, *OF_A_FEED)
    known = {(each.method, each.path.partition("?")[0], each.version) for each in asked}
    left_out = [
        f"{row.method} {row.url} {row.since[0]}.{row.since[1]}"
        for row in served.routes
        if not is_of_others(row.url)
        and (row.method, row.url) not in MADE_BEFORE
        and not any(
            (method, path) == (row.method, row.url) and row.serves(tuple(map(int, version.split("."))))
            for method, path, version in known
        )
    ]
    assert "\n".join(left_out) == "", "add it to the table: what does it answer about each shape of a lease?"


def is_of_others(url: str) -> bool:
    below = not url.endswith(("/allocations", "/allocation"))
    return url in OTHERS or (below and any(url.startswith(f"{each}/") for each in OTHERS if each.count("/") == 2))
