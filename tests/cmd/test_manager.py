# SPDX-License-Identifier: Apache-2.0
"""blazar-manager with a configuration that cannot work: it says in one sentence why, or what it waits for."""

from __future__ import annotations

import signal
import socket
import threading

import pytest

from blazar.cmd import manager
from blazar.cmd.config import ConfigurationError
from blazar.model.errors import BlazarError, CloudRefused, CloudUnavailable, InvalidInput, StoreUnavailable
from tests.conftest import RABBITMQ

pytestmark = pytest.mark.timeout(30)


@pytest.fixture
def closed() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


@pytest.fixture
def run(load):
    """Run a manager in this process until it gives up."""
    return lambda *lines: manager.run(load(*lines), threading.Event())


def test_without_a_database_it_does_not_start(run):
    with pytest.raises(ConfigurationError, match=r"\[database\] connection is not set"):
        run("[DEFAULT]")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("oracle://h/x", "use sqlite, postgresql or mysql"),
        ("no url", "the database URL cannot be used"),
        ("sqlite://", "needs a file"),
    ],
)
def test_a_database_url_that_cannot_be_is_refused(run, working, url, words):
    with pytest.raises(InvalidInput, match=words):
        run(*working(database=url))


@pytest.mark.parametrize("scheme", ["postgresql+psycopg", "mysql+pymysql"])
def test_a_database_that_is_not_there_is_given_up_without_its_password(run, working, closed, scheme):
    with pytest.raises(StoreUnavailable, match="the database cannot be used") as gave_up:
        run(*working(database=f"{scheme}://blazar:se-cret@127.0.0.1:{closed}/x"))
    assert "se-cret" not in gave_up.value.message
    assert "\n" not in gave_up.value.message


def test_a_database_without_our_tables_is_refused_with_the_command_that_makes_them(run, working, tmp_path):
    with pytest.raises(ConfigurationError, match=r"at revision none.*blazar-db-manage .*upgrade head"):
        run(*working(database=f"sqlite:///{tmp_path / 'empty.sqlite'}"))


def test_the_database_of_the_existing_blazar_is_refused_with_what_to_do(run, working, their_database):
    with pytest.raises(BlazarError, match=r"is that of the existing Blazar.*empty database of its own"):
        run(*working(database=their_database))


def test_an_unknown_plugin_is_refused(run, working):
    with pytest.raises(ConfigurationError, match="plugins names no.such.plugin"):
        run(*working(), "plugins = physical.host.plugin,no.such.plugin")


def test_an_unknown_filter_is_refused(run, working):
    with pytest.raises(ConfigurationError, match="enabled_filters names MoodFilter, which is not installed"):
        run(*working(), "[enforcement]", "enabled_filters = MoodFilter")


def test_a_wrong_password_is_not_waited_over(run, working):
    with pytest.raises(CloudRefused, match="Keystone does not accept the service user") as refused:
        run(*working(password="wrong-horse", wait=300))
    assert "wrong-horse" not in refused.value.message


def test_a_keystone_that_is_not_there_is_given_up(run, working, closed):
    with pytest.raises(CloudUnavailable, match="Keystone cannot be reached"):
        run(*working(port=closed))


@pytest.mark.parametrize("status", [500, 503])
def test_a_keystone_in_trouble_is_given_up(run, working, stub, status):
    stub.statuses["/v3"] = status
    with pytest.raises(CloudUnavailable, match="Keystone cannot be reached"):
        run(*working())


def test_a_url_that_is_not_keystones_is_not_waited_over(run, working, stub):
    stub.statuses["/v3"] = 404
    with pytest.raises(CloudRefused, match="Keystone"):
        run(*working(wait=300))


