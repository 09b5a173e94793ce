# SPDX-License-Identifier: Apache-2.0
"""GPUs of servers that are asked for by size: the cards that flavors get, counted by the same calendar."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import BlazarError, Conflict, InvalidInput, NotEnoughResources
from blazar.model.leases.requests import Actor, ReservationRequest
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.pools import PCI
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import AvailabilityQuestion, StepCode
from blazar.resources.hosts.flavors import format_reservable_flavor, parse_flavor, per_instance_of
from blazar.resources.hosts.gpus import GpuModels
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.pci_aliases import PciAliases, parse_alias
from blazar.resources.instances.schemas import VIRTUAL
from blazar.resources.instances.virtual import VirtualInstanceParameters
from tests.resources.instances.steps import boot, id_of, promised
from tests.world import NOON, PROJECT, World, flavored, instances, of_hosts

HOUR = timedelta(hours=1)
CARD = "CUSTOM_PCI_10DE_20B5"
A100 = '{"name": "a100", "vendor_id": "10de", "product_id": "20b5"}'
SAME = '{"name": "gpu", "vendor_id": "10de", "product_id": "20b5"}'
SIZE = {
    **{"amount": 1, "vcpus": 2, "memory_mb": 64, "disk_gb": 1, "affinity": None},
    **{"resource_properties": "", "before_end": "none"},
}
MODELS = {"A100": "alias/a100", "A16-4Q": "class/VGPU"}


def aliases(*texts: str, in_placement: bool = True) -> PciAliases:
    return PciAliases.of([parse_alias(text) for text in texts or (A100,)], in_placement=in_placement)


def settings(models: dict[str, str] | None = None, pci: PciAliases | None = None) -> HostSettings:
    pci = pci or aliases()
    return HostSettings(pci=pci, gpus=GpuModels.of(MODELS if models is None else models, pci))


def devices(count: int) -> dict[str, Any]:
    names = [f"node_0000:4{number}:00.0" for number in range(count)]
    nested = {name: {CARD: {"total": 1, "max_unit": 1}} for name in names}
    return {"nested": nested, "nested_traits": {name: [PCI, "OWNER_NOVA"] for name in names}}


def pgpus(count: int, each: int) -> dict[str, Any]:
    return {"nested": {f"node_pci_{at}": {"VGPU": {"total": each, "max_unit": each}} for at in range(count)}}


def gpus(amount: int, count: int, model: str = "A100") -> ReservationRequest:
    asked = instances(amount)
    return ReservationRequest(asked.resource_type, {**asked.parameters, "gpus": count, "gpu_model": model})


@pytest.fixture
def site(a_world):
    """Make a world of hosts with cards."""

    def make(*hosts: dict[str, Any], chosen: HostSettings | None = None) -> World:
        state = of_hosts(*hosts)
        state.pci_aliases = {"a100": {"resource_class": CARD}}
        world = a_world(state=state, hosts=len(hosts), host_settings=chosen or settings())
        flavor = Flavor("one", "one", 1, 512, 1, public=True, extra_specs={"pci_passthrough:alias": "a100:1"})
        world.simulated.operators.offer_flavor(flavor)
        return world

    return make


def specs(world: World, lease) -> dict[str, str]:
    with world.simulated.inspect() as state:
        found = state.flavors[id_of(lease)].extra_specs
    ours = ("aggregate_instance_extra_specs:reservation", "resources:CUSTOM_RESERVATION")
    return {name: value for name, value in found.items() if not name.startswith(ours)}


# What is asked for


@pytest.mark.parametrize(
    ("asked", "extra"),
    [
        ({"gpus": 2, "gpu_model": "A100"}, {"pci_passthrough:alias": "a100:2"}),
        ({"gpus": "1", "gpu_model": "A16-4Q"}, {"resources:VGPU": "1"}),
        ({"gpus": 0, "gpu_model": None}, {}),
        ({"gpus": None}, {}),
        ({}, {}),
    ],
    ids=str,
)
def test_a_server_takes_what_one_of_such_a_flavor_takes(asked, extra):
    wanted = VirtualInstanceParameters.checked({**SIZE, **asked}, settings())
    flavor = Flavor("f", "f", 2, 64, 1, extra_specs=extra)
    kept = parse_flavor(format_reservable_flavor(flavor, "flavor_id", aliases()))
    assert wanted.flavor.extra_specs == extra
    assert wanted.per_instance == per_instance_of(kept)
    assert wanted.flavor.cards == kept.cards
    assert VirtualInstanceParameters.of(wanted.content) == wanted
    assert ("gpus" in wanted.content.values) == bool(extra)


@pytest.mark.parametrize(
    ("asked", "field", "words"),
    [
        ({"gpus": 1}, "gpu_model", "gpu_model is missing, and gpus is 1; give one of A100 and A16-4Q"),
        ({"gpus": 1, "gpu_model": ""}, "gpu_model", "gpu_model is missing"),
        ({"gpu_model": "A100"}, "gpus", "gpus is missing, and gpu_model is .A100.; give both, or none of them"),
        ({"gpus": 1, "gpu_model": "H100"}, "gpu_model", "gpu_model is .H100.; give one of A100 and A16-4Q"),
        ({"gpus": 1, "gpu_model": 100}, "gpu_model", "gpu_model is 100; give one of"),
        ({"gpus": 65, "gpu_model": "A100"}, "gpus", "gpus is 65; give how many .* from 0 to 64"),
        ({"gpus": -1, "gpu_model": "A100"}, "gpus", "gpus is -1"),
        ({"gpus": True, "gpu_model": "A100"}, "gpus", "gpus is true"),
    ],
    ids=str,
)
def test_a_wrong_request_is_refused_by_its_field(asked, field, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        settings().gpus.check(asked)
    assert refused.value.pointer == f"/{field}"


def test_without_models_a_request_hears_that_there_are_none():
    with pytest.raises(InvalidInput, match="the operator of this service offers no model"):
        settings({}).gpus.check({"gpus": 1, "gpu_model": "A100"})


def test_a_model_of_an_alias_that_overlaps_is_refused():
    chosen = settings(pci=aliases(A100, SAME, in_placement=False))
    with pytest.raises(InvalidInput, match="gpu_model is .A100., which cannot be reserved: .* by the alias gpu, too"):
        chosen.gpus.check({"gpus": 1, "gpu_model": "A100"})


@pytest.mark.parametrize(
    ("model", "source", "words"),
    [
        ("A100", "alias/h100", "is the alias .h100., which is not in .nova. pci_alias"),
        ("L4", "profile/l4", "is a device profile, whose accelerators cannot be reserved; offer an alias or a class"),
        ("A100", "a100", "is neither alias/NAME nor class/NAME"),
        ("A100", f"class/{CARD}", "of PCI devices, which servers get by their alias only; offer alias/NAME"),
        ("A100", "class/CUSTOM_PCI_8086_1572", "of PCI devices"),
        ("A100", "class/VCPU", "is the class .VCPU., which is none of GPUs"),
        ("A100", "class/CUSTOM_RESERVATION_X", "which is none of GPUs"),
        ("A100", "class/vgpu", "which is none of GPUs"),
        ("A100/80", "alias/a100", "is no name of a model"),
    ],
)
def test_a_model_that_cannot_be_reserved_is_refused_by_its_name(model, source, words):
    with pytest.raises(InvalidInput, match=rf"^\[nova\] gpu_models: .{model}. .*{words}"):
        settings({model: source})


def test_forms_show_the_models_as_a_choice(site):
    world = site(devices(1))
    (hosts,) = [kind for kind in world.manager.resources.kinds().items if kind.kind == HOST]
    shown = hosts.parameters["virtual:instance"]["properties"]
    assert shown["gpu_model"]["enum"] == ["A100", "A16-4Q", None]
    assert shown.keys() == VIRTUAL["properties"].keys()
    without = settings({}).gpus.show_in(VIRTUAL)["properties"]
    assert shown.keys() - without.keys() == {"gpus", "gpu_model"}


# On the calendar, and in the cloud


def test_servers_get_their_cards_and_no_more_are_promised(site):
    world = site(devices(4))
    lease = world.lease(gpus(2, 2), start=HOUR, hours=2)
    assert specs(world, lease) == {"pci_passthrough:alias": "a100:2"}
    with pytest.raises(NotEnoughResources):
        world.lease(gpus(1, 1), start=HOUR, hours=1)
    world.run_to(NOON + HOUR)
    boot(world, lease)
    boot(world, lease)
    with world.simulated.inspect() as state:
        taken = [card for server in state.servers.values() for card in server.cards]
    assert len(set(taken)) == 4
    with pytest.raises(Conflict):
        boot(world, lease)


def test_they_share_the_cards_of_a_host_with_servers_of_flavors(site):
    world = site(devices(4))
    mine = world.lease(gpus(1, 2), start=HOUR, hours=1)
    theirs = world.lease(flavored(2, "one"), start=HOUR, hours=1, project="other")
    assert (promised(world, mine), promised(world, theirs)) == ({"node-1": 1}, {"node-1": 2})
    for refused in (gpus(1, 1), flavored(1, "one")):
        with pytest.raises(NotEnoughResources):
            world.lease(refused, start=HOUR, hours=1)
    world.lease(instances(1), start=HOUR, hours=1)


def test_several_gpus_of_a_class_are_promised_where_one_device_has_them(site):
    world = site(pgpus(2, 2), pgpus(1, 4))
    lease = world.lease(gpus(2, 2, "A16-4Q"), start=HOUR, hours=1)
    assert promised(world, lease) == {"node-2": 2}
    with pytest.raises(NotEnoughResources):
        world.lease(gpus(1, 2, "A16-4Q"), start=HOUR, hours=1)
    assert promised(world, world.lease(gpus(4, 1, "A16-4Q"), start=HOUR, hours=1)) == {"node-1": 4}
    world.run_to(NOON + HOUR)
    boot(world, lease)
    boot(world, lease)


def test_the_reason_counts_the_hosts_that_have_no_such_cards(site):
    world = site(pgpus(2, 2), devices(1))
    asked = AvailabilityQuestion(
        Actor("curie", PROJECT), (gpus(1, 2, "A16-4Q"),), start=NOON + HOUR, end=NOON + 2 * HOUR
    )
    (reason,) = world.manager.availability.find(asked).reasons
    assert StepCode.CARDS in {step.code for step in reason.steps}


def test_declared_cards_are_counted_by_the_same_class(site):
    world = site({}, chosen=settings(pci=aliases(in_placement=False)))
    with pytest.raises(NotEnoughResources):
        world.lease(gpus(1, 1), start=HOUR, hours=1)
    world.manager.resources.change(HOST, "1", ResourceChange({"pci:a100": "3"}))
    world.lease(gpus(1, 2), start=HOUR, hours=1)
    with pytest.raises(NotEnoughResources):
        world.lease(flavored(2, "one"), start=HOUR, hours=1)
    world.lease(flavored(1, "one"), start=HOUR, hours=1)


# Changes


def test_before_the_start_they_change_and_the_flavor_follows(site):
    both = {**devices(2), "nested": devices(2)["nested"] | pgpus(1, 2)["nested"]}
    world = site(both)
    lease = world.lease(gpus(1, 1), start=HOUR, hours=1)
    with pytest.raises(NotEnoughResources):
        world.resize(lease, gpus=3)
    world.resize(lease, gpus=2)
    assert specs(world, lease) == {"pci_passthrough:alias": "a100:2"}
    world.resize(lease, gpu_model="A16-4Q")
    assert specs(world, lease) == {"resources:VGPU": "2"}
    (allocation,) = world.store.calendar.of_lease(lease.id)
    assert (allocation.per_instance.get("VGPU"), allocation.per_instance.get(CARD)) == (2, 0)
    world.resize(lease, gpus=0)
    assert specs(world, lease) == {}
    assert not {"gpus", "gpu_model"} & world.now(lease).reservations[0].shown.keys()


def test_in_use_they_stay(site):
    world = site(devices(2))
    lease = world.lease(gpus(1, 1), hours=1)
    world.run()
    for change in ({"gpus": 2}, {"gpus": 0}, {"gpu_model": "A16-4Q"}):
        with pytest.raises(BlazarError, match=r"cannot be changed: reservation .* is active") as refused:
            world.resize(lease, **change)
        assert refused.value.pointer == f"/reservations/0/{next(iter(change))}"
    world.resize(lease, gpus=1, gpu_model="A100", amount=2)
    assert promised(world, lease) == {"node-1": 2}


def test_a_model_means_what_it_meant_when_it_was_chosen():
    before, after = settings(), settings({"A100": "class/CUSTOM_GPU"})
    kept = VirtualInstanceParameters.checked({**SIZE, "gpus": 1, "gpu_model": "A100"}, before)
    same = VirtualInstanceParameters.checked({**kept.values, "amount": 2}, after, kept)
    assert same.flavor.extra_specs == {"pci_passthrough:alias": "a100:1"}
    more = VirtualInstanceParameters.checked({**kept.values, "gpus": 2}, after, kept)
    assert more.flavor.extra_specs == {"resources:CUSTOM_GPU": "2"}
    gone = VirtualInstanceParameters.checked({**kept.values, "amount": 3}, settings({}), kept)
    assert gone.gpus_of_each == kept.gpus_of_each
