# SPDX-License-Identifier: Apache-2.0
"""Lines of the log have the request that they belong to, in text and as JSON, and no control characters."""

from __future__ import annotations

import errno
import io
import json
import logging
import shutil
from datetime import UTC, datetime, timedelta

import pytest
from oslo_log import log

from blazar.cmd import config, logs
from blazar.context import CallerIds, scope
from blazar.observe import metrics
from blazar.observe.families import REGISTRY
from blazar.rpc.server import Endpoint
from tests.counted import growing

GLOBAL = "req-01234567-89ab-cdef-0123-456789abcdef"


@pytest.fixture
def written(monkeypatch, file):
    """Return what is written to a log with these options."""
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])

    def begin(*lines: str) -> io.StringIO:
        stream = io.StringIO()
        monkeypatch.setattr("sys.stdout", stream)
        logs.start(config.load(["--config-file", file("[DEFAULT]", *lines)], program="blazar-test"))
        return stream

    level = root.level
    yield begin
    root.setLevel(level)


def test_a_line_has_our_id_that_of_the_caller_and_who_it_is(written):
    stream = written()
    with scope(request_id=GLOBAL, local_id="req-1", caller=CallerIds("curie", "physics")):
        log.getLogger("blazar.test").warning("It rains")
    assert f"WARNING blazar.test [{GLOBAL} req-1 curie physics - - - -] It rains" in stream.getvalue()


def test_work_on_an_event_has_the_id_of_the_event(written):
    stream = written()
    with scope(request_id="req-event", caller=None):
        logging.getLogger("blazar.test").warning("It rains")
    logging.getLogger("blazar.test").warning("It snows")
    first, second = stream.getvalue().splitlines()
    assert "[None req-event - - - - - -] It rains" in first
    assert "[-] It snows" in second


def test_json_has_them_too_and_no_token(written):
    stream = written("use_json = true")
    with scope(request_id=GLOBAL, local_id="req-1", caller=CallerIds("curie", "physics")):
        logging.getLogger("blazar.test").warning("It rains")
    told = json.loads(stream.getvalue())
    assert told["message"] == "It rains"
    assert {key: told["context"][key] for key in ("request_id", "global_request_id", "user", "project_id")} == {
        "request_id": "req-1",
        "global_request_id": GLOBAL,
        "user": "curie",
        "project_id": "physics",
    }
    assert told["context"]["auth_token"] is None


def test_a_sentence_about_an_error_has_its_reason_once(written):
    stream = written()
    try:
        raise ConnectionError("it rains")
    except ConnectionError as error:
        logging.getLogger("blazar.test").error("The database cannot be read: %s", error)
        logging.getLogger("some.library").error("Retrying")
        logging.getLogger("blazar.test").exception("Event 7 failed")
    ours, theirs, unexpected, *_ = stream.getvalue().splitlines()
    assert ours.endswith("] The database cannot be read: it rains")
    # Others rely on what oslo.log adds, and so does who logs the stack of what nobody has foreseen.
    assert theirs.endswith("] Retrying: ConnectionError: it rains")
    assert unexpected.endswith("] Event 7 failed: ConnectionError: it rains")


@pytest.mark.parametrize("options", [(), ("use_json = true",)], ids=["text", "json"])
@pytest.mark.parametrize("name", ["blazar.test", "some.library"])
def test_a_control_character_is_seen_and_does_nothing(written, options, name):
    stream = written(*options)
    with scope(request_id="req-1", caller=CallerIds("cu\nrie", "phy\x1bsics")):
        logging.getLogger(name).warning("Name %s", "a\r\nERROR forged \x1b]0;x\x07 \u202e \x9b")
    (line,) = stream.getvalue().splitlines()
    assert line.isprintable()
    assert "Name a" in line


def test_arguments_that_do_not_fit_break_nothing(written, monkeypatch):
    monkeypatch.setattr(logging, "raiseExceptions", False)
    written()
    logging.getLogger("blazar.test").warning("%d drops", "many")


@pytest.mark.parametrize(
    ("context", "ids"),
    [
        ({"request_id": GLOBAL, "local_id": "req-1", "caller": ["curie", "physics"]}, ("req-1", ("curie", "physics"))),
        ({"request_id": GLOBAL}, (None, None)),
        ({"request_id": GLOBAL, "local_id": 7, "caller": ["curie"]}, (None, None)),
    ],
)
def test_a_manager_knows_both_ids_and_the_caller_of_a_call(context, ids):
    from blazar.context import current

    found = []

    class Facts:
        def facts(self, project_id):
            found.append((current().local_id, current().caller))
            raise NotImplementedError

    class Manager:
        service = Facts()

    Endpoint(Manager()).ask(context, "service.facts", {"project_id": '"physics"'})
    assert found == [ids]


class FullDisk(io.StringIO):
    """A file that takes nothing while its disk is full."""

    is_full = False

    def write(self, text: str) -> int:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return super().write(text)


def failures() -> float:
    return REGISTRY.get_sample_value(metrics.LOG_FAILURES.name) or 0