@pytest.mark.parametrize(
    "lines",
    [["[DEFAULT]"], ["[oslo_messaging_notifications]", "driver = messagingv2"]],
    ids=lambda lines: lines[0],
)
def test_a_message_bus_that_cannot_be_is_refused_without_its_password(run, working, lines):
    with pytest.raises(BlazarError, match="transport_url") as refused:
        run(*working(), *lines, "transport_url = pigeon://blazar:se-cret@h/")
    assert "se-cret" not in refused.value.message


def test_nothing_is_asked_of_a_cloud_before_the_database_is_there(run, working, stub, tmp_path):
    with pytest.raises(BlazarError):
        run(*working(database=f"sqlite:///{tmp_path / 'empty.sqlite'}"))
    assert stub.asked == []


def test_a_manager_that_is_told_to_stop_waits_no_longer(load, working, closed):
    stopping = threading.Event()
    stopping.set()
    manager.run(load(*working(port=closed, wait=300)), stopping)


def test_it_says_what_it_waits_for_until_it_is_there(start, working, stub):
    stub.statuses["/v3"] = 503
    program = start("manager", *working(wait=300))
    program.says("Waiting for up to 300 s: Keystone cannot be reached: ")
    stub.statuses.clear()
    program.says("has started, with the service user in project")
    assert program.stop() == 0
    (waiting,) = [line for line in program.said.splitlines() if " WARNING blazar.manager [" in line]
    assert "] Waiting for up to 300 s: Keystone cannot be reached: " in waiting


def test_the_process_ends_with_one_sentence(start):
    program = start("manager", "[manager]", "claim_ttl = soon")
    assert program.ended() == 1
    (sentence,) = program.said.splitlines()
    assert sentence.startswith("blazar-manager: [manager] claim_ttl cannot be 'soon'")


def test_a_file_that_is_not_there_is_named_in_one_sentence(start):
    program = start("manager", arguments=("--config-file", "/no/such/blazar.conf"))
    assert program.ended() == 1
    (sentence,) = program.said.splitlines()
    assert "/no/such/blazar.conf" in sentence


def test_the_process_gives_up_with_one_sentence_after_what_it_logged(start, working):
    program = start("manager", *working(password="wrong-horse"), "no_such_option = 1")
    assert program.ended() == 1
    logged, sentence = program.said.splitlines()
    assert "Option [manager] no_such_option is set in the configuration and not used" in logged
    assert sentence.startswith("blazar-manager: Keystone does not accept the service user")


def test_without_a_freepool_it_works_and_says_what_is_missing(start, working, stub):
    stub.aggregates.clear()
    program = start("manager", *working())
    assert "Create it" in program.says("Host aggregate 'freepool' does not exist")
    program.says("has started, with the service user in project")
    assert program.stop() == 0
    assert "Traceback" not in program.said


def test_a_message_bus_that_is_not_there_is_waited_for_and_keeps_nobody_from_stopping(start, working, closed):
    program = start("manager", *working(bus=f"rabbit://guest:se-cret@127.0.0.1:{closed}/"))
    assert "refused" in program.says("oslo.messaging")
    assert program.stop() == 0
    assert "se-cret" not in program.said


def test_a_message_bus_that_does_not_let_us_in_ends_it_with_one_sentence(start, working):
    program = start("manager", *working(bus=RABBITMQ.replace("guest:guest", "guest:se-cret")))
    assert program.ended() == 1
    assert "cannot receive requests from the message bus" in program.said
    assert "Traceback" not in program.said
    assert "se-cret" not in program.said


def test_a_hangup_takes_over_what_may_change_and_a_slip_in_the_file_ends_nobodys_work(start, working, file):
    program = start("manager", *working())
    program.says("has started, with the service user in project")
    for line, words in (
        ("debug = perhaps", "Configuration cannot be reloaded and stays unchanged"),
        ("no assignment", "Configuration cannot be reloaded and stays unchanged"),
        ("debug = true", "Option DEFAULT.debug changed"),
    ):
        file(*working(), "[DEFAULT]", line)
        program.process.send_signal(signal.SIGHUP)
        program.says(words)
    assert program.stop() == 0
