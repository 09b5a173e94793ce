# SPDX-License-Identifier: Apache-2.0
"""``/v1/floatingips``: the addresses that can be reserved. Version 2 does not serve them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from blazar.api.kinds.floating_ips.components import (
    COMPONENTS,
    FIELDS,
    FLOATING_IP_CREATE,
    KEYS,
    RESERVATIONS,
    floating_ip,
)
from blazar.api.kinds.handlers import Handlers, form_of
from blazar.api.kinds.lists import resource_list
from blazar.api.queries import filter_by
from blazar.api.readers import Flag, Text
from blazar.api.routes import ADMIN, READER, Body, Caching, Part, Root, Route, Rule, in_path, within
from blazar.api.shapes import Json, a_list, an_object, ref
from blazar.model.clock import zulu
from blazar.model.resource import FLOATING_IP, Resource

GET = Rule("blazar:floatingips:get", READER, "List and show the addresses that can be reserved.")
POST = Rule("blazar:floatingips:post", ADMIN, "Register an address.")
DELETE = Rule("blazar:floatingips:delete", ADMIN, "Unregister an address.")


_plain = Handlers(form_of(FLOATING_IP, "floating_ip_id"))
_located = Handlers(
    form_of(FLOATING_IP, "floating_ip_id", url=lambda address: f"/v1/floatingips/{address.external_id}")
)


def _shown(found: Resource) -> Json:
    return {"floatingip": floating_ip(found)}


_ONE = an_object({"floatingip": ref("FloatingIp")})
_ID = in_path("floating_ip_id", "the id of the address", policy_name="floatingip_id")
_on_list = partial(Route, root=Root.V1, path="/floatingips", json_twin=True)
_on_address = partial(Route, root=Root.V1, path="/floatingips/{floating_ip_id}", parameters=(_ID,))

_OF_1_0 = (
    _on_list(
        method="GET",
        name="list_floating_ips",
        summary="List the addresses that can be reserved",
        handler=_plain.index,
        rule=GET,
        render=lambda found: {"floatingips": [floating_ip(each) for each in found]},
        answers={200: an_object({"floatingips": a_list(ref("FloatingIp"))})},
    ),
    _on_list(
        method="POST",
        name="create_floating_ip",
        summary="Register an address",
        handler=_plain.create,
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
        handler=_plain.show,
        rule=GET,
        render=_shown,
        answers={200: _ONE},
        errors=(404,),
    ),
    _on_address(
        method="DELETE",
        name="delete_floating_ip",
        summary="Unregister an address",
        handler=_plain.delete,
        rule=DELETE,
        answers={204: None},
        errors=(404, 409),
    ),
)
_LIST, _CREATE, _SHOW, _DELETE = _OF_1_0


def _shown_1_1(found: Resource) -> Json:
    return {"floatingip": floating_ip(found, zulu)}


_ONE_1_1 = an_object({"floatingip": ref("FloatingIp1_1")})
_SINCE_1_1 = (
    resource_list(
        FLOATING_IP,
        "floatingips",
        partial(floating_ip, date=zulu),
        item=ref("FloatingIpInList1_1"),
        sort_keys=("created_at", "updated_at", "floating_ip_address", "floating_network_id"),
        parameters=(
            filter_by("floating_network_id", Text(), "the network"),
            filter_by("subnet_id", Text(), "the subnet"),
            filter_by("floating_ip_address", Text(), "the address"),
            filter_by("reservable", Flag(), "whether it takes new leases"),
        ),
        fields=KEYS,
        path=_LIST.path,
        name=_LIST.name,
        summary=_LIST.summary,
        rule=GET,
    ),
    replace(
        _CREATE,
        handler=_located.create,
        render=_shown_1_1,
        answers={201: _ONE_1_1},
        caching=Caching.NONE,
        json_twin=False,
        since=(1, 1),
    ),
    replace(_SHOW, render=_shown_1_1, answers={200: _ONE_1_1}, since=(1, 1)),
    replace(_DELETE, since=(1, 1)),
)

PART = Part(
    "floating IPs",
    routes=(*within(_OF_1_0, until=(1, 0)), *_SINCE_1_1),
    rules=(GET, POST, DELETE),
    components=COMPONENTS,
    reservations=RESERVATIONS,
    fields=FIELDS,
)
