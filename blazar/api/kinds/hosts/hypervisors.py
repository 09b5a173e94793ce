# SPDX-License-Identifier: Apache-2.0
"""``/v1/hypervisors``, from version 1.1 on: the hypervisors that can be registered as hosts, and those that are."""

from __future__ import annotations

from blazar.api.answers import self_link
from blazar.api.context import Call
from blazar.api.queries import option
from blazar.api.readers import Flag
from blazar.api.routes import ADMIN, Caching, Root, Route, Rule
from blazar.api.shapes import LINKS, NUMBER, TEXT, TEXT_OR_NULL, Json, a_list, an_object, ref
from blazar.model.resource import HOST
from blazar.model.resource_pages import Candidate

GET = Rule("blazar:hypervisors:get", ADMIN, "List the hypervisors of the cloud, registered as hosts or not.")
RULES = (GET,)


def index(call: Call) -> Json:
    """List hypervisors."""
    registered = call.asked.one("registered")
    found = call.manager.resources.candidates(HOST)
    shown = [each for each in found if registered is None or registered == (each.resource_id is not None)]
    return {"hypervisors": [_shown(each) for each in shown], "links": [self_link()]}


def _shown(value: Candidate) -> Json:
    return {
        "id": value.id,
        "hypervisor_hostname": value.name,
        "state": value.state,
        "servers": value.servers,
        "host_id": value.resource_id,
    }


COMPONENTS: Json = {
    "Hypervisor": an_object(
        {
            "id": TEXT,
            "hypervisor_hostname": TEXT,
            "state": {"enum": ["up", "down", "disabled"]},
            "servers": {**NUMBER, "description": "only a hypervisor without servers can be registered"},
            "host_id": {**TEXT_OR_NULL, "description": "its id as a host; null: it is not registered"},
        },
        example={"id": "17", "hypervisor_hostname": "cn17.example", "state": "up", "servers": 0, "host_id": None},
    ),
}

ROUTES = (
    Route(
        root=Root.V1,
        method="GET",
        path="/hypervisors",
        name="list_hypervisors",
        summary="List the hypervisors of the cloud",
        handler=index,
        rule=GET,
        render=lambda shown: shown,
        answers={200: an_object({"hypervisors": a_list(ref("Hypervisor")), "links": LINKS})},
        parameters=(option("registered", Flag(), "true: those that are hosts; false: those that are not"),),
        caching=Caching.NONE,
        since=(1, 1),
    ),
)
