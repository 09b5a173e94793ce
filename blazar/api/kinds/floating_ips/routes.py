# SPDX-License-Identifier: Apache-2.0
"""``/v1/floatingips``: the addresses that can be reserved. Version 2 does not serve them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from blazar.api.context import Call, identifier
from blazar.api.kinds.floating_ips.components import COMPONENTS, FIELDS, FLOATING_IP_CREATE, RESERVATIONS, floating_ip
from blazar.api.routes import ADMIN, READER, Body, Part, Root, Route, Rule, in_path
from blazar.api.shapes import Json, a_list, an_object, ref
from blazar.model.requests import Registration
from blazar.model.resource import FLOATING_IP, Resource, unknown

GET = Rule("blazar:floatingips:get", READER, "List and show the addresses that can be reserved.")
POST = Rule("blazar:floatingips:post", ADMIN, "Register an address.")
DELETE = Rule("blazar:floatingips:delete", ADMIN, "Unregister an address.")


def index(call: Call) -> Sequence[Resource]:
    """List addresses."""
    return call.manager.resources.all(FLOATING_IP)


def create(call: Call) -> Resource:
    """Register an address."""
    body = call.body()
    return call.manager.resources.register(FLOATING_IP, Registration(body))


def show(call: Call, floating_ip_id: str) -> Resource:
    """Show an address."""
    return call.manager.resources.one(FLOATING_IP, _id(floating_ip_id))


def delete(call: Call, floating_ip_id: str) -> None:
    """Unregister an address."""
    call.manager.resources.unregister(FLOATING_IP, _id(floating_ip_id))


def _id(text: str) -> str:
    key = identifier(text)
    if key == "-":
        raise unknown(FLOATING_IP, text)
    return key


def _shown(found: Resource) -> Json:
    return {"floatingip": floating_ip(found)}


_ONE = an_object({"floatingip": ref("FloatingIp")})
_ID = in_path("floating_ip_id", "the id of the address", policy_name="floatingip_id")
_on_list = partial(Route, root=Root.V1, path="/floatingips", json_twin=True)
_on_address = partial(Route, root=Root.V1, path="/floatingips/{floating_ip_id}", parameters=(_ID,))

PART = Part(
    "floating IPs",
    routes=(
        _on_list(
            method="GET",
            name="list_floating_ips",
            summary="List the addresses that can be reserved",
            handler=index,
            rule=GET,
            render=lambda found: {"floatingips": [floating_ip(each) for each in found]},
            answers={200: an_object({"floatingips": a_list(ref("FloatingIp"))})},
        ),
        _on_list(
            method="POST",
            name="create_floating_ip",
            summary="Register an address",
            handler=create,
            rule=POST,
            body=Body(
                "FloatingIpCreate",
                FLOATING_IP_CREATE,
                (
                    {
                        "floating_network_id": "88889999-aaaa-4bbb-8ccc-ddddeeeeffff",
                        "floating_ip_address": "203.0.113.10",
                    },
                ),
            ),
            render=_shown,
            answers={201: _ONE},
            errors=(404, 409),
        ),
        _on_address(
            method="GET",
            name="show_floating_ip",
            summary="Show an address",
            handler=show,
            rule=GET,
            render=_shown,
            answers={200: _ONE},
            errors=(404,),
        ),
        _on_address(
            method="DELETE",
            name="delete_floating_ip",
            summary="Unregister an address",
            handler=delete,
            rule=DELETE,
            answers={204: None},
            errors=(404, 409),
        ),
    ),
    rules=(GET, POST, DELETE),
    components=COMPONENTS,
    reservations=RESERVATIONS,
    fields=FIELDS,
)
