# SPDX-License-Identifier: Apache-2.0
"""The log of a process: with the request of each line, without cookies, and with no control character of anybody.

Libraries log the headers of calls at level DEBUG and mask tokens only.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
import threading
from collections.abc import Callable
from configparser import ConfigParser
from configparser import Error as ConfigParserError
from contextlib import suppress
from functools import lru_cache
from logging.handlers import SysLogHandler
from pathlib import Path

from oslo_config import cfg
from oslo_context.context import RequestContext
from oslo_log import log

from blazar.cmd.config import ConfigurationError
from blazar.cmd.config_files import explain_encoding
from blazar.context import CallerIds, current
from blazar.model.base.clock import monotonic
from blazar.model.base.log_lines import Repeats, Trouble, escape, printable
from blazar.observe import metrics

HIDDEN = "***"
_COOKIE = re.compile(r"""((?:set-)?cookie2?["']?\s*[:=,]\s*)(?:"[^"]*"|'[^']*'|[^"'\r\n]+)""", re.IGNORECASE)


def start(conf: cfg.ConfigOpts) -> None:
    """Set up the log as configured; ConfigurationError if it cannot be written."""
    check(conf)
    try:
        log.setup(conf, "blazar")
    except Exception as error:
        # The file of log_config_append names classes and their arguments, which may fail in any way.
        raise ConfigurationError(
            "the log cannot be written; check log_config_append, log_file, log_dir and syslog_log_facility: "
            + " ".join(f"{type(error).__name__}: {error}".split())
        ) from error
    add_filters()


def check(conf: cfg.ConfigOpts) -> None:
    """Raise ConfigurationError if the log needs what is not there: a package, a file or folder, a facility of syslog.

    Nothing is opened for writing: who asks need not be the user of the service.
    """
    try:
        if conf.use_journal:
            importlib.import_module("systemd.journal")
    except ImportError as error:
        raise ConfigurationError(
            "[DEFAULT] use_journal needs the package systemd-python, which is not installed; install it by "
            "pip install 'blazar[journal]', or remove use_journal: the journal has the output of a unit as well"
        ) from error
    if conf.log_config_append:
        _check_file(Path(conf.log_config_append))
        return
    folder = Path(conf.log_dir or ".", conf.log_file).parent if conf.log_file else Path(conf.log_dir or ".")
    # Unlike its method of Path, this is no error for a folder that somebody else may not look into.
    if not os.path.isdir(folder):
        raise ConfigurationError(
            f"the log cannot be written: there is no folder {folder}; make it, or change [DEFAULT] log_dir or log_file"
        )
    known = SysLogHandler.facility_names
    if conf.use_syslog and conf.syslog_log_facility.lower().removeprefix("log_") not in known:
        raise ConfigurationError(
            f"[DEFAULT] syslog_log_facility is {conf.syslog_log_facility}, which is no facility of syslog; give "
            "LOG_USER, LOG_DAEMON or one of LOG_LOCAL0 to LOG_LOCAL7"
        )


def _check_file(path: Path) -> None:
    """Raise ConfigurationError if a file cannot be one of Python's logging."""
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ConfigParserError) as error:
        reason = explain_encoding([str(path)]) or " ".join(str(error).split())
        raise ConfigurationError(f"[DEFAULT] log_config_append {path} cannot be read: {reason}") from error
    if missing := [name for name in ("loggers", "handlers", "formatters") if not parser.has_section(name)]:
        raise ConfigurationError(f"[DEFAULT] log_config_append {path} has no section {', '.join(missing)}; add it")


class CookieFilter(logging.Filter):
    """Masks the values of ``Cookie`` and ``Set-Cookie`` headers in log records."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for every record, after masking the values of cookies."""
        if record.levelno <= logging.DEBUG:
            text = record.getMessage()
            if "ookie" in text.lower():
                record.msg, record.args = _COOKIE.sub(rf"\g<1>{HIDDEN}", text), None
        return True


class PlainFilter(logging.Filter):
    """Writes control characters of messages as escapes: what somebody sends forges no line, and rings no bell."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for every record, after escaping its message."""
        try:
            text = record.getMessage()
        except (TypeError, ValueError, KeyError):
            # The handler reports arguments that do not fit.
            return True
        if not text.isprintable():
            record.msg, record.args = escape(text), None
        return True


class RepeatFilter(logging.Filter):
    """Lets each warning or error of a library through once a minute, and the next time says how often it was meant.

    In an outage libraries say several lines for each request. Two are the same if they differ in numbers, ids and what
    is filled into them only, and have errors of one type; of a line that is nothing but what is filled in, that counts.
    All handlers get the same lines. Our own lines are not touched: ours are bounded already.
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._loggers: dict[str, Repeats] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is to be written, after noting how many it stands for."""
        if record.levelno < logging.WARNING or record.name.partition(".")[0] == "blazar":
            return True
        # A record is counted once, however many handlers it comes to.
        if "repeats" not in record.__dict__:
            record.__dict__["repeats"] = told = self._count(record)
            record.msg = f"{record.msg}{told}" if told else record.msg
        return record.__dict__["repeats"] is not None

    def _count(self, record: logging.LogRecord) -> str | None:
        pattern = _CHANGING.sub("#", _find_words(record))
        kind = record.exc_info[0] if record.exc_info else None
        with self._lock:
            known = self._loggers.setdefault(record.name, Repeats(MOST_OF_LIBRARY))
            return known.count(pattern if kind is None else f"{pattern} {kind.__name__}", monotonic())


