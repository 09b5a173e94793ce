# SPDX-License-Identifier: Apache-2.0
"""A policy file written for 1.0 keeps its meaning: what its rules deny no newer route grants.

Every route that changes something is asked with requests that work, on leases and resources that are there. Each has
the rules of 1.0 whose effect it has; a route that nobody has put into ``EFFECTS`` or ``NO_EFFECT`` fails the walk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from blazar.api.http.context import EXTENSION, Services
from blazar.api.http.microversion import as_text
from blazar.api.http.routes import Route
from blazar.api.parts import BUILTIN, list_rules
from blazar.manager.common.settings import Settings
from blazar.model.leases.requests import Actor, LeaseRequest
from blazar.model.leases.states import EventType
from blazar.model.maintenance.windows import MaintenanceRequest
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST, NETWORK
from blazar.model.surgery import OfferRequest, Terms
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy
from blazar.store.sql.tables import metadata
from tests.api.conftest import app_of, token
from tests.api.http.test_policy import policy
from tests.world import NOON, PROJECT, World, a_host, a_series, addresses, devices

HOUR = timedelta(hours=1)
ROLES = "member,reader,admin,booker"
CURIE, TURING = "curie", "turing"
POST, PUT, DELETE = "blazar:leases:post", "blazar:leases:put", "blazar:leases:delete"
HOSTS, ADDRESSES, NETWORKS, DEVICES = ("blazar:oshosts:", "blazar:floatingips:", "blazar:networks:", "blazar:devices:")

EFFECTS: Mapping[str, tuple[str, ...]] = {
    "create_lease": (POST,),
    "update_lease": (PUT,),
    "delete_lease": (DELETE,),
    "create_lease_v2": (POST,),
    "update_lease_v2": (PUT,),
    "delete_lease_v2": (DELETE,),
    "keep_lease": (PUT,),
    "confirm_lease": (PUT,),
    "hold_lease": (PUT,),
    "let_go_of_lease": (PUT,),
    "create_series": (POST,),
    "update_series": (POST, PUT, DELETE),
    "delete_series": (DELETE,),
    "swap_host": (PUT,),
    "split_lease": (PUT, POST),
    "merge_leases": (PUT, DELETE),
    "offer_lease": (PUT, DELETE),
    "withdraw_lease_offer": (PUT,),
    "accept_transfer": (POST,),
    "create_host": (f"{HOSTS}post",),
    "update_host": (f"{HOSTS}put",),
    "delete_host": (f"{HOSTS}delete",),
    "create_host_v2": (f"{HOSTS}post",),
    "update_host_v2": (f"{HOSTS}put",),
    "delete_host_v2": (f"{HOSTS}delete",),
    "move_reservation": (f"{HOSTS}reallocate",),
    "refresh_host": (f"{HOSTS}refresh",),
    "set_property": (f"{HOSTS}update_resource_properties",),
    "create_floating_ip": (f"{ADDRESSES}post",),
    "delete_floating_ip": (f"{ADDRESSES}delete",),
    "create_network": (f"{NETWORKS}post",),
    "update_network": (f"{NETWORKS}put",),
    "delete_network": (f"{NETWORKS}delete",),
    "set_network_property": (f"{NETWORKS}update_resource_properties",),
    "create_device": (f"{DEVICES}post",),
    "update_device": (f"{DEVICES}put",),
    "delete_device": (f"{DEVICES}delete",),
    "move_device_reservation": (f"{DEVICES}reallocate",),
    "set_device_property": (f"{DEVICES}update_resource_properties",),
    "create_maintenance": (f"{HOSTS}put", f"{HOSTS}reallocate"),
    "update_maintenance": (f"{HOSTS}put", f"{HOSTS}reallocate"),
    "delete_maintenance": (f"{HOSTS}put",),
    "end_maintenance": (f"{HOSTS}put",),
    "act_on_problem": (DELETE, f"{HOSTS}put"),
}
"""The rules of 1.0 whose effect a route has; those of ``/v1/resources`` are in ``OF_KIND``."""

OF_KIND: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "register_resource": {
        "host": (f"{HOSTS}post",),
        "floatingip": (f"{ADDRESSES}post",),
        "network": (f"{NETWORKS}post",),
        "device": (f"{DEVICES}post",),
    },
    "update_resource": {
        "host": (f"{HOSTS}put",),
        "floatingip": (f"{ADDRESSES}post",),
        "network": (f"{NETWORKS}put",),
        "device": (f"{DEVICES}put",),
    },
    "unregister_resource": {
        "host": (f"{HOSTS}delete",),
        "floatingip": (f"{ADDRESSES}delete",),
        "network": (f"{NETWORKS}delete",),
        "device": (f"{DEVICES}delete",),
    },
    "move_resource_reservation": {
        "host": (f"{HOSTS}reallocate",),
        "floatingip": (f"{ADDRESSES}post",),
        "device": (f"{DEVICES}reallocate",),
    },
    "refresh_resource": {"host": (f"{HOSTS}refresh",), "host.json": (f"{HOSTS}refresh",)},
    "set_property_of_resources": {
        "host": (f"{HOSTS}update_resource_properties",),
        "network": (f"{NETWORKS}update_resource_properties",),
        "device": (f"{DEVICES}update_resource_properties",),
    },
}

NO_EFFECT: Mapping[str, str] = {
    "find_availability": "a question",
    "publish_price_list": "what leases cost",
    "write_rule": "when projects may have leases: for all versions",
    "delete_rule": "when projects may have leases: for all versions",
    "correct_charge": "what leases cost",
    "update_power_of_host": "by what a host is switched: 1.0 switches none",
    "wake_host": "power that a host would have where none is switched",
    "update_power_of_pool": "by what a pool is switched: 1.0 switches none",
    "wake_pool": "power that a pool would have where none is switched",
    "create_feed": "a link to read by",
    "delete_feed": "a link to read by",
    "create_subscription": "a message to read",
    "update_subscription": "a message to read",
    "update_own_subscription": "a message to read",
    "delete_subscription": "a message to read",
    "test_subscription": "a message to read",
    "replay_subscription": "a message to read",
    "decline_transfer": "the lease stays with its owner, as if nothing had been offered",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request that works: its URL, its body, and who sends it, by default the owner of the leases."""

    url: str
    body: Mapping[str, Any] | None = None
    user: str = CURIE
    project: str = PROJECT


