# SPDX-License-Identifier: Apache-2.0
"""References between the reservations of a lease, through every version of the API."""

from __future__ import annotations

import pytest

from tests.api.conftest import app_of
from tests.resources.test_references import Lab, Lamp, Part, Wire
from tests.world import World

VERSIONS = ["1.0", "1.1"]
DATES = {"start_date": "2030-04-02 12:00", "end_date": "2030-04-03 12:00"}
MODERN = {"start_date": "2030-04-02T12:00:00Z", "end_date": "2030-04-03T12:00:00Z"}


@pytest.fixture
def world(sqlite) -> World:
    lab = Lab()
    return World(sqlite, hosts=5, types=[lambda *_, made=made: made(lab) for made in (Part, Wire, Lamp)])


@pytest.fixture
def http(world):
    return app_of(world.manager).test_client()


def a_part(name: str, *uses: object, type: str = "test:part") -> dict[str, object]:
    return {"resource_type": type, "name": name, "uses": [{"reservation": use} for use in uses]}


def ask(http, method: str, path: str, version: str, body: object = None):
    headers = {"X-Auth-Token": "curie:physics", "OpenStack-API-Version": f"reservation {version}"}
    return http.open(path, method=method, json=body, headers=headers)


def create(http, version: str, *reservations: dict[str, object]):
    body = {"name": "lab", **(DATES if version == "1.0" else MODERN), "reservations": list(reservations)}
    return ask(http, "POST", "/v1/leases", version, {**body, "events": []} if version == "1.0" else body)


def parts(lease) -> dict[str, dict[str, object]]:
    """Return what is shown of reservations, by their names: beside the common keys at 1.0, in parameters later."""
    shown = [(each.get("parameters") or each, each["id"]) for each in lease["reservations"]]
    return {values["name"]: {"uses": values["uses"], "id": id_} for values, id_ in shown}


@pytest.mark.parametrize("version", VERSIONS)
def test_an_index_of_the_request_is_shown_as_an_id(http, version):
    answer = create(http, version, a_part("server", 1), a_part("wire", type="test:wire"))
    assert answer.status_code == 201, answer.text
    shown = parts(answer.json["lease"])
    assert shown["server"]["uses"] == [{"reservation": shown["wire"]["id"]}]
    again = ask(http, "GET", f"/v1/leases/{answer.json['lease']['id']}", version)
    assert parts(again.json["lease"]) == shown


@pytest.mark.parametrize("version", VERSIONS)
def test_a_change_names_another_reservation_by_its_id(http, version):
    lease = create(http, version, a_part("server"), a_part("wire", type="test:wire")).json["lease"]
    ids = {name: each["id"] for name, each in parts(lease).items()}
    change = {"id": ids["server"], "uses": [{"reservation": ids["wire"]}]}
    answer = ask(http, "PUT", f"/v1/leases/{lease['id']}", version, {"reservations": [change]})
    assert answer.status_code == 200, answer.text
    assert parts(answer.json["lease"])["server"]["uses"] == change["uses"]
    wrong = {**change, "uses": [{"reservation": ids["wire"]}, {"reservation": ids["server"]}]}
    refused = ask(http, "PUT", f"/v1/leases/{lease['id']}", version, {"reservations": [wrong]})
    assert refused.status_code == 400
    told(refused, version, "/reservations/0/uses/1")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        (7, "give an index from 0 to 1"),
        (1, "itself"),
        (-1, "name another reservation"),
        ("x", "names reservation"),
        (None, "name another reservation"),
    ],
)
def test_what_is_no_other_reservation_is_refused_where_it_stands(http, version, use, sentence):
    answer = create(http, version, a_part("wire", type="test:wire"), a_part("server", 0, use))
    assert answer.status_code == 400, answer.text
    assert sentence in answer.text
    told(answer, version, "/reservations/1/uses/1")
    assert ask(http, "GET", "/v1/leases", version).json["leases"] == []


@pytest.mark.parametrize("version", VERSIONS)
def test_two_that_need_each_other_and_a_type_that_cannot_be_named_are_refused(http, version):
    for reservations in (
        [a_part("a", 1), a_part("b", 0)],
        [a_part("a", 1), a_part("lamp", type="test:lamp")],
    ):
        answer = create(http, version, *reservations)
        assert answer.status_code == 400, answer.text
        told(answer, version, "/reservations/0/uses/0")


def told(answer, version: str, pointer: str) -> None:
    """Check that a refusal says where; 1.0 has only the sentence, which names the parameter."""
    if version == "1.0":
        assert pointer.split("/", 3)[3] in answer.json["error_message"]
    else:
        assert answer.json["errors"][0]["pointer"] == pointer
