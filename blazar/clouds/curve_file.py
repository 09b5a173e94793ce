# SPDX-License-Identifier: Apache-2.0
"""The curve of carbon that an operator keeps in a file, and the options of energy."""

from __future__ import annotations

import logging
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

from oslo_config import cfg

from blazar.model.base.errors import InvalidInput
from blazar.model.energy.carbon import HourlyCurve, parse_curve
from blazar.model.energy.consumption import read_number

LOG = logging.getLogger(__name__)

SECTION = "energy"
MOST_BYTES = 8 * 1024 * 1024
"""The limit of a file: twenty years of hours."""

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "carbon_file",
        default="",
        help="File in CSV with the carbon intensity of the site's power by the hour, in grams of CO2e a kilowatt-hour: "
        "a line start,value and then lines such as 2030-04-01T08:00:00Z,320.5. It is read again when it has changed. "
        "Without it, no carbon is told. blazar-manager reads it.",
    ),
    cfg.StrOpt(
        "pue",
        default="1",
        help="Power usage effectiveness: by how much more the site draws than its machines, such as 1.4. "
        "blazar-manager reads it.",
    ),
]

NO_CURVE = HourlyCurve({})


class CurveFile:
    """A curve in a file, as it was when it could be read last. Safe to use from several threads."""

    def __init__(self, path: Path | None = None, pue: Fraction = Fraction(1)) -> None:
        self.pue = pue
        self._path = path
        self._lock = threading.Lock()
        self._known: tuple[int, HourlyCurve] = (-1, NO_CURVE)
        self._error: str | None = None
        self._warned: str | None = None

    @classmethod
    def configured(cls, section: Any) -> CurveFile:
        """Return what the options say; InvalidInput names the option, or the line of the file."""
        pue = read_pue(section)
        source = cls(Path(section.carbon_file) if section.carbon_file else None, pue)
        if source._path is not None:
            source._refresh(source._path)
        return source

    @property
    def enabled(self) -> bool:
        """Whether there is a file."""
        return self._path is not None

    def fetch_curve(self) -> HourlyCurve | None:
        """Return the curve as it is in the file; None without a file. InvalidInput if it cannot be read."""
        if self._path is None:
            return None
        with self._lock:
            self._refresh(self._path)
            return self._known[1]

    def read_curve(self) -> HourlyCurve | None:
        """Return the curve as it is in the file, or was when that could be read last; None without a file."""
        try:
            return self.fetch_curve()
        except InvalidInput as error:
            with self._lock:
                # Once for each reason: it is asked for with each lease.
                if error.message != self._warned:
                    LOG.warning("The carbon curve stays as it was: %s", error.message)
                self._warned = error.message
                return self._known[1]

    def _refresh(self, path: Path) -> None:
        try:
            known = path.stat()
            if known.st_size > MOST_BYTES:
                raise InvalidInput(f"[energy] carbon_file has more than {MOST_BYTES} bytes; leave out the older hours")
            if self._known[0] != known.st_mtime_ns:
                content = path.read_bytes()
                # Noted before it is parsed: one that cannot be is not parsed with every request. One that must not be
                # read is tried again: who gives the right to read it does not change it.
                self._known, self._error = (known.st_mtime_ns, self._known[1]), None
                self._known = (known.st_mtime_ns, self._parse(content))
        except OSError as error:
            raise InvalidInput(f"[energy] carbon_file cannot be read: {error.strerror}") from error
        if self._error is not None:
            raise InvalidInput(self._error)

    def _parse(self, content: bytes) -> HourlyCurve:
        """Return the curve of a text; what is known if it cannot be read, which is said until the file has changed."""
        try:
            return parse_curve(content.decode(), named="[energy] carbon_file")
        except UnicodeDecodeError:
            self._error = "[energy] carbon_file cannot be read: it is not text in UTF-8"
        except InvalidInput as error:
            self._error = error.message
        return self._known[1]


def read_pue(section: Any) -> Fraction:
    """Return the power usage effectiveness that the options say; InvalidInput."""
    try:
        pue = read_number(section.pue)
    except ValueError as error:
        raise InvalidInput(f"[energy] pue is {section.pue[:40]!r}; give a number such as 1.4") from error
    if not 1 <= pue <= 10:
        raise InvalidInput(f"[energy] pue is {section.pue[:40]}; it is at least 1, and at most 10")
    return pue


NO_CARBON = CurveFile()
