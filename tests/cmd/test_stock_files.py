# SPDX-License-Identifier: Apache-2.0
"""Files as deployment tools render them for the existing Blazar, with nothing changed."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from blazar.cmd import api, assemble, config, config_advice, logs, status
from blazar.cmd.config import ConfigurationError
from tests.cmd.stub import PASSWORD

STOCK = Path(__file__).with_name("stock")
ROOT = Path(__file__).parents[2]
TOOLS = ("chameleon", "helm", "kolla", "osa")
LOGGING = """[loggers]
keys = root,blazar
[handlers]
keys = stdout,null
[formatters]
keys = default
[logger_root]
level = WARNING
handlers = null
[logger_blazar]
level = INFO
handlers = stdout
qualname = blazar
[handler_null]
class = logging.NullHandler
formatter = default
args = ()
[handler_stdout]
class = StreamHandler
args = (sys.stdout,)
formatter = default
[formatter_default]
format = %(message)s
"""
JOURNAL = "def send(*args, **named):\n    print(args, named, flush=True)\n"
"""What stands in for systemd-python, which is compiled for each system."""


@pytest.fixture
def journal(tmp_path, monkeypatch) -> Iterator[Path]:
    folder = tmp_path / "packages"
    (folder / "systemd").mkdir(parents=True)
    (folder / "systemd" / "__init__.py").touch()
    (folder / "systemd" / "journal.py").write_text(JOURNAL, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    yield folder
    for name in ("systemd", "systemd.journal"):
        sys.modules.pop(name, None)


@pytest.fixture
def stock(stub, tables, tmp_path) -> Callable[..., Path]:
    """Render the file of a tool, for the cloud of the test, with these words of it replaced."""
    stub.regions = ("RegionOne",)

    def render(tool: str, changes: tuple[str, str] = ("", "")) -> Path:
        (tmp_path / "logging.conf").write_text(LOGGING, encoding="utf-8")
        (tmp_path / "rules.yaml").write_text("{}\n", encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        text = (
            (STOCK / f"{tool}.conf")
            .read_text(encoding="utf-8")
            .format(
                folder=tmp_path,
                bus="fake://",
                api_port=port,
                keystone_port=stub.port,
                password=PASSWORD,
                database=tables,
                policy=tmp_path / "rules.yaml",
                logging=tmp_path / "logging.conf",
            )
        )
        assert changes[0] in text
        file = tmp_path / f"{tool}.conf"
        file.write_text(text.replace(*changes) if changes[0] else text, encoding="utf-8")
        return file

    return render


def read(file: Path):
    return config.load(["--config-file", str(file)], program="blazar-test")


def check(file: Path, capsys) -> tuple[int, list[str]]:
    code = status.main(["--config-file", str(file), "upgrade", "check"])
    return code, [row[2:] for row in capsys.readouterr().out.splitlines()[1:]]


@pytest.mark.sample(1)
@pytest.mark.parametrize("tool", TOOLS)
def test_a_stock_file_is_read_without_a_change_and_every_option_of_it_is_known(stock, journal, tool):
    conf = read(stock(tool))
    assert config.leftovers(conf) == []
    logs.check(conf)
    assemble.check_plugins(conf)
    assert api.build(conf)


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_the_upgrade_check_of_a_stock_file_succeeds_and_names_what_has_another_name_now(stock, journal, capsys, tool):
    code, rows = check(stock(tool), capsys)
    assert code == 0, rows
    expected = {
        "external_service_endpoint": "external_service_base_endpoint",
        "max_reservation_length": "max_lease_duration",
        "max_reservation_length_exempt_project_ids": "max_lease_duration_exempt_project_ids",
    }
    sentences = {f"[enforcement] {old} is now called [enforcement] {new}" for old, new in expected.items()}
    assert {re.sub(r".*Success +", "", row) for row in rows if "now called" in row} == (
        sentences | {"[physical:host] aggregate_freepool_name is now called [nova] aggregate_freepool_name"}
        if tool == "chameleon"
        else set()
    )


def test_the_limits_of_a_stock_file_hold_by_their_former_names(stock):
    conf = read(stock("chameleon"))
    assert conf.enforcement.max_lease_duration == 604800
    assert conf.enforcement.max_lease_duration_exempt_project_ids == ["3f2a", "9c1b"]
    first, second = assemble.enforcement(conf, assemble.CloudIdentity()).filters
    assert [limit.value for limit in first.stated_limits("physics")] == [604800]
    assert first.stated_limits("3f2a") == ()
    assert set(second.endpoints.values()) == {
        f"http://127.0.0.1:9/usage/{name}" for name in ("check-create", "check-update", "on-end")
    }


def test_the_pool_of_connections_is_as_large_as_a_stock_file_says(stock):
    pool = assemble.database_engine(read(stock("osa"))).pool
    assert (pool.size(), pool._max_overflow, pool.timeout(), pool._recycle) == (5, 50, 30, 600)


@pytest.mark.slow
def test_without_the_package_the_journal_is_refused_with_its_name(stock, capsys):
    file = stock("osa")
    with pytest.raises(ConfigurationError, match=r"install it by pip install 'blazar\[journal\]'"):
        logs.start(read(file))
    code, rows = check(file, capsys)
    assert code == 2
    assert [row for row in rows if row.startswith("Log ") and "Failure" in row and "blazar[journal]" in row]


BAD_LOGS = {
    "no such file": ("helm", ("logging.conf", "none.conf"), None, "none.conf cannot be read"),
    "not a file of logging": ("helm", ("", ""), "[loggers\n", "cannot be read: File contains no section headers"),
    "half a file": ("helm", ("", ""), "[loggers]\nkeys = root\n", "has no section handlers, formatters"),
    "no such folder": ("kolla", ("log_dir = ", "log_dir = /no/such/folder #"), None, "there is no folder /no/such"),
    "no such facility": (
        "kolla",
        ("debug = False", "use_syslog = True\nsyslog_log_facility = LOG_NONE"),
        None,
        "syslog_log_facility is LOG_NONE",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "changes", "logging", "words"), BAD_LOGS.values(), ids=BAD_LOGS)
def test_a_log_that_cannot_be_written_is_told_before_the_start(stock, capsys, tool, changes, logging, words):
    file = stock(tool, changes)
    if logging is not None:
        (file.parent / "logging.conf").write_text(logging, encoding="utf-8")
    code, rows = check(file, capsys)
    assert code == 2
    assert [row for row in rows if row.startswith("Log ") and "Failure" in row], rows
    with pytest.raises(ConfigurationError, match=words) as refused:
        logs.start(read(file))
    assert "\n" not in str(refused.value)


@pytest.mark.slow
def test_a_handler_that_does_not_exist_is_told_in_one_sentence(stock, start):
    file = stock("helm")
    (file.parent / "logging.conf").write_text(LOGGING.replace("StreamHandler", "NoHandler"), encoding="utf-8")
    program = start("manager", arguments=("--config-file", str(file)))
    assert program.ended() == 1
    assert "check log_config_append" in program.last_words
    assert program.last_words.endswith("No module named 'NoHandler'")
    assert "Traceback" not in program.said


def test_a_misspelt_option_is_told_by_the_name_that_is_meant_and_none_is_to_be_taken_out(monkeypatch):
    # Reading the packages that are installed for each of 170 options takes long.
    every = list(config.list_options())
    monkeypatch.setattr(config_advice, "list_options", lambda: every)
    for group, options in config.GROUPS.items():
        for name in (option.name for option in options if len(option.name) > 6):
            sentence = config_advice.advise(f"[{group}] {name[:-1]}")
            assert sentence.endswith("meant?"), sentence
            assert "remove" not in sentence
    assert config_advice.advise("[DEFAULT] max_lease_duration").endswith("the option is in [enforcement]")


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_validators_know_every_option_of_a_stock_file(stock, tool):
    command = [
        *(sys.executable, "-W", "ignore", str(Path(sys.executable).with_name("oslo-config-validator"))),
        *("--config-file", "etc/blazar/blazar-config-generator.conf", "--input-file", str(stock(tool))),
        *("--exclude-group", "keystone_authtoken"),
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert "not part of the sample config" not in done.stdout + done.stderr
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_both_processes_start_with_a_stock_file(stock, start, journal, tool):
    file = str(stock(tool))
    programs = [start(name, arguments=("--config-file", file)) for name in ("manager", "api")]
    logged = {"kolla", "chameleon"}
    for program, words in zip(programs, ("has started", "is listening on"), strict=True):
        if tool in logged:
            said = _waited(Path(file).parent, words)
            assert words in said
        else:
            program.says(words)
    for program in programs:
        assert program.stop() == 0
        assert "Traceback" not in program.said


def _waited(folder: Path, words: str) -> str:
    """Return what is in the logs of a folder when these words are there."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        text = "".join(each.read_text(encoding="utf-8") for each in folder.glob("*.log"))
        if words in text:
            return text
        time.sleep(0.1)
    raise AssertionError(f"no log in {folder} says {words!r}")