LEASE = {
    "name": "new",
    "start_date": "2030-04-03 08:00",
    "end_date": "2030-04-03 09:00",
    "reservations": [
        {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
    ],
}
SERIES = {
    "name": "new",
    "start": "2030-04-03T08:00",
    "rule": "FREQ=DAILY;COUNT=2",
    "duration": "PT1H",
    "reservations": [{"resource_type": "physical:host", "min": 1}],
}
ADDRESS = {"floating_network_id": "public", "floating_ip_address": "203.0.113.77"}
SEGMENT = {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 177}
DEVICE = {"name": "edge-9", "hook_url": "https://edge.example/hook"}
WINDOW = {"name": "disks", "start_date": "2030-04-01T13:00:00Z", "end_date": "+PT2H", "hosts": ["1"]}
RACK = {"rack": "r7"}
PROPERTIES = {"properties": RACK}
PRIVATE = {"private": True}


def lease(world: World, hosts: int = 1) -> str:
    return world.lease(a_host(hosts), start=HOUR).id


def lease_of(world: World, user: str) -> str:
    """Return a lease of another user of the project."""
    made = world.manager.leases.create(
        LeaseRequest("his", user, PROJECT, NOON + HOUR, NOON + 3 * HOUR, reservations=(a_host(),))
    )
    return made.id


def used(world: World) -> str:
    """Return a lease that is about to be released."""
    made = world.lease(hours=96)
    world.run()
    world.run_to(NOON + 6 * HOUR)
    return made.id


def unconfirmed(world: World) -> str:
    """Return a lease that is to be confirmed."""
    return world.lease(start=HOUR, confirm=HOUR / 6).id


def offered(world: World) -> str:
    made = lease(world)
    world.manager.transfers.offer(made, OfferRequest(TURING, None, None), Terms(Actor(CURIE, PROJECT, False)))
    return made


def series(world: World) -> str:
    return world.manager.series.create(a_series()).series.id


def window(world: World) -> str:
    request = MaintenanceRequest("disks", NOON + HOUR, NOON + 3 * HOUR, hosts=("1",))
    made = world.manager.maintenances.create(request).maintenance
    assert made is not None
    return made.id


def late(world: World) -> Asked:
    """Retry the start of a lease that nobody works on, as an operator."""
    lease = world.lease(a_host(), start=HOUR)
    world.clock.to(lease.window.start + timedelta(minutes=2))
    start = lease.event(EventType.START)
    assert start is not None
    return Asked(f"/v1/problems/event:{start.id}/retry", {"reason": "x", "dry_run": False})


def begun(world: World) -> str:
    made = window(world)
    world.run_to(NOON + 2 * HOUR)
    world.manager.maintenance_work.run_once()
    return made


def freed(world: World) -> Mapping[str, Any]:
    """Return a registration of a host that is registered no longer."""
    world.manager.resources.unregister(HOST, "3")
    return {"name": "node-3"}


def address(world: World) -> str:
    return world.register_addresses(10)[0].external_id


def segment(world: World) -> str:
    return world.register_segments(101)[0].external_id


def device(world: World) -> str:
    return world.register_device(rack="r1").external_id


def known_property(world: World, kind: str) -> Mapping[str, Any]:
    """Let resources of a kind have the property ``rack``."""
    match kind:
        case "host":
            world.manager.resources.change(HOST, "1", ResourceChange(RACK))
        case "network":
            world.manager.resources.change(NETWORK, segment(world), ResourceChange(RACK))
        case "device":
            world.register_device(capabilities={"rack": "r1"})
    return PRIVATE


def swap(world: World) -> Asked:
    made = world.lease(a_host(), start=HOUR)
    (label,) = {each.label for each in world.manager.leases.details(made.id).held}
    return Asked(f"/v1/leases/{made.id}/reservations/{made.reservations[0].id}/swap", {"host": label})


def split(world: World) -> Asked:
    made = world.lease(a_host(2), start=HOUR)
    return Asked(f"/v1/leases/{made.id}/split", {"reservations": [{"id": made.reservations[0].id, "count": 1}]})


def move(world: World) -> Asked:
    made = world.lease(a_host(), start=HOUR)
    (held,) = world.manager.leases.details(made.id).held
    return Asked(f"/v1/os-hosts/{held.external_id}/allocation", {"reservation_id": made.reservations[0].id})


def move_device(world: World) -> Asked:
    for name in ("edge-1", "edge-2"):
        world.register_device(name)
    made = world.lease(devices(), start=HOUR)
    (held,) = world.manager.leases.details(made.id).held
    return Asked(f"/v1/devices/{held.external_id}/allocation", {"reservation_id": made.reservations[0].id})


def move_address(world: World) -> Asked:
    world.register_addresses(10, 11)
    made = world.lease(addresses(), start=HOUR)
    (held,) = world.manager.leases.details(made.id).held
    return Asked(f"/v1/floatingips/{held.external_id}/allocation", {"reservation_id": made.reservations[0].id})


MOVED: Mapping[str, Callable[[World], Asked]] = {"host": move, "device": move_device, "floatingip": move_address}


REQUESTS: Mapping[str, Callable[[World], Asked]] = {
    "create_lease": lambda world: Asked("/v1/leases", LEASE),
    "update_lease": lambda world: Asked(f"/v1/leases/{lease(world)}", {"name": "other"}),
    "delete_lease": lambda world: Asked(f"/v1/leases/{lease(world)}"),
    "create_lease_v2": lambda world: Asked("/v2/leases", LEASE),
    "update_lease_v2": lambda world: Asked(f"/v2/leases/{lease(world)}", {"name": "other"}),
    "delete_lease_v2": lambda world: Asked(f"/v2/leases/{lease(world)}"),
    "keep_lease": lambda world: Asked(f"/v1/leases/{used(world)}/keep"),
    "confirm_lease": lambda world: Asked(f"/v1/leases/{unconfirmed(world)}/confirm"),
    "hold_lease": lambda world: Asked(f"/v1/leases/{used(world)}/hold"),
    "let_go_of_lease": lambda world: Asked(f"/v1/leases/{used(world)}/hold"),
    "create_series": lambda world: Asked("/v1/series", SERIES),
    "update_series": lambda world: Asked(f"/v1/series/{series(world)}", {"rule": "FREQ=DAILY;COUNT=6"}),
    "delete_series": lambda world: Asked(f"/v1/series/{series(world)}"),
    "swap_host": swap,
    "split_lease": split,
    "merge_leases": lambda world: Asked(f"/v1/leases/{lease(world)}/merge", {"with": lease(world)}),
    "offer_lease": lambda world: Asked(f"/v1/leases/{lease(world)}/transfer", {"project_id": TURING}),
    "withdraw_lease_offer": lambda world: Asked(f"/v1/leases/{offered(world)}/transfer"),
    "accept_transfer": lambda world: Asked(f"/v1/transfers/{offered(world)}/accept", {}, TURING, TURING),
    "create_host": lambda world: Asked("/v1/os-hosts", freed(world)),
    "update_host": lambda world: Asked("/v1/os-hosts/1", {"authorized_projects": ["physics"]}),
    "delete_host": lambda world: Asked("/v1/os-hosts/1"),
    "create_host_v2": lambda world: Asked("/v2/os-hosts", freed(world)),
    "update_host_v2": lambda world: Asked("/v2/os-hosts/1", {"extra_capas": RACK}),
    "delete_host_v2": lambda world: Asked("/v2/os-hosts/1"),
    "refresh_host": lambda world: Asked("/v1/os-hosts/1/refresh"),
    "set_property": lambda world: Asked("/v1/os-hosts/properties/rack", known_property(world, "host")),
    "move_reservation": move,
    "create_floating_ip": lambda world: Asked("/v1/floatingips", ADDRESS),
    "delete_floating_ip": lambda world: Asked(f"/v1/floatingips/{address(world)}"),
    "create_network": lambda world: Asked("/v1/networks", SEGMENT),
    "update_network": lambda world: Asked(f"/v1/networks/{segment(world)}", RACK),
    "delete_network": lambda world: Asked(f"/v1/networks/{segment(world)}"),
    "set_network_property": lambda world: Asked("/v1/networks/properties/rack", known_property(world, "network")),
    "create_device": lambda world: Asked("/v1/devices", DEVICE),
    "update_device": lambda world: Asked(f"/v1/devices/{device(world)}", RACK),
    "delete_device": lambda world: Asked(f"/v1/devices/{device(world)}"),
    "set_device_property": lambda world: Asked("/v1/devices/properties/rack", known_property(world, "device")),
    "move_device_reservation": move_device,
    "create_maintenance": lambda world: Asked("/v1/maintenances", WINDOW),
    "update_maintenance": lambda world: Asked(f"/v1/maintenances/{window(world)}", {"end_date": "+PT4H"}),
    "delete_maintenance": lambda world: Asked(f"/v1/maintenances/{window(world)}"),
    "end_maintenance": lambda world: Asked(f"/v1/maintenances/{begun(world)}/end"),
    "act_on_problem": late,
}
MADE: Mapping[str, Callable[[World], str]] = {
    "host": lambda _: "1",
    "floatingip": address,
    "network": segment,
    "device": device,
}
REGISTERED: Mapping[str, Callable[[World], Mapping[str, Any]]] = {
    "host": freed,
    "floatingip": lambda _: ADDRESS,
    "network": lambda _: SEGMENT,
    "device": lambda _: DEVICE,
}


def of_kind(name: str, kind: str) -> Callable[[World], Asked]:
    """Return what makes a request of ``/v1/resources`` about a kind."""
    path, real = f"/v1/resources/{kind}", kind.removesuffix(".json")
    match name:
        case "register_resource":
            return lambda world: Asked(path, REGISTERED[real](world))
        case "update_resource":
            return lambda world: Asked(f"{path}/{MADE[real](world)}", PROPERTIES)
        case "refresh_resource":
            return lambda world: Asked(f"{path}/{MADE[real](world)}/refresh")
        case "move_resource_reservation":

            def moved(world: World) -> Asked:
                asked = MOVED[real](world)
                return replace(asked, url=f"{path}/{asked.url.split('/')[3]}/allocations")

            return moved
        case "set_property_of_resources":
            return lambda world: Asked(f"{path}/properties/rack", known_property(world, real))
        case _:
            return lambda world: Asked(f"{path}/{MADE[real](world)}")


ROUTES = [row for part in BUILTIN for row in part.routes if row.method not in ("GET", "HEAD") and not row.is_open]
Case = tuple[Route, Callable[[World], Asked], tuple[str, ...]]
CASES: list[Case] = [
    *((row, REQUESTS[row.name], EFFECTS[row.name]) for row in ROUTES if row.name in EFFECTS),
    *(
        (row, of_kind(row.name, kind), rules)
        for row in ROUTES
        if row.name in OF_KIND
        for kind, rules in OF_KIND[row.name].items()
    ),
]


@pytest.fixture
def on(a_world: Callable[..., World]) -> World:
    return a_world(settings=Settings(use_policies=UsePolicies(UsePolicy(UseMode.ON))))


def send(world: World, folder: Path, row: Route, asked: Asked, text: str, roles: str = ROLES) -> Any:
    """Send a request to a service with a policy file of this text."""
    app = app_of(world.manager)
    services: Services = app.extensions[EXTENSION]
    app.extensions = {EXTENSION: replace(services, policy=policy(folder, text))}
    headers = {"OpenStack-API-Version": f"reservation {as_text(row.since)}"}
    who = token(asked.user, asked.project, roles)
    return app.test_client().open(asked.url, method=row.method, json=asked.body, headers={**headers, **who})


def rows(world: World) -> list[Any]:
    """Return all rows of all tables."""
    with world.engine.connect() as connection:
        return [connection.execute(sa.select(table)).all() for table in metadata.sorted_tables]


def test_each_route_that_changes_something_is_classified():
    names = {row.name for row in ROUTES}
    assert names - EFFECTS.keys() - OF_KIND.keys() == NO_EFFECT.keys()
    assert EFFECTS.keys() == REQUESTS.keys()
    assert EFFECTS.keys() | OF_KIND.keys() <= names


@pytest.mark.sample(5)
@pytest.mark.parametrize(("row", "prepare", "effects"), CASES, ids=lambda value: getattr(value, "name", ""))
def test_what_a_rule_of_1_0_denies_no_route_grants(on, tmp_path, row, prepare, effects):
    asked = prepare(on)
    before = rows(on)
    for rule in effects:
        for check in ("!", "role:nobody_has_this"):
            refused = send(on, tmp_path, row, asked, f'"{rule}": "{check}"')
            assert refused.status_code == 403, f"{row.name} although {rule} is {check}: {refused.text}"
    assert rows(on) == before
    others = "\n".join(f'"{rule}": "role:booker"' for rule in effects)
    refused = send(on, tmp_path, row, asked, others, "member,reader,admin")
    assert refused.status_code == 403
    done = send(on, tmp_path, row, asked, others)
    assert done.status_code < 300, f"a request that does not work shows nothing: {done.text}"


HOPPER = "hopper"
OWNERS = "\n".join(f'"{rule}": "user_id:%(user_id)s"' for rule in (PUT, DELETE))
OF_LEASES = [case for case in CASES if {PUT, DELETE} & {*case[2]}]


@pytest.mark.sample(2)
@pytest.mark.parametrize(("row", "prepare", "effects"), OF_LEASES, ids=lambda value: getattr(value, "name", ""))
def test_a_rule_for_owners_holds_for_each_lease_that_a_request_touches(on, tmp_path, row, prepare, effects):
    asked = prepare(on)
    before = rows(on)
    refused = send(on, tmp_path, row, replace(asked, user=HOPPER), OWNERS)
    assert refused.status_code == 403
    assert rows(on) == before
    assert send(on, tmp_path, row, asked, OWNERS).status_code < 300


def route(name: str) -> Route:
    return next(row for row in ROUTES if row.name == name)


@pytest.mark.parametrize("rule", [PUT, DELETE])
def test_a_lease_that_the_body_of_a_merge_names_is_looked_at_too(on, tmp_path, rule):
    own, other = lease_of(on, HOPPER), lease(on)
    asked = Asked(f"/v1/leases/{own}/merge", {"with": other}, HOPPER)
    owners = f'"{rule}": "user_id:%(user_id)s"'
    before = rows(on)
    assert send(on, tmp_path, route("merge_leases"), asked, owners).status_code == 403
    assert rows(on) == before


def test_a_lease_that_the_body_of_a_swap_names_is_looked_at_too(on, tmp_path):
    own, other = lease_of(on, HOPPER), lease(on)
    (host,), (wanted,) = ({each.label for each in on.manager.leases.details(each).held} for each in (own, other))
    first, second = (on.now_of(each).reservations[0].id for each in (own, other))
    body = {"host": host, "for": wanted, "with": {"lease_id": other, "reservation_id": second}}
    asked = Asked(f"/v1/leases/{own}/reservations/{first}/swap", body, HOPPER)
    before = rows(on)
    assert send(on, tmp_path, route("swap_host"), asked, OWNERS).status_code == 403
    assert rows(on) == before


@pytest.mark.parametrize("name", ["update_series", "delete_series"])
def test_a_lease_of_a_series_that_another_user_has_is_looked_at_too(on, tmp_path, name):
    asked = REQUESTS[name](on)
    taken = on.manager.series.one(asked.url.rpartition("/")[2]).occurrences[-1].lease_id
    on.manager.transfers.offer(taken, OfferRequest(PROJECT, HOPPER, None), Terms(Actor(CURIE, PROJECT, False)))
    on.manager.transfers.accept(taken, Terms(Actor(HOPPER, PROJECT, False)))
    before = rows(on)
    for rule in (PUT, DELETE):
        if rule in EFFECTS[name]:
            assert send(on, tmp_path, route(name), asked, f'"{rule}": "user_id:%(user_id)s"').status_code == 403
    assert rows(on) == before
    assert send(on, tmp_path, route(name), asked, "").status_code < 300


def test_a_member_who_may_not_book_takes_no_lease_but_may_decline_one(on, tmp_path):
    key = offered(on)
    text = f'"{POST}": "role:booker"'
    for verb, body, status in (("accept", {}, 403), ("decline", None, 204)):
        asked = Asked(f"/v1/transfers/{key}/{verb}", body, TURING, TURING)
        assert send(on, tmp_path, route(f"{verb}_transfer"), asked, text, "member").status_code == status


@pytest.mark.parametrize(("kind", "status"), [("user", 403), ("project", 403), ("free_busy", 201)])
def test_who_may_not_list_leases_gets_no_link_to_them(on, tmp_path, kind, status):
    asked = Asked("/v1/feeds", {"kind": kind, "name": "mine"})
    assert send(on, tmp_path, route("create_feed"), asked, '"blazar:leases:get": "role:auditor"').status_code == status
    assert send(on, tmp_path, route("create_feed"), asked, "").status_code == 201


def test_who_may_not_list_leases_sees_none_in_the_calendar(on, tmp_path):
    key = lease(on)
    row = next(each for part in BUILTIN for each in part.routes if each.name == "show_calendar")
    asked = Asked("/v1/calendar?to=%2BP7D")
    shown = send(on, tmp_path, row, asked, "", "reader")
    hidden = send(on, tmp_path, row, asked, '"blazar:leases:get": "role:auditor"', "reader")
    blocks = [
        block for answer in (shown, hidden) for each in answer.json["calendar"]["resources"] for block in each["blocks"]
    ]
    assert (key in shown.text, key in hidden.text) == (True, False)
    assert [each["kind"] for each in blocks].count("mine") == 2


def test_the_default_of_a_rule_names_only_rules_that_there_are():
    names = {rule.name for rule in list_rules()}
    found = {each for rule in list_rules() for each in re.findall(r"rule:([\w:]+)", rule.check_str)}
    assert found <= names


def test_a_rule_for_hosts_leaves_resources_of_other_kinds_alone(on, tmp_path):
    text = f'"{HOSTS}put": "!"\n"{ADDRESSES}post": "!"'
    for kind in ("network", "device"):
        asked = of_kind("update_resource", kind)(on)
        assert send(on, tmp_path, route("update_resource"), asked, text).status_code == 200


SEEN = (
    ("get", "", "/host", "blazar:resources:get_private"),
    ("get_allocations", "/allocations", "/host/allocations", "blazar:resources:get_allocations"),
    ("get_resource_properties", "/properties", "/host/properties", "blazar:resources:get_properties"),
    ("post", None, "/host/candidates", "blazar:resources:get_candidates"),
)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("rule", "earlier", "path", "name"), SEEN)
def test_who_may_read_of_hosts_at_1_0_may_do_so_at_newer_routes(on, tmp_path, rule, earlier, path, name):
    rows = {each.name: each for part in BUILTIN for each in part.routes}
    before, row = rows["list_hosts"], rows["list_kinds"]
    text = f'"{HOSTS}{rule}": "rule:admin or role:support"'

    def ask(url: str, text: str) -> Any:
        return send(on, tmp_path, before if url.startswith("/v1/os-hosts") else row, Asked(url), text, "support")

    if earlier is not None:
        assert ask(f"/v1/os-hosts{earlier}", text).status_code == 200
        assert ask(f"/v1/os-hosts{earlier}", "").status_code == 403
    else:
        text += f'\n"{HOSTS}get": "rule:admin or role:support"'
    found = ask(f"/v1/resources{path}", text)
    assert found.status_code == 200
    if rule == "get":
        assert [each["name"] for each in found.json["resources"]] == ["node-1", "node-2", "node-3"]
    assert ask(f"/v1/resources{path}", "").status_code == 403
    kinds = send(on, tmp_path, row, Asked("/v1/resources"), text, "reader,support").json["kinds"]
    assert {each["name"] for each in kinds if name in each["allowed"]} == {"host"}


