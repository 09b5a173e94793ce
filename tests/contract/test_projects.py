# SPDX-License-Identifier: Apache-2.0
"""What types rely on that make something in users' projects: where the service may, and where not."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from blazar.clouds.openstack import open_cloud
from blazar.clouds.ports import Cloud
from blazar.clouds.simulated import FileStorage, MemoryStorage, of_size
from blazar.model.base.errors import RoleMissing
from tests import openstack
from tests.people import PeopledCloud
from tests.world import ManualClock


@dataclass
class Domain:
    """A domain with one project, in which an operator lets the service user act (``grant``)."""

    cloud: Cloud
    project: str
    grant: Callable[[], Any]


@pytest.fixture(params=["memory", "file", pytest.param("openstack", marks=pytest.mark.cloud)])
def domain(request, tmp_path) -> Iterator[Domain]:
    yield from a_real_domain() if request.param == "openstack" else a_simulated_domain(request.param, tmp_path)


def a_simulated_domain(keeping: str, folder: Path) -> Iterator[Domain]:
    state = of_size(1)
    storage = MemoryStorage(state) if keeping == "memory" else FileStorage(folder / "cloud.json", state)
    simulated = PeopledCloud(storage, clock=ManualClock())
    simulated.operators.close_project("closed")
    yield Domain(simulated.cloud, "closed", partial(simulated.operators.open_project, "closed"))


def a_real_domain() -> Iterator[Domain]:
    name = f"test-{uuid.uuid4().hex[:8]}"
    domain = openstack.identity("POST", "/domains", {"domain": {"name": name}})["domain"]["id"]
    wanted = {"name": name, "domain_id": domain}
    project = openstack.identity("POST", "/projects", {"project": wanted})["project"]["id"]
    user = openstack.identity("GET", "/users?name=blazar")["users"][0]["id"]
    role = openstack.ids_of("roles")["member"]
    path = f"/OS-INHERIT/domains/{domain}/users/{user}/roles/{role}/inherited_to_projects"
    try:
        yield Domain(open_cloud(openstack.access("blazar")), project, partial(openstack.identity, "PUT", path))
    finally:
        openstack.identity("DELETE", f"/projects/{project}")
        openstack.identity("PATCH", f"/domains/{domain}", {"domain": {"enabled": False}})
        openstack.identity("DELETE", f"/domains/{domain}")


def test_the_service_may_act_in_a_project_once_it_has_a_role_there(domain):
    with pytest.raises(RoleMissing, match=domain.project):
        domain.cloud.projects.check_role(domain.project)
    domain.grant()
    domain.cloud.projects.check_role(domain.project)