def test_a_full_disk_is_told_of_on_standard_error_in_a_sentence(written, monkeypatch, capsys):
    written()
    handler, _ = logging.getLogger().handlers
    disk = FullDisk()
    monkeypatch.setattr(handler, "stream", disk)
    now = [1000.0]
    monkeypatch.setattr(handler.emit.__self__.trouble, "_clock", lambda: now[0])
    before = failures()
    disk.is_full = True
    for _ in range(30):
        logging.getLogger("blazar.test").warning("It rains")
    now[0] += 61
    logging.getLogger("blazar.test").warning("It rains")
    assert failures() == before + 31
    disk.is_full = False
    now[0] += 5
    logging.getLogger("blazar.test").warning("It snows")
    assert disk.getvalue().count("\n") == 1
    assert capsys.readouterr().err.splitlines() == [
        "The log cannot be written: [Errno 28] No space left on device",
        "The log cannot be written: [Errno 28] No space left on device (30 times in 61 s)",
        "The log can be written again, after 61 s and 31 failures",
    ]


def test_what_writes_the_log_says_since_when_it_cannot_and_no_other_handler_ends_that(written, monkeypatch, capsys):
    written()
    handler, _ = logging.getLogger().handlers
    other = logging.StreamHandler(io.StringIO())
    logging.getLogger().addHandler(other)
    try:
        logs.add_filters()
        full, well = logs.list_log_troubles()
        now = [1000.0]
        monkeypatch.setattr(full, "_clock", lambda: now[0])
        disk = FullDisk()
        monkeypatch.setattr(handler, "stream", disk)
        disk.is_full = True
        logging.getLogger("blazar.test").warning("It rains")
        now[0] += 90
        logging.getLogger("blazar.test").warning("It rains")
        noon = datetime(2030, 4, 1, 12, tzinfo=UTC)
        told = full.describe(noon)
        assert (noon - told.since, noon - told.last_at) == (timedelta(seconds=90), timedelta(0))
        assert told.sentence == "The log cannot be written: [Errno 28] No space left on device"
        assert well.describe(noon) is None
        disk.is_full = False
        now[0] += 2
        logging.getLogger("blazar.test").warning("It snows")
        assert full.describe(noon) is None
    finally:
        logging.getLogger().removeHandler(other)


def test_a_library_that_says_the_same_for_each_request_is_written_once_a_minute(written, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(logs, "monotonic", lambda: now[0])
    stream = written()
    other = io.StringIO()
    logging.getLogger().addHandler(logging.StreamHandler(other))
    logs.add_filters()
    library = logging.getLogger("oslo.messaging._drivers.impl_rabbit")
    with growing(metrics.LOG_MESSAGES, 33, level="ERROR"):
        for number in range(30):
            library.error(
                "[%s] AMQP server on 127.0.0.1:5672 is unreachable. Trying again in %d seconds.", GLOBAL, number
            )
        library.error(f"Connection {GLOBAL} failed after 3 s")
        library.error("Connection req-99999999-89ab-cdef-0123-456789abcdef failed after 4 s")
        now[0] += 61
        library.error("[%s] AMQP server on 127.0.0.1:5672 is unreachable. Trying again in %d seconds.", GLOBAL, 31)
    for text in (stream.getvalue(), other.getvalue()):
        lines = text.splitlines()
        assert [line.count("unreachable") for line in lines] == [1, 0, 1]
        assert lines[1].endswith(f"Connection {GLOBAL} failed after 3 s")
        assert lines[2].endswith("Trying again in 31 seconds. (30 times in 61 s)")


def test_a_library_that_says_something_else_is_not_taken_for_one_that_says_the_same(written):
    stream = written()
    library = logging.getLogger("some.library")
    for text in ("The disk is full", "The certificate has expired", "The disk is full"):
        library.error("%s: %s", "sda1", text)
    for error in (ValueError("first"), KeyError("second"), KeyError("third")):
        library.error("A request failed", exc_info=error)
    library.error("%s: %d", "no number", "x")
    told = stream.getvalue()
    assert (told.count("disk is full"), told.count("certificate has expired")) == (1, 1)
    assert [name in told for name in ("first", "second", "third")] == [True, True, False]


def test_our_own_lines_and_what_is_no_trouble_are_written_each_time(written):
    stream = written("debug = true")
    for _ in range(3):
        logging.getLogger("blazar.test").error("It rains")
        logging.getLogger("some.library").info("It snows")
    assert (stream.getvalue().count("It rains"), stream.getvalue().count("It snows")) == (3, 3)


def test_filters_that_are_added_twice_count_a_lost_line_once(written, monkeypatch):
    written()
    logs.add_filters()
    handler, _ = logging.getLogger().handlers
    disk = FullDisk()
    disk.is_full = True
    monkeypatch.setattr(handler, "stream", disk)
    before = failures()
    logging.getLogger("blazar.test").warning("It rains")
    assert failures() == before + 1


def test_lines_of_warning_and_above_are_counted_once(written):
    written()
    logs.add_filters()
    with growing(metrics.LOG_MESSAGES, 2, level="WARNING"), growing(metrics.LOG_MESSAGES, 1, level="ERROR"):
        for level in (logging.INFO, logging.WARNING, logging.WARNING, logging.ERROR):
            logging.getLogger("blazar.test").log(level, "It rains")


def test_a_folder_that_is_gone_breaks_nothing(written, tmp_path, capsys):
    folder = tmp_path / "log"
    folder.mkdir()
    written(f"log_file = {folder}/blazar.log", "watch_log_file = true")
    logging.getLogger("blazar.test").warning("It rains")
    shutil.rmtree(folder)
    logging.getLogger("blazar.test").warning("It snows")
    assert (
        f"The log cannot be written: [Errno 2] No such file or directory: '{folder}/blazar.log'"
        in capsys.readouterr().err
    )
    folder.mkdir()
    logging.getLogger("blazar.test").warning("It hails")
    assert "It hails" in (folder / "blazar.log").read_text()
