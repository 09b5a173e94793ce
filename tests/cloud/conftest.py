# SPDX-License-Identifier: Apache-2.0
"""Deployments on the test cloud; see ``make test-cloud``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blazar.clouds.openstack.volumes import VOLUMES
from blazar.clouds.ports.compute import Compute
from tests import openstack
from tests.cloud.deployment import Deployment, deployed
from tests.conftest import fresh_database
from tests.contract.storage import THIN, RealStorage
from tests.openstack import Servers

# Fixtures of the tests of the pages: what the browser complains of fails a test.
from tests.web.conftest import complaints as complaints
from tests.web.conftest import page_of as page_of

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of this folder: they need the cloud. Those with a deployment of their own come first.

    Two at a time would share a freepool and an entry in the catalog, and the usual one stays until the last test.
    """
    places = [place for place, item in enumerate(items) if item.path.is_relative_to(HERE)]
    ordered = sorted((items[place] for place in places), key=lambda item: "usual" in getattr(item, "fixturenames", ()))
    for place, item in zip(places, ordered, strict=True):
        items[place] = item
        item.add_marker(pytest.mark.cloud)


@pytest.fixture(scope="package")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """One manager and one API process on PostgreSQL, and three registered hosts, for one module after the other."""
    folder = tmp_path_factory.mktemp("blazar")
    for url in fresh_database("postgresql", folder):
        with deployed(folder, url) as running:
            yield running


@pytest.fixture(scope="module")
def service(usual: Deployment) -> Deployment:
    """The usual deployment, as if it were new."""
    usual.renew()
    return usual


@pytest.fixture(scope="module", params=["postgresql", pytest.param("mariadb", marks=pytest.mark.nightly)])
def started_pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """Two managers and two API processes on each database server, for one test after the other."""
    folder = tmp_path_factory.mktemp("blazar")
    for url in fresh_database(request.param, folder):
        with deployed(folder, url, managers=2, apis=2) as running:
            yield running


@pytest.fixture
def pair(started_pair: Deployment) -> Deployment:
    """Two managers and two API processes on each database server, as if they were new."""
    started_pair.revive()
    started_pair.renew()
    return started_pair


@pytest.fixture
def storage() -> Iterator[RealStorage]:
    """The project ``demo``, and a private type of a pool of Cinder."""
    made = RealStorage()
    yield made
    made.close()


@pytest.fixture
def away() -> Iterator[Callable[[], None]]:
    """Lets the public type of the cloud lead to another pool than that of the reservations."""
    cinder = openstack.access("admin").volume
    (found,) = [each for each in cinder.get("/types", microversion=VOLUMES)["volume_types"] if each["name"] == "fake"]
    path, specs = f"/types/{found['id']}/extra_specs", {"extra_specs": {"pool_name": THIN}}
    yield lambda: cinder.call("POST", path, body=specs, microversion=VOLUMES)
    cinder.call("DELETE", f"{path}/pool_name", microversion=VOLUMES)


@pytest.fixture(scope="module")
def compute() -> Compute:
    """Nova as operators see it."""
    return openstack.admin_compute()


@pytest.fixture
def mine() -> Iterator[Servers]:
    """The servers of a user."""
    with openstack.servers("demo") as servers:
        yield servers


@pytest.fixture
def theirs() -> Iterator[Servers]:
    """The servers of a user of another project."""
    with openstack.servers("alt_demo") as servers:
        yield servers


@pytest.fixture
def nothing_left(service: Deployment) -> Iterator[None]:
    """Each test finds every host free, whatever became of the one before."""
    yield
    service.forget_leases()