def _find_words(record: logging.LogRecord) -> str:
    """Return the text of a record before anything is filled in, or after that if it has no words of its own."""
    text = str(record.msg)
    if record.args and not _WORD.search(_FILLED.sub("", text)):
        # What cannot be filled in is told by the handler, and never to the code that logs.
        with suppress(Exception):
            return record.getMessage()
    return text


_FILLED = re.compile(r"%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]")
_WORD = re.compile(r"[^\W\d_]{2}")
_CHANGING = re.compile(r"\b(?:req-)?[0-9a-fA-F][0-9a-fA-F-]{7,}\b|\d+")
"""What differs between two lines that say the same: ids and numbers."""

MOST_OF_LIBRARY = 20
"""Different warnings and errors of one logger of a library in a minute."""


class RequestFilter(logging.Filter):
    """Gives records the request, or the event, that their thread works on, in the form that oslo.log reads."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Return True for every record."""
        here = current()
        if "context" not in record.__dict__:
            # Without a request there is none: libraries leave theirs with the thread when they are done.
            asked = here.request_id
            record.context = None if asked is None else _context(asked, here.local_id, here.caller)
        return True


class _LogContext(RequestContext):
    """What lines of the log tell of a request. It does not stay with the thread, which has other work later."""

    def update_store(self) -> None:
        """Do nothing."""


@lru_cache(maxsize=256)
def _context(request_id: str, local_id: str | None, caller: CallerIds | None) -> RequestContext:
    user_id, project_id = (None, None) if caller is None else caller
    return _LogContext(
        request_id=local_id or request_id,
        global_request_id=request_id if local_id else None,
        user_id=None if user_id is None else printable(user_id),
        project_id=None if project_id is None else printable(project_id),
        overwrite=False,
    )


class CountHandler(logging.Handler):
    """Counts lines of WARNING and above, whether or not they are written anywhere."""

    def emit(self, record: logging.LogRecord) -> None:
        """Count a line."""
        metrics.LOG_MESSAGES.add(record.levelname)


_FILTERS = (CookieFilter, PlainFilter, RequestFilter)


class _WrittenHandler:
    """Has a handler say on standard error, once a minute, that it cannot write, as with a full disk; count its losses.

    Python prints the stack of each line instead.
    """

    def __init__(self, handler: logging.Handler, trouble: Trouble) -> None:
        self._write, self._explain = handler.emit, handler.handleError
        self.trouble = trouble
        self._has_failed = False
        handler.emit = self._emit  # type: ignore[method-assign]
        handler.handleError = self._handle_error  # type: ignore[method-assign]

    def _emit(self, record: logging.LogRecord) -> None:
        # A handler is locked while it writes.
        self._has_failed = False
        try:
            if record.exc_info or not record.name.startswith("blazar."):
                self._write(record)
            else:
                _write_without_summary(self._write, record)
        except OSError:
            # One that opens its file again, and may not, raises the error to the code that logs.
            self._handle_error(record)
        if not self._has_failed:
            self.trouble.log_recovery()

    def _handle_error(self, record: logging.LogRecord) -> None:
        self._has_failed = True
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self._explain(record)
            return
        metrics.LOG_FAILURES.add()
        self.trouble.log_failure(f"The log cannot be written: {error}")


def _write_without_summary(write: Callable[[logging.LogRecord], None], record: logging.LogRecord) -> None:
    """Write a line without the error that is being handled: its sentence names the reason itself."""
    try:
        raise KeyError
    except KeyError:
        # oslo.log adds the error of this moment to a warning, unless it is of this kind.
        write(record)


def _standard_error() -> logging.Logger:
    """Return a logger that writes to standard error and nowhere else."""
    own = logging.getLogger("blazar.unwritten")
    own.propagate = False
    own.handlers = [logging.StreamHandler(sys.stderr)]
    own.setLevel(logging.INFO)
    return own


def add_filters() -> None:
    """Let all output of the handlers of the root logger pass our filters, once, and have them say what they lose.

    All of it is counted.
    """
    own = _standard_error()
    root = logging.getLogger()
    if not any(isinstance(known, CountHandler) for known in root.handlers):
        root.addHandler(CountHandler(logging.WARNING))
    writing = [one for one in root.handlers if not isinstance(one, CountHandler)]
    known = (found for one in writing for found in one.filters if isinstance(found, RepeatFilter))
    repeats = next(known, None) or RepeatFilter()
    for handler in writing:
        for kind in _FILTERS:
            if not any(isinstance(known, kind) for known in handler.filters):
                handler.addFilter(kind())
        if repeats not in handler.filters:
            # Before the others: what is not written needs no work.
            handler.filters.insert(0, repeats)
        if not isinstance(getattr(handler.emit, "__self__", None), _WrittenHandler):
            # One for each: that one handler writes says nothing of another.
            _WrittenHandler(handler, Trouble(own, "The log can be written"))


def list_log_troubles() -> tuple[Trouble, ...]:
    """Return the trouble that each handler of the root logger may have with writing; it lasts while it does not."""
    writing = (getattr(handler.emit, "__self__", None) for handler in logging.getLogger().handlers)
    return tuple(one.trouble for one in writing if isinstance(one, _WrittenHandler))
