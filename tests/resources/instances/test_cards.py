# SPDX-License-Identifier: Apache-2.0
"""Servers with cards: PCI devices by alias, VGPUs, numbered groups; which can be promised, and that they boot."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.amounts import Amounts
from blazar.model.base.errors import Conflict, InvalidInput, NotEnoughResources, NotFound
from blazar.model.calendar.cards import Cards, CardSource
from blazar.model.leases.requests import Actor
from blazar.model.leases.states import EventType, LeaseStatus
from blazar.model.reports.capacity import AmountTime, CapacityReportQuestion
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.pools import PCI, CardPool, UnitLimits
from blazar.model.resources.resource import HOST
from blazar.model.search.availability import AvailabilityQuestion, StepCode
from blazar.resources.hosts.cards import cards_of, resolve_cards
from blazar.resources.hosts.flavors import check_reservable, format_reservable_flavor, parse_flavor, per_instance_of
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.pci_aliases import NO_ALIASES, PciAliases, parse_alias
from tests.builders import a_host
from tests.resources.instances.steps import boot, id_of, promised
from tests.world import NOON, PROJECT, World, flavored, of_hosts
from tests.world import a_host as a_whole_host

HOUR = timedelta(hours=1)
A100 = "CUSTOM_PCI_10DE_20B5"
NVLINK = "CUSTOM_NVLINK"
ALIAS = '{"vendor_id": "10de", "product_id": "20B5", "name": "a100"}'
OTHERS = (
    '{"name": "l4", "resource_class": "gpu-l4"}',
    '{"name": "a100nv", "vendor_id": "10de", "product_id": "20b5", "traits": "nvlink, HW_GPU_API_VULKAN"}',
)


def aliases(*texts: str, in_placement: bool = True) -> PciAliases:
    return PciAliases.of([parse_alias(text) for text in texts or (ALIAS, *OTHERS)], in_placement=in_placement)


def a_flavor(**specs: str) -> Flavor:
    return Flavor("f", "f", 2, 2048, 10, extra_specs=specs, public=True)


def devices(count: int, *, nvlink: int = 0, name: str = A100) -> dict[str, object]:
    """A host with PCI devices, of which the first have a trait more."""
    names = [f"node_0000:4{number}:00.0" for number in range(count)]
    traits = {card: [PCI, "OWNER_NOVA", *([NVLINK] if at < nvlink else [])] for at, card in enumerate(names)}
    return {"nested": {card: {name: {"total": 1, "max_unit": 1}} for card in names}, "nested_traits": traits}


def pgpus(count: int, each: int) -> dict[str, object]:
    nested = {f"node_pci_{number}": {"VGPU": {"total": each, "max_unit": each}} for number in range(count)}
    return {"nested": nested, "nested_traits": {name: ["CUSTOM_NVIDIA_35"] for name in nested}}


@pytest.fixture
def site(a_world):
    """Make a world of hosts, with flavors that ask for cards."""

    def make(*hosts, pci=None, filters=(), **flavors: dict[str, str]) -> World:
        state = of_hosts(*hosts)
        state.pci_aliases = {
            "a100": {"resource_class": A100},
            "a100nv": {"resource_class": A100, "traits": [NVLINK]},
        }
        plain = ('{"name": "a100nv", "vendor_id": "10de", "product_id": "20b5", "traits": "nvlink"}', ALIAS)
        settings = HostSettings(pci=pci or aliases(*plain))
        world = a_world(state=state, hosts=len(hosts), host_settings=settings, filters=filters)
        for name, specs in flavors.items():
            world.simulated.operators.offer_flavor(
                Flavor(name, name, 2, 2048, 10, public=True, extra_specs=dict(specs))
            )
        return world

    return make


TWO = {"pci_passthrough:alias": "a100:2"}
ONE = {"pci_passthrough:alias": "a100:1"}


# What a flavor asks for


@pytest.mark.parametrize(
    ("specs", "cards"),
    [
        ({"pci_passthrough:alias": "a100:2"}, [Cards(A100, 2, source=CardSource.ALIAS)]),
        ({"pci_passthrough:alias": " a100:1 , a100:1"}, [Cards(A100, 2, source=CardSource.ALIAS)]),
        (
            {"pci_passthrough:alias": "l4:1,a100nv:1"},
            [
                Cards("CUSTOM_GPU_L4", 1, source=CardSource.ALIAS),
                Cards(A100, 1, 1, frozenset({NVLINK, "HW_GPU_API_VULKAN"}), CardSource.ALIAS),
            ],
        ),
        ({"resources:VGPU": "1", "resources:PCPU": "2"}, [Cards("VGPU", 1, 1, source=CardSource.AMOUNT)]),
        ({"resources:CUSTOM_GPU": "2"}, [Cards("CUSTOM_GPU", 2, 2, source=CardSource.AMOUNT)]),
        ({"resources:VGPU": "0"}, []),
        ({"resources1:VGPU": "1"}, [Cards("VGPU", 1)]),
        (
            {"resources1:VGPU": "1", "trait1:CUSTOM_A": "required", "resources_B:VGPU": "1", "group_policy": "none"},
            [Cards("VGPU", 2, 1, frozenset({"CUSTOM_A"}))],
        ),
        ({"resources1:VGPU": "1", "group_policy": "isolate"}, [Cards("VGPU", 1)]),
        (
            {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "isolate"},
            [Cards("VGPU", 2, apart=True)],
        ),
    ],
    ids=lambda specs_or_cards: str(specs_or_cards) if isinstance(specs_or_cards, dict) else "",
)
def test_a_flavor_asks_for_the_cards_that_nova_would_look_for(specs, cards):
    flavor = resolve_cards(a_flavor(**specs), aliases())
    check_reservable(flavor, aliases())
    assert set(cards_of(flavor)) == set(cards)
    taken = per_instance_of(flavor)
    assert all(taken.get(one.resource_class) == one.amount for one in cards)
    assert parse_flavor(format_reservable_flavor(a_flavor(**specs), "flavor_id", aliases())) == flavor


@pytest.mark.parametrize(
    ("specs", "words"),
    [
        ({"pci_passthrough:alias": "h100:1"}, "pci_passthrough:alias names .h100., which is no PCI alias that this"),
        ({"pci_passthrough:alias": "a100"}, "pci_passthrough:alias is .a100.; give aliases with a number"),
        ({"pci_passthrough:alias": "a100:0"}, "is .a100:0.; give aliases"),
        ({"pci_passthrough:alias": "a100:1,"}, "is .a100:1,.; give aliases"),
        ({"pci_passthrough:alias": "a100:65"}, "number of 1 to 64"),
        ({f"resources:{A100}": "1"}, "counts PCI devices .* asked for by pci_passthrough:alias=a100:1"),
        ({"resources1:CUSTOM_GPU_L4": "1"}, "counts PCI devices .* pci_passthrough:alias=l4:1"),
        ({"resources:CUSTOM_PCI_8086_1572": "1"}, "counts PCI devices"),
        ({"resources:VGPU": "1", "resources1:VGPU": "1"}, "asks for a class that the flavor asks for in another way"),
        ({"resources1:VGPU": "1", "resources2:VGPU": "1"}, "one of several groups, and Nova needs group_policy"),
        ({"resources1:VGPU": "1", "group_policy": "apart"}, "group_policy is .apart.; Nova takes none and isolate"),
        ({"resources1:VGPU": "1", "resources1:FPGA": "1"}, "is in a group of 2 classes"),
        ({"trait1:CUSTOM_A": "required"}, "is in a group of no class"),
        ({"resources1:VGPU": "1", "trait1:CUSTOM_A": "forbidden"}, "trait1:CUSTOM_A is .forbidden."),
        ({"resources1:VGPU": "0"}, "resources1:VGPU is .0.; an amount is a whole number of 1"),
        ({"resources1:VGPU": "x" * 300}, "resources1:VGPU is .x+"),
        ({"resources1:VCPU": "1"}, "asks for CPUs, memory or disk in a group of its own"),
        ({"resources1:lower": "1"}, "is no resource class or trait of a group"),
        ({"same_subtree1": "_A,_B"}, "asks for groups that lie together"),
        (
            {"resources1:VGPU": "1", "resources2:FPGA": "1", "group_policy": "isolate"},
            "is isolate for groups of several classes",
        ),
        (
            {**ONE, "resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "isolate"},
            "is isolate, and groups beside PCI devices",
        ),
        ({"accel:device_profile": "gpu"}, "asks for accelerators, which cannot be reserved"),
    ],
    ids=str,
)
def test_what_cannot_be_promised_is_refused_by_name(specs, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        format_reservable_flavor(a_flavor(**specs), "flavor_id", aliases())
    assert refused.value.pointer == "/flavor_id"
    assert len(refused.value.message) < 400


@pytest.mark.parametrize(
    ("texts", "in_placement", "words"),
    [
        (["no JSON"], True, "no JSON. is not: Expecting value"),
        (['["a100"]'], True, "is an object of texts"),
        (['{"name": "a", "vendor_id": 1}'], True, "is an object of texts"),
        (['{"name": "a", "vendor": "10de"}'], True, "a PCI alias has no vendor; Nova knows"),
        (['{"vendor_id": "10de"}'], True, "the name of a PCI alias is .."),
        (['{"name": "a:1"}'], True, "without : and ,"),
        (['{"name": "a", "vendor_id": "10deg"}'], True, "vendor_id of PCI alias a is .10deg.; give 4 hexadecimal"),
        (['{"name": "a", "device_type": "PF"}'], True, "give one of type-PCI, type-PF, type-VF"),
        (['{"name": "a"}'], True, "PCI alias a needs vendor_id and product_id, or resource_class"),
        (['{"name": "a", "vendor_id": "10de"}'], True, "or resource_class"),
        (
            ['{"name": "a", "resource_class": "x"}'],
            False,
            "needs vendor_id and product_id, as pci_in_placement is false",
        ),
        ([ALIAS, ALIAS], True, "PCI alias a100 is there 2 times"),
    ],
)
def test_an_alias_that_nova_refuses_is_refused(texts, in_placement, words):
    with pytest.raises((ValueError, InvalidInput), match=words):
        aliases(*texts, in_placement=in_placement)


def test_two_aliases_that_overlap_are_found():
    assert aliases().find_overlaps() == [("a100", "a100nv")]
    assert aliases(ALIAS, in_placement=False).find_overlaps() == []


def test_a_flavor_with_an_alias_takes_the_cards_that_a_reservation_keeps():
    with pytest.raises(InvalidInput, match="which is no PCI alias that this service knows .none is known here."):
        format_reservable_flavor(a_flavor(**ONE), "flavor_id", NO_ALIASES)


@pytest.mark.parametrize(
    ("cards", "pools", "fit"),
    [
        (Cards("X", 2, 1, apart=True), [CardPool("X", 4)], False),
        (Cards("X", 2, 1, apart=True), [CardPool("X", 1, 4)], True),
        (Cards("X", 2, 1, apart=True), [CardPool("X", 2, 4, limits=UnitLimits(1, 2))], False),
        (Cards("X", 2, 1), [CardPool("X", 2, 4, limits=UnitLimits(1, 2))], True),
        (Cards("X", 2, 1), [CardPool("X", 2, 4, limits=UnitLimits(1, 1))], False),
        (Cards("X", 1, 1), [CardPool("X", 2, 4, limits=UnitLimits(1, 1))], True),
        (Cards("X", 2, 2), [CardPool("X", 2, 2)], False),
        (Cards("X", 2, 2), [CardPool("X", 4)], True),
        (Cards("X", 2, 2), [CardPool("X", 4, limits=UnitLimits(1, 1))], False),
        (Cards("X", 1, 1, frozenset({"T"})), [CardPool("X", 1), CardPool("X", 1, traits=frozenset({"T"}))], False),
        (Cards("X", 1, 1, source=CardSource.ALIAS), [CardPool("X", 1)], False),
        (Cards("X", 1, 1, source=CardSource.ALIAS), [], False),
        (Cards("X", 1, 1), [CardPool("X", 1, traits=frozenset({PCI}))], False),
        (Cards("X", 1, 1, frozenset({"OWN"})), [], True),
        (Cards("X", 1, 1, frozenset({"T"})), [], False),
    ],
)
def test_a_host_fits_where_no_choice_is_a_wrong_one(cards, pools, fit):
    host = replace(a_host(1), pools=tuple(pools), traits=frozenset({"OWN"}), capacity=Amounts.of({"X": 8}))
    assert cards.fit(host) is fit


# Life


def test_servers_get_their_cards_and_no_more_are_promised(site):
    world = site(devices(4), two=TWO)
    lease = world.lease(flavored(2, "two"), start=HOUR, hours=2)
    kept = lease.reservations[0].parameters.values["resource_properties"]
    assert json.loads(kept)["cards"] == [{"resource_class": A100, "amount": 2, "traits": [], "source": "alias"}]
    with pytest.raises(NotEnoughResources):
        world.lease(flavored(1, "two"), start=HOUR, hours=1)
    world.run_to(NOON + HOUR)
    boot(world, lease)
    boot(world, lease)
    with world.simulated.inspect() as state:
        taken = [card for server in state.servers.values() for card in server.cards]
        assert len(set(taken)) == 4
        assert state.flavors[id_of(lease)].extra_specs["pci_passthrough:alias"] == "a100:2"
    with pytest.raises(Conflict):
        boot(world, lease)
    world.run_to(NOON + 3 * HOUR + HOUR / 60)
    assert world.now(lease).status is LeaseStatus.TERMINATED
    assert world.lease(flavored(2, "two"), start=4 * HOUR, hours=1)


def test_two_projects_share_the_cards_of_a_host_and_a_third_is_refused_with_the_reason(site):
    world = site(devices(4), two=TWO, one=ONE)
    mine = world.lease(flavored(1, "two"), start=HOUR, hours=1)
    theirs = world.lease(flavored(2, "one"), start=HOUR, hours=1, project="other")
    assert promised(world, mine) == {"node-1": 1}
    assert promised(world, theirs) == {"node-1": 2}
    (opening,) = _reasons(world, flavored(1, "one"))
    assert (opening.code, opening.removed) == (StepCode.PROMISED, 1)


def test_cards_that_differ_are_for_the_alias_that_takes_any(site):
    world = site(devices(4, nvlink=2), devices(2, nvlink=2), any=ONE, nv={"pci_passthrough:alias": "a100nv:1"})
    assert promised(world, world.lease(flavored(2, "nv"), start=HOUR, hours=1)) == {"node-2": 2}
    with pytest.raises(NotEnoughResources):
        world.lease(flavored(1, "nv"), start=HOUR, hours=1)
    assert promised(world, world.lease(flavored(4, "any"), start=HOUR, hours=1)) == {"node-1": 4}
    (step,) = [step for step in _reasons(world, flavored(1, "nv")) if step.code is StepCode.CARDS]
    assert (step.remaining, step.removed) == (1, 1)


def test_a_host_is_reserved_as_a_whole_or_its_cards_are(site):
    world = site(devices(4), two=TWO)
    world.lease(flavored(1, "two"), start=HOUR, hours=1)
    with pytest.raises(NotEnoughResources):
        world.lease(start=HOUR, hours=1)
    world.lease(start=2 * HOUR, hours=1)
    with pytest.raises(NotEnoughResources):
        world.lease(flavored(1, "two"), start=2 * HOUR, hours=1)


def test_vgpus_are_promised_one_by_one_from_several_devices(site):
    pair = {"resources1:VGPU": "1", "resources2:VGPU": "1", "group_policy": "none"}
    apart = {**pair, "group_policy": "isolate"}
    world = site(pgpus(2, 3), one={"resources:VGPU": "1"}, two={"resources:VGPU": "2"}, pair=pair, apart=apart)
    for name in ("two", "apart"):
        with pytest.raises(NotEnoughResources):
            world.lease(flavored(1, name), start=HOUR, hours=1)
    lease = world.lease(flavored(2, "pair"), flavored(2, "one"), start=HOUR, hours=1)
    world.run_to(NOON + HOUR)
    for reservation in lease.reservations:
        for _ in range(2):
            world.simulated.users.boot_reserved(reservation.id, project_id=PROJECT)


def test_a_trait_of_a_group_is_one_of_all_its_providers(site):
    asked = {"resources1:VGPU": "1", "trait1:CUSTOM_NVIDIA_35": "required"}
    mixed = pgpus(2, 3)
    mixed["nested_traits"] = {"node_pci_0": ["CUSTOM_NVIDIA_35"]}
    world = site(mixed, pgpus(1, 2), some=asked)
    lease = world.lease(flavored(2, "some"), start=HOUR, hours=1)
    assert promised(world, lease) == {"node-2": 2}


# Devices that are cleaned after each server


def once(count: int) -> dict[str, object]:
    host = devices(count)
    for traits in host["nested_traits"].values():
        traits.append("HW_PCI_ONE_TIME_USE")
    return host


def clean(world: World) -> None:
    """What an operator does with Placement once a device may have another owner."""
    with world.simulated.change_state() as state:
        for host in state.hosts.values():
            for inventories in host.nested.values():
                inventories[A100]["reserved"] = 0


def test_a_device_that_is_used_once_is_promised_again_for_later(site):
    world = site(once(2), one=ONE)
    first = world.lease(flavored(2, "one"), hours=2)
    world.run_to(NOON + HOUR / 60)
    boot(world, first)
    assert not world.refresh_hosts()
    assert world.store.resources.of_kind(HOST)[0].capacity.get(A100) == 2
    assert world.now(first).status is LeaseStatus.ACTIVE
    assert promised(world, world.lease(flavored(2, "one"), start=2 * HOUR, hours=1)) == {"node-1": 2}


def test_a_one_time_card_delays_the_next_start(site):
    world = site(once(3), one=ONE)
    first, beside = (world.lease(flavored(1, "one"), hours=hours) for hours in (1, 3))
    after = world.lease(flavored(2, "one"), start=HOUR, hours=2)
    world.run_to(NOON + HOUR / 60)
    boot(world, first)
    boot(world, beside)
    world.run_to(NOON + HOUR + HOUR / 60)
    assert world.now(first).status is LeaseStatus.TERMINATED
    waiting = world.now(after)
    assert waiting.status is LeaseStatus.STARTING
    assert waiting.event(EventType.START).reason.endswith("1 device of node-1 to be cleaned")
    with pytest.raises(NotFound):
        boot(world, after)
    clean(world)
    world.run_to(NOON + HOUR + HOUR / 30)
    assert world.now(after).status is LeaseStatus.ACTIVE
    boot(world, after)


def test_who_needs_no_device_that_awaits_cleaning_does_not_wait(site):
    world = site(once(2), one=ONE)
    first = world.lease(flavored(1, "one"), hours=1)
    world.run_to(NOON + HOUR / 60)
    boot(world, first)
    after = world.lease(flavored(1, "one"), start=HOUR, hours=1)
    world.run_to(NOON + HOUR + HOUR / 60)
    assert world.now(after).status is LeaseStatus.ACTIVE
    boot(world, after)


# Declared


def test_declared_cards_are_promised_where_placement_knows_none(site):
    world = site({}, {}, pci=aliases(ALIAS, in_placement=False), two=TWO)
    with pytest.raises(NotEnoughResources):
        world.lease(flavored(1, "two"), start=HOUR, hours=1)
    world.manager.resources.change(HOST, "2", ResourceChange({"pci:a100": "5"}))
    lease = world.lease(flavored(2, "two"), start=HOUR, hours=1)
    assert promised(world, lease) == {"node-2": 2}
    with pytest.raises(NotEnoughResources):
        world.lease(flavored(1, "two"), start=HOUR, hours=1)
    host = world.store.resources.of_kind(HOST)[1]
    assert host.capacity.get("DECLARED_A100") == 5
    assert host.details.inventory.capacity == host.capacity.minus(Amounts.of({"DECLARED_A100": 5}))
    assert not world.refresh_hosts()
    assert world.store.resources.of_kind(HOST)[1].capacity == host.capacity


def test_no_fewer_cards_are_declared_than_are_promised(site):
    world = site({}, pci=aliases(ALIAS, in_placement=False), two=TWO)
    world.manager.resources.change(HOST, "1", ResourceChange({"pci:a100": "4"}))
    world.lease(flavored(2, "two"), start=HOUR, hours=1)
    for fewer in ("3", None):
        with pytest.raises(Conflict, match="has 4 DECLARED_A100 promised at one time") as refused:
            world.manager.resources.change(HOST, "1", ResourceChange({"pci:a100": fewer}))
        assert refused.value.code == "resource_in_use"
    world.manager.resources.change(HOST, "1", ResourceChange({"pci:a100": "5", "gpu": "yes"}))
    world.manager.resources.change(HOST, "1", ResourceChange({"pci:a100": "4"}))
    assert world.store.resources.of_kind(HOST)[0].capacity.get("DECLARED_A100") == 4


def test_cards_are_declared_once(site):
    world = site({}, pci=aliases(ALIAS, in_placement=False))
    world.manager.resources.change(HOST, "1", ResourceChange({"pci:a100": "4"}))
    with pytest.raises(InvalidInput, match="pci:A100 and pci:a100 declare the same cards; remove one"):
        world.manager.resources.change(HOST, "1", ResourceChange({"pci:A100": "2"}))
    world.manager.resources.change(HOST, "1", ResourceChange({"pci:A100": "2", "pci:a100": None}))
    assert world.store.resources.of_kind(HOST)[0].capacity.get("DECLARED_A100") == 2


def test_a_start_beside_late_servers_counts_declared_cards(site):
    world = site({}, pci=aliases(ALIAS, in_placement=False), one=ONE)
    world.manager.resources.change(HOST, "1", ResourceChange({"pci:a100": "3"}))
    late = world.lease(flavored(1, "one"), hours=1)
    beside = world.lease(flavored(2, "one"), start=HOUR, hours=1)
    after = world.lease(flavored(1, "one"), start=HOUR, hours=1)
    users = {
        lease.id: world.store.calendar.earlier_users(lease.id, before=NOON + HOUR, now=NOON + HOUR)
        for lease in (beside, after)
    }
    assert {user.lease_id for found in users.values() for user in found} == {late.id}
    world.manager.resources.change(HOST, "1", ResourceChange({"pci:a100": "4"}))
    assert not world.store.calendar.earlier_users(beside.id, before=NOON + HOUR, now=NOON + HOUR)


def test_reports_and_metrics_count_declared_cards(site):
    world = site({}, {}, pci=aliases(ALIAS, in_placement=False), one=ONE)
    for host in ("1", "2"):
        world.manager.resources.change(HOST, host, ResourceChange({"pci:a100": "3"}))
    world.lease(flavored(2, "one"), hours=2)
    world.lease(a_whole_host(1), hours=2)
    world.run_to(NOON + HOUR)
    sample = world.store.sample.read(NOON + HOUR)
    cards = ("host", "", "DECLARED_A100")
    assert (sample.capacity[cards], sample.allocated[cards]) == (6, 5)
    question = CapacityReportQuestion(PROJECT, NOON, NOON + HOUR, group_by=(), operator=True)
    (row,) = world.manager.reports.capacity(question).rows
    assert row.sums.amounts["DECLARED_A100"] == AmountTime(registered=6 * 3600, promised=5 * 3600)


@pytest.mark.parametrize("value", ["four", "-1", "", "12345", "1.5"])
def test_a_number_of_cards_that_is_none_is_refused(site, value):
    world = site({}, pci=aliases(ALIAS, in_placement=False))
    with pytest.raises(InvalidInput, match="pci:a100 is .*; it declares how many PCI devices") as refused:
        world.manager.resources.change(HOST, "1", ResourceChange({"pci:a100": value}))
    assert refused.value.pointer == "/properties/pci:a100"


def test_declared_cards_of_aliases_that_overlap_are_refused():
    both = aliases(ALIAS, ALIAS.replace("a100", "gpu"), in_placement=False)
    with pytest.raises(InvalidInput, match="names .a100., whose devices servers get by the alias gpu, too"):
        format_reservable_flavor(a_flavor(**ONE), "flavor_id", both)


def _reasons(world: World, request):
    question = AvailabilityQuestion(
        Actor("curie", PROJECT),
        (request,),
        start=NOON + HOUR,
        end=NOON + 2 * HOUR,
    )
    (reason,) = world.manager.availability.find(question).reasons
    return [step for step in reason.steps if step.code in (StepCode.CARDS, StepCode.PROMISED)]
