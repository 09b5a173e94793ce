# SPDX-License-Identifier: Apache-2.0
"""Commands about segments of networks and devices, with the names and requests of Chameleon's client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import URL, Run, sent

ID = "11111111-2222-4333-8444-00000000000"
VLAN = {"id": f"{ID}1", "network_type": "vlan", "physical_network": "physnet1", "segment_id": 101, "site": "uc"}
TWIN = {**VLAN, "id": f"{ID}2", "physical_network": "physnet2"}
VXLAN = {"id": f"{ID}3", "network_type": "vxlan", "physical_network": None, "segment_id": 7}
DEVICE = {"id": f"{ID}4", "name": "edge-1", "device_type": "container", "device_driver": "none", "uid": "u-1"}
PROMISED = {"resource_id": f"{ID}4", "reservations": [{"id": "r", "lease_id": "l"}]}


@pytest.fixture
def cloud(requests_mock: Any) -> Any:
    requests_mock.get(f"{URL}/networks", json={"networks": [VLAN, TWIN, VXLAN]})
    requests_mock.get(f"{URL}/devices", json={"devices": [DEVICE]})
    for many, one, item in (
        ("networks", "network", VXLAN),
        ("networks", "network", VLAN),
        ("devices", "device", DEVICE),
    ):
        path = f"{URL}/{many}/{item['id']}"
        for method in (requests_mock.get, requests_mock.put):
            method(path, json={one: item})
        requests_mock.delete(path, json={})
        requests_mock.get(f"{path}/allocation", json={"allocation": {**PROMISED, "resource_id": item["id"]}})
        requests_mock.post(f"{URL}/{many}", json={one: item}, status_code=201)
        requests_mock.get(f"{URL}/{many}/allocations", json={"allocations": [PROMISED]})
        requests_mock.get(f"{URL}/{many}/properties", json={"resource_properties": [{"property": "site"}]})
        requests_mock.patch(f"{URL}/{many}/properties/site", json={"resource_property": {"private": True}})
    requests_mock.put(f"{URL}/devices/{ID}4/allocation", json={"allocation": {**PROMISED, "reservations": []}})
    return requests_mock


def bodies(cloud: Any, method: str) -> list[Any]:
    return [request.json() for request in sent(cloud, method)]


def test_segments_are_listed_by_number(run: Run, cloud: Any) -> None:
    code, out, _ = run("network-list", "-f", "csv")
    assert (code, out.splitlines()[0]) == (0, '"id","network_type","physical_network","segment_id"')
    assert [line.split(",")[3] for line in out.splitlines()[1:]] == ["7", "101", "101"]


@pytest.mark.parametrize("which", ["7", f"{ID}3"])
def test_a_segment_is_given_by_its_number_or_id(run: Run, cloud: Any, which: str) -> None:
    code, out, _ = run("network", "show", which, "-f", "json")
    assert (code, json.loads(out)) == (0, VXLAN)


def test_a_number_on_several_physical_networks_is_told_with_ids(run: Run, cloud: Any) -> None:
    code, out, err = run("network", "delete", "101")
    assert (code, out) == (3, "")
    assert f"{ID}1, {ID}2" in err
    assert not sent(cloud, "DELETE")


@pytest.mark.parametrize(
    ("words", "body"),
    [
        (
            ("--network-type", "vlan", "--physical-network", "physnet1", "--segment", "101", "--extra", "site=uc"),
            {"network_type": "vlan", "physical_network": "physnet1", "segment_id": 101, "site": "uc"},
        ),
        (
            ("--network-type", "vxlan", "--segment", "7"),
            {"network_type": "vxlan", "physical_network": None, "segment_id": 7},
        ),
    ],
)
def test_a_segment_is_registered(run: Run, cloud: Any, words: Any, body: Any) -> None:
    code, out, _ = run("network-create", *words)
    assert code == 0
    assert out.startswith("Created a new network:")
    assert bodies(cloud, "POST") == [body]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--network-type", "vlan", "--segment", "1"), "give --physical-network"),
        (("--network-type", "vxlan", "--segment", "1", "--physical-network", "p"), "goes with --network-type vlan"),
        (("--network-type", "vxlan", "--segment", "one"), "--segment is 'one'; give a number"),
        (("--network-type", "vxlan", "--segment", "1", "--extra", "segment_id=2"), "segment_id is given twice"),
    ],
)
def test_a_segment_that_cannot_be_is_refused_before_it_is_sent(run: Run, cloud: Any, words: Any, sentence: str) -> None:
    code, out, err = run("network", "create", *words)
    assert (code, out) == (1, "")
    assert sentence in err
    assert not sent(cloud, "POST")


def test_properties_are_set_and_taken_away(run: Run, cloud: Any) -> None:
    assert run("network-update", "7", "--extra", "site=tacc")[:2] == (0, "Updated network: 7\n")
    assert run("network-unset", "7", "--extra", "site")[0] == 0
    assert run("device", "update", "edge-1", "--extra", "model=rpi5")[:2] == (0, "Updated device: edge-1\n")
    assert bodies(cloud, "PUT") == [{"site": "tacc"}, {"site": None}, {"model": "rpi5"}]
    assert run("device", "update", "edge-1")[0] == 1


@pytest.mark.parametrize("noun", ["network", "device"])
def test_who_sees_a_property_is_shown_and_set(run: Run, cloud: Any, noun: str) -> None:
    assert run(f"{noun}-property-list", "-f", "value")[:2] == (0, "site\n")
    assert run(noun, "property", "set", "site", "--private")[:2] == (0, f"Updated {noun} property: site\n")
    assert bodies(cloud, "PATCH") == [{"private": True}]


def test_a_device_is_registered_with_what_is_given(run: Run, cloud: Any) -> None:
    code, _, _ = run("device-create", "edge-1", "--device-driver", "k8s", "--hook-url", "https://h", "--extra", "uid=u")
    assert code == 0
    assert run("device", "create", "edge-1")[0] == 0
    hooked = {"name": "edge-1", "device_driver": "k8s", "hook_url": "https://h", "uid": "u"}
    assert bodies(cloud, "POST") == [hooked, {"name": "edge-1"}]


def test_devices_are_listed_shown_and_unregistered_by_name(run: Run, cloud: Any) -> None:
    assert run("device", "list", "-f", "value")[:2] == (0, f"{ID}4 edge-1 container none\n")
    assert json.loads(run("device", "show", "edge-1", "-f", "json")[1]) == DEVICE
    assert run("device", "delete", "edge-1")[:2] == (0, "Deleted device: edge-1\n")


@pytest.mark.parametrize("key", ["lease_id", "reservation_id"])
def test_other_devices_take_over(run: Run, cloud: Any, key: str) -> None:
    code, out, _ = run("device-reallocate", "edge-1", f"--{key.replace('_', '-')}", "x", "-f", "json")
    assert (code, json.loads(out)["reservations"]) == (0, [])
    assert bodies(cloud, "PUT") == [{key: "x"}]


@pytest.mark.parametrize("words", [(), ("--lease-id", "l", "--reservation-id", "r")])
def test_it_is_said_what_gets_another_device(run: Run, cloud: Any, words: Any) -> None:
    assert run("device", "reallocate", "edge-1", *words)[0] == 2


@pytest.mark.parametrize(
    "words",
    [
        ("device-allocation-show", "edge-1"),
        ("allocation", "show", "device", "edge-1"),
        ("allocation", "show", "network", "7"),
        ("network", "allocation", "show", "7"),
    ],
)
def test_what_is_promised_of_one_is_shown(run: Run, cloud: Any, words: Any) -> None:
    code, out, _ = run(*words, "-f", "json")
    assert (code, json.loads(out)["reservations"]) == (0, PROMISED["reservations"])


@pytest.mark.parametrize("words", [("device-allocation-list",), ("allocation", "list", "network")])
def test_what_is_promised_of_all_is_listed(run: Run, cloud: Any, words: Any) -> None:
    code, out, _ = run(*words, "--lease-id", "other", "-f", "json")
    assert (code, json.loads(out)) == (0, [{"resource_id": f"{ID}4", "reservations": []}])
