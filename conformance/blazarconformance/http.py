# SPDX-License-Identifier: Apache-2.0
"""The type over HTTP: made, shown and listed in every version, with mistakes answered as such."""

from __future__ import annotations

import itertools
import json
from datetime import datetime
from typing import Any

from flask.testing import FlaskClient
from jsonschema import Draft202012Validator

from blazar.api.app import create_app
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.http.routes import Part
from blazar.api.parts import BUILTIN
from blazar.model.base.json_text import Json
from blazarconformance.catalogue import DESCRIBES, INVALID, PART, SCHEMA, check, require
from blazarconformance.ensures import same
from blazarconformance.parameters import HUGE, NOT_NUMBERS, STRANGE
from blazarconformance.scene import LATER, OTHERS, Scene
from blazarconformance.trial import HOUR, PROJECT, Trial

_RFC_3339 = "%Y-%m-%dT%H:%M:%SZ"
FORMATS = {"1.0": "%Y-%m-%d %H:%M", "1.1": _RFC_3339}
"""The microversions that are tried, with the format of their dates."""

OPERATOR = "admin:admin:admin"
MEMBER = f"curie:{PROJECT}"


_MADE: dict[str, tuple[Served, Policy]] = {}
"""What is served with the part of this name: putting it together takes long."""


def _served(part: Part | None) -> tuple[Served, Policy]:
    name = "" if part is None else part.name
    if name not in _MADE:
        parts = BUILTIN if part is None else (*BUILTIN, part)
        _MADE[name] = Served(parts), Policy(parts=parts)
    return _MADE[name]


class _Client:
    """A client of a scene, of any project."""

    def __init__(self, scene: Scene) -> None:
        served, policy = _served(scene.trial.harness.part)
        app = create_app(scene.manager, identity=StandaloneIdentity(), policy=policy, served=served)
        self._client: FlaskClient = app.test_client()
        self._scene = scene

    def post(self, values: Json, version: str = "1.0") -> tuple[int, Any]:
        """Send a request for a lease of one reservation; return status and answer."""
        start = self._scene.clock.now() + LATER
        body = {
            "name": "work",
            "start_date": _date(start, version),
            "end_date": _date(start + HOUR, version),
            "reservations": [{"resource_type": self._scene.trial.type.resource_type, **values}],
        }
        answer = self._client.post("/v1/leases", headers=_headers(version), data=json.dumps(body))
        return answer.status_code, answer.json

    def get(self, path: str, version: str = "1.0", token: str = MEMBER) -> tuple[int, Any]:
        """Read something; return status and answer."""
        answer = self._client.get(path, headers=_headers(version, token))
        return answer.status_code, answer.json

    def register(self, values: Json) -> tuple[int, Any]:
        """Send a request of an operator to register a resource; return status and answer."""
        answer = self._client.post(self.resources, headers=_headers("1.1", OPERATOR), data=json.dumps(values))
        return answer.status_code, answer.json

    def unregister(self, resource_id: str) -> int:
        """Send a request of an operator to unregister a resource; return the status."""
        return self._client.delete(f"{self.resources}/{resource_id}", headers=_headers("1.1", OPERATOR)).status_code

    @property
    def resources(self) -> str:
        """The path of the resources of the kind."""
        return f"/v1/resources/{self._scene.trial.kind.kind}"


def _headers(version: str, token: str = MEMBER) -> dict[str, str]:
    named = {"OpenStack-API-Version": f"reservation {version}", "Content-Type": "application/json"}
    return {"X-Auth-Token": token, **named}


def _date(instant: datetime, version: str) -> str:
    return instant.strftime(FORMATS[version])


@check()
def the_api_lists_it(trial: Trial) -> None:
    """A lease of the type can be made over HTTP, is shown with its parameters, and is in the list."""
    scene = Scene(trial)
    client = _Client(scene)
    for version in FORMATS:
        status, answer = client.post(trial.harness.request, version)
        require(status == 201, f"at {version} POST was answered by {status}: {str(answer)[:300]}.")
        made = answer["lease"]
        shown = made["reservations"][0]
        kept = scene.manager.leases.one(made["id"]).reservations[0].shown_parameters
        missing = sorted(key for key in kept if key not in shown and key not in trial.harness.derived)
        require(not missing, f"at {version} the API does not show {missing}.")
        listed = [each["id"] for each in client.get("/v1/leases", version)[1]["leases"]]
        require(listed == [made["id"]], f"at {version} the list has {len(listed)} leases.")
        scene.manager.leases.delete(made["id"])
        scene.run_to(scene.clock.now())


