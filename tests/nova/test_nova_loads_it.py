# SPDX-License-Identifier: Apache-2.0
"""What only a real nova can tell: that it finds the filter, and how it uses it. Skipped where nova is not installed."""

from __future__ import annotations

import pytest

pytest.importorskip("nova.scheduler.host_manager", reason="nova is not installed")

from nova.scheduler import filters
from nova.scheduler.host_manager import HostManager
from oslo_config import cfg

CLASS_PATH = "blazarnova.scheduler.filters.blazar_filter.BlazarFilter"
BLAZAR_FILTER_MODULE, _, BLAZAR_FILTER_NAME = CLASS_PATH.rpartition(".")


@pytest.fixture
def manager(monkeypatch, nova):
    """Nova's host manager with the lines of our README in its configuration, and no database."""
    for method in ("refresh_cells_caches", "_init_aggregates", "_init_instance_info"):
        monkeypatch.setattr(HostManager, method, lambda self, *args: None)
    available = ["nova.scheduler.filters.all_filters", CLASS_PATH]
    cfg.CONF.set_override("available_filters", available, group="filter_scheduler")
    cfg.CONF.set_override("enabled_filters", [BLAZAR_FILTER_NAME], group="filter_scheduler")
    yield HostManager()
    cfg.CONF.clear_override("available_filters", group="filter_scheduler")
    cfg.CONF.clear_override("enabled_filters", group="filter_scheduler")


@pytest.fixture
def names(manager, a_request):
    """The names of the hosts that nova is left with; its API sets these attributes in every request."""

    def ask(hosts, **attributes):
        unset = {"ignore_hosts": None, "force_hosts": None, "force_nodes": None, "requested_destination": None}
        unset["instance_uuid"] = "22222222-2222-2222-2222-222222222222"
        if "destination" in attributes:
            del unset["requested_destination"]
        spec = a_request(**unset | attributes)
        return [host.host for host in manager.get_filtered_hosts(iter(hosts), spec)]

    return ask


@pytest.fixture
def hosts(a_host, an_aggregate):
    own = an_aggregate("r1", availability_zone="blazar_r1", blazar__owner="alice")
    return [
        a_host(an_aggregate("freepool"), name="free"),
        a_host(own, name="reserved"),
        a_host(name="open-1"),
        a_host(name="open-2"),
    ]


def test_nova_finds_one_filter_in_the_module(nova):
    handler = filters.HostFilterHandler()
    assert handler.get_matching_classes([CLASS_PATH]) == [nova.filter_module.BlazarFilter]
    assert handler._get_classes_from_module(BLAZAR_FILTER_MODULE) == [nova.filter_module.BlazarFilter]


def test_nova_enables_it_beside_its_own_filters(manager):
    assert [type(each).__name__ for each in manager.enabled_filters] == ["BlazarFilter"]
    assert {"BlazarFilter", "ComputeFilter"} <= set(manager.filter_cls_map)
    assert "AvailabilityZoneFilter" not in manager.filter_cls_map


def test_nova_is_left_with_the_hosts_that_may_run_the_server(names, hosts):
    assert names(hosts) == ["open-1", "open-2"]
    assert names(hosts, hint="r1") == ["reserved"]
    assert names(hosts, hint="r1", project_id="bob") == []


def test_nova_lets_an_operator_move_a_server_out_of_its_reservation(names, hosts):
    assert names(hosts, hint="r1", destination={"host": "open-2", "node": None}) == ["open-2"]
    assert names(hosts, hint="r1", destination={"host": "free", "node": "free"}) == []


def test_nova_does_not_ask_about_forced_hosts_and_rebuilds(names, hosts):
    assert names(hosts, force_hosts=["free"]) == ["free"]
    rebuild = {"reservation": ["r1"], "_nova_check_type": ["rebuild"]}
    assert names(hosts, scheduler_hints=rebuild, force_hosts=["open-1"]) == ["open-1"]


def test_nova_asks_for_the_first_server_of_a_request_only(manager, hosts, a_request):
    handler, judges = manager.filter_handler, manager.enabled_filters
    spec = a_request(instance_uuid="22222222-2222-2222-2222-222222222222")
    assert len(handler.get_filtered_objects(judges, hosts, spec, index=0)) == 2
    assert len(handler.get_filtered_objects(judges, hosts, spec, index=1)) == 4
