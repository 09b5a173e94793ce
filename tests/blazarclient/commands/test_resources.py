# SPDX-License-Identifier: Apache-2.0
"""Commands about resources of any kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import NEW, SPOKEN, URL, Run, refusal, sent

BASE = f"{URL}/resources/telescope"
REGISTRATION = {"type": "object", "properties": {"name": {"type": "string"}, "mirror": {"type": "integer"}}}
KIND = {"name": "telescope", "noun": "telescope", "nouns": "telescopes", "resource_types": ["lab:telescope"]}


def a_telescope(**values: Any) -> dict[str, Any]:
    return {
        "id": "t-1",
        "kind": "telescope",
        "label": "t-4kq2mz",
        "name": "hale",
        "attributes": {"mirror": 5},
        "capacity": {"NIGHT": 2},
        "traits": [],
        "properties": {"site": "palomar"},
        "reservable": True,
        "disabled": None,
        "failure": None,
        "authorized_projects": None,
        **values,
    }


DISABLED = a_telescope(
    reservable=False, disabled={"reason": "clouds", "since": "2026-11-22T08:00:00Z", "until": "2026-12-01T00:00:00Z"}
)


@pytest.fixture
def telescopes(requests_mock: Any) -> Any:
    kinds = {"kinds": [{**KIND, "registration": REGISTRATION, "has_candidates": False}]}
    requests_mock.get(f"{URL}/resources", json=kinds, headers=NEW)
    requests_mock.get(BASE, json={"resources": [a_telescope()]}, headers=NEW)
    requests_mock.get(f"{BASE}?name=t-1", json={"resources": []}, headers=NEW)
    requests_mock.get(f"{BASE}/t-1", json={"resource": a_telescope()}, headers={**NEW, "ETag": '"0.x.2"'})
    requests_mock.post(BASE, json={"resource": a_telescope()}, status_code=201, headers=NEW)
    requests_mock.put(f"{BASE}/t-1", json={"resource": DISABLED}, headers=NEW)
    requests_mock.delete(f"{BASE}/t-1", status_code=204, headers=NEW)
    return requests_mock


def test_the_kinds_are_listed_with_what_registers_a_resource(run: Run, telescopes: Any) -> None:
    code, out, _ = run("resource", "types", "-f", "csv")
    assert (code, out.splitlines()[1]) == (0, '"telescope","lab:telescope","name, mirror"')
    assert sent(telescopes, "GET")[0].headers["OpenStack-API-Version"] == SPOKEN
    [kind] = json.loads(run("resource", "types", "-f", "json")[1])
    assert kind["registration"] == REGISTRATION


def test_what_the_cloud_has_is_listed_with_the_fields_that_register_it(run: Run, telescopes: Any) -> None:
    keck = {"id": "t-2", "name": "keck", "state": "up", "servers": 0, "resource_id": None}
    found = [{**keck, "registration": {"name": "keck", "mirror": 10}}]
    telescopes.get(f"{BASE}/candidates", json={"candidates": found}, headers=NEW)
    code, out, _ = run("resource", "candidates", "telescope", "--unregistered", "-f", "csv")
    assert (code, out.splitlines()) == (
        0,
        ['"name","state","resource_id","registration"', '"keck","up","","name=keck, mirror=10"'],
    )
    assert sent(telescopes, "GET")[-1].qs == {"registered": ["false"]}
    telescopes.get(f"{BASE}/candidates", json={"candidates": [{**found[0], "region": "north"}]}, headers=NEW)
    (row,) = json.loads(run("resource", "candidates", "telescope", "-f", "json")[1])
    assert (row["registration"], row["region"]) == ({"name": "keck", "mirror": 10}, "north")


def test_resources_are_filtered_by_the_service(run: Run, telescopes: Any) -> None:
    words = ("--condition", "ok", "--property", "site=palomar", "--property", "mirror=5", "--text", "hal")
    code, out, _ = run("resource", "list", "telescope", *words, "-f", "csv")
    assert (code, out.splitlines()[1]) == (0, '"t-1","hale",True,"NIGHT=2","site=palomar"')
    [request] = sent(telescopes, "GET")
    assert request.qs == {"condition": ["ok"], "property": ["site:palomar", "mirror:5"], "text": ["hal"]}


def test_programs_get_resources_with_their_structure(run: Run, telescopes: Any) -> None:
    telescopes.get(BASE, json={"resources": [DISABLED]}, headers=NEW)
    [found] = json.loads(run("resource", "list", "telescope", "--long", "-f", "json")[1])
    assert (found["capacity"], found["condition"], found["reason"]) == ({"NIGHT": 2}, "disabled", "clouds")
    assert found["until"] == "2026-12-01T00:00:00Z"


@pytest.mark.parametrize("name", ["hale", "t-1"])
def test_a_resource_is_shown_by_name_or_id(run: Run, telescopes: Any, name: str) -> None:
    code, out, _ = run("resource", "show", "telescope", name, "-f", "json")
    assert (code, json.loads(out)["attributes"]) == (0, {"mirror": 5})


def test_a_resource_is_registered_by_the_fields_of_its_kind(run: Run, telescopes: Any) -> None:
    code, _, err = run("resource", "register", "telescope", "name=hale", "mirror=5", "--property", "site=palomar")
    assert (code, err) == (0, "")
    [request] = sent(telescopes, "POST")
    assert request.json() == {"name": "hale", "mirror": 5, "properties": {"site": "palomar"}}


def test_a_resource_is_changed_as_the_options_say(run: Run, telescopes: Any) -> None:
    until = ("--until", "2026-12-01 01:00")
    assert run("resource", "set", "telescope", "hale", "--disable", "--reason", "clouds", *until)[0] == 0
    assert run("resource", "set", "telescope", "t-1", "--enable", "--all-projects")[0] == 0
    words = ("--property", "site=x", "--no-property", "dome", "--project", "physics", "--project", "art")
    assert run("resource", "set", "telescope", "hale", *words)[0] == 0
    assert [request.json() for request in sent(telescopes, "PUT")] == [
        {"disabled": {"reason": "clouds", "until": "2026-12-01T00:00:00Z"}},
        {"disabled": None, "authorized_projects": None},
        {"properties": {"site": "x", "dome": None}, "authorized_projects": ["physics", "art"]},
    ]


@pytest.mark.parametrize(
    "words",
    [
        ("set", "telescope", "hale"),
        ("set", "telescope", "hale", "--reason", "clouds"),
        ("set", "telescope", "hale", "--property", "site"),
        ("register", "telescope", "hale"),
        ("register", "telescope", "mirror=large"),
        ("list", "telescope", "--limit", "0"),
        ("list", "telescope", "--property", "=x"),
    ],
)
def test_what_is_written_wrongly_is_refused_in_a_sentence_and_changes_nothing(
    run: Run, telescopes: Any, words: Any
) -> None:
    code, out, err = run("resource", *words)
    assert code != 0
    assert (out, err.count("\n")) == ("", 1)
    assert not sent(telescopes, "PUT")
    assert not sent(telescopes, "POST")


def test_resources_are_unregistered_one_by_one(run: Run, telescopes: Any) -> None:
    gone = refusal("resource_not_found", "no telescope keck is registered", 404)
    telescopes.get(f"{BASE}?name=keck", json={"resources": []}, headers=NEW)
    telescopes.get(f"{BASE}/keck", **{**gone, "headers": NEW})
    code, out, err = run("resource", "unregister", "telescope", "keck", "t-1")
    assert (code, out) == (3, "Deleted telescope: t-1\n")
    assert err == "keck: There is no telescope keck\n"


def test_a_kind_that_the_service_does_not_have_is_told_as_the_service_says(run: Run, telescopes: Any) -> None:
    unknown = refusal("kind_not_found", "resources of the kind 'rocket' are not served", 404)
    telescopes.get(f"{URL}/resources/rocket", **{**unknown, "headers": NEW})
    code, _, err = run("resource", "show", "rocket", "saturn")
    assert (code, err) == (3, "resources of the kind 'rocket' are not served\n")


def test_an_older_service_is_told_to_be_too_old(run: Run, requests_mock: Any) -> None:
    requests_mock.get(BASE, **refusal("version_unsupported", "version 1.1 is not supported", 406))
    code, _, err = run("resource", "list", "telescope")
    assert code != 0
    assert "1.1" in err


def test_fields_of_the_registration_are_changed_as_the_kind_has_them(run: Run, telescopes: Any) -> None:
    code, _, err = run("resource", "set", "telescope", "t-1", "--field", "mirror=6", "--property", "site=tololo")
    assert (code, err) == (0, "")
    (request,) = sent(telescopes, "PUT")
    assert request.json() == {"attributes": {"mirror": 6}, "properties": {"site": "tololo"}}
    assert run("resource", "set", "telescope", "t-1", "--field", "mirror=large")[0] == 1
