# SPDX-License-Identifier: Apache-2.0
"""What is asked of each route, by its name. A route that is not here fails the test.

Placeholders in braces stand for the names of the caller's project, of the other one, and of nobody.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from blazar.api.http.routes import Route
from tests.prices import a_document
from tests.rules import a_rule

BOTH = ("1.0", "1.1")
"""The lowest version and the newest, which has all that those between have."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A request, and the status that a member gets who names what is the own project's."""

    status: int = 200
    query: str = ""
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    at: Sequence[str] = BOTH
    """The versions of version 1 in which this makes sense; version 2 takes the place of 1.0."""
    writes: bool = False
    """Something is different afterwards."""

    def names(self, row: Route) -> bool:
        """Return whether it names anything that could be foreign."""
        return re.search(r"\{(?!my_)\w+\}", f"{row.url} {self.query} {self.body}") is not None


def _only(version: str, *asks: Ask) -> tuple[Ask, ...]:
    return tuple(Ask(each.status, each.query, each.body, each.headers, (version,), each.writes) for each in asks)


def _old(*asks: Ask) -> tuple[Ask, ...]:
    return _only("1.0", *asks)


def _new(*asks: Ask) -> tuple[Ask, ...]:
    return _only(BOTH[1], *asks)


def _host(version: str = "1.0", **more: Any) -> dict[str, Any]:
    old = {"hypervisor_properties": "", "resource_properties": ""} if version == "1.0" else {}
    return {"resource_type": "physical:host", "min": 1, "max": 1, **old, **more}


def _lease(*reservations: dict[str, Any], days: str = "05-01", **more: Any) -> dict[str, Any]:
    dates = {"start_date": f"2031-{days} 10:00", "end_date": f"2031-{days} 12:00"}
    return {"name": "mine", **dates, "reservations": list(reservations), **more}


def _series(*reservations: dict[str, Any]) -> dict[str, Any]:
    when = {"rule": "FREQ=DAILY;COUNT=2", "start": "2030-08-12T10:00", "duration": "PT1H"}
    return {"name": "mine", **when, "reservations": list(reservations)}


