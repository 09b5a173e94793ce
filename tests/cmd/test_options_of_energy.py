# SPDX-License-Identifier: Apache-2.0
"""What leases emit is by the curve and the PUE in ``[energy]`` of ``blazar.conf``."""

from __future__ import annotations

import os
from datetime import timedelta
from fractions import Fraction
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from blazar.clouds.energy import read_load
from blazar.cmd import assemble
from blazar.cmd.config import ConfigurationError
from blazar.model.base.errors import InvalidInput
from blazar.model.base.window import Window
from blazar.model.energy.book import NO_ENERGY
from blazar.model.energy.consumption import HostShare
from blazar.model.resources.changes import ResourceChange
from blazar.model.resources.resource import HOST
from tests.configured import Configured
from tests.world import NOON

HOUR = timedelta(hours=1)


def write_curve(path, *values, start=NOON):
    hours = [f"{(start + number * HOUR).isoformat()},{value}" for number, value in enumerate(values)]
    path.write_text("\n".join(["start,value", *hours, ""]))


def test_the_carbon_of_a_lease_is_by_the_curve_and_the_pue_of_the_file(tmp_path):
    write_curve(tmp_path / "carbon.csv", 400, 100)
    made = Configured(tmp_path, "[energy]", f"carbon_file = {tmp_path / 'carbon.csv'}", "pue = 1.5")
    (host, *_) = made.store.resources.catalog(HOST).resources
    made.manager.resources.change(HOST, host.external_id, ResourceChange({"power_idle_w": "0", "power_max_w": "2000"}))
    carbon = made.manager.reports.lease_energy("00000000-0000-0000-0000-000000000000").carbon
    assert carbon is not None
    assert (carbon.grams, carbon.sci_mg) == (0, None)
    source = assemble.carbon(made.conf)
    curve = source.read_curve()
    assert curve is not None
    assert (source.pue, curve.read(int(NOON.timestamp()))) == (1.5, (400, False))


def test_a_file_that_has_changed_is_read_again_and_one_that_cannot_be_changes_nothing(load, tmp_path, caplog):
    path = tmp_path / "carbon.csv"
    write_curve(path, 400)
    source = assemble.carbon(load("[energy]", f"carbon_file = {path}"))
    noon = int(NOON.timestamp())
    write_curve(path, 250)
    os.utime(path, ns=(1, 1))
    assert source.read_curve().read(noon) == (250, False)
    path.write_text("nonsense")
    os.utime(path, ns=(2, 2))
    assert source.read_curve().read(noon) == (250, False)
    assert source.read_curve().read(noon) == (250, False)
    assert caplog.text.count("the first line must be start,value") == 1
    for _ in range(2):
        with pytest.raises(InvalidInput, match="the first line must be start,value"):
            source.fetch_curve()
    path.unlink()
    assert source.read_curve().read(noon) == (250, False)


def test_a_file_that_may_be_read_only_later_is_read_then(load, tmp_path, monkeypatch):
    path = tmp_path / "carbon.csv"
    write_curve(path, 400)
    source = assemble.carbon(load("[energy]", f"carbon_file = {path}"))
    write_curve(path, 250)
    os.utime(path, ns=(1, 1))
    with monkeypatch.context() as denied:
        denied.setattr(type(path), "read_bytes", Mock(side_effect=PermissionError(13, "Permission denied")))
        assert source.read_curve().read(int(NOON.timestamp())) == (400, False)
    assert source.read_curve().read(int(NOON.timestamp())) == (250, False)


def test_without_a_file_there_is_no_curve(load):
    assert assemble.carbon(load("[energy]")).read_curve() is None


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("pue = x", r"\[energy\] pue is 'x'; give a number"),
        ("pue = 0.9", "it is at least 1, and at most 10"),
        ("carbon_file = /nowhere/carbon.csv", "carbon_file cannot be read: No such file"),
    ],
)
def test_what_cannot_be_is_refused_when_a_process_starts(load, line, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        assemble.carbon(load("[energy]", line))


def test_a_wrong_line_of_the_curve_is_named(load, tmp_path):
    path = tmp_path / "carbon.csv"
    path.write_text("start,value\n2030-04-01T00:00:00Z,x\n")
    with pytest.raises(ConfigurationError, match="carbon_file, line 2 is not an instant and a number"):
        assemble.carbon(load("[energy]", f"carbon_file = {path}"))
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigurationError, match="not text in UTF-8"):
        assemble.carbon(load("[energy]", f"carbon_file = {path}"))


