# SPDX-License-Identifier: Apache-2.0
"""Commands of operators of hosts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.blazarclient.commands.conftest import NEW, SPOKEN, URL, Run, refusal, says, sent


def a_host(number: int, **values: Any) -> dict[str, Any]:
    return {
        "id": str(number),
        "label": f"h-{number}",
        "name": f"cn{number}.example",
        "attributes": {"service_name": f"cn{number}", "availability_zone": "az-1"},
        "capacity": {"VCPU": 64, "MEMORY_MB": 515000, "DISK_GB": 890},
        "traits": [],
        "properties": {"gpu": "A100"},
        "reservable": True,
        "disabled": None,
        "failure": None,
        "authorized_projects": None,
        **values,
    }


DISABLED = {"reason": "fan replaced", "since": "2026-11-22T08:00:00Z", "until": "2026-12-01T00:00:00Z"}
OUT = a_host(12, reservable=False, disabled=DISABLED)


@pytest.fixture
def hosts(requests_mock: Any) -> Any:
    requests_mock.get(f"{URL}/resources/host", **says("resources", [a_host(9), OUT]))
    requests_mock.get(f"{URL}/resources/host?name=cn12.example", **says("resources", [OUT]))
    requests_mock.get(f"{URL}/resources/host?name=12", **says("resources", []))
    requests_mock.get(f"{URL}/resources/host/12", **says("resource", OUT))
    requests_mock.put(f"{URL}/resources/host/12", **says("resource", OUT))
    requests_mock.post(f"{URL}/resources/host", **says("resource", a_host(17), status_code=201))
    found = [("17", "cn17.example", None), ("18", "cn18.example", None)]
    keys = ("id", "name", "resource_id")
    candidates = [{**dict(zip(keys, each, strict=True)), "state": "up", "servers": 0} for each in found]
    requests_mock.get(f"{URL}/resources/host/candidates", **says("candidates", candidates))
    return requests_mock


def test_hosts_are_filtered_by_the_service(run: Run, hosts: Any) -> None:
    code, out, _ = run(
        "host", "list", "--condition", "disabled", "--zone", "az-1", "--requirement", "gpu=A100", "-f", "csv", "--long"
    )
    assert code == 0
    [request] = sent(hosts, "GET")
    assert request.qs["condition"] == ["disabled"]
    assert request.qs["property"] == ["availability_zone:az-1"]
    assert json.loads(request.qs["requirement"][0]) == ["==", "$gpu", "a100"]  # qs is in lower case
    assert (
        '"12","cn12.example",64,515000,890,"az-1","disabled","fan replaced","2026-12-01 01:00+01:00","gpu=A100"' in out
    )


def test_without_new_options_hosts_are_those_of_the_existing_client(run: Run, hosts: Any) -> None:
    hosts.get(f"{URL}/os-hosts", json={"hosts": [{"id": "9", "hypervisor_hostname": "cn9", "vcpus": 64}]})
    code, out, _ = run("host", "list", "-f", "json")
    assert (code, json.loads(out)) == (0, [{"id": "9", "hypervisor_hostname": "cn9", "vcpus": 64}])
    assert SPOKEN not in sent(hosts, "GET")[0].headers.get("OpenStack-API-Version", "")


def test_programs_get_hosts_with_their_structure(run: Run, hosts: Any) -> None:
    _, out, _ = run("host", "list", "--long", "-f", "json", "--sort-by", "id")
    assert json.loads(out)[0]["until"] == "2026-12-01T00:00:00Z"
    assert json.loads(out)[1]["properties"] == {"gpu": "A100"}


@pytest.mark.parametrize("words", [("--limit", "0"), ("--long", "--sort-by", "nix"), ("--requirement", "gpu")])
def test_a_list_that_is_asked_for_wrongly_is_refused_in_a_sentence(run: Run, hosts: Any, words: Any) -> None:
    code, out, err = run("host", "list", *words)
    assert code != 0
    assert out == ""
    assert err.count("\n") == 1


@pytest.mark.parametrize("host", ["cn12.example", "12"])
def test_a_host_is_disabled_by_name_or_id_with_a_reason_until_a_time(run: Run, hosts: Any, host: str) -> None:
    code, out, err = run("host", "disable", host, "--reason", "fan replaced", "--until", "2026-12-01 01:00")
    assert (code, err) == (0, "")
    assert [request.json() for request in sent(hosts, "PUT")] == [
        {"disabled": {"reason": "fan replaced", "until": "2026-12-01T00:00:00Z"}}
    ]
    assert "2026-12-01 01:00+01:00" in out


def test_a_host_is_enabled(run: Run, hosts: Any) -> None:
    assert run("host", "enable", "cn12.example")[0] == 0
    assert [request.json() for request in sent(hosts, "PUT")] == [{"disabled": None}]


def test_a_time_that_is_none_disables_nothing(run: Run, hosts: Any) -> None:
    code, _, err = run("host", "disable", "12", "--until", "someday")
    assert code == 2
    assert err.startswith("--until: 'someday' is no time")
    assert not sent(hosts, "PUT")


def test_all_hosts_that_are_not_registered_are(run: Run, hosts: Any) -> None:
    code, out, _ = run("host", "register", "--all", "--extra", "gpu=A100", "-f", "json")
    assert code == 0
    assert [row["outcome"] for row in json.loads(out)] == ["registered", "registered"]
    assert sent(hosts, "GET")[0].qs == {"registered": ["false"]}
    assert [request.json() for request in sent(hosts, "POST")] == [
        {"name": "cn17.example", "properties": {"gpu": "A100"}},
        {"name": "cn18.example", "properties": {"gpu": "A100"}},
    ]


def test_of_hosts_with_one_name_in_two_regions_each_is_registered_in_its_own(run: Run, hosts: Any) -> None:
    found = [{"id": id_, "name": "node-1", "resource_id": None} for id_ in ("7", "RegionTwo:7")]
    hosts.get(f"{URL}/resources/host/candidates", **says("candidates", found))
    code, _, err = run("host", "register", "--all", "--extra", "gpu=A100")
    assert code == 0, err
    assert [request.json() for request in sent(hosts, "POST")] == [
        {"name": "node-1", "properties": {"gpu": "A100"}},
        {"name": "node-1", "properties": {"gpu": "A100", "region": "RegionTwo"}},
    ]


def test_a_host_that_is_refused_does_not_stop_the_others(run: Run, hosts: Any) -> None:
    created = {"status_code": 201, "json": {"resource": a_host(2)}, "headers": NEW}
    hosts.post(f"{URL}/resources/host", [refusal("host_has_servers", "cn1 has servers"), created])
    code, out, _ = run("host", "register", "cn1", "cn2", "-f", "json")
    assert [(row["host"], row["outcome"], row["reason"]) for row in json.loads(out)] == [
        ("cn1", "refused", "cn1 has servers"),
        ("cn2", "registered", ""),
    ]
    assert code == 6


def test_who_may_not_register_hosts_is_told_once(run: Run, hosts: Any) -> None:
    hosts.post(f"{URL}/resources/host", **refusal("forbidden", "Policy doesn't allow it.", status=403))
    code, out, _ = run("host", "register", "cn1", "cn2", "-f", "json")
    assert [row["outcome"] for row in json.loads(out)] == ["refused", "not tried"]
    assert code == 4
    assert len(sent(hosts, "POST")) == 1


def test_after_ctrl_c_it_is_told_what_became_of_each_host(run: Run, hosts: Any) -> None:
    created = {"status_code": 201, "json": {"resource": a_host(2)}, "headers": NEW}
    hosts.post(f"{URL}/resources/host", [created, {"exc": KeyboardInterrupt}])
    code, out, _ = run("host", "register", "cn1", "cn2", "cn3", "-f", "json")
    assert code == 130
    assert [row["outcome"] for row in json.loads(out)] == ["registered", "stopped", "not tried"]
    assert len(sent(hosts, "POST")) == 2


@pytest.mark.parametrize("words", [(), ("--all", "cn1")])
def test_hosts_are_named_or_all(run: Run, hosts: Any, words: Any) -> None:
    code, _, err = run("host", "register", *words)
    assert code != 0
    assert "Name the hosts to register, or give --all" in err
    assert not hosts.request_history


def test_hypervisors_are_listed(run: Run, hosts: Any) -> None:
    _, out, _ = run("hypervisor", "list", "--unregistered", "-f", "value")
    assert out == "17 cn17.example up 0 \n18 cn18.example up 0 \n"


def test_properties_are_listed_with_their_values(run: Run, requests_mock: Any) -> None:
    gpu = {"name": "gpu", "type": "text", "values": [{"value": "H100", "count": 4}, {"value": "A100", "count": 8}]}
    vcpus = {"name": "vcpus", "type": "number", "minimum": 32, "maximum": 2000000, "values": []}
    requests_mock.get(f"{URL}/properties", **says("properties", [gpu, vcpus]))
    _, out, _ = run("property", "list", "-f", "csv", "-c", "name", "-c", "values")
    assert out.split("\n")[1:3] == ['"gpu","A100 (8), H100 (4)"', '"vcpus","32 to 2000000"']
    _, out, _ = run("property", "show", "gpu", "-f", "json")
    assert json.loads(out) == [{"value": "H100", "count": 4}, {"value": "A100", "count": 8}]
    code, _, err = run("property", "show", "nix")
    assert (code, err) == (3, "There is no property nix; there are gpu, vcpus\n")
