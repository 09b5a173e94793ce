# SPDX-License-Identifier: Apache-2.0
"""``/v1/os-hosts`` and ``/v2/os-hosts``: the same handlers and rules, each with the format of its version."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from blazar.api.kinds import lists
from blazar.api.kinds.handlers import Handlers, form_of
from blazar.api.kinds.hosts import allocations, components, formats, full, hypervisors, properties, render, v2
from blazar.api.kinds.hosts.formats import HostFormat
from blazar.api.kinds.hosts.requests import HOST_ID
from blazar.api.kinds.hosts.rules import DELETE, GET, POST, PUT, REFRESH
from blazar.api.routes import Part, Root, Route, within
from blazar.api.shapes import a_list, enclosed, in_envelope, ref
from blazar.model.clock import zulu
from blazar.model.resource import HOST, Resource


def _handlers(form: HostFormat) -> Handlers:
    return Handlers(
        form_of(
            HOST,
            "host_id",
            form.request,
            id_of=lambda path: form.host_id(path["host_id"]),
            change=lambda body, _: form.change(body),
        )
    )


def _routes(root: Root, form: HostFormat) -> tuple[Route, ...]:
    """Return the routes of hosts that every version has, in one format."""
    handlers = _handlers(form)
    suffix = "_v2" if root is Root.V2 else ""
    one, many = in_envelope(form.one, ref(form.component)), in_envelope(form.many, a_list(ref(form.component)))

    def shown(host: Resource) -> Any:
        return enclosed(form.one, form.shown(host))

    def listed(hosts: Sequence[Resource]) -> Any:
        return enclosed(form.many, [form.shown(host) for host in hosts])

    on_list = partial(Route, root=root, path="/os-hosts", json_twin=True)
    on_host = partial(Route, root=root, path="/os-hosts/{host_id}", parameters=(HOST_ID,))
    return (
        on_list(
            method="GET",
            name=f"list_hosts{suffix}",
            summary="List hosts",
            handler=handlers.index,
            rule=GET,
            render=listed,
            answers={200: many},
        ),
        on_list(
            method="POST",
            name=f"create_host{suffix}",
            summary="Register a host",
            handler=handlers.create,
            rule=POST,
            body=form.created,
            render=shown,
            answers={201: one},
            errors=(404, 409),
        ),
        on_host(
            method="GET",
            name=f"show_host{suffix}",
            summary="Show a host",
            handler=handlers.show,
            rule=GET,
            render=shown,
            answers={200: one},
            errors=(404,),
        ),
        on_host(
            method="PUT",
            name=f"update_host{suffix}",
            summary="Set and remove capabilities",
            handler=handlers.update,
            rule=PUT,
            body=form.changed,
            render=shown,
            answers={200: one},
            errors=(404, 409),
        ),
        on_host(
            method="DELETE",
            name=f"delete_host{suffix}",
            summary="Unregister a host",
            handler=handlers.delete,
            rule=DELETE,
            answers={204: None},
            errors=(404, 409),
        ),
    )


_REFRESH_1_0 = Route(
    root=Root.V1,
    method="POST",
    path="/os-hosts/{host_id}/refresh",
    name="refresh_host",
    summary="Refresh a host's data from the cloud",
    handler=_handlers(formats.V1).refresh,
    rule=REFRESH,
    render=lambda host: {"host": formats.V1.shown(host)},
    answers={200: in_envelope("host", ref("Host"))},
    errors=(404, 409),
    parameters=(HOST_ID,),
    json_twin=True,
    until=(1, 0),
)
_REFRESH = replace(
    _REFRESH_1_0,
    render=lambda host: {"host": render.host(host, zulu)},
    answers={200: in_envelope("host", ref("RefreshedHost1_1"))},
    json_twin=False,
    since=(1, 1),
    until=None,
)

PART = Part(
    "hosts",
    routes=(
        *within(_routes(Root.V1, formats.V1), until=(1, 0)),
        *full.ROUTES,
        *hypervisors.ROUTES,
        *allocations.ROUTES,
        _REFRESH_1_0,
        _REFRESH,
        *properties.ROUTES,
        *_routes(Root.V2, formats.V2),
    ),
    rules=(GET, POST, PUT, DELETE, *allocations.RULES, REFRESH, *properties.RULES, *hypervisors.RULES),
    components={
        **components.COMPONENTS,
        **lists.COMPONENTS,
        **full.COMPONENTS,
        **hypervisors.COMPONENTS,
        **v2.COMPONENTS,
    },
    reservations=components.RESERVATIONS,
    fields=components.FIELDS,
    controller="oshosts",
)
