# SPDX-License-Identifier: Apache-2.0
"""The filter on real nova objects where nova is installed, and on a stub of them where it is not."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from oslo_config import cfg

from tests.nova import stub

ROOT = Path(__file__).parents[2]
FILTER_MODULE = "blazarnova.scheduler.filters.blazar_filter"
GROUP = "blazar:physical:host"

# Its distribution is not installed where the service is tested.
sys.path.insert(0, str(ROOT / "nova"))


def nova_is_installed():
    # The folder `nova` of this repository can be imported as an empty package of that name; it has no scheduler.
    try:
        return importlib.util.find_spec("nova.scheduler.filters") is not None
    except ModuleNotFoundError:
        return False


@pytest.fixture
def nova(monkeypatch):
    """Nova's classes and the filter's module: real ones, or the stub with a module that was loaded on top of it."""
    if nova_is_installed():
        objects = importlib.import_module("nova.objects")
        objects.register_all()
        host_state = importlib.import_module("nova.scheduler.host_manager").HostState
    else:
        objects, host_state = stub, stub.HostState
        for name, module in stub.modules().items():
            monkeypatch.setitem(sys.modules, name, module)
        # Forgotten before and after, so that no other test meets a filter on top of the stub.
        monkeypatch.setitem(sys.modules, FILTER_MODULE, None)
        del sys.modules[FILTER_MODULE]
    return SimpleNamespace(
        RequestSpec=objects.RequestSpec,
        Flavor=objects.Flavor,
        Destination=objects.Destination,
        Aggregate=objects.Aggregate,
        HostState=host_state,
        filter_module=importlib.import_module(FILTER_MODULE),
    )


@pytest.fixture
def a_request(nova):
    """Builds the spec that the scheduler gets; what is not named is not set."""

    def build(*, extra_specs=None, destination=None, hint=None, **attributes):
        if hint is not None:
            attributes["scheduler_hints"] = {"reservation": hint if isinstance(hint, list) else [hint]}
        if destination is not None:
            attributes["requested_destination"] = nova.Destination(**destination)
        flavor = nova.Flavor(name="m1.small") if extra_specs is None else nova.Flavor(extra_specs=extra_specs)
        spec = nova.RequestSpec(**{"project_id": "alice", "flavor": flavor} | attributes)
        # As it travels from nova-conductor to nova-scheduler.
        return spec.obj_from_primitive(spec.obj_to_primitive()) if hasattr(type(spec), "obj_to_primitive") else spec

    return build


@pytest.fixture
def a_host(nova):
    """Builds the state of a host that is in the aggregates."""

    def build(*aggregates, name="compute-1"):
        host = nova.HostState(name, name, "11111111-1111-1111-1111-111111111111")
        host.aggregates = list(aggregates)
        return host

    return build


@pytest.fixture
def an_aggregate(nova):
    def build(name, **metadata):
        return nova.Aggregate(name=name, metadata={key.replace("__", ":"): value for key, value in metadata.items()})

    return build


@pytest.fixture
def options():
    """Sets options of the filter for the duration of a test."""

    def change(**values):
        for name, value in values.items():
            cfg.CONF.set_override(name, value, group=GROUP)
            changed.append(name)

    changed = []
    yield change
    for name in changed:
        cfg.CONF.clear_override(name, group=GROUP)


@pytest.fixture
def passes(nova):
    """Asks a filter that is new, as after a restart of nova-scheduler."""
    return lambda host, spec: nova.filter_module.BlazarFilter().host_passes(host, spec)
