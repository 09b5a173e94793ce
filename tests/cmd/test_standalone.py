# SPDX-License-Identifier: Apache-2.0
"""Standalone mode as a process: its folder is its own, and the first lease is one command."""

from __future__ import annotations

import copy
import json
import logging
import os
import signal
import socket
import stat
import urllib.error
import urllib.request
from collections import Counter
from http.client import HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from oslo_config import cfg

from blazar.api.http.identity import Caller
from blazar.api.http.policy import Policy
from blazar.api.parts import all_parts
from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.simulated import open_cloud
from blazar.cmd import config, standalone
from blazar.model.base.clock import SystemClock
from tests.cmd.conftest import Program
from tests.openstack import eventually
from tests.slow.alerts.watching import free_port

pytestmark = pytest.mark.timeout(60)

FIRST = {
    "name": "first",
    "start_date": "now",
    "end_date": "2100-01-01 00:00",
    "reservations": [
        {"resource_type": "physical:host", "min": 1, "max": 1, "hypervisor_properties": "", "resource_properties": ""}
    ],
}


def begun(folder: Path, *arguments: str) -> tuple[Program, str]:
    """Start it on a free port, in a home where policies of others are; return it and its URL."""
    home = folder / "home"
    (home / ".blazar").mkdir(parents=True, exist_ok=True)
    (home / ".blazar" / "policy.yaml").write_text("just a text", encoding="utf-8")
    data = str(folder / "data")
    program = Program("-m", "blazar.cmd.standalone", "--port", "0", "--data", data, *arguments, HOME=str(home))
    url = program.says("on http://").partition(" on ")[2].partition(";")[0]
    program.says("Ctrl-C stops")
    return program, url


def call(url: str, body: object = None) -> dict:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_the_first_lease_is_one_command_and_what_is_kept_is_for_nobody_else(tmp_path):
    (tmp_path / "data").mkdir(mode=0o755)
    (tmp_path / "conf").write_text(f"[DEFAULT]\nlog_dir = {tmp_path}\nlog_file = blazar.log\n", encoding="utf-8")
    program, url = begun(tmp_path, "--config-file", str(tmp_path / "conf"))
    try:
        assert call(f"{url}/v1/leases", FIRST)["lease"]["name"] == "first"
        names = {host["hypervisor_hostname"] for host in call(f"{url}/v1/os-hosts")["hosts"]}
        assert names == {"node-1", "node-2", "node-3", "node-10", "node-11", "node-12"}
        assert "os-hosts -H" not in program.said
    finally:
        assert program.stop() == 0
    assert "POST /v1/leases" in (tmp_path / "blazar.log").read_text(encoding="utf-8")
    for path in (tmp_path / "data", *(tmp_path / "data").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path
    # The write-ahead log has what was forgotten since its last checkpoint.
    assert not list((tmp_path / "data").glob("*-wal"))


@pytest.mark.slow
def test_a_standalone_that_stops_answers_what_is_sent_on_a_connection_that_is_open(tmp_path):
    program, url = begun(tmp_path)
    head, rest = b"GET /healthcheck HTTP/1.1\r\n", b"Host: localhost\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", urlsplit(url).port), timeout=30) as connection:
            connection.sendall(head + rest)
            assert heard(connection).status == 200
            connection.sendall(head)
            program.process.send_signal(signal.SIGTERM)
            program.says("Stopping, after finishing")
            connection.sendall(rest)
            answer = heard(connection)
        assert (answer.status, answer.getheader("Connection")) == (200, "close")
        assert program.ended() == 0
    finally:
        program.process.kill()
    assert program.said.count("Stopping") == 1
    assert "Traceback" not in program.said


def heard(connection: socket.socket) -> HTTPResponse:
    """Return the next answer on a connection, read to its end."""
    answer = HTTPResponse(connection)
    answer.begin()
    answer.read()
    return answer


@pytest.mark.slow
def test_a_second_region_can_be_added_later_and_stays_and_one_can_be_down(tmp_path):
    def regions(url: str) -> dict[str, int]:
        return Counter(host["region"] for host in call(f"{url}/v1/os-hosts")["hosts"])

    program, _ = begun(tmp_path)
    assert program.stop() == 0
    program, url = begun(tmp_path, "--regions", "2")
    try:
        assert "Region2.down" in program.said
        assert regions(url) == {"Region1": 6, "Region2": 6}
    finally:
        assert program.stop() == 0
    # Without the option they are as they were: leases may lie in both.
    program, url = begun(tmp_path)
    try:
        assert regions(url) == {"Region1": 6, "Region2": 6}
        (tmp_path / "data" / "Region2.down").touch()
        there = copy.deepcopy(FIRST)
        there["reservations"][0]["resource_properties"] = '["==", "$region", "Region2"]'
        with pytest.raises(urllib.error.HTTPError, match="503"):
            call(f"{url}/v1/leases", there)
        assert call(f"{url}/v1/leases", FIRST)["lease"]["name"] == "first"
    finally:
        assert program.stop() == 0


