# SPDX-License-Identifier: Apache-2.0
"""Another package brings a kind of resource to the API: routes, components, a type of reservation and policy rules."""

from __future__ import annotations

import importlib
import sys

import pytest
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.parts import BUILTIN, all_parts, list_rules
from blazar.model.base.errors import InvalidInput
from tests.api.conftest import client_of, token

TELESCOPES = """
from blazar.api.http.microversion import MIN_VERSION
from blazar.api.http.routes import ADMIN, READER, Body, Part, Root, Route, Rule, in_path
from blazar.api.http.shapes import COUNT, TEXT, a_list, a_reservation, an_object, ref
from blazar.model.resources.resource import HOST

GET = Rule("blazar:telescopes:get", READER, "List telescopes.")
POST = Rule("blazar:telescopes:post", ADMIN, "Register a telescope.")
MIRROR = {"type": "integer", "minimum": 1, "description": "the diameter of the mirror in metres"}
CREATE = {"type": "object", "required": ["mirror"], "additionalProperties": False, "properties": {"mirror": MIRROR}}

PART = Part(
    "telescopes",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/telescopes",
            name="list_telescopes",
            since=MIN_VERSION,
            summary="List telescopes",
            handler=lambda call: [host.external_id for host in call.manager.resources.all(HOST)],
            rule=GET,
            render=lambda found: {"telescopes": found},
            answers={200: an_object({"telescopes": a_list(TEXT)})},
        ),
        Route(
            root=Root.V1,
            method="POST",
            path="/telescopes",
            name="create_telescope",
            since=MIN_VERSION,
            summary="Register a telescope",
            handler=lambda call: call.body(),
            rule=POST,
            body=Body("TelescopeCreate", CREATE, ({"mirror": 8},)),
            render=lambda body: {"telescope": body},
            answers={201: ref("Telescope")},
        ),
    ),
    rules=(GET, POST),
    components={"Telescope": an_object({"telescope": {"type": "object"}}, example={"telescope": {"mirror": 8}})},
    reservations={"TelescopeReservation": a_reservation("telescope", {"nights": COUNT}, {"nights": 2})},
    fields={
        "nights": {"description": "telescope: the number of nights"},
        "amount": {"description": "telescope: the number of mirrors"},
    },
)
"""
FAULTY = {
    "broken": "raise RuntimeError('no\\nsky')\n",
    "needy": "import a_library_that_is_missing\n",
    "other": "PART = 'a string'\n",
    "route": TELESCOPES.replace('path="/telescopes"', 'path="/leases"'),
    "rule": TELESCOPES.replace("blazar:telescopes:get", "blazar:leases:get"),
    "component": TELESCOPES.replace('components={"Telescope"', 'components={"Lease"'),
    "name": TELESCOPES.replace('    "telescopes",', '    "leases",'),
}


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a package that brings a part of the API with this source."""

    def installed_with(source: str) -> None:
        (tmp_path / "acme_telescopes.py").write_text(source, encoding="utf-8")
        meta = tmp_path / "acme-2.0.dist-info"
        meta.mkdir()
        (meta / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 2.0\n", encoding="utf-8")
        (meta / "entry_points.txt").write_text(
            "[blazar.api.routes]\ntelescopes = acme_telescopes:PART\n", encoding="utf-8"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()

    all_parts.cache_clear()
    yield installed_with
    sys.modules.pop("acme_telescopes", None)
    all_parts.cache_clear()


@pytest.fixture
def http(install, world):
    install(TELESCOPES)
    return client_of(create_app(world.manager, identity=StandaloneIdentity()))


def test_its_routes_are_served(http):
    assert http.get("/v1/telescopes").json == {"telescopes": ["1", "2", "3"]}
    created = http.post("/v1/telescopes", json={"mirror": 8})
    assert (created.status_code, created.json) == (201, {"telescope": {"mirror": 8}})
    refused = http.post("/v1/telescopes", json={"mirror": 0})
    assert (refused.status_code, refused.json["error_message"]) == (
        400,
        "mirror is 0, which is less than 1; give the diameter of the mirror in metres",
    )
    assert http.get("/v2/telescopes").status_code == 404
    assert http.get("/v1/telescopes", headers={"X-Auth-Token": "nobody"}).status_code == 401


def test_its_routes_have_no_suffix(install, world):
    install(TELESCOPES)
    plain = create_app(world.manager, identity=StandaloneIdentity()).test_client()
    assert [plain.get(f"/v1/telescopes{suffix}").status_code for suffix in ("", ".json", "/")] == [200, 404, 404]


@pytest.mark.slow
def test_its_policy_rules_are_documented_and_checked(http):
    (rule,) = [rule for rule in list_rules() if rule.name == "blazar:telescopes:post"]
    assert (rule.check_str, rule.operations) == ("rule:admin", [{"method": "POST", "path": "/v1/telescopes"}])
    assert http.get("/v1/telescopes", headers=token()).status_code == 200
    denied = http.post("/v1/telescopes", json={"mirror": 8}, headers=token())
    assert (denied.status_code, "blazar:telescopes:post" in denied.json["error_message"]) == (403, True)


@pytest.mark.slow
def test_its_paths_and_reservations_are_in_the_document(http):
    document = http.get("/openapi.json").json
    validate(document)
    assert document["paths"]["/v1/telescopes"].keys() == {"get", "post"}
    schemas = document["components"]["schemas"]
    assert schemas["TelescopeCreate"]["examples"] == [{"mirror": 8}]
    assert {"$ref": "#/components/schemas/TelescopeReservation"} in schemas["Reservation"]["oneOf"]
    assert {"$ref": "#/components/schemas/TelescopeReservationV2"} in schemas["ReservationV2"]["oneOf"]
    for body in ("LeaseCreate", "LeaseUpdate", "LeaseCreateV2", "LeaseUpdateV2"):
        fields = schemas[body]["properties"]["reservations"]["items"]["properties"]
        assert fields["nights"] == {"description": "telescope: the number of nights"}
        assert fields["amount"]["description"].endswith("from 1; telescope: the number of mirrors")
    for version in ("Reservation", "ReservationV2"):
        for example in schemas[version]["examples"]:
            Draft202012Validator({**schemas[version], "components": document["components"]}).validate(example)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("broken", "acme 2.0), which cannot be loaded: RuntimeError: no sky; remove it"),
        ("needy", "cannot be loaded: ModuleNotFoundError: No module named 'a_library_that_is_missing'"),
        ("other", "acme_telescopes:PART has no components, controller, "),
        ("route", "brings the route GET /v1/leases, which the part leases of the API has, too"),
        ("rule", "brings the policy rule blazar:leases:get, which the part leases of the API has, too"),
        ("component", "brings the component Lease, which the API has, too"),
        ("name", "brings the part leases, which the part leases of the API has, too"),
    ],
)
def test_a_part_that_cannot_be_used_is_refused_with_the_reason(install, fault, words):
    install(FAULTY[fault])
    with pytest.raises(InvalidInput) as refused:
        all_parts()
    assert words in refused.value.message
    assert "blazar.api.routes" in refused.value.message
    assert "\n" not in refused.value.message


def test_without_such_a_package_the_parts_are_those_of_the_service(install):
    assert all_parts() == BUILTIN
