# SPDX-License-Identifier: Apache-2.0
"""The type over HTTP: made, shown and listed in every version, with mistakes answered as such."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from flask.testing import FlaskClient

from blazar.api.app import create_app
from blazar.api.identity import StandaloneIdentity
from blazar.api.parts import BUILTIN
from blazar.api.policy import Policy
from blazar.api.routes import Part
from blazar.api.served import Served
from blazar.model.lease import Json
from blazar.testing.conformance.catalogue import INVALID, PART, check, require
from blazar.testing.conformance.parameters import HUGE, NOT_NUMBERS, STRANGE
from blazar.testing.conformance.scene import LATER, OTHERS, Scene
from blazar.testing.conformance.trial import HOUR, PROJECT, Trial

FORMATS = {"1.0": "%Y-%m-%d %H:%M", "1.1": "%Y-%m-%dT%H:%M:%SZ"}
"""The microversions that are tried, with the format of their dates."""


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

    def get(self, path: str, version: str = "1.0", project: str = PROJECT) -> tuple[int, Any]:
        """Read something; return status and answer."""
        answer = self._client.get(path, headers=_headers(version, project))
        return answer.status_code, answer.json


def _headers(version: str, project: str = PROJECT) -> dict[str, str]:
    named = {"OpenStack-API-Version": f"reservation {version}", "Content-Type": "application/json"}
    return {"X-Auth-Token": f"curie:{project}", **named}


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
        kept = scene.manager.leases.one(made["id"]).reservations[0].parameters.values
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
        status, answer = client.get(f"/v1/leases/{made['id']}", version, OTHERS)
        require(status in (403, 404), f"at {version} another project gets {status}: {str(answer)[:200]}.")
        listed = client.get("/v1/leases", version, OTHERS)[1]["leases"]
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


@check()
def nothing_that_is_sent_is_an_internal_error(trial: Trial) -> None:
    """Whatever is sent as a parameter, the answer is a lease or 4xx, and never an internal error."""
    scene = Scene(trial)
    client = _Client(scene)
    for field in trial.harness.request:
        for value in (*NOT_NUMBERS, *STRANGE, *HUGE[:1]):
            status, answer = client.post({**trial.harness.request, field: value}, "1.1")
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
    missing = [key for key in trial.parameters().values if f'"{key}"' not in text]
    require(not missing, f"the schemas that name {name} do not have {missing}.")
