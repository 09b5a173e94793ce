# SPDX-License-Identifier: Apache-2.0
"""The filter as nova-scheduler sees it: on nova's own objects where nova is installed, on a stub elsewhere."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from oslo_config import cfg

from tests.nova.conftest import GROUP, ROOT

RESERVATION_FLAVOR = {"aggregate_instance_extra_specs:reservation": "r1", "resources:CUSTOM_RESERVATION_R1": "1"}


@pytest.fixture
def freepool(an_aggregate):
    return an_aggregate("freepool")


@pytest.fixture
def own(an_aggregate):
    return an_aggregate("r1", availability_zone="blazar_r1", blazar__owner="alice")


@pytest.fixture
def foreign(an_aggregate):
    return an_aggregate("r2", availability_zone="blazar_r2", blazar__owner="bob")


def test_the_owners_hint_opens_the_reservation_and_nothing_else(passes, a_host, a_request, own, foreign, freepool):
    spec = a_request(hint="r1")
    assert passes(a_host(own), spec)
    assert not passes(a_host(foreign), spec)
    assert not passes(a_host(freepool), spec)
    assert not passes(a_host(), spec)


def test_a_hint_may_name_several_reservations(passes, a_host, a_request, own, foreign):
    spec = a_request(hint=["r0", "r1", "r2"])
    assert passes(a_host(own), spec)
    assert not passes(a_host(foreign), spec)


@pytest.mark.parametrize("value", ["blazar:tenant", "blazar:project", "anything"])
def test_a_project_is_let_in_by_its_id_as_a_metadata_key(passes, a_host, a_request, an_aggregate, value):
    shared = an_aggregate("r2", availability_zone="blazar_r2", blazar__owner="bob", alice=value)
    assert passes(a_host(shared), a_request(hint="r2"))
    assert not passes(a_host(shared), a_request(hint="r2", project_id="carol"))


def test_a_refused_project_is_logged_with_the_host(nova, passes, a_host, a_request, foreign, caplog):
    caplog.set_level(logging.INFO, nova.filter_module.__name__)
    passes(a_host(foreign), a_request(hint="r2"))
    assert "project alice" in caplog.text
    assert "Host compute-1 is in an aggregate that the project may not use" in caplog.text


@pytest.mark.parametrize("nothing", [{}, {"scheduler_hints": None}, {"scheduler_hints": {}}, {"hint": [""]}])
def test_no_hint_is_an_ordinary_request(passes, a_host, a_request, own, freepool, nothing):
    spec = a_request(**nothing)
    assert passes(a_host(), spec)
    assert not passes(a_host(freepool), spec)
    assert not passes(a_host(own), spec)


def test_other_hints_are_left_to_other_filters(passes, a_host, a_request, freepool):
    spec = a_request(scheduler_hints={"group": ["0d5d2f1e-7a4f-4a37-8ee8-1a8b7c6a2e11"]})
    assert passes(a_host(), spec)
    assert not passes(a_host(freepool), spec)


@pytest.mark.parametrize("project", [{"project_id": None}, {"project_id": ""}])
def test_a_request_without_a_project_opens_no_reservation(passes, a_host, a_request, an_aggregate, project):
    ownerless = an_aggregate("r1", availability_zone="blazar_r1")
    assert not passes(a_host(ownerless), a_request(hint="r1", **project))


def test_the_flavor_of_a_reservation_passes_everywhere(passes, a_host, a_request, own, freepool):
    spec = a_request(extra_specs=RESERVATION_FLAVOR)
    assert all(passes(a_host(*pools), spec) for pools in [(), (own,), (freepool,)])


def test_a_hint_outranks_the_flavor_of_a_reservation(passes, a_host, a_request, freepool):
    spec = a_request(extra_specs=RESERVATION_FLAVOR, hint="r1")
    assert not passes(a_host(freepool), spec)
    assert not passes(a_host(), spec)


@pytest.mark.parametrize("word", ["true", "True", "yes", "1", "on"])
def test_preemptible_servers_get_the_freepool_alone_where_they_are_allowed(
    passes, a_host, a_request, own, freepool, options, word
):
    options(allow_preemptibles=True)
    spec = a_request(extra_specs={"blazar:preemptible": word})
    assert passes(a_host(freepool), spec)
    assert not passes(a_host(own), spec)
    assert not passes(a_host(own, freepool), spec)
    assert not passes(a_host(), spec)


def test_no_preemptible_server_comes_to_a_host_that_a_reservation_takes_over(
    passes, a_host, a_request, an_aggregate, options
):
    options(allow_preemptibles=True)
    spec = a_request(extra_specs={"blazar:preemptible": "true"})
    name = a_host().host
    assert not passes(a_host(an_aggregate("freepool", **{f"blazar:closed:{name}": "r1"})), spec)
    assert passes(a_host(an_aggregate("freepool", **{"blazar:closed:another": "r1"})), spec)


def test_no_preemptible_server_comes_to_a_host_with_slots(passes, a_host, a_request, an_aggregate, freepool, options):
    options(allow_preemptibles=True)
    slots = an_aggregate("r3", reservation="r3", filter_tenant_id="bob", blazar__owner="bob")
    assert not passes(a_host(freepool, slots), a_request(extra_specs={"blazar:preemptible": "true"}))
    assert passes(a_host(freepool, slots), a_request(extra_specs=RESERVATION_FLAVOR))


@pytest.mark.parametrize("word", ["false", "no", "0", "", "perhaps"])
def test_a_flavor_that_says_no_is_an_ordinary_one(passes, a_host, a_request, freepool, options, word):
    options(allow_preemptibles=True)
    spec = a_request(extra_specs={"blazar:preemptible": word})
    assert not passes(a_host(freepool), spec)
    assert passes(a_host(), spec)


def test_a_preemptible_flavor_is_an_ordinary_one_unless_allowed(passes, a_host, a_request, freepool):
    spec = a_request(extra_specs={"blazar:preemptible": "true"})
    assert not passes(a_host(freepool), spec)
    assert passes(a_host(), spec)


def test_an_aggregate_of_preemptible_servers_is_kept_from_ordinary_ones(
    passes, a_host, a_request, an_aggregate, options
):
    spot = a_host(an_aggregate("spot"))
    assert passes(spot, a_request())
    options(allow_preemptibles=True, preemptible_aggregate="spot")
    assert not passes(spot, a_request())
    assert passes(spot, a_request(extra_specs={"blazar:preemptible": "true"}))


def test_aggregates_of_operators_and_of_instance_reservations_are_no_pools(passes, a_host, a_request, an_aggregate):
    zone = an_aggregate("zone", availability_zone="az-1")
    slots = an_aggregate("r3", reservation="r3", filter_tenant_id="bob", blazar__owner="bob")
    assert passes(a_host(zone, slots), a_request())
    assert not passes(a_host(zone, slots), a_request(hint="r3", project_id="bob"))


def test_a_pool_with_a_zone_of_the_old_prefix_is_one(passes, a_host, a_request, an_aggregate):
    old = a_host(an_aggregate("r1", availability_zone="blazar:r1", blazar__owner="alice"))
    assert not passes(old, a_request())
    assert passes(old, a_request(hint="r1"))


def test_a_wrong_prefix_in_nova_conf_opens_no_reservation_and_is_logged_once(
    nova, passes, a_host, a_request, own, foreign, options, caplog
):
    options(blazar_az_prefix="wrong_")
    judge = nova.filter_module.BlazarFilter()
    for _ in range(3):
        assert not judge.host_passes(a_host(own), a_request(project_id="carol"))
        assert not judge.host_passes(a_host(foreign), a_request(hint="r2"))
        assert judge.host_passes(a_host(own), a_request(hint="r1"))
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert "aggregate r1 " in warnings[0]
    assert "blazar_az_prefix and blazar_owner" in warnings[0]


def test_an_aggregate_without_metadata_is_known_by_its_name(nova, passes, a_host, a_request):
    for metadata in ({}, {"metadata": None}, {"metadata": {}}):
        assert not passes(a_host(nova.Aggregate(name="freepool", **metadata)), a_request())
        assert passes(a_host(nova.Aggregate(name="other", **metadata)), a_request())


def test_a_flavor_whose_extra_specs_were_not_loaded_is_an_ordinary_one(passes, a_host, a_request, freepool, options):
    options(allow_preemptibles=True)
    assert passes(a_host(), a_request(extra_specs=None))
    assert not passes(a_host(freepool), a_request(extra_specs=None))
    assert passes(a_host(), a_request(extra_specs={}))


def test_an_operator_may_move_a_server_out_of_its_reservation(passes, a_host, a_request, own, foreign, freepool):
    spec = a_request(hint="r1", destination={"host": "compute-1", "node": "compute-1"})
    assert passes(a_host(), spec)
    assert passes(a_host(own), spec)
    assert not passes(a_host(name="compute-2"), spec)
    assert not passes(a_host(freepool), spec)
    assert not passes(a_host(foreign), spec)


def test_an_operators_destination_needs_no_node(passes, a_host, a_request):
    assert passes(a_host(), a_request(hint="r1", destination={"host": "compute-1"}))


def test_an_operators_destination_is_logged(nova, passes, a_host, a_request, caplog):
    caplog.set_level(logging.INFO, nova.filter_module.__name__)
    passes(a_host(), a_request(hint="r1", destination={"host": "compute-1"}))
    assert "an operator named it as the destination" in caplog.text


@pytest.mark.parametrize(
    "unnamed",
    [
        {"requested_destination": None},
        {"destination": {}},
        {"destination": {"node": "compute-1"}},
        {"destination": {"allow_cross_cell_move": True}},
        {"destination": {"aggregates": ["4f8a6a2e-2f5e-4a50-b6b1-3f7c5b2a9d10"]}},
    ],
)
def test_a_destination_that_names_no_host_opens_nothing(passes, a_host, a_request, own, unnamed):
    spec = a_request(hint="r1", **unnamed)
    assert not passes(a_host(), spec)
    assert passes(a_host(own), spec)


def test_an_operator_chooses_the_names_in_nova_conf(passes, a_host, a_request, an_aggregate, options):
    options(aggregate_freepool_name="free", blazar_owner="owner", blazar_az_prefix="res-")
    pool = a_host(an_aggregate("r1", availability_zone="res-r1", owner="alice"))
    assert passes(pool, a_request(hint="r1"))
    assert not passes(pool, a_request())
    assert not passes(a_host(an_aggregate("free")), a_request())


def test_the_options_are_those_that_operators_know(nova, tmp_path):
    conf = cfg.ConfigOpts()
    conf.register_opts(nova.filter_module.OPTIONS, GROUP)
    conf([], default_config_files=[])
    assert dict(conf[GROUP]) == {
        "aggregate_freepool_name": "freepool",
        "allow_preemptibles": False,
        "preemptible_aggregate": "freepool",
        "project_id_key": "blazar:tenant",
        "blazar_owner": "blazar:owner",
        "blazar_az_prefix": "blazar_",
    }
    file = tmp_path / "nova.conf"
    file.write_text(f"[{GROUP}]\nallow_preemptibles = true\nblazar_owner = owner:key\n", encoding="utf-8")
    conf([], default_config_files=[str(file)])
    assert (conf[GROUP].allow_preemptibles, conf[GROUP].blazar_owner) == (True, "owner:key")


def test_the_first_server_of_a_request_decides_for_all_and_a_rebuild_is_not_judged(nova):
    assert nova.filter_module.BlazarFilter.run_filter_once_per_request is True
    assert nova.filter_module.BlazarFilter.RUN_ON_REBUILD is False


def test_the_rules_can_be_used_where_nova_is_not():
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT / 'nova')!r}); import blazarnova.scheduler.decisions;"
        "assert not [name for name in sys.modules if name.split('.')[0] == 'nova' or name.startswith('oslo')]"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
