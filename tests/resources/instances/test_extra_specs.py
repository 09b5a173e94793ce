# SPDX-License-Identifier: Apache-2.0
"""What a server of a flavor takes of its host."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from blazar.clouds.ports.compute import Flavor
from blazar.model.base.errors import InvalidInput
from blazar.model.calendar.demand import TraitRequirements
from blazar.resources.hosts.flavors import (
    check_reservable,
    format_flavor,
    format_reservable_flavor,
    parse_flavor,
    per_instance_of,
    traits_of,
)
from blazar.resources.hosts.pci_aliases import NO_ALIASES


def a_flavor(vcpus=4, memory_mb=2048, disk_gb=10, **more) -> Flavor:
    specs = {key: value for key, value in more.items() if key not in Flavor.__dataclass_fields__}
    sizes = {key: value for key, value in more.items() if key not in specs}
    return Flavor("f", "name", vcpus, memory_mb, disk_gb, extra_specs=specs, **sizes)


def takes(flavor: Flavor) -> dict[str, int]:
    return dict(per_instance_of(flavor))


def test_a_server_takes_what_its_flavor_says():
    assert takes(a_flavor()) == {"VCPU": 4, "MEMORY_MB": 2048, "DISK_GB": 10}


@pytest.mark.parametrize(("swap_mb", "disk"), [(0, 13), (1, 14), (1024, 14), (1025, 15)])
def test_the_disk_is_root_and_ephemeral_and_swap_in_whole_gib(swap_mb, disk):
    assert takes(a_flavor(ephemeral_gb=3, swap_mb=swap_mb))["DISK_GB"] == disk


def test_a_server_that_boots_from_a_volume_takes_no_disk():
    assert "DISK_GB" not in takes(a_flavor(disk_gb=0))


@pytest.mark.parametrize(
    ("specs", "cpus"),
    [
        ({"hw:cpu_policy": "dedicated"}, {"PCPU": 4}),
        ({"hw:cpu_policy": "shared"}, {"VCPU": 4}),
        ({"hw:cpu_policy": "dedicated", "hw:emulator_threads_policy": "isolate"}, {"PCPU": 5}),
        ({"hw:emulator_threads_policy": "share"}, {"VCPU": 4}),
        ({"resources:PCPU": "2"}, {"PCPU": 2}),
        ({"resources:PCPU": "2", "resources:VCPU": "1"}, {"PCPU": 2, "VCPU": 1}),
        ({"resources:VCPU": "0"}, {}),
        ({"resources:VCPU": "8"}, {"VCPU": 8}),
        ({"resources:VCPU": "0", "resources:CUSTOM_BAREMETAL": "1"}, {"CUSTOM_BAREMETAL": 1}),
    ],
    ids=str,
)
def test_cpus_are_shared_or_dedicated_or_what_extra_specs_name(specs, cpus):
    assert takes(a_flavor(**specs)) == {"MEMORY_MB": 2048, "DISK_GB": 10, **cpus}


def test_extra_specs_outdo_sizes_and_zero_takes_them_away():
    specs = {"resources:MEMORY_MB": "0", "resources:DISK_GB": "0", "resources:VGPU": "1", "resources:VCPU": "0"}
    assert takes(a_flavor(**specs)) == {"VGPU": 1}
    with pytest.raises(InvalidInput, match="take nothing"):
        per_instance_of(a_flavor(**{**specs, "resources:VGPU": "0"}))


@pytest.mark.parametrize(
    "specs",
    [
        {"resources1:VCPU": "1"},
        {"resources_COMPUTE:VCPU": "1"},
        {"trait1:HW_CPU_X86_AVX": "required"},
        {"hw:cpu_policy": "mixed"},
        {"hw:mem_encryption": "True"},
        {"hw:pmem": "6GB"},
        {"accel:device_profile": "fpga"},
        {"resources:VCPU": "-1"},
        {"resources:VCPU": "many"},
        {"resources:VCPU": "1.5"},
        {"resources:VCPU": ""},
        {"resources:VCPU": "٣"},
        {"resources:VCPU": str(2**31)},
        {"resources:VCPU": "9" * 100_000},
        {"resources:vcpu": "1"},
        {"resources:": "1"},
        {"resources:CUSTOM_RESERVATION_X": "1"},
        {"aggregate_instance_extra_specs:reservation": "r"},
    ],
    ids=lambda specs: str(specs)[:50],
)
def test_what_cannot_be_promised_is_refused_by_name(specs):
    with pytest.raises(InvalidInput, match="^flavor ") as raised:
        per_instance_of(a_flavor(**specs))
    assert len(raised.value.message) < 300


@pytest.mark.parametrize(
    ("specs", "required", "forbidden"),
    [
        ({}, set(), set()),
        ({"trait:A": "required", "trait:B": "forbidden", "trait:C": "required"}, {"A", "C"}, {"B"}),
        ({"hw:cpu_thread_policy": "isolate"}, set(), {"HW_CPU_HYPERTHREADING"}),
        ({"hw:cpu_thread_policy": "require"}, {"HW_CPU_HYPERTHREADING"}, set()),
        ({"hw:cpu_thread_policy": "prefer"}, set(), set()),
        ({"hw:tpm_version": "2.0"}, {"COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_TIS"}, set()),
        (
            {"hw:tpm_version": "2.0", "hw:tpm_model": "tpm-crb"},
            {"COMPUTE_SECURITY_TPM_2_0", "COMPUTE_SECURITY_TPM_CRB"},
            set(),
        ),
        ({"os:secure_boot": "required"}, {"COMPUTE_SECURITY_UEFI_SECURE_BOOT"}, set()),
    ],
    ids=lambda given: str(given) if isinstance(given, dict) else str(sorted(given)),
)
def test_traits_are_those_of_the_extra_specs(specs, required, forbidden):
    assert traits_of(a_flavor(**specs)) == TraitRequirements(frozenset(required), frozenset(forbidden))


@pytest.mark.parametrize(
    "specs", [{"trait:A": "maybe"}, {"trait:A": ""}, {"trait:a b": "required"}, {"trait:": "required"}]
)
def test_a_trait_is_required_or_forbidden_and_nothing_else(specs):
    with pytest.raises(InvalidInput, match="required"):
        traits_of(a_flavor(**specs))


def test_a_kept_flavor_is_what_it_was_with_the_keys_of_nova():
    flavor = replace(
        a_flavor(swap_mb=512, ephemeral_gb=2, rxtx_factor=2.0, public=True), extra_specs={"b": "1", "a": "ü"}
    )
    assert parse_flavor(format_flavor(flavor)) == flavor
    assert parse_flavor(format_flavor(a_flavor())) == a_flavor()
    for key in ("OS-FLV-EXT-DATA:ephemeral", "ram", "disk", "swap", "extra_specs", "rxtx_factor"):
        assert f'"{key}"' in format_flavor(flavor)


sizes = st.integers(0, 2**20)


@given(st.builds(Flavor, st.just("f"), st.text(), st.integers(1, 512), sizes, sizes, sizes, sizes))
def test_every_flavor_without_extra_specs_can_be_reserved_and_kept(flavor):
    assert parse_flavor(format_flavor(flavor)) == flavor
    assert dict(per_instance_of(flavor))["VCPU"] == flavor.vcpus


def test_a_pci_device_by_its_class_would_be_counted_and_not_given():
    device = "resources:CUSTOM_PCI_10DE_20B5"
    with pytest.raises(InvalidInput, match=f"its extra spec {device} counts PCI devices that Nova does not hand") as no:
        format_reservable_flavor(a_flavor(**{device: "1"}), "flavor_id", NO_ALIASES)
    assert no.value.pointer == "/flavor_id"
    # A reservation that has one by now can still be read.
    assert takes(a_flavor(**{device: "1"}))["CUSTOM_PCI_10DE_20B5"] == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [("resources:CUSTOM_PCI_10DE_20B5", "0"), ("resources:CUSTOM_GPU_A100", "1"), ("resources:CUSTOM_PCI_CARD", "1")],
)
def test_classes_that_an_operator_counts_are_reservable(key, value):
    flavor = a_flavor(**{key: value})
    check_reservable(flavor)
    assert takes(flavor).get(key.removeprefix("resources:"), 0) == int(value)
