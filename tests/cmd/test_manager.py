# SPDX-License-Identifier: Apache-2.0
"""blazar-manager with a configuration that cannot work: it says in one sentence why, or what it waits for."""

from __future__ import annotations

import signal
import socket
import threading

import amqp
import pytest
import sqlalchemy as sa

from blazar.cmd import assemble, manager, process
from blazar.cmd.config import ConfigurationError
from blazar.cmd.orders import Orders
from blazar.messaging import explain_refusal
from blazar.model.base.errors import BlazarError, CloudRefused, CloudUnavailable, InvalidInput, StoreUnavailable
from blazar.store.sql import revisions
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
    return lambda *lines: manager.run(load(*lines), Orders())


def test_without_a_database_it_does_not_start(run):
    with pytest.raises(ConfigurationError, match=r"\[database\] connection is not set"):
        run("[DEFAULT]")


@pytest.mark.sample(1)
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_nothing_is_asked_of_a_cloud_before_the_database_is_there(run, working, stub, tmp_path):
    with pytest.raises(BlazarError):
        run(*working(database=f"sqlite:///{tmp_path / 'empty.sqlite'}"))
    assert stub.asked == []


def test_a_manager_that_is_told_to_stop_waits_no_longer(load, working, closed):
    stopping = Orders()
    stopping.set()
    manager.run(load(*working(port=closed, wait=300)), stopping)


@pytest.mark.slow
def test_it_says_what_it_waits_for_until_it_is_there(start, working, stub):
    stub.statuses["/v3"] = 503
    program = start("manager", *working(wait=300))
    program.says("Waiting for up to 300 s: Keystone cannot be reached: ")
    stub.statuses.clear()
    program.says("has started, with the service user in project")
    assert program.stop() == 0
    (waiting,) = [line for line in program.said.splitlines() if " WARNING blazar.manager [" in line]
    assert "] Waiting for up to 300 s: Keystone cannot be reached: " in waiting


@pytest.mark.slow
def test_the_process_ends_with_one_sentence(start):
    program = start("manager", "[manager]", "claim_ttl = soon")
    assert program.ended() == 1
    (sentence,) = program.said.splitlines()
    assert sentence.startswith("blazar-manager: [manager] claim_ttl cannot be 'soon'")


@pytest.mark.slow
def test_a_file_that_is_not_there_is_named_in_one_sentence(start):
    program = start("manager", arguments=("--config-file", "/no/such/blazar.conf"))
    assert program.ended() == 1
    (sentence,) = program.said.splitlines()
    assert "/no/such/blazar.conf" in sentence


@pytest.mark.slow
def test_the_process_gives_up_with_one_sentence_after_what_it_logged(start, working):
    program = start("manager", *working(password="wrong-horse"), "no_such_option = 1")
    assert program.ended() == 1
    logged, sentence = program.said.splitlines()
    assert "Option [manager] no_such_option is set in the configuration and not used" in logged
    assert sentence.startswith("blazar-manager: Keystone does not accept the service user")


@pytest.mark.slow
def test_without_a_freepool_it_works_and_says_what_is_missing(start, working, stub):
    stub.aggregates.clear()
    program = start("manager", *working())
    assert "Create it" in program.says("Host aggregate 'freepool' does not exist")
    program.says("has started, with the service user in project")
    assert program.stop() == 0
    assert "Traceback" not in program.said


@pytest.mark.slow
def test_a_message_bus_that_is_not_there_is_waited_for_and_keeps_nobody_from_stopping(start, working, closed):
    program = start("manager", *working(bus=f"rabbit://guest:se-cret@127.0.0.1:{closed}/"))
    assert "refused" in program.says("oslo.messaging")
    assert program.stop() == 0
    assert "se-cret" not in program.said


@pytest.mark.slow
def test_a_message_bus_that_does_not_let_us_in_ends_it_with_one_sentence(start, working):
    program = start("manager", *working(bus=RABBITMQ.replace("guest:guest", "guest:se-cret")))
    assert program.ended() == 1
    assert "cannot receive requests from the message bus" in program.said
    assert "check user, password and virtual host in [DEFAULT] transport_url" in program.said
    assert "has started" not in program.said
    assert "Traceback" not in program.said
    assert "se-cret" not in program.said


