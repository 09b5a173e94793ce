# SPDX-License-Identifier: Apache-2.0
"""What is logged, and how: trouble that lasts, and texts of others.

Trouble is logged when it begins, once a minute while it lasts, and when it is over. No character of a text of others
begins a line, or reaches the terminal of a reader.
"""

from __future__ import annotations

import logging
import re
import threading
import unicodedata
from collections.abc import Callable
from datetime import datetime, timedelta

from blazar.model.base.clock import monotonic
from blazar.model.base.errors import StoreUnavailable
from blazar.model.base.values import dataclass

MINUTE = 60.0

MOST = 5
"""Different sentences about one trouble in a minute; some have ids in them."""

CALM = 1.0
"""Seconds without a failure before a success ends the trouble: others may fail all the while."""


@dataclass(slots=True)
class _Sentence:
    said_at: float
    times: int = 0


class Repeats:
    """Counts sentences that are said again and again, each of which is logged once a minute. It is not locked.

    ``most`` different ones are logged in a minute.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._sentences: dict[str, _Sentence] = {}

    def count(self, sentence: str, now: float, *, since: float = float("-inf")) -> str | None:
        """Return what to add to a sentence that is logged now; None if it was logged within the last minute.

        What was said before ``since`` belongs to something else, and is not counted with it.
        """
        known = self._sentences.get(sentence)
        if known is not None and now - known.said_at < MINUTE:
            known.times += 1
            return None
        recent = {text: sentence for text, sentence in self._sentences.items() if now - sentence.said_at < MINUTE}
        if known is None and len(recent) >= self._most:
            return None
        self._sentences = {**recent, sentence: _Sentence(now)}
        if known is None or known.times == 0 or known.said_at < since:
            return ""
        return f" ({known.times + 1} times in {now - known.said_at:.0f} s)"


@dataclass(frozen=True, slots=True)
class LastingTrouble:
    """Trouble of a process that is not over: since when, its last failure, and what that one was, as a sentence."""

    since: datetime
    last_at: datetime
    sentence: str


class Trouble:
    """One kind of trouble of a process, such as a database that does not answer; any number of threads may meet it.

    ``what`` is what works again when it is over. ``clock`` is in seconds. While it ``lasts``, successes are noted.
    """

    def __init__(self, log: logging.Logger, what: str, *, clock: Callable[[], float] = monotonic) -> None:
        self._log = log
        self._what = what
        self._clock = clock
        self._lock = threading.Lock()
        self.lasts = False
        self._since = self._last = self._over_at = float("-inf")
        self._times = 0
        self._last_sentence = ""
        self._repeats = Repeats()

    def log_failure(self, sentence: str, error: BaseException | None = None, *, level: int = logging.ERROR) -> None:
        """Count a failure, and log it if it is time; ``error`` is one whose traceback is logged with it."""
        with self._lock:
            now = self._clock()
            if not self.lasts:
                self.lasts, self._since, self._times = True, now, 0
            self._last, self._last_sentence = now, sentence
            self._times += 1
            told = self._repeats.count(sentence, now, since=self._since)
        if told is not None:
            self._log.log(level, "%s%s", sentence, told, exc_info=error)

    def log_recovery(self) -> None:
        """Note a success, and log that the trouble is over if there was one."""
        if not self.lasts:
            return
        with self._lock:
            now = self._clock()
            if not self.lasts or now - self._last < CALM:
                return
            self.lasts = False
            lasted, times = self._last - self._since, self._times
            if now - self._over_at < MINUTE:
                return
            self._over_at = now
        self._log.info("%s again, after %.0f s and %d failures", self._what, lasted, times)

    def describe(self, now: datetime) -> LastingTrouble | None:
        """Return what lasts, in the time of a clock that says it is ``now``; None if there is no trouble."""
        with self._lock:
            if not self.lasts:
                return None
            since, last, sentence, here = self._since, self._last, self._last_sentence, self._clock()
        return LastingTrouble(now - timedelta(seconds=here - since), now - timedelta(seconds=here - last), sentence)


def log_level(error: Exception, usual: int = logging.ERROR) -> int:
    """Return the level at which work that an error delays is logged: what the database lacks, the store says itself."""
    return logging.DEBUG if isinstance(error, StoreUnavailable) else usual


LONGEST = 80

_PLAIN = re.compile(r"[ -~]*")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are not seen, or that change how others are: controls, directions, separators."""


def printable(text: str, longest: int = LONGEST) -> str:
    r"""Return a text with its control characters written as ``\x1b``, cut at a length."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return cut if _PLAIN.fullmatch(cut) else escape(cut)


def escape(text: str) -> str:
    r"""Return a text with its control characters written as ``\x1b``."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_escape(c) if unicodedata.category(c) in _HIDDEN else c for c in text)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
