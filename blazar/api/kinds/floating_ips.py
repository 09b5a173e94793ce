# SPDX-License-Identifier: Apache-2.0
"""``/v1/floatingips``: the addresses that can be reserved, at 1.0. Version 2 does not serve them."""

from __future__ import annotations

from blazar.api.http.bodies import Schema
from blazar.api.http.routes import ADMIN, READER, Body, NounRows, Part, Root, Rule, in_path, only_at_1_0
from blazar.api.http.shapes import (
    BEFORE_END,
    COUNT,
    FLAG,
    ISO,
    ISO_OR_NULL,
    TEXT,
    Json,
    a_list,
    a_reservation,
    an_object,
    ref,
)
from blazar.api.resources.handlers import Handlers, form_of
from blazar.model.base.clock import iso
from blazar.model.resources.resource import FLOATING_IP, Resource

_NETWORK_ID = "88889999-aaaa-4bbb-8ccc-ddddeeeeffff"

FLOATING_IP_CREATE: Schema = {
    "type": "object",
    "required": ["floating_network_id", "floating_ip_address"],
    "additionalProperties": False,
    "properties": {
        "floating_network_id": {
            "type": "string",
            "minLength": 1,
            "maxLength": 64,
            "description": "the id of an external network",
        },
        "floating_ip_address": {
            "type": "string",
            "maxLength": 64,
            "description": "an IPv4 address in a subnet of the network, outside its allocation pools",
        },
    },
}

RESERVATIONS: Json = {
    "AddressReservation": a_reservation(
        "virtual:floatingip",
        {"network_id": TEXT, "amount": COUNT, "required_floatingips": a_list(TEXT), "before_end": BEFORE_END},
        {"network_id": _NETWORK_ID, "amount": 2, "required_floatingips": ["203.0.113.10"], "before_end": "default"},
    ),
}

FIELDS: Json = {
    "network_id": {"description": "virtual:floatingip: the id of the external network; it cannot be changed"},
    "required_floatingips": {"description": "virtual:floatingip: a list of addresses that the reservation must get"},
}
"""What a request for a reservation of addresses may have."""

COMPONENTS: Json = {
    "FloatingIp": an_object(
        {
            "id": TEXT,
            "floating_network_id": TEXT,
            "subnet_id": TEXT,
            "floating_ip_address": TEXT,
            "reservable": FLAG,
            "created_at": ISO,
            "updated_at": ISO_OR_NULL,
        },
        example={
            "id": "0b1c2d3e-1111-4222-8333-444455556666",
            "floating_network_id": _NETWORK_ID,
            "subnet_id": "7c6d5e4f-2222-4333-8444-555566667777",
            "floating_ip_address": "203.0.113.10",
            "reservable": True,
            "created_at": "2030-03-01T09:00:00.000000",
            "updated_at": None,
        },
    )
}


def floating_ip(value: Resource) -> Json:
    """Render an address, with timestamps in the ISO format (hosts and leases use a space)."""
    return {
        "id": value.external_id,
        **value.attributes,
        "reservable": value.reservable,
        "created_at": iso(value.created_at),
        "updated_at": iso(value.updated_at) if value.updated_at else None,
    }


GET = Rule("blazar:floatingips:get", READER, "List and show the addresses that can be reserved.")
POST = Rule("blazar:floatingips:post", ADMIN, "Register an address.")
DELETE = Rule("blazar:floatingips:delete", ADMIN, "Unregister an address.")


_handlers = Handlers(form_of(FLOATING_IP, "floating_ip_id"))


_rows = NounRows(
    root=Root.V1,
    path="/floatingips",
    key=in_path("floating_ip_id", "the id of the address", policy_name="floatingip_id"),
    listed=an_object({"floatingips": a_list(ref("FloatingIp"))}),
    shown=an_object({"floatingip": ref("FloatingIp")}),
    render=lambda found: {"floatingip": floating_ip(found)},
)
_CREATED = Body(
    "FloatingIpCreate",
    FLOATING_IP_CREATE,
    ({"floating_network_id": _NETWORK_ID, "floating_ip_address": "203.0.113.10"},),
)
ROUTES = (
    _rows.list(
        _handlers.index,
        GET,
        "list_floating_ips",
        "List the addresses that can be reserved",
        render=lambda found: {"floatingips": [floating_ip(address) for address in found]},
    ),
    _rows.create(_handlers.create, POST, "create_floating_ip", "Register an address", _CREATED),
    _rows.show(_handlers.show, GET, "show_floating_ip", "Show an address"),
    _rows.delete(_handlers.delete, DELETE, "delete_floating_ip", "Unregister an address"),
)

PART = Part(
    "floating IPs",
    routes=only_at_1_0(ROUTES, instead="/v1/resources/floatingip"),
    rules=(GET, POST, DELETE),
    components=COMPONENTS,
    reservations=RESERVATIONS,
    fields=FIELDS,
)