@check()
def other_projects_do_not_see_it(trial: Trial) -> None:
    """A lease of the type is neither shown to another project nor in its list."""
    scene = Scene(trial)
    client = _Client(scene)
    made = client.post(trial.harness.request)[1]["lease"]
    for version in FORMATS:
        status, answer = client.get(f"/v1/leases/{made['id']}", version, f"frida:{OTHERS}")
        require(status in (403, 404), f"at {version} another project gets {status}: {str(answer)[:200]}.")
        listed = client.get("/v1/leases", version, f"frida:{OTHERS}")[1]["leases"]
        require(not listed, f"at {version} the list of another project has it.")


@check(INVALID)
def a_mistake_is_answered_as_one(trial: Trial) -> None:
    """What is invalid is answered by 4xx with a sentence, and nothing is made."""
    scene = Scene(trial)
    client = _Client(scene)
    before = trial.site.snapshot()
    for version in FORMATS:
        for each in trial.harness.invalid:
            status, answer = client.post({**trial.harness.request, **each.values}, version)
            require(400 <= status < 500, f"at {version} {dict(each.values)!r} was answered by {status}.")
            require(each.names in str(answer), f"the answer does not name {each.names}: {str(answer)[:200]}.")
    require(not scene.manager.leases.all(None), "a lease was made.")
    require(trial.site.snapshot() == before, "something was made in the cloud.")


@check(slow=True)
def nothing_that_is_sent_is_an_internal_error(trial: Trial) -> None:
    """Whatever is sent as a parameter, the answer is a lease or 4xx, and never an internal error."""
    scene = Scene(trial)
    client = _Client(scene)
    values = (*NOT_NUMBERS, *STRANGE, *HUGE[:1])
    # From 1.1 on the schema refuses most of it before the type sees it.
    for version, field, value in itertools.product(("1.0", "1.1"), trial.harness.request, values):
        status, answer = client.post({**trial.harness.request, field: value}, version)
        shown = f"{field} = {value!r}"[:60]
        require(status < 500, f"{shown} was answered by {status}: {str(answer)[:200]}.")
        if status == 201:
            scene.manager.leases.delete(answer["lease"]["id"])
            scene.run_to(scene.clock.now())


@check(PART)
def the_document_describes_it(trial: Trial) -> None:
    """The document of the API has the type, and all parameters that are shown of a reservation."""
    scene = Scene(trial)
    name = trial.type.resource_type
    status, document = _Client(scene).get("/openapi.json")
    require(status == 200, f"/openapi.json was answered by {status}.")
    schemas = document["components"]["schemas"]
    own = [each for each in schemas.values() if name in json.dumps(each)]
    require(own, f"no schema of the document names {name}.")
    text = json.dumps(own)
    missing = [key for key in trial.task().reservation.shown_parameters if f'"{key}"' not in text]
    require(not missing, f"the schemas that name {name} do not have {missing}.")


@check()
def operators_register_its_resources_over_http(trial: Trial) -> None:
    """Operators register resources at /v1/resources, see them there, and unregister them."""
    first = trial.another().site.snapshot()
    scene = Scene(trial, register=False)
    client = _Client(scene)
    made = []
    for values in trial.harness.registrations:
        status, answer = client.register(values)
        require(status == 201, f"{dict(values)!r} was answered by {status}: {str(answer)[:200]}.")
        made.append(answer["resource"])
    listed = client.get(client.resources, "1.1", OPERATOR)[1]["resources"]
    same_ids = {each["id"] for each in listed} == {each["id"] for each in made}
    require(same_ids, f"{len(made)} were registered, and {len(listed)} are listed.")
    for each in made:
        status = client.unregister(each["id"])
        require(status == 204, f"unregistering {each['name']} was answered by {status}.")
    same(trial, first, "after all resources were unregistered")