def _soon(*reservations: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a lease for a time in which almost all is promised or out of use."""
    dates = {"start_date": "2030-04-03 12:30", "end_date": "2030-04-03 20:00"}
    return {**_lease(*reservations), **dates, **more}


def _of_servers(**more: Any) -> dict[str, Any]:
    servers = {"amount": 1, "vcpus": 1, "memory_mb": 1024, "disk_gb": 10}
    return {"resource_type": "virtual:instance", **servers, "affinity": None, "resource_properties": "", **more}


def _of_flavor(**more: Any) -> dict[str, Any]:
    return {"resource_type": "flavor:instance", "amount": 1, "flavor_id": "{flavor}", "affinity": None, **more}


def _of_addresses(**more: Any) -> dict[str, Any]:
    return {"resource_type": "virtual:floatingip", "network_id": "public", "amount": 1, **more}


_TOO_MANY = {"min": 5, "max": 5}
_PRIVATE = json.dumps(["==", "${name}", "A100"])
_REFUSED = (
    Ask(409, body=_soon(_host(**_TOO_MANY))),
    Ask(409, body=_soon(_of_servers(amount=999))),
    Ask(409, body=_soon(_of_flavor(amount=999))),
    Ask(409, body=_soon(_of_addresses(amount=2, required_floatingips=["203.0.113.11"]))),
    Ask(409, body=_soon(_host(), _host(**_TOO_MANY))),
)
"""Requests for leases that are refused for want of resources, whichever version they are in."""

_CREATE = (
    *_REFUSED,
    *_old(
        Ask(400, body={"name": "{lease}"}),
        Ask(400, body=_lease(_host(), project_id="{project}", events=[])),
        Ask(409, body=_lease(_host(min=9, max=9, resource_properties=_PRIVATE))),
        Ask(201, body=_lease(_host(), events=[]), writes=True),
    ),
    *_new(
        Ask(400, body={"name": "{lease}"}),
        Ask(400, body=_lease(_host(), project_id="{project}")),
        Ask(409, body=_lease(_host(min=9, max=9, resource_properties=_PRIVATE))),
        Ask(200, "dry_run=true", _lease(_host(resource_properties=_PRIVATE))),
        Ask(200, "dry_run=true", _lease(_of_flavor())),
        Ask(409, "dry_run=true", _soon(_host(**_TOO_MANY))),
        Ask(201, body=_lease(_host()), headers={"Idempotency-Key": "the-same"}, writes=True),
        Ask(201, body=_lease(_host()), headers={"Idempotency-Key": "the-same"}, writes=True),
    ),
)
_UPDATE = (
    Ask(200, body={"name": "renamed"}, writes=True),
    *_old(
        Ask(409, body={"end_date": "2030-04-09 12:00"}),
        Ask(409, body={"reservations": [{"id": "{reservation}", "min": 5, "max": 5}]}),
    ),
    *_new(
        Ask(409, body={"end_date": "+P9D"}),
        Ask(409, "dry_run=true", {"end_date": "+P9D"}),
        Ask(409, body={"reservations": [{"id": "{reservation}", "min": 5, "max": 5}]}),
        # The project that the lease has could be sent back.
        Ask(400, body={"project_id": "{project}x"}),
        Ask(400, body={"colour": "red"}),
        Ask(400, "colour=red", {"name": "x"}),
        Ask(412, body={"name": "x"}, headers={"If-Match": '"99.1.m"'}),
    ),
)
_DELETE = Ask(204, writes=True)
_HOST_ONLY = Ask(403)

ASKS: Mapping[str, Sequence[Ask]] = {
    "versions": [Ask(300)],
    "versions_too": [Ask(300)],
    "healthcheck": [Ask()],
    "openapi": [Ask()],
    "version": [Ask()],
    "version_too": [Ask()],
    "list_leases": [
        Ask(),
        *_old(Ask(query="project_id={project}"), Ask(query="all_tenants=1")),
        *_new(
            Ask(query="state=all&with_count=true"),
            Ask(query="state=past&with_count=true&limit=1"),
            Ask(query="limit=2&sort_key=name&sort_dir=desc"),
            Ask(query="state=all&id={lease}&with_count=true"),
            Ask(query="state=all&id=in:{my_lease},{lease}&with_count=true"),
            Ask(query="state=all&user_id={user}"),
            Ask(query="state=all&project_id={project}"),
            Ask(query="state=all&resource={label}&with_count=true"),
            Ask(query="state=all&resource={host}"),
            Ask(query="state=all&marker={lease}"),
            Ask(query="state=all&sort_key=start_date&marker={lease}"),
            Ask(query="fields=name,events,conditions&state=all"),
            Ask(400, query="colour=red"),
        ),
    ],
    "create_lease": _CREATE,
    "show_lease": [Ask(), *_new(Ask(query="fields=name,reservations"), Ask(200, headers={"If-None-Match": '"0.1.m"'}))],
    "update_lease": _UPDATE,
    "delete_lease": [*_new(Ask(412, headers={"If-Match": '"99.1.m"'})), _DELETE],
    "keep_lease": _new(Ask(409)),
    "confirm_lease": _new(Ask(409)),
    "hold_lease": _new(Ask(403)),
    "let_go_of_lease": _new(Ask(403)),
    "list_lease_history": _new(Ask(200)),
    "show_lease_energy": _new(Ask(200)),
    "list_history": _new(
        Ask(200, query="with_count=true"),
        Ask(200, query="after=1&object_type=lease"),
        Ask(200, query="object_id={lease}"),
        Ask(200, query="by={user}"),
        Ask(200, query="project_id={project}"),
    ),
    "merge_leases": [Ask(400, body={"with": "{lease}"}), Ask(400, body={"with": "{lease}x"})],
    "offer_lease": [
        Ask(200, query="dry_run=true", body={"project_id": "somewhere"}),
        Ask(400, body={"project_id": "{project}"}),
        Ask(400, body={}),
    ],
    "withdraw_lease_offer": _new(Ask(404)),
    "list_transfers": _new(Ask(200), Ask(200, query="with_count=true"), Ask(400, query="marker={lease}")),
    "show_transfer": _new(Ask(404)),
    "accept_transfer": _new(Ask(404)),
    "decline_transfer": _new(Ask(404)),
    "split_lease": [
        Ask(400, body={"reservations": [{"id": "{reservation}"}]}),
        Ask(400, body={"reservations": [{"id": "x", "resources": ["{label}"]}]}),
        Ask(400, body={"at": "2029-05-01T10:00:00Z"}),
    ],
    "swap_host": [
        Ask(400, body={"host": "{host}"}),
        Ask(400, query="dry_run=true", body={"host": "{label}"}),
        Ask(403, body={"host": "{label}", "for": "{label}"}),
        Ask(400, body={"host": "x", "for": "y", "with": {"lease_id": "{lease}", "reservation_id": "{reservation}"}}),
    ],
    "list_hosts_in_lease": _old(Ask()),
    "list_networks_in_lease": _old(Ask()),
    "list_devices_in_lease": _old(Ask()),
    "list_leases_v2": [Ask(), Ask(query="project_id={project}")],
    "create_lease_v2": [*_REFUSED, *_old(Ask(201, body=_lease(_host(), events=[]), writes=True))],
    "show_lease_v2": [Ask()],
    "update_lease_v2": [
        Ask(409, body={"end_date": "2030-04-09 12:00"}),
        Ask(409, body={"reservations": [{"id": "{reservation}", "min": 5, "max": 5}]}),
        Ask(200, body={"name": "renamed"}, writes=True),
    ],
    "delete_lease_v2": [_DELETE],
    "list_hosts": [_HOST_ONLY, *_new(Ask(403, "project_id={project}"))],
    "create_host": [Ask(403, body={"name": "{host}"})],
    "show_host": [_HOST_ONLY],
    "update_host": [Ask(403, body={"disabled": None}), Ask(403, body={"colour": "{project}"})],
    "delete_host": [_HOST_ONLY],
    "list_allocations": [_HOST_ONLY, Ask(403, "lease_id={lease}"), Ask(403, "reservation_id={reservation}")],
    "show_allocation": [_HOST_ONLY, Ask(403, "lease_id={lease}")],
    "move_reservation": [Ask(403, body={"reservation_id": "{reservation}"}), Ask(403, body={"lease_id": "{lease}"})],
    "refresh_host": [_HOST_ONLY],
    "list_properties": [_HOST_ONLY, Ask(403, "detail=true")],
    "set_property": [Ask(403, body={"private": False})],
    "list_hosts_v2": [_HOST_ONLY],
    "create_host_v2": [Ask(403, body={"name": "{host}"})],
    "show_host_v2": [_HOST_ONLY],
    "update_host_v2": [Ask(403, body={"extra_capas": {}})],
    "delete_host_v2": [_HOST_ONLY],
    "list_floating_ips": [Ask()],
    "create_floating_ip": [Ask(403, body={"floating_network_id": "public", "floating_ip_address": "203.0.113.13"})],
    "show_floating_ip": [Ask()],
    "delete_floating_ip": [_HOST_ONLY],
    "list_networks": [_HOST_ONLY],
    "list_devices": [_HOST_ONLY],
    "create_network": [Ask(403, body={"network_type": "vlan", "physical_network": "physnet1", "segment_id": 102})],
    "show_network": [_HOST_ONLY],
    "update_network": [Ask(403, body={"rack": "{name}"})],
    "delete_network": [_HOST_ONLY],
    "list_network_allocations": [_HOST_ONLY, Ask(403, "lease_id={lease}")],
    "show_network_allocation": [_HOST_ONLY],
    "list_network_properties": [_HOST_ONLY],
    "set_network_property": [Ask(403, body={"private": False})],
    "create_device": [Ask(403, body={"name": "edge-1", "device_driver": "none"})],
    "show_device": [_HOST_ONLY],
    "update_device": [Ask(403, body={"rack": "{name}"})],
    "delete_device": [_HOST_ONLY],
    "list_device_allocations": [_HOST_ONLY, Ask(403, "lease_id={lease}")],
    "show_device_allocation": [_HOST_ONLY],
    "move_device_reservation": [Ask(403, body={"lease_id": "{lease}"})],
    "list_device_properties": [_HOST_ONLY],
    "set_device_property": [Ask(403, body={"private": False})],
    "list_kinds": [Ask()],
    "list_resources": [
        Ask(),
        Ask(query="limit=2&with_count=true&fields=name,properties"),
        Ask(query="sort_key=label&sort_dir=desc"),
        Ask(query="label=in:{label},{my_label}&with_count=true"),
        Ask(query="name={host}"),
        Ask(query="text={label}"),
        Ask(query="marker={label}"),
        Ask(query="property={name}:A100"),
        Ask(query="sort_key=property:{name}"),
        Ask(query='requirement=["==","${name}","x"]'),
        Ask(400, query="condition=in:ok,failed"),
        Ask(400, query="maintenance_before=now"),
        Ask(400, query="project_id={project}"),
        Ask(400, query="sort_key=created_at"),
    ],
    "register_resource": [Ask(403, body={"name": "{host}"})],
    "show_resource": [Ask(), Ask(headers={"If-None-Match": '"0.1.m"'})],
    "update_resource": [Ask(403, body={"disabled": None}), Ask(403, body={"authorized_projects": ["{project}"]})],
    "unregister_resource": [_HOST_ONLY],
    "refresh_resource": [_HOST_ONLY],
    "list_resource_allocations": [_HOST_ONLY, Ask(403, "lease_id={lease}")],
    "show_resource_allocations": [_HOST_ONLY, Ask(403, "reservation_id={reservation}")],
    "move_resource_reservation": [Ask(403, body={"reservation_id": "{reservation}"})],
    "list_candidates": [_HOST_ONLY],
    "list_properties_of_resources": [_HOST_ONLY],
    "set_property_of_resources": [Ask(403, body={"private": False})],
    "show_calendar": [
        Ask(query="from=2030-04-01T00:00Z&to=%2BP9D"),
        Ask(query="from=2030-04-01T00:00Z&to=%2BP9D&limit=2&with_count=true&fields=blocks"),
        Ask(query="resource={label}&with_count=true"),
        Ask(query="resource={host}&with_count=true"),
        Ask(query="occupied_by=me"),
        Ask(query="resource_type=virtual:floatingip"),
        Ask(query='requirement=["==","${name}","x"]'),
        Ask(query="sort_key={name}"),
        Ask(query="marker={label}"),
    ],
    "show_capacity": [
        Ask(query="to=%2BP9D"),
        Ask(query="to=%2BP2D&group_by=gpu&measure=VCPU"),
        Ask(query="group_by={name}"),
        Ask(400, query="group_by=project_id"),
        Ask(query='requirement=["==","${name}","x"]'),
    ],
    "summarize_properties": [Ask(), Ask(query="resource_type=virtual:floatingip")],
    "list_feeds": [
        Ask(query="with_count=true"),
        Ask(query="user_id={user}"),
        Ask(query="project_id={project}"),
        Ask(query="marker={feed}"),
    ],
    "create_feed": [
        Ask(403, body={"kind": "resource", "name": "x", "resource": "{label}"}),
        Ask(400, body={"kind": "free_busy", "name": "x", "requirement": ["==", "$colour", "x"]}),
        Ask(201, body={"kind": "free_busy", "name": "x", "requirement": ["==", "${name}", "x"]}, writes=True),
        Ask(201, body={"kind": "project", "name": "x"}, writes=True),
    ],
    "show_feed": [Ask()],
    "delete_feed": [_DELETE],
    "read_feed": [Ask()],
    "list_subscriptions": [
        Ask(query="with_count=true"),
        Ask(query="project_id={project}"),
        Ask(query="marker={subscription}"),
    ],
    "create_subscription": [
        Ask(201, body={"url": "https://ci.example/", "events": ["lease.*"]}, writes=True),
        Ask(400, body={"url": "https://ci.example/", "events": ["lease.x"], "lease_id": "{lease}"}),
        Ask(403, body={"url": "https://ci.example/", "events": ["lease.*"], "project_id": None}),
    ],
    "show_subscription": [Ask()],
    "show_own_subscription": [Ask()],
    "update_own_subscription": [Ask(body={"events": []}, writes=True)],
    "show_unsubscribing": [Ask(404)],
    "unsubscribe": [Ask(404)],
    "update_subscription": [Ask(body={"state": "paused"}, writes=True)],
    "delete_subscription": [_DELETE],
    "test_subscription": [Ask(202, writes=True)],
    "replay_subscription": [Ask(202, body={"after": 0}, writes=True), Ask(400, body={"after": 10**9})],
    "list_failures_of_subscription": [Ask(), Ask(query="with_count=true")],
    "list_maintenances": [Ask(403), Ask(403, query="status=ACTIVE")],
    "create_maintenance": [
        Ask(403, body={"name": "x", "start_date": "now", "end_date": "+P1D", "hosts": ["{host}"]}),
        Ask(403, query="dry_run=true", body={"name": "x", "start_date": "now", "end_date": "+P1D", "hosts": ["1"]}),
    ],
    "show_maintenance": [Ask(403)],
    "update_maintenance": [Ask(403, body={"name": "x"})],
    "delete_maintenance": [Ask(403)],
    "end_maintenance": [Ask(403)],
    "list_managers": [Ask(403)],
    "show_power": [Ask(403)],
    "list_power_of_hosts": [Ask(403), Ask(403, query="state=off")],
    "show_power_of_host": [Ask(403)],
    "update_power_of_host": [Ask(403, body={"policy": "keep"})],
    "wake_host": [Ask(403)],
    "list_power_log_of_host": [Ask(403)],
    "list_power_of_pools": [Ask(403)],
    "show_power_of_pool": [Ask(403)],
    "update_power_of_pool": [Ask(403, body={"policy": "keep"})],
    "wake_pool": [Ask(403)],
    "list_power_log_of_pool": [Ask(403)],
    "list_statements": [Ask(), Ask(403, query="all_projects=true"), Ask(query="project_id={project}")],
    "show_statement": [Ask(404), Ask(404, query="format=focus")],
    "list_charges": [Ask(), Ask(403, query="all_projects=true"), Ask(query="project_id={project}")],
    "correct_charge": [Ask(403, body={"corrects": 1, "amount": "-1", "reason": "slow"})],
    "list_price_lists": [Ask()],
    "show_price_list": [Ask()],
    "publish_price_list": [Ask(403, body=a_document()), Ask(403, query="dry_run=true", body=a_document())],
    "list_rules": [Ask()],
    "show_rule": [Ask()],
    "write_rule": [Ask(403, body=a_rule())],
    "delete_rule": [Ask(403)],
    "list_budgets": [Ask(), Ask(403, query="all_projects=true"), Ask(query="project_id={project}")],
    "show_usage": [
        Ask(query="group_by=project,user,lease_kind"),
        Ask(query="group_by=property,region&property=gpu&step=day"),
        Ask(query="project_id={project}"),
    ],
    "show_used_capacity": [
        Ask(),
        Ask(query="group_by=property,region,kind&property=gpu&step=day"),
    ],
    "show_demand": [
        Ask(query="group_by=project,resource_type,code,requirement&step=day"),
        Ask(query="project_id={project}"),
    ],
    "show_forecast": [Ask(query="days=3"), Ask(query="group_by=region")],
    "list_problems": [Ask(403), Ask(403, query="lease_id={lease}")],
    "show_problem": [Ask(403)],
    "act_on_problem": [Ask(403, body={"reason": "x"})],
    "list_series": [Ask(query="with_count=true"), Ask(query="project_id={project}"), Ask(query="marker={series}")],
    "create_series": [
        Ask(201, body=_series(_host("1.1")), writes=True),
        Ask(409, body=_series(_host("1.1", **_TOO_MANY))),
    ],
    "show_series": [Ask()],
    "update_series": [
        Ask(body={"name": "x"}, writes=True),
        Ask(400, body={"from": "2030-08-06T10:00", "name": "x"}),
    ],
    "delete_series": [_DELETE],
    "find_availability": [
        Ask(body={"reservations": [_host("1.1")], "duration": "P2D", "latest": "+P20D", "limit": 20}),
        Ask(body={"reservations": [_host("1.1", **_TOO_MANY)], "duration": "P1D"}),
        Ask(body={key: value for key, value in _soon(_host("1.1", **_TOO_MANY)).items() if key != "name"}),
        Ask(body={"reservations": [_of_servers(amount=500)], "duration": "P2D"}),
        Ask(body={"reservations": [_of_flavor()], "duration": "P2D"}),
        Ask(body={"reservations": [_of_addresses(amount=3)], "duration": "P1D"}),
        Ask(body={"reservations": [_of_addresses(required_floatingips=["203.0.113.11"])], "duration": "P1D"}),
        Ask(body={"reservations": [_host("1.1", resource_properties=["==", "${name}", "x"])], "duration": "P2D"}),
        Ask(body={"lease_id": "{lease}"}),
        Ask(body={"lease_id": "{lease}", "end_date": "2030-04-09T12:00Z"}),
        Ask(
            400,
            body={"lease_id": "{my_lease}", "reservations": [{"id": "{event}", "min": 2}], "end_date": "2030-04-09"},
        ),
    ],
    "show_info": [Ask()],
}