def test_queues_with_other_properties_are_told_with_the_options_that_set_them():
    try:
        try:
            raise amqp.PreconditionFailed("Exchange.declare: (406) PRECONDITION_FAILED - inequivalent arg 'durable'")
        except amqp.PreconditionFailed as refused:
            raise RuntimeError("Unable to connect\n after inf tries") from refused
    except RuntimeError as error:
        told = explain_refusal(error)
    assert told.startswith("Unable to connect after inf tries; it exists with other properties")
    assert "rabbit_quorum_queue in [oslo_messaging_rabbit]" in told


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


def set_revision(url: str, revision: str) -> None:
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql(f"UPDATE alembic_version SET version_num = '{revision}'")
    engine.dispose()


def test_a_database_of_a_newer_version_is_refused_with_the_way_back(run, working, own_tables):
    set_revision(own_tables, "9031")
    with pytest.raises(ConfigurationError, match="from a newer version of Blazar") as refused:
        run(*working(database=own_tables))
    assert f"downgrade {revisions.newest_revision()}" in refused.value.message
    assert "upgrade head" not in refused.value.message


class Cut:
    """Refuses one statement of each engine that is made: the number that the test says."""

    def __init__(self, monkeypatch) -> None:
        self.number = -1
        self.seen = 0
        made = assemble.database_engine

        def engine(conf):
            found = made(conf)
            sa.event.listen(found, "before_cursor_execute", self._count)
            return found

        monkeypatch.setattr(assemble, "database_engine", engine)

    def _count(self, connection, cursor, statement, *_) -> None:
        if threading.current_thread().name != "starting":
            return
        self.seen += 1
        if self.seen - 1 == self.number:
            raise sa.exc.OperationalError(statement, (), Exception("server closed the connection"))


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_database_that_is_away_at_any_step_of_the_start_is_waited_for(load, working, monkeypatch, caplog, own_tables):
    caplog.set_level("INFO", "blazar.manager")
    monkeypatch.setattr(manager, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(manager.logs, "start", lambda conf: None)
    cut = Cut(monkeypatch)

    def starts(number: int) -> None:
        cut.number, cut.seen = number, 0
        caplog.clear()
        stopping, errors = Orders(), []

        def serve() -> None:
            try:
                manager.run(load(*working(database=own_tables, wait=30)), stopping)
            except Exception as error:
                errors.append(error)

        thread = threading.Thread(target=serve, name="starting")
        thread.start()
        try:
            while thread.is_alive() and "has started" not in caplog.text:
                thread.join(0.02)
        finally:
            stopping.set()
            thread.join()
        assert not errors, (number, errors)
        assert "has started" in caplog.text, number

    starts(-1)
    steps = cut.seen
    assert steps >= 3
    for number in range(steps):
        starts(number)


@pytest.mark.slow
@pytest.mark.parametrize("abstract", [False, True], ids=["path", "abstract"])
def test_systemd_is_told_when_it_serves_and_when_it_stops(start, working, tmp_path, monkeypatch, abstract):
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        name = f"\0blazar-{tmp_path.name}-{tmp_path.parent.name}" if abstract else str(tmp_path / "notify")
        channel.bind(name)
        channel.settimeout(20)
        monkeypatch.setenv("NOTIFY_SOCKET", name.replace("\0", "@"))
        program = start("manager", *working())
        ready = channel.recv(1000).decode()
        assert ready.startswith("READY=1\nSTATUS=blazar-manager ")
        program.says("has started")
        program.process.send_signal(signal.SIGTERM)
        assert channel.recv(1000) == b"STOPPING=1"
        assert program.ended() == 0


@pytest.mark.parametrize("address", ["", "/no/such/socket"])
def test_without_systemd_nothing_is_told_and_nothing_breaks(monkeypatch, address):
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    process.say_ready("it serves")
    process.say_stopping()
