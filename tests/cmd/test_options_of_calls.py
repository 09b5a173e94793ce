# SPDX-License-Identifier: Apache-2.0
"""What the service calls, how long it waits and how often it asks again is what ``blazar.conf`` says."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from keystoneauth1 import fixture

from blazar.clouds import prometheus, prometheus_server
from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.openstack import Access
from blazar.clouds.openstack.options import credentials
from blazar.cmd import assemble, config, manager
from blazar.cmd.config import ConfigurationError
from blazar.cmd.orders import Orders
from blazar.enforcement import CloudIdentity, unified
from blazar.enforcement.unified import UnifiedLimits
from blazar.model.base.errors import CloudUnavailable, EnforcementUnavailable, StoreUnavailable
from blazar.resources.generic.type import Generic
from blazar.store.sql import revisions
from tests.clouds.receivers import MASTER, a_call, answer, receiver, silent
from tests.clouds.test_access import FAR_NOVA, KEYSTONE, NOVA, sent, web
from tests.clouds.test_prometheus import A, series, service
from tests.enforcement.builders import a_view, asking, hours
from tests.enforcement.test_unified_limits import Keystone, keystone
from tests.resources.generic.test_life import heard
from tests.world import TYPES, World, things

__all__ = ["keystone", "service", "web"]

LOGIN = ("[DEFAULT]", "os_auth_host = keystone.test", "os_auth_port = 5000", "os_region_name = RegionOne")


def test_a_call_takes_as_long_and_is_tried_as_often_as_the_file_says(load, web):
    web.get(f"{NOVA}/servers/1", status_code=503)
    nova = Access(credentials(load(*LOGIN, "[cloud]", "timeout = 7", "attempts = 5"))).compute
    with pytest.raises(CloudUnavailable):
        nova.get("/servers/1")
    assert [call.timeout for call in sent(web)] == [7] * 5


@pytest.mark.sample(3)
@pytest.mark.parametrize(("kind", "of", "section"), [("image", "image", "glance"), ("volume", "volumev3", "cinder")])
@pytest.mark.parametrize("endpoint", ["public", "internal", "admin"])
def test_the_endpoint_of_the_file_is_called(load, web, kind, of, section, endpoint):
    token = fixture.V3Token(user_name="blazar", project_name="service")
    version = {"image": "v2", "volumev3": "v3"}
    for name in version:
        urls = {each: f"http://{name}.{each}.test/{version[name]}" for each in ("public", "internal", "admin")}
        token.add_service(name).add_standard_endpoints(**urls, region="RegionOne")
    web.post(f"{KEYSTONE}/auth/tokens", json=token, headers={"X-Subject-Token": "t"})
    web.get(f"http://{of}.{endpoint}.test/{version[of]}/things", json={})
    access = Access(credentials(load(*LOGIN, f"[{section}]", f"endpoint_type = {endpoint}")))
    assert getattr(access, kind).get("/things") == {}


@pytest.mark.parametrize(
    ("regions", "url"), [("RegionTwo,RegionOne", FAR_NOVA), ("RegionOne,RegionTwo", "http://nova.public.test/v2.1")]
)
def test_the_first_region_of_the_file_is_that_of_all_that_names_none(load, web, regions, url):
    web.get(f"{url}/servers/1", json={"server": {}})
    lines = ("[DEFAULT]", "os_auth_host = keystone.test", "[nova]", "endpoint_type = public")
    conf = load(*lines, "[cloud]", f"regions = {regions}")
    assert Access(credentials(conf)).compute.get("/servers/1") == {"server": {}}
    assert config.regions(conf).default == regions.partition(",")[0]


class Assembled(ConfigurationError):
    """The manager would be assembled now."""


@pytest.fixture
def clouds(load, working, monkeypatch) -> Callable[..., Any]:
    """Return the clouds by region with which a manager with these lines would be assembled."""

    def run(*lines: str) -> Any:
        given: list[Any] = []

        def assembled(*_: Any, clouds: Any, **__: Any) -> None:
            given.append(clouds)
            raise Assembled("enough")

        monkeypatch.setattr(assemble, "manager", assembled)
        with pytest.raises(Assembled):
            manager.run(load(*working(), *lines), Orders())
        return given[0]

    return run


@pytest.mark.slow
def test_the_regions_of_the_file_are_served(clouds, stub):
    stub.regions = ("R1", "R2", "R3")
    assert list(clouds("[cloud]", "regions = R1,R2")) == ["R1", "R2"]


@pytest.mark.slow
@pytest.mark.parametrize("aware", [True, False])
def test_zones_of_hosts_are_noted_if_the_file_says_so(clouds, stub, monkeypatch, aware):
    given = stub.answer
    found = {
        "/compute/os-hypervisors/detail": {"hypervisors": []},
        "/compute/os-availability-zone/detail": {"availabilityZoneInfo": []},
    }

    def answered(method: str, path: str, body: Any) -> Any:
        known = given(method, path, body)
        return (200, found[path.partition("?")[0]], {}) if path.partition("?")[0] in found else known

    monkeypatch.setattr(stub, "answer", answered)
    (cloud,) = clouds("[nova]", f"az_aware = {aware}").values()
    assert cloud.compute.hypervisors() == ()
    assert any("os-availability-zone" in call for call in stub.asked) is aware


def test_a_connection_to_the_database_is_waited_for_as_long_as_the_file_says(load, tables):
    conf = load("[database]", f"connection = {tables}", "pool_timeout = 7")
    assert assemble.database_engine(conf).pool.timeout() == 7


@pytest.mark.parametrize("retries", [0, 2])
def test_the_database_is_looked_for_as_often_as_the_file_says(load, working, monkeypatch, retries):
    looks = []

    def away(engine: Any) -> None:
        looks.append(engine)
        raise StoreUnavailable("it is away")

    monkeypatch.setattr(revisions, "read_revision", away)
    monkeypatch.setattr(manager, "RETRY_SECONDS", 0.0)
    lines = [*working(wait=0), "[database]", f"max_retries = {retries}"]
    with pytest.raises(StoreUnavailable):
        manager.run(load(*lines), Orders())
    assert len(looks) == 1 + retries


HOOKS = ("[generic]", f"master_secrets = {MASTER}", "allow_http = true", "allowed_networks = 127.0.0.0/8")


@pytest.mark.slow
def test_a_hook_is_waited_for_as_long_as_the_file_says(load):
    with receiver(silent) as heard:
        hooks = HttpHooks.configured(load(*HOOKS, "timeout = 1"))
        begun = time.monotonic()
        with pytest.raises(CloudUnavailable, match="its hook did not answer in time"):
            hooks.call_hook(a_call(heard.url))
        assert 0.9 < time.monotonic() - begun < 5


@pytest.mark.parametrize(("action", "called"), [("none", False), ("notification", True)])
def test_a_thing_is_called_before_the_end_as_the_file_says(load, sqlite, action, called):
    conf = load("[generic]", f"before_end = {action}")
    types = [lambda cloud, settings: Generic.configured(conf, cloud), *TYPES[:1]]
    world = World(sqlite, types=types)
    thing = world.register_thing()
    lease = world.lease(things(), hours=3)
    world.run_to(lease.window.end)
    assert [call.partition(":")[0] for call in heard(world, thing)] == [
        "start",
        *(["before_end"] if called else []),
        "end",
    ]


EXTERNAL = (
    "[enforcement]",
    "enabled_filters = ExternalServiceFilter",
)


def _check(load: Callable[..., Any], url: str, *lines: str) -> float:
    """Let a service that fails be asked; return how many seconds that took."""
    conf = load(*EXTERNAL, f"external_service_base_endpoint = {url.partition('?')[0]}/", *lines)
    (external,) = assemble.enforcement(conf, CloudIdentity()).filters
    begun = time.monotonic()
    with pytest.raises(EnforcementUnavailable):
        external.check(asking(a_view(hours(1, 3))))
    return time.monotonic() - begun


@pytest.mark.parametrize("attempts", [1, 2])
def test_an_external_service_is_asked_as_often_as_the_file_says(load, attempts):
    with receiver(answer(503)) as heard:
        _check(load, heard.url, f"external_service_attempts = {attempts}")
        assert len(heard.heard) == attempts


@pytest.mark.slow
def test_an_external_service_is_waited_for_as_long_as_the_file_says(load):
    with receiver(silent) as heard:
        assert 0.2 < _check(load, heard.url, "external_service_timeout = 0.3") < 3


def test_an_external_service_is_asked_where_the_file_says(load):
    with receiver(answer(503)) as heard:
        _check(load, heard.url, "external_service_attempts = 1")
        ((line, *_),) = heard.heard
        assert line == "POST /hook/check-create HTTP/1.1"


UNIFIED = ("[oslo_limit]", "auth_type = none", "endpoint_id = e", "[enforcement]", "limits_source = unified_limits")


@pytest.fixture
def limits(load, keystone: Keystone, monkeypatch) -> Callable[..., UnifiedLimits]:
    """Return the limits as a file with these lines says, from a Keystone of the test."""
    monkeypatch.setattr(unified, "_log_in", lambda seconds: keystone.log_in())

    def made(*lines: str) -> UnifiedLimits:
        found = UnifiedLimits.configured(load(*UNIFIED, *lines), keystone=True)
        assert found is not None
        return found

    return made


def test_limits_of_keystone_are_waited_for_as_long_as_the_file_says(limits, keystone):
    keystone.hangs.clear()
    begun = time.monotonic()
    with pytest.raises(EnforcementUnavailable):
        limits("unified_limits_timeout = 0.2").limits_of("physics")
    assert 0.1 < time.monotonic() - begun < 2
    keystone.hangs.set()


@pytest.mark.parametrize(("seconds", "asked"), [(0, 4), (50, 2), (1000, 1)])
def test_limits_of_keystone_are_cached_as_long_as_the_file_says(limits, keystone, seconds, asked):
    now = [0.0]
    ours = limits(f"unified_limits_cache = {seconds}")
    ours._clock = lambda: now[0]
    for instant in (0, 49, 51, 52):
        now[0] = instant
        ours.limits_of("physics")
    assert len(keystone.asked) == asked


def _measurements(load: Callable[..., Any], url: str, *lines: str) -> Any:
    query = 'prometheus_query = sum by (id) (load{id=~"{server_id}"})'
    conf = load("[unused]", f"prometheus_url = {url}", query, *lines)
    return prometheus.metrics(conf.unused, None)


def test_prometheus_is_asked_where_and_what_the_file_says(load, service):
    service.says(series(A, "0.25", label="id"))
    assert _measurements(load, service.url).measure_servers([A]) == {A: 0.25}
    assert service.heard[0]["path"] == "/prom/api/v1/query"
    assert service.asked == [f'sum by (id) (load{{id=~"{A}"}})']


@pytest.mark.parametrize(
    ("lines", "header"),
    [
        ((), None),
        (("prometheus_username = blazar", "prometheus_password = secret"), "Basic YmxhemFyOnNlY3JldA=="),
        (("prometheus_bearer_token = secret",), "Bearer secret"),
    ],
)
def test_prometheus_is_told_who_asks_as_the_file_says(load, service, monkeypatch, lines, header):
    # Over the loopback nobody listens in.
    monkeypatch.setattr(prometheus_server, "check_url", lambda *_, **__: None)
    _measurements(load, service.url, *lines).measure_servers([A])
    assert service.heard[0].get("authorization") == header


@pytest.mark.slow
def test_prometheus_is_waited_for_as_long_as_the_file_says(load):
    with receiver(silent) as heard:
        begun = time.monotonic()
        with pytest.raises(CloudUnavailable, match="did not answer in time"):
            _measurements(load, f"http://127.0.0.1:{heard.port}/", "prometheus_timeout = 0.3").measure_servers([A])
        assert 0.2 < time.monotonic() - begun < 3