@check()
def a_malformed_registration_over_http_is_4xx(trial: Trial) -> None:
    """Whatever an operator sends to register, the answer is a resource or 4xx, and never an internal error."""
    scene = Scene(trial, register=False)
    client = _Client(scene)
    plain = trial.harness.registrations[0]
    for field in (*plain, "no_such_field"):
        for value in (*NOT_NUMBERS, *STRANGE, *HUGE[:1]):
            status, answer = client.register({**plain, field: value})
            shown = f"{field} = {value!r}"[:60]
            require(status < 500, f"{shown} was answered by {status}: {str(answer)[:200]}.")
            if status == 201:
                client.unregister(answer["resource"]["id"])


@check()
def its_kind_is_listed_with_the_type(trial: Trial) -> None:
    """The list of kinds has the kind, with the type that reserves it, and words for its resources."""
    kinds = _Client(Scene(trial)).get("/v1/resources", "1.1")[1]["kinds"]
    found = [each for each in kinds if each["name"] == trial.kind.kind]
    require(len(found) == 1, f"the kind is {len(found)} times among {[each['name'] for each in kinds]}.")
    types = found[0]["resource_types"]
    require(trial.type.resource_type in types, f"the kind is said to be reserved by {types}.")
    require(found[0]["noun"] and found[0]["nouns"], "the kind has no words for its resources.")


@check()
def members_see_only_what_is_public(trial: Trial) -> None:
    """Members see of a resource the attributes that its kind calls public, and a name only if it is named."""
    scene = Scene(trial)
    client, shape = _Client(scene), trial.kind.shape
    names = {each.name for each in scene.manager.resources.all(trial.kind.kind)}
    for each in client.get(client.resources, "1.1")[1]["resources"]:
        shown = sorted(each["attributes"].keys() - set(shape.public))
        require(not shown, f"members see {shown}, which the kind does not call public.")
        require(shape.named or not names & {each["id"], each["name"]}, f"members see the name {each['name']}.")
        require(not {"failure", "disabled"} & each.keys(), "members see why a resource is out of use.")


@check(DESCRIBES)
def its_shape_is_that_of_its_resources(trial: Trial) -> None:
    """The schemas of a kind are true: of what registers a resource, and of the attributes that it has."""
    shape = trial.kind.shape
    registration = Draft202012Validator(dict(shape.registration))
    for values in trial.harness.registrations:
        wrong = [error.message for error in registration.iter_errors(dict(values))]
        require(not wrong, f"the schema of registrations refuses {dict(values)!r}: {wrong}.")
    for each in trial.resources:
        unknown = sorted(each.attributes.keys() - shape.attributes.keys())
        require(not unknown, f"the attributes {unknown} have no schema.")
        for key, value in each.attributes.items():
            schema: Any = shape.attributes[key]
            wrong = [error.message for error in Draft202012Validator(schema).iter_errors(value)]
            require(not wrong, f"the attribute {key} is not as its schema says: {wrong}.")
    missing = sorted({*shape.public, *shape.shown} - shape.attributes.keys())
    require(not missing, f"{missing} are public, and have no schema.")


@check(SCHEMA)
def its_schema_is_shown_and_holds(trial: Trial) -> None:
    """The list of kinds and the document have the schema of the type, and a misspelt field is answered by its name."""
    scene = Scene(trial)
    client, name = _Client(scene), trial.type.resource_type
    shown: dict[str, Any] = {}
    for each in client.get("/v1/resources", "1.1")[1]["kinds"]:
        shown |= each["parameters"]
    require(shown.get(name) == trial.type.schema, f"/v1/resources has {str(shown.get(name))[:200]} of it.")
    components = client.get("/openapi.json")[1]["components"]["schemas"].values()
    properties = [each.get("properties") for each in components]
    require(shown[name]["properties"] in properties, "no component of the document has its fields.")
    status, answer = client.post({**trial.harness.request, "no_such_field": 1}, "1.1")
    require(status == 400, f"a field that it does not have was answered by {status}.")
    require("no_such_field" in str(answer), f"the answer does not name the field: {str(answer)[:200]}.")
