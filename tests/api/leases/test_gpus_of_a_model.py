# SPDX-License-Identifier: Apache-2.0
"""Servers with GPUs of a model over HTTP: asked for and shown from 1.1 on."""

from __future__ import annotations

from typing import Any

import pytest

from blazar.resources.hosts.gpus import GpuModels
from blazar.resources.hosts.options import HostSettings
from blazar.resources.hosts.pci_aliases import NO_ALIASES
from tests.api.conftest import app_of, client_of, token
from tests.world import of_hosts

SIZE = {"amount": 1, "vcpus": 2, "memory_mb": 4096, "disk_gb": 20}
GPUS = {"gpus": 2, "gpu_model": "A16"}
OLDER = {"affinity": None, "resource_properties": ""}


@pytest.fixture
def http(a_world):
    state = of_hosts({"nested": {"node_pci_0": {"VGPU": {"total": 4, "max_unit": 4}}}})
    models = GpuModels.of({"A16": "class/VGPU"}, NO_ALIASES)
    return client_of(app_of(a_world(state=state, hosts=1, host_settings=HostSettings(gpus=models)).manager))


def ask(http: Any, method: str, path: str, body: Any = None, version: str = "1.1") -> Any:
    headers = {**token(), "OpenStack-API-Version": f"reservation {version}"}
    return http.open(path, method=method, json=body, headers=headers)


def book(http: Any, path: str = "/v1/leases", **more: Any) -> Any:
    dates = {"start_date": "2030-04-01T13:00:00Z", "end_date": "2030-04-01T15:00:00Z"}
    asked = {"resource_type": "virtual:instance", **SIZE, **more}
    return ask(http, "POST", path, {"name": "n", **dates, "reservations": [asked]})


def test_they_are_asked_for_and_shown_and_changed(http):
    made = book(http, **GPUS)
    assert made.status_code == 201, made.text
    lease = made.json["lease"]
    (shown,) = ask(http, "GET", f"/v1/leases/{lease['id']}").json["lease"]["reservations"]
    assert {key: shown[key] for key in GPUS} == GPUS
    assert "gpu_meaning" not in shown
    assert book(http, "/v1/leases?dry_run=true", amount=2, **GPUS).status_code == 409
    changed = ask(http, "PUT", f"/v1/leases/{lease['id']}", {"reservations": [{"id": shown["id"], "gpus": 0}]})
    assert (changed.status_code, "gpus" in changed.json["lease"]["reservations"][0]) == (200, False)
    assert book(http, "/v1/leases?dry_run=true", amount=2, **GPUS).status_code == 200


def test_a_wrong_one_is_refused_by_its_field(http):
    for more, field in (
        ({"gpus": 1}, "gpu_model"),
        ({"gpu_model": "A16"}, "gpus"),
        ({**GPUS, "gpu_model": "H100"}, "gpu_model"),
        ({**GPUS, "gpus": 65}, "gpus"),
        ({**GPUS, "gpus": "two"}, "gpus"),
    ):
        refused = book(http, **more)
        (error,) = refused.json["errors"]
        assert (refused.status_code, error["pointer"]) == (400, f"/reservations/0/{field}"), refused.text
    assert "A16, which is the only one" in book(http, gpus=1).text


def test_one_point_zero_neither_takes_nor_shows_them(http):
    id_ = book(http, **GPUS).json["lease"]["id"]
    (shown,) = ask(http, "GET", f"/v1/leases/{id_}", version="1.0").json["lease"]["reservations"]
    assert not {*GPUS, "gpu_meaning"} & shown.keys()
    asked = {"resource_type": "virtual:instance", **SIZE, **OLDER, **GPUS}
    dates = {"start_date": "2030-04-01 16:00", "end_date": "2030-04-01 17:00"}
    refused = ask(http, "POST", "/v1/leases", {"name": "n", **dates, "events": [], "reservations": [asked]}, "1.0")
    assert (refused.status_code, "gpu_model is unknown at microversion 1.0" in refused.text) == (400, True)
    kept = {"reservations": [{"id": shown["id"], "amount": 1}], "name": "other"}
    assert ask(http, "PUT", f"/v1/leases/{id_}", kept, "1.0").status_code == 200
    (after,) = ask(http, "GET", f"/v1/leases/{id_}").json["lease"]["reservations"]
    assert after["gpus"] == 2
