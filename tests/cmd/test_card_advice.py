# SPDX-License-Identifier: Apache-2.0
"""What ``blazar-status`` says of PCI aliases and cards."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from blazar.cmd import config
from blazar.cmd.card_advice import list_card_advice, read_card_advice
from blazar.cmd.status import main
from blazar.model.base.amounts import Amounts
from blazar.model.resources.pools import PCI, CardPool
from blazar.resources.hosts.gpus import GpuModels
from blazar.resources.hosts.pci_aliases import PciAliases, parse_alias
from blazarconformance.databases import new_sqlite
from tests.builders import a_host

A100 = '{"name": "a100", "vendor_id": "10de", "product_id": "20b5"}'
NVLINK = '{"name": "nv", "vendor_id": "10de", "product_id": "20b5", "traits": "nvlink"}'
CLASS = "CUSTOM_PCI_10DE_20B5"


def advice(*texts: str, hosts=(), in_placement: bool = True) -> list[str]:
    return list_card_advice(PciAliases.of([parse_alias(text) for text in texts], in_placement=in_placement), hosts)


def host_of(count: int, *traits: str):
    pool = CardPool(CLASS, 1, count, frozenset({PCI, *traits}))
    return replace(a_host(1), pools=(pool,), capacity=Amounts.of({CLASS: count}))


def test_what_is_well_is_not_told():
    assert advice() == []
    assert advice(A100) == []
    assert advice(A100, hosts=[a_host(2), host_of(4)]) == []


@pytest.mark.parametrize(
    ("texts", "in_placement", "words"),
    [
        ((A100, NVLINK), True, "PCI aliases a100 and nv are of one resource class: .* resource_class of their own"),
        ((A100, A100.replace("a100", "gpu")), False, "a100 and gpu name the same devices, .*; keep one of them"),
    ],
)
def test_aliases_that_overlap_are_told(texts, in_placement, words):
    (told,) = advice(*texts, in_placement=in_placement)
    assert re.search(words, told)


def test_an_alias_that_no_host_serves_is_told():
    (told,) = advice(A100, hosts=[a_host(1)])
    assert told.startswith(f"no registered host has cards of PCI alias a100 only, whose class is {CLASS}: ")
    told = advice(A100, NVLINK, hosts=[host_of(2)])
    assert [text[:55] for text in told[1:]] == ["no registered host has cards of PCI alias nv only, whos"]
    assert len(advice(A100, NVLINK, hosts=[host_of(2, "CUSTOM_NVLINK")])) == 1
    (declared,) = advice(A100, hosts=[a_host(1)], in_placement=False)
    assert "host-update HOST --extra pci:a100=4" in declared
    assert advice(A100, hosts=[replace(a_host(1), capacity=Amounts.of({"DECLARED_A100": 1}))], in_placement=False) == []


def test_hosts_with_many_equal_cards_are_told():
    (told,) = advice(A100, hosts=[host_of(8), replace(host_of(9), name="other")])
    assert told.startswith("host node-1 and 1 more has 8 or more equal cards: ")
    assert "max_allocation_candidates" in told


def test_a_model_of_a_class_that_no_host_has_is_told():
    models = GpuModels.of({"A16": "class/VGPU"}, PciAliases())
    (told,) = list_card_advice(PciAliases(), [a_host(1)], models)
    assert told.startswith("no registered host has the resource class VGPU of the GPU model A16, ")
    host = replace(a_host(1), pools=(CardPool("VGPU", 4),), capacity=Amounts.of({"VGPU": 4}))
    assert list_card_advice(PciAliases(), [host], models) == []
    assert list_card_advice(PciAliases(), [], models) == []


@pytest.mark.parametrize(
    ("driver", "strategy", "refused"),
    [
        ("nova.quota.UnifiedLimitsDriver", "ignore", True),
        ("nova.quota.UnifiedLimitsDriver", "require", False),
        ("nova.quota.DbQuotaDriver", "ignore", False),
    ],
)
def test_limits_of_nova_that_refuse_servers_of_reservations_are_told(tmp_path, driver, strategy, refused):
    lines = ("[quota]", f"driver = {driver}", f"unified_limits_resource_strategy = {strategy}")
    (tmp_path / "blazar.conf").write_text("\n".join(lines), encoding="utf-8")
    told = read_card_advice(config.load(["--config-file", str(tmp_path / "blazar.conf")], program="blazar-status"))
    assert [text[:51] for text in told] == (["[quota] unified_limits_resource_strategy is ignore:"] if refused else [])


def test_the_check_of_an_upgrade_tells_it(tmp_path, capsys):
    new_sqlite(tmp_path / "blazar.sqlite")
    lines = ("[database]", f"connection = sqlite:///{tmp_path}/blazar.sqlite", "[nova]")
    aliases = [f"pci_alias = {text}" for text in (A100, NVLINK)]
    (tmp_path / "blazar.conf").write_text("\n".join([*lines, *aliases]), encoding="utf-8")
    main(["--config-file", str(tmp_path / "blazar.conf"), "upgrade", "check"])
    rows = [row for row in capsys.readouterr().out.splitlines() if "PCI aliases a100 and nv" in row]
    assert len(rows) == 1
    assert rows[0].split()[:2] == ["Options", "Warning"]