def test_of_the_made_up_past_of_the_demo_only_warnings_are_logged(caplog):
    log = logging.getLogger("blazar.manager")
    with caplog.at_level(logging.INFO):
        with standalone.quiet():
            log.info("lease 1 has started")
            log.warning("host 1 has failed")
        log.info("lease 2 has started")
    assert [record.getMessage() for record in caplog.records] == ["host 1 has failed", "lease 2 has started"]


@pytest.mark.slow
def test_hosts_can_be_left_unregistered(tmp_path):
    program, url = begun(tmp_path, "--no-hosts")
    try:
        assert call(f"{url}/v1/os-hosts")["hosts"] == []
        assert "os-hosts -H" in program.said
    finally:
        assert program.stop() == 0


def test_a_folder_that_holds_files_of_others_keeps_its_mode(tmp_path):
    mask = os.umask(0o022)
    try:
        (tmp_path / "theirs").touch()
        tmp_path.chmod(0o755)
        standalone.keep_to_ourselves(tmp_path)
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
        (tmp_path / standalone.DATABASE).touch()
        standalone.keep_to_ourselves(tmp_path)
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
        standalone.keep_to_ourselves(tmp_path / "new" / "one")
        assert stat.S_IMODE((tmp_path / "new" / "one").stat().st_mode) == 0o700
    finally:
        os.umask(mask)


def test_a_policy_of_its_own_folder_counts_and_one_that_the_configuration_names_counts_more(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "policy.yaml").write_text('"blazar:oshosts:get": "@"', encoding="utf-8")
    named = tmp_path / "named.yaml"
    named.write_text('"blazar:oshosts:delete": "@"', encoding="utf-8")
    file = tmp_path / "blazar.conf"
    file.write_text(f"[oslo_policy]\npolicy_file = {named}\n", encoding="utf-8")

    def may(*files: str) -> set[str]:
        conf = config.load([], program="blazar-test", files=list(files), conf=cfg.ConfigOpts())
        policy = Policy(standalone.with_own_policy(conf, data), parts=all_parts())
        visitor = Caller("u", "p", ("guest",))
        return {verb for verb in ("get", "delete") if policy.allows(f"blazar:oshosts:{verb}", visitor)}

    assert may() == {"get"}
    assert may(str(file)) == {"delete"}


def test_real_hooks_are_called_once_a_master_secret_is_configured_and_simulated_ones_before(tmp_path):
    conf = config.load([], program="blazar-standalone", files=[])
    cloud = open_cloud(tmp_path / "cloud.json", clock=SystemClock())
    assert standalone.with_own_hooks(conf, cloud) is cloud
    conf.set_override("master_secrets", ["s" * 44], group="generic")
    assert isinstance(standalone.with_own_hooks(conf, cloud).hooks, HttpHooks)
    assert standalone.with_own_hooks(conf, cloud).compute is cloud.compute


@pytest.mark.slow
def test_a_database_in_its_configuration_is_said_not_to_be_used(tmp_path):
    conf = tmp_path / "blazar.conf"
    conf.write_text("[database]\nconnection = postgresql://blazar@db.example/blazar\n", encoding="utf-8")
    program, _ = begun(tmp_path, "--config-file", str(conf))
    assert program.stop() == 0
    assert "[database] connection is not used: standalone mode keeps its data in " in program.said


@pytest.mark.slow
@pytest.mark.parametrize("place", ["a file", "below a file"])
def test_a_folder_that_cannot_be_is_told_with_how_to_choose_another(tmp_path, place):
    (tmp_path / "file").write_text("", encoding="utf-8")
    folder = tmp_path / "file" if place == "a file" else tmp_path / "file" / "var"
    program = Program("-m", "blazar.cmd.standalone", "--port", "0", "--data", str(folder))
    assert program.ended() == 1
    said = f"blazar-standalone: the folder {folder} cannot be used: Not a directory; choose another with BLAZAR_DATA"
    assert program.last_words == said


@pytest.mark.slow
def test_supervisors_and_people_ask_whether_it_is_well(tmp_path):
    place = f"127.0.0.1:{free_port()}"
    (tmp_path / "blazar.conf").write_text(f"[monitoring]\nlisten = {place}\n", encoding="utf-8")
    program, _ = begun(tmp_path, "--config-file", str(tmp_path / "blazar.conf"))
    try:
        eventually(lambda: answers(f"http://{place}/readyz"), patience=30)
        assert answers(f"http://{place}/livez")
        with urllib.request.urlopen(f"http://{place}/readyz?detailed", timeout=30) as answer:
            assert [check["name"] for check in json.load(answer)["checks"]] == ["database"]
    finally:
        program.process.send_signal(signal.SIGTERM)
        assert program.process.wait(30) == 0


def answers(url: str) -> bool:
    """Tell whether a page says that all is well."""
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return answer.read() == b"ok\n"
    except urllib.error.HTTPError:
        return False