def test_each_kind_tells_what_the_caller_may_do_with_it(on, tmp_path):
    row = next(each for part in BUILTIN for each in part.routes if each.path == "/resources")
    text = f'"{DEVICES}put": "role:lab"'

    def allowed(roles: str) -> dict[str, set[str]]:
        kinds = send(on, tmp_path, row, Asked("/v1/resources"), text, roles).json["kinds"]
        return {each["name"]: {rule.rpartition(":")[2] for rule in each["allowed"]} for each in kinds}

    everything = {"get", "post", "put", "delete", "refresh", "reallocate", "update_properties"} | {
        f"get_{what}" for what in ("allocations", "candidates", "properties", "private")
    }
    kinds = {"host", "floatingip", "network", "device", "generic", "volume"}
    assert allowed("reader") == dict.fromkeys(kinds, {"get"})
    assert allowed("admin") == {**dict.fromkeys(kinds, everything), "device": everything - {"put", "refresh"}}
    assert allowed("reader,lab") == {**dict.fromkeys(kinds, {"get"}), "device": {"get", "put", "refresh"}}


def test_a_file_that_names_the_newer_rule_decides_it(on, tmp_path):
    text = f'"{POST}": "!"\n"blazar:series:post": "rule:project_member_api"'
    assert send(on, tmp_path, route("create_series"), Asked("/v1/series", SERIES), text).status_code == 201
