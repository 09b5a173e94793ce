# SPDX-License-Identifier: Apache-2.0
"""Hosts that are nodes of Ironic, against a fake of three routes: it was not tried on a real one."""

from __future__ import annotations

from datetime import timedelta

import pytest

from blazar.clouds.openstack.ironic import IronicPower
from blazar.clouds.ports.power import MachinePower, PowerRef
from blazar.model.base.errors import CloudRefused, CloudUnavailable, InvalidInput
from blazar.model.power.addresses import PowerAdapter, PowerAddress
from tests.clouds.test_access import an_access, sent, web
from tests.manager.power.adapters import IRONIC, serve_ironic

__all__ = ["web"]

ON, OFF, UNKNOWN = MachinePower.ON, MachinePower.OFF, MachinePower.UNKNOWN


def ref(node="node-1"):
    return PowerRef(f"id-{node}", node, PowerAddress(PowerAdapter.IRONIC, node))


@pytest.fixture
def ironic(web):
    serve_ironic(web)
    return IronicPower(an_access(), shutdown_timeout=timedelta(seconds=90))


def node(name, power, target=None):
    return {"uuid": f"uuid-{name}", "name": name, "power_state": power, "target_power_state": target}


@pytest.mark.parametrize(
    ("power", "target", "state"),
    [
        ("power on", None, ON),
        ("power on", "power off", ON),
        ("power off", None, OFF),
        ("power off", "power on", UNKNOWN),
        ("error", None, UNKNOWN),
        (None, None, UNKNOWN),
    ],
)
def test_only_what_is_off_and_stays_so_is_off(web, ironic, power, target, state):
    web.get(f"{IRONIC}/v1/nodes/node-1", json=node("node-1", power, target))
    found = ironic.power_states([ref()])["id-node-1"]
    assert (found.state, found.reason == "") == (state, state is not UNKNOWN)


def test_many_nodes_are_listed_and_found_by_name_and_id(web, ironic):
    second = f"{IRONIC}/v1/nodes?marker=uuid-b&limit=1000"
    pages = [{"nodes": [node("a", "power on"), node("b", "power off")], "next": second}]
    web.get(f"{IRONIC}/v1/nodes", [{"json": pages[0]}, {"json": {"nodes": [node("c", "power off")]}}])
    refs = [ref(name) for name in ("a", "b", "c", "uuid-a", "uuid-c", "d")]
    found = ironic.power_states(refs)
    assert [found[one.resource_id].state for one in refs] == [ON, OFF, OFF, ON, OFF, UNKNOWN]
    assert found["id-d"].reason == "Ironic has no such node"
    assert len(sent(web, "/v1/nodes")) == 2


def test_a_node_that_there_is_not_costs_no_other_one_its_answer(web, ironic):
    web.get(f"{IRONIC}/v1/nodes/node-1", json=node("node-1", "power off"))
    web.get(f"{IRONIC}/v1/nodes/node-2", status_code=404, json={})
    found = ironic.power_states([ref("node-2"), ref()])
    assert [found["id-node-2"].state, found["id-node-1"].state] == [UNKNOWN, OFF]


def test_an_ironic_that_fails_leaves_all_unknown(web, ironic):
    web.get(f"{IRONIC}/v1/nodes/node-1", status_code=500, json={})
    found = ironic.power_states([ref()])["id-node-1"]
    assert (found.state, "Ironic failed with 500" in found.reason) == (UNKNOWN, True)
    assert ironic.power_watts([ref()]) == {}


@pytest.mark.parametrize(
    ("to", "soft", "target"),
    [(ON, False, "power on"), (ON, True, "power on"), (OFF, False, "power off"), (OFF, True, "soft power off")],
)
def test_a_switch_is_a_target_of_the_node(web, ironic, to, soft, target):
    web.put(f"{IRONIC}/v1/nodes/node-1/states/power", status_code=202)
    ironic.begin_switch(ref(), to, soft=soft)
    (call,) = sent(web, "/states/power")
    # Ironic is at work for so long on a system that does not shut down.
    assert call.json() == {"target": target} | ({"timeout": 90} if target == "soft power off" else {})
    assert call.headers["X-OpenStack-Ironic-API-Version"] == "1.27"


@pytest.mark.parametrize(("status", "error"), [(409, CloudUnavailable), (404, CloudRefused), (400, CloudRefused)])
def test_a_node_at_work_is_tried_again_and_another_refusal_is_final(web, ironic, status, error):
    web.put(f"{IRONIC}/v1/nodes/node-1/states/power", status_code=status, json={"error_message": "locked"})
    with pytest.raises(error):
        ironic.begin_switch(ref(), OFF, soft=False)
    # Once: the library would repeat some statuses, past the end of a claim.
    assert len(sent(web, "/states/power")) == 1


def test_a_target_is_a_name_or_an_id(ironic):
    ironic.check_address(PowerAddress(PowerAdapter.IRONIC, "rack-1.node_7"))
    for target in ("", "a/b", "a b", "../x", "x" * 256):
        with pytest.raises(InvalidInput, match="target is not the name or id of a node"):
            ironic.check_address(PowerAddress(PowerAdapter.IRONIC, target))
