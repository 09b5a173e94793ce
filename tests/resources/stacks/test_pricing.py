# SPDX-License-Identifier: Apache-2.0
"""What a stack takes is told by the resources that Heat says it would have."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from blazar.clouds.ports.stacks import PlannedResource
from blazar.model.base.errors import InvalidInput
from blazar.resources.stacks.pricing import AddressPrice, ServerPrice, StackPrice, VolumePrice, price_resources
from tests.cases import cases


def a(kind, name="a", parent="", **properties):
    return PlannedResource(name, kind, properties, parent)


def server(flavor="tiny", **properties):
    return a("OS::Nova::Server", flavor=flavor, **properties)


def volume(size=1, **properties):
    return a("OS::Cinder::Volume", size=size, **properties)


def address(network="public", **properties):
    return a("OS::Neutron::FloatingIP", floating_network=network, **properties)


def test_a_stack_takes_what_its_resources_take():
    planned = [
        server(),
        server("large"),
        server(key_name="mine", block_device_mapping_v2=[{"volume_size": 5, "image": "tiny", "volume_id": None}]),
        a("OS::Nova::KeyPair", name="key", **{"public_key": "ssh-rsa x"}),
        volume(4, volume_type="fast"),
        volume("4", volume_type="fast"),
        volume(5),
        address(),
        a("OS::Neutron::FloatingIP", floating_network=None, floating_network_id="public"),
        a("OS::Neutron::Net"),
        a("OS::Heat::RandomString"),
    ]
    planned[3] = PlannedResource("key", "OS::Nova::KeyPair", {"name": "mine"})
    assert price_resources(planned) == StackPrice(
        (ServerPrice("large", 1), ServerPrice("tiny", 2)),
        (VolumePrice("", 5, 2), VolumePrice("fast", 4, 2)),
        (AddressPrice("public", 2),),
    )


def test_what_takes_only_quota_is_free():
    free = ("Net", "Subnet", "Port", "Router", "RouterInterface", "SecurityGroup", "FloatingIPAssociation")
    assert price_resources(a(f"OS::Neutron::{kind}") for kind in free) == StackPrice()
    assert price_resources([a("OS::Cinder::VolumeAttachment"), a("OS::Heat::WaitCondition")]) == StackPrice()


@pytest.mark.parametrize(
    "mapping",
    [{"volume_id": "v"}, {"volume_id": ""}, {"swap_size": 64}, {"ephemeral_size": 1}],
    ids=["existing volume", "volume of the stack", "swap", "ephemeral"],
)
def test_a_disk_that_is_no_new_volume_takes_none(mapping):
    assert price_resources([server(block_device_mapping_v2=[mapping])]).volumes == ()


@pytest.mark.parametrize(
    ("resource", "words"),
    [
        (server(None), "its flavor"),
        (server(""), "its flavor"),
        (server({"get_attr": ["x"]}), "its flavor"),
        (server(key_name="theirs"), "names the key pair"),
        (server(block_device_mapping=[{"snapshot_id": "s", "volume_size": None}]), "its volume_size"),
        (server(block_device_mapping_v2=[{"image": "tiny", "boot_index": 0}]), "its volume_size"),
        (server(block_device_mapping_v2=["x"]), "its block_device_mapping_v2"),
        (volume(None), "its size"),
        (volume(0), "its size"),
        (volume(True), "its size"),
        (volume(1.5), "its size"),
        (volume(float("inf")), "its size"),
        (volume("x"), "its size"),
        (volume(2**31), "its size"),
        (volume(None, source_volid="v"), "its size"),
        (volume(1, volume_type=""), "its volume_type"),
        (address(None), "its floating_network"),
        (address(""), "its floating_network"),
        (a("OS::Trove::Instance"), "nothing is known"),
        (a("OS::Cinder::Volume", size=-1), "its size is -1; give a whole number of GiB from 1 to 2147483647"),
        (a("OS::Cinder::Volume", size=1.5), r"its size is 1\.5; give a whole number"),
        (a("OS::Cinder::Volume", size=1, volume_type=["fast"]), r'its volume_type is \["fast"\]; give a name'),
        (a("OS::Nova::Server", flavor=None), "its flavor is missing, or not known before it runs"),
        (a("OS::Neutron::FloatingIP", floating_network=None), "give the id of a network"),
        (a("OS::Heat::ResourceGroup"), "nothing is known"),
        (a("My::Net"), "nothing is known"),
    ],
    ids=str,
)
def test_what_cannot_be_priced_is_refused_by_name(resource, words):
    with pytest.raises(InvalidInput, match=words) as refused:
        price_resources([server(), resource])
    assert '"a"' in refused.value.message
    assert resource.type in refused.value.message
    assert refused.value.pointer == "/template"


def test_a_resource_of_a_group_is_refused_with_the_name_of_the_group():
    with pytest.raises(InvalidInput, match='resource "a" of "workers" of type'):
        price_resources([a("OS::Cinder::Volume", parent="workers", size=0)])


ANY = st.one_of(
    st.builds(server, st.sampled_from(["tiny", "large"])),
    st.builds(volume, st.integers(1, 3), volume_type=st.sampled_from(["fast", None])),
    st.builds(address, st.sampled_from(["public", "other"])),
    st.just(a("OS::Neutron::Port")),
)


@given(st.lists(ANY, max_size=12))
@settings(max_examples=cases(100))
def test_a_price_is_the_sum_of_those_of_its_parts_in_any_order(planned):
    whole, parts = price_resources(planned), [price_resources([resource]) for resource in planned]
    assert price_resources(reversed(planned)) == whole
    for field, key in (
        ("servers", lambda p: p.flavor),
        ("volumes", lambda p: (p.volume_type, p.size_gb)),
        ("addresses", lambda p: p.network),
    ):
        total = Counter(key(p) for part in parts for p in getattr(part, field))
        assert {key(p): p.amount for p in getattr(whole, field)} == total
