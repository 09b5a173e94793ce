# SPDX-License-Identifier: Apache-2.0
"""What reservations of stacks rely on: what Heat would make is told before, and what it made goes again."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports import Cloud
from blazar.clouds.ports.compute import Flavor
from blazar.clouds.ports.stacks import StackExists, StackPlan, StackRefused
from blazar.clouds.simulated import FileStorage, MemoryStorage, of_size
from blazar.clouds.simulated.state import NetworkState
from blazar.model.base.errors import NotFound, RoleMissing
from blazar.resources.stacks.pricing import AddressPrice, ServerPrice, StackPrice, VolumePrice, price_resources
from tests import openstack
from tests.contract.builders import nowhere
from tests.people import PeopledCloud
from tests.world import ManualClock

TAGS = frozenset({"blazar", "reservation:test-stacks"})


@dataclass
class Heat:
    """A cloud with the flavor ``tiny``, the image ``tiny`` and the external network ``public``.

    ``add_port`` has somebody build a port on a network, ``remove_port`` take it away; ``gone`` says whether a server or
    a network is there no more.
    """

    cloud: Cloud
    project: str
    add_port: Callable[[str], str]
    remove_port: Callable[[str], None]
    gone: Callable[[str], bool]
    patience: float = 0.0

    def plan(self, resources: Mapping[str, Any], **more: Any) -> StackPlan:
        return StackPlan(f"test-{uuid.uuid4().hex[:8]}", template(resources), **more)

    def preview(self, resources: Mapping[str, Any], **more: Any) -> StackPrice:
        return price_resources(self.cloud.stacks.preview_stack(self.project, self.plan(resources, **more)))

    def create(self, resources: Mapping[str, Any]) -> str:
        return self.cloud.stacks.begin_stack(self.project, self.plan(resources), tags=TAGS)

    def settled(self, stack_id: str) -> Any:
        look = lambda: self.cloud.stacks.stack(self.project, stack_id)  # noqa: E731
        return openstack.eventually(look, lambda s: s is None or s.state != "IN_PROGRESS", patience=self.patience)


@pytest.fixture(params=["memory", "file", pytest.param("openstack", marks=pytest.mark.cloud)])
def heat(request, tmp_path) -> Iterator[Heat]:
    yield from real_heat() if request.param == "openstack" else simulated_heat(request.param, tmp_path)


def simulated_heat(keeping: str, folder: Path) -> Iterator[Heat]:
    state = of_size(2)
    state.networks["public"] = NetworkState("public", "public")
    state.networks["private"] = NetworkState("private", "private", external=False)
    storage = MemoryStorage(state) if keeping == "memory" else FileStorage(folder / "cloud.json", state)
    simulated = PeopledCloud(storage, clock=ManualClock())
    simulated.operators.offer_flavor(Flavor("tiny", "tiny", 1, 64, 0, public=True))

    def remove(port_id: str) -> None:
        with simulated.change_state() as kept:
            del kept.ports[port_id]

    def gone(id: str) -> bool:
        with simulated.inspect() as kept:
            return id not in kept.servers and id not in kept.networks

    yield Heat(simulated.cloud, "p", simulated.network_users.port, remove, gone)


def real_heat() -> Iterator[Heat]:
    cloud, project = open_cloud(openstack.access("blazar")), str(openstack.access("demo").session.get_project_id())
    admin = openstack.access("admin")

    def add_port(network_id: str) -> str:
        body = {"port": {"network_id": network_id, "name": "test-stacks"}}
        return str(admin.network.call("POST", "/ports", body=body)["port"]["id"])

    def remove(port_id: str) -> None:
        admin.network.call("DELETE", f"/ports/{port_id}")

    def gone(id: str) -> bool:
        for service, path in ((admin.compute, f"/servers/{id}"), (admin.network, f"/networks/{id}")):
            with suppress(NotFound):
                service.get(path)
                return False
        return True

    heat = Heat(cloud, project, add_port, remove, gone, openstack.PATIENCE * 2)

    def clean() -> None:
        for port in admin.network.get("/ports", params={"name": "test-stacks"})["ports"]:
            remove(port["id"])
        for stack in cloud.stacks.stacks_tagged(project, "reservation:test-stacks"):
            cloud.stacks.begin_stack_deletion(project, stack.id)
            assert heat.settled(stack.id) is None

    clean()
    try:
        yield heat
    finally:
        clean()


def template(resources: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"heat_template_version": "2018-08-31", "resources": dict(resources), **more}


def of_type(kind: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "properties": properties}


def server(**more: Any) -> dict[str, Any]:
    return of_type(
        "OS::Nova::Server", **{"flavor": "tiny", "image": "tiny", "networks": [{"network": "private"}], **more}
    )


RANDOM = of_type("OS::Heat::RandomString")
NET = of_type("OS::Neutron::Net")
SUBNET = of_type("OS::Neutron::Subnet", network={"get_resource": "net"}, cidr="10.77.0.0/24")


def test_a_preview_tells_what_a_stack_would_take_without_making_it(heat):
    resources = {
        "one": server(),
        "net": NET,
        "disk": of_type("OS::Cinder::Volume", size=4),
        "address": of_type("OS::Neutron::FloatingIP", floating_network="public"),
        "random": RANDOM,
    }
    plan = heat.plan(resources)
    assert price_resources(heat.cloud.stacks.preview_stack(heat.project, plan)) == StackPrice(
        (ServerPrice("tiny", 1),), (VolumePrice("", 4, 1),), (AddressPrice("public", 1),)
    )
    assert all(stack.name != plan.name for stack in heat.cloud.stacks.stacks_tagged(heat.project, "blazar"))


def test_groups_files_and_parameters_are_expanded(heat):
    inner = template({"a": server(flavor={"get_param": "size"})}, parameters={"size": {"type": "string"}})
    scaled = {"min_size": 1, "max_size": 3, "desired_capacity": {"get_param": "most"}}
    resources = {
        "rows": of_type("OS::Heat::ResourceGroup", count=2, resource_def=of_type("inner.yaml", size="tiny")),
        "scaled": of_type("OS::Heat::AutoScalingGroup", resource=server(), **scaled),
        "own": of_type("Test::Pair", size="tiny"),
    }
    plan = heat.plan(
        resources,
        files={"inner.yaml": json.dumps(inner)},
        environment={"resource_registry": {"Test::Pair": "inner.yaml"}},
        parameters={"most": 3},
    )
    plan = replace(plan, template={**plan.template, "parameters": {"most": {"type": "number"}}})
    planned = heat.cloud.stacks.preview_stack(heat.project, plan)
    assert price_resources(planned) == StackPrice((ServerPrice("tiny", 2 + 3 + 1),))
    assert {resource.parent for resource in planned} >= {"scaled", "own"}


def test_what_an_environment_leaves_out_is_told_by_its_type_and_not_made(heat):
    environment = {"resource_registry": {"Test::Nothing": "OS::Heat::None", "OS::Nova::Server": "OS::Heat::None"}}
    plan = heat.plan({"a": of_type("Test::Nothing"), "b": server(), "random": RANDOM}, environment=environment)
    planned = heat.cloud.stacks.preview_stack(heat.project, plan)
    assert {each.name: each.type for each in planned if each.name != "random"} == {
        "a": "Test::Nothing",
        "b": "OS::Nova::Server",
    }
    made = heat.cloud.stacks.begin_stack(heat.project, plan, tags=TAGS)
    assert heat.settled(made).state == "COMPLETE"
    ids = [r.physical_id for r in heat.cloud.stacks.stack_resources(heat.project, made) if r.name == "b"]
    assert all(heat.gone(id) for id in ids)


def test_what_only_the_run_tells_is_empty_in_a_preview(heat):
    resources = {"random": RANDOM, "disk": of_type("OS::Cinder::Volume", size={"get_attr": ["random", "value"]})}
    planned = heat.cloud.stacks.preview_stack(heat.project, heat.plan(resources))
    assert [r.properties["size"] for r in planned if r.name == "disk"] == [0]


@pytest.mark.parametrize("more", [{"parameters": {"nobody": 1}}, {"environment": {"parameters": {"nobody": 1}}}])
def test_parameters_that_the_template_does_not_have_are_refused(heat, more):
    with pytest.raises(StackRefused) as refused:
        heat.preview({"a": RANDOM}, **more)
    assert "nobody" in refused.value.explanation


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        ({"a": server(flavor="nothing-like-it")}, "nothing-like-it"),
        ({"a": of_type("Nothing::Like::It")}, "Nothing::Like::It"),
        ({"a": server(flavor={"get_param": "nothing_like_it"})}, "nothing_like_it"),
        ({"a": of_type("OS::Neutron::Port")}, "network"),
    ],
    ids=["flavor", "type", "parameter", "port"],
)
def test_a_template_that_cannot_be_is_refused_with_the_reason(heat, resources, words):
    for call in (
        lambda plan: heat.cloud.stacks.preview_stack(heat.project, plan),
        lambda plan: heat.cloud.stacks.begin_stack(heat.project, plan, tags=TAGS),
    ):
        with pytest.raises(StackRefused) as refused:
            call(heat.plan(resources))
        assert words in refused.value.explanation
    assert heat.cloud.stacks.stacks_tagged(heat.project, "reservation:test-stacks") == ()


def test_a_stack_is_found_by_id_and_tag_and_deleted_with_all_that_it_made(heat):
    stacks, project = heat.cloud.stacks, heat.project
    plan = heat.plan({"net": NET, "sub": SUBNET, "one": server()})
    made = stacks.begin_stack(project, plan, tags=TAGS)
    found = heat.settled(made)
    assert (found.id, found.name, found.action, found.state) == (made, plan.name, "CREATE", "COMPLETE")
    assert found.tags == TAGS
    assert stacks.stacks_tagged(project, "reservation:test-stacks") == (found,)
    assert stacks.stacks_tagged(project, "reservation:another") == ()
    assert (stacks.stacks_named(project, plan.name), stacks.stacks_named(project, "another")) == ((found,), ())
    resources = {r.name: r for r in stacks.stack_resources(project, made)}
    assert {r.name: (r.type, r.state) for r in resources.values()} == {
        "net": ("OS::Neutron::Net", "COMPLETE"),
        "sub": ("OS::Neutron::Subnet", "COMPLETE"),
        "one": ("OS::Nova::Server", "COMPLETE"),
    }
    assert not heat.gone(resources["one"].physical_id)
    with pytest.raises(StackExists):
        stacks.begin_stack(project, plan, tags=TAGS)
    stacks.begin_stack_deletion(project, made)
    assert heat.settled(made) is None
    assert heat.gone(resources["one"].physical_id)
    assert heat.gone(resources["net"].physical_id)
    assert stacks.stacks_tagged(project, "reservation:test-stacks") == stacks.stack_resources(project, made) == ()
    with pytest.raises(NotFound):
        stacks.begin_stack_deletion(project, made)


def test_a_deletion_fails_over_a_port_of_others_and_succeeds_without_it(heat):
    stacks, project = heat.cloud.stacks, heat.project
    made = heat.create({"net": NET, "sub": SUBNET})
    assert heat.settled(made).state == "COMPLETE"
    (network,) = [r.physical_id for r in stacks.stack_resources(project, made) if r.type == "OS::Neutron::Net"]
    port = heat.add_port(network)
    stacks.begin_stack_deletion(project, made)
    failed = heat.settled(made)
    assert (failed.action, failed.state) == ("DELETE", "FAILED")
    left = {r.name: r.state for r in stacks.stack_resources(project, made)}
    # The subnet, if the port has an address there; else the network.
    (blocked,) = [name for name, state in left.items() if state == "FAILED"]
    assert f"resources.{blocked}" in failed.reason
    assert left.keys() >= {"net"}
    heat.remove_port(port)
    stacks.begin_stack_deletion(project, made)
    assert heat.settled(made) is None


def test_a_stack_that_is_not_there_is_none(heat):
    stacks, project = heat.cloud.stacks, heat.project
    assert stacks.stack(project, nowhere()) is None
    assert stacks.stack_resources(project, nowhere()) == ()
    with pytest.raises(NotFound):
        stacks.begin_stack_deletion(project, nowhere())


def group(count: int, member: dict[str, Any]) -> dict[str, Any]:
    return of_type("OS::Heat::ResourceGroup", count=count, resource_def=member)


@pytest.mark.parametrize(
    "resource",
    [group(10**18, RANDOM), group(10**9, group(0, RANDOM)), group(40, group(40, group(0, RANDOM)))],
    ids=["large", "of nothing", "nested"],
)
def test_the_simulation_refuses_groups_without_an_end(tmp_path, resource):
    for heat in simulated_heat("memory", tmp_path):
        with pytest.raises(StackRefused, match="Maximum resources per stack exceeded"):
            heat.preview({"group": resource})


def test_the_simulation_tells_why_a_resource_fails_instead_of_failing_itself(tmp_path):
    for heat in simulated_heat("memory", tmp_path):
        association = of_type("OS::Neutron::FloatingIPAssociation", floatingip_id="nothing", port_id="like-it")
        port = of_type("OS::Neutron::Port", network="nothing-like-it")
        for resource, words in ((association, "Floating IP nothing"), (port, "nothing-like-it")):
            assert words in heat.settled(heat.create({"a": resource})).reason


def test_nothing_is_asked_in_a_project_without_a_role(tmp_path):
    simulated = PeopledCloud(MemoryStorage(of_size(1)), clock=ManualClock())
    simulated.operators.close_project("closed")
    stacks, plan = simulated.cloud.stacks, StackPlan("x", template({}))
    for call in (
        lambda: stacks.preview_stack("closed", plan),
        lambda: stacks.begin_stack("closed", plan, tags=TAGS),
        lambda: stacks.stacks_tagged("closed", "x"),
        lambda: stacks.stack("closed", "x"),
        lambda: stacks.begin_stack_deletion("closed", "x"),
        lambda: stacks.stack_resources("closed", "x"),
    ):
        with pytest.raises(RoleMissing):
            call()
