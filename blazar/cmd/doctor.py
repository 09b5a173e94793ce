# SPDX-License-Identifier: Apache-2.0
"""Write a report for those who help: text only, without secrets; read it before you send it to anybody."""

from __future__ import annotations

import logging
import os
import platform
import re
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import distributions
from pathlib import Path

from oslo_config import cfg
from sqlalchemy.exc import SQLAlchemyError

from blazar import RELEASE
from blazar.cmd import status
from blazar.manager.service import ManagerService
from blazar.model.base.clock import spell, zulu
from blazar.model.base.errors import BlazarError
from blazar.model.base.log_lines import escape
from blazar.model.base.paging import Page
from blazar.model.problems.problems import ProblemQuestion
from blazar.store.sql.engine import explain_failure

LAST_LINES = 200
"""Warnings and errors of the log that are in a report."""

_LEVEL = re.compile(r' (WARNING|ERROR|CRITICAL) |"levelname": "(WARNING|ERROR|CRITICAL)"')
"""What the lines of such have, as text or as JSON (``use_json``)."""

TAIL = 4 * 1024 * 1024
"""Bytes of the end of the log that are searched for them."""

OURS = ("blazar", "oslo.", "sqlalchemy", "keystone", "openstacksdk", "flask", "psycopg", "pymysql")
"""What the names of the packages begin with whose versions matter."""


class _Lines(logging.Handler):
    """Keeps what is logged, as lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def write_report(
    conf: cfg.ConfigOpts, open_manager: Callable[[], ManagerService], output: str, lease_id: str | None = None
) -> int:
    """Write the report to a new file, and print its name; return the exit code. OSError if it cannot be written."""
    parts: dict[str, Callable[[], Iterator[str]]] = {
        "Versions": _list_versions,
        "Options": lambda: _list_options(conf),
        "Upgrade check": lambda: _run_checks(conf),
        "Problems": lambda: _list_problems(open_manager()),
        "Managers": lambda: _list_managers(open_manager()),
        "Books": lambda: iter(open_manager().problems.check_books() or ("nothing is wrong",)),
        "Last warnings": lambda: read_warnings(conf),
    }
    if lease_id is not None:
        parts[f"Lease {lease_id}"] = lambda: _tell_lease(open_manager(), lease_id)
    # For nobody else on the machine: names of leases, users and hosts are in it.
    new = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(new, "w", encoding="utf-8") as file:
        for title, lines in parts.items():
            file.write(f"== {title}\n")
            file.writelines(f"{escape(line)}\n" for line in _tell_part(lines))
    print(f"{output} is written; read it before you send it to anybody", file=sys.stderr)
    return 0


def _tell_part(lines: Callable[[], Iterator[str]]) -> Iterator[str]:
    """Yield the lines of a part, or why there are no more: one that does not work takes no other away."""
    try:
        yield from lines()
    except SQLAlchemyError as error:
        yield f"(cannot be told: {explain_failure(error)})"
    except (BlazarError, cfg.Error, OSError) as error:
        yield f"(cannot be told: {error})"


def _list_versions() -> Iterator[str]:
    yield f"blazar {RELEASE}, Python {platform.python_version()}, {platform.platform()}"
    found = {(one.metadata["Name"] or "", one.version) for one in distributions()}
    yield from sorted(f"{name} {version}" for name, version in found if name.lower().startswith(OURS))


def _list_options(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the options with their values; those that are secret are masked by the library."""
    logger = logging.Logger("doctor", logging.DEBUG)
    kept = _Lines()
    logger.addHandler(kept)
    conf.log_opt_values(logger, logging.DEBUG)
    yield from (line for line in kept.lines if not line.startswith(("*", "=")))


def _run_checks(conf: cfg.ConfigOpts) -> Iterator[str]:
    findings = [finding for check in status.CHECKS for finding in check(conf)]
    yield from status.render_table(findings).split("\n")


def _list_problems(manager: ManagerService) -> Iterator[str]:
    found = manager.problems.page(ProblemQuestion(Page(LAST_LINES, "since"))).items
    for problem in found:
        yield f"{problem.id}  {spell(problem.since)}  {problem.summary}"
        yield from (f"  {sentence}" for sentence in problem.explanation)
    if not found:
        yield "none"


def _list_managers(manager: ManagerService) -> Iterator[str]:
    for one in manager.service.managers():
        state = str(one.facts.state) if one.up else "not up"
        agrees = "" if one.options_agree else ", with other options than the others"
        yield f"{one.id}  {one.facts.version}  {state}{agrees}  seen {spell(one.seen_at)}"
        for thread in one.facts.threads:
            if thread.failing_since is not None:
                yield f"  {thread.name} fails since {spell(thread.failing_since)}: {thread.error}"


def read_warnings(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the last warnings and errors of the log file, if there is one."""
    if not conf.log_file:
        yield "[DEFAULT] log_file is not set: the log is elsewhere"
        return
    path = Path(conf.log_dir or "", conf.log_file)
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - TAIL))
        lines = file.read().decode("utf-8", errors="replace").split("\n")
    yield from [line for line in lines if _LEVEL.search(line)][-LAST_LINES:] or ["none"]


def _tell_lease(manager: ManagerService, lease_id: str) -> Iterator[str]:
    manager.leases.owner(lease_id)
    page = Page(LAST_LINES, "at", descending=True)
    for entry in reversed(manager.leases.history(lease_id, page).items):
        who = "the service" if entry.by is None else f"user {entry.by.user_id}"
        changes = "; ".join(f"{change.field}: {change.before} -> {change.after}" for change in entry.changes)
        yield f"{zulu(entry.at)}  {entry.verb}  by {who}  {changes}"