def test_what_is_recorded_is_by_the_options(tmp_path):
    curve = tmp_path / "carbon.csv"
    write_curve(curve, 400)
    lines = ("[energy]", "enabled = true", "ask_adapters = true", f"carbon_file = {curve}", "pue = 1.5")
    terms = Configured(tmp_path, *lines).manager.energy_work._store.terms
    assert (terms.records, terms.asks_adapters, terms.tells_carbon, terms.pue) == (True, True, True, Fraction(3, 2))
    (tmp_path / "plain").mkdir()
    assert Configured(tmp_path / "plain").manager.energy_work._store.terms == NO_ENERGY


def test_the_load_of_hosts_that_are_rated_is_that_of_the_options(tmp_path):
    made = Configured(tmp_path, "[energy]", "load = 0.25")
    (host, *_) = made.store.resources.catalog(HOST).resources
    made.manager.resources.change(HOST, host.external_id, ResourceChange({"power_idle_w": "100", "power_max_w": "300"}))
    book = made.manager.energy_work._store.read_book({host.id}, Window(NOON, NOON + HOUR))
    energy, _ = book.measure([HostShare(str(host.id), Window(NOON, NOON + HOUR))])
    assert energy.watt_hours == 150
    assert made.manager.reports._read_draws()[host.id] == 150_000
    for text in ("1.01", "-1", "half"):
        with pytest.raises(InvalidInput, match=rf"\[energy\] load is '{text}'; give a number from 0 to 1"):
            read_load(SimpleNamespace(load=text))


def test_prometheus_is_asked_for_hosts_as_the_options_say(load):
    lines = (
        "[energy]",
        "prometheus_url = https://prometheus.example.org:9090/",
        'prometheus_query = sum by (node) (watts{node=~"{host}"})',
        "prometheus_username = blazar",
        "prometheus_password = word",
        "prometheus_timeout = 3",
    )
    meters = assemble.meters(load(*lines))
    assert meters.enabled
    assert meters._template.label == "node"
    assert (meters._server._login.username, meters._server._login.password) == ("blazar", "word")
    assert (meters._server._url, meters._server._timeout) == ("https://prometheus.example.org:9090", 3)
    token = assemble.meters(load(*lines[:3], "prometheus_bearer_token = abc"))._server._login
    assert token.bearer_token == "abc"
    assert not assemble.meters(load("[energy]")).enabled


def test_the_service_of_the_curve_is_asked_as_the_options_say(load):
    source = assemble.carbon(
        load(
            "[energy]",
            "carbon_url = https://10.20.0.5/intensity",
            "carbon_networks = 10.20.0.0/16",
            "carbon_list = data",
            "carbon_time = from",
            "carbon_value = intensity.actual",
            "carbon_header = X-Key",
            "carbon_token = word",
            "carbon_timeout = 2",
        )
    )
    assert source._names == ("data", "from", "intensity.actual")
    assert (source._headers["X-Key"], source._seconds, source._parts.path) == ("word", 2, "/intensity")


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (["carbon_file = /a", "carbon_url = https://carbon.example.org/"], "are both set; keep one"),
        (["prometheus_url = https://host/"], r"\[energy\] prometheus_query must have \{host\}"),
        (["prometheus_url = https://host/", "prometheus_username = a"], r"\[energy\] prometheus_username and"),
    ],
)
def test_sources_that_cannot_be_are_refused_when_a_process_starts(load, lines, sentence):
    with pytest.raises(ConfigurationError, match=sentence):
        assemble.check_plugins(load("[energy]", *lines))
