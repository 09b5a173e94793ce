# SPDX-License-Identifier: Apache-2.0
"""The curve of carbon that a service tells by HTTPS, as CSV or as JSON. It is called where hooks may be called."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from fractions import Fraction
from typing import Any
from urllib.parse import SplitResult

from oslo_config import cfg

from blazar.clouds.outgoing.addresses import Allowed, TargetNames
from blazar.clouds.outgoing.posting import FAILURES, HttpRequest, NotAllowed, Poster, describe_error
from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.energy.carbon import HIGHEST, HourlyCurve, parse_curve
from blazar.model.energy.consumption import HOUR, read_number

SECTION = "energy"
MOST_BYTES = 1024 * 1024
"""The limit of an answer: months of hours."""

OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "carbon_url",
        default="",
        help="https URL of a service that tells the carbon intensity, in grams of CO2e a kilowatt-hour: as CSV as in "
        "carbon_file, or as JSON. blazar-manager asks it once an hour.",
    ),
    cfg.StrOpt(
        "carbon_list",
        default="history",
        help="Where the list of entries is in JSON: names with dots between them; empty: the answer is the list.",
    ),
    cfg.StrOpt("carbon_time", default="datetime", help="Where an entry has the instant at which it begins."),
    cfg.StrOpt(
        "carbon_value",
        default="carbonIntensity",
        help="Where an entry has its grams. Entries of parts of an hour have their mean in the hour.",
    ),
    cfg.StrOpt("carbon_header", default="auth-token", help="Name of the header that has carbon_token."),
    cfg.StrOpt("carbon_token", default="", secret=True, help="Sent in that header; unset: nothing is sent."),
    cfg.ListOpt(
        "carbon_networks",
        default=[],
        help="Networks that the service is in, such as 10.20.0.0/16; without any, all but addresses of this machine, "
        "link-local and reserved ones, and those of the metadata services of clouds, may be asked.",
    ),
    cfg.FloatOpt(
        "carbon_timeout", default=10.0, min=0.5, max=60.0, help="Seconds within which the service must answer."
    ),
]


class CurveUrl:
    """A curve by a URL, as it was told last. Safe to use from several threads."""

    enabled = True

    def __init__(self, parts: SplitResult, poster: Poster, section: Any, pue: Fraction) -> None:
        self.pue = pue
        self._parts = parts
        self._poster = poster
        self._names = (section.carbon_list, section.carbon_time, section.carbon_value)
        self._seconds = section.carbon_timeout
        self._headers = {"Accept": "application/json, text/csv"}
        if section.carbon_token:
            self._headers[section.carbon_header] = section.carbon_token
        self._lock = threading.Lock()
        self._known: HourlyCurve | None = None

    @classmethod
    def configured(cls, section: Any, pue: Fraction, cafile: str | None) -> CurveUrl:
        """Return what the options say; InvalidInput names the option."""
        named = TargetNames(f"[{SECTION}] carbon_url", SECTION, "carbon_networks", None)
        allowed = Allowed.of((), section.carbon_networks, http=False, named=named)
        token, header = section.carbon_token, section.carbon_header
        if token and not (token.isascii() and token.isprintable()):
            raise InvalidInput(f"[{SECTION}] carbon_token has characters that a header cannot have")
        if token and not (header.isascii() and header.replace("-", "").isalnum()):
            raise InvalidInput(f"[{SECTION}] carbon_header is {header[:40]!r}; give the name of a header")
        return cls(allowed.check_url(section.carbon_url), Poster(allowed, cafile), section, pue)

    def read_curve(self) -> HourlyCurve | None:
        """Return the curve as it was told last; an empty one before that."""
        with self._lock:
            return self._known or HourlyCurve({})

    def fetch_curve(self) -> HourlyCurve | None:
        """Return the curve as the service tells it now. CloudUnavailable."""
        request = HttpRequest("GET", self._parts, self._headers, most=MOST_BYTES)
        try:
            reply = self._poster.send(request, self._seconds)
        except NotAllowed as error:
            raise CloudUnavailable(f"the carbon curve is not asked for: {error}") from None
        except FAILURES as error:
            raise CloudUnavailable(f"the service of the carbon curve {describe_error(error)}") from None
        if reply.status != 200:
            more = ", a redirect, which is never followed" if 300 <= reply.status < 400 else ""
            raise CloudUnavailable(f"the service of the carbon curve answered {reply.status}{more}")
        if reply.body is None:
            raise CloudUnavailable(f"the carbon curve has more than {MOST_BYTES} bytes, or did not arrive whole")
        curve = _parse(reply.body, self._names)
        with self._lock:
            self._known = curve
        return curve


def _parse(body: bytes, names: tuple[str, str, str]) -> HourlyCurve:
    try:
        text = body.decode()
        if text.lstrip()[:1] not in ("{", "["):
            return parse_curve(text, named="the answer")
        return read_json(json.loads(text), *names)
    except InvalidInput as error:
        raise CloudUnavailable(f"the carbon curve cannot be read: {error.message}") from None
    except (ValueError, RecursionError):
        raise CloudUnavailable("the carbon curve cannot be read: it is neither CSV nor JSON") from None


def read_json(content: Any, where: str, at: str, value: str) -> HourlyCurve:
    """Return the curve of an answer in JSON; InvalidInput. Entries without a value are left out."""
    entries = _find(content, where)
    if not isinstance(entries, list):
        raise InvalidInput(f"[{SECTION}] carbon_list is {where!r}, and there is no list")
    values: dict[int, list[Fraction]] = defaultdict(list)
    for hour, grams in _list_entries(entries, at, value):
        values[hour].append(grams)
    return HourlyCurve({hour: sum(known, Fraction(0)) / len(known) for hour, known in values.items()})


def _list_entries(entries: list[Any], at: str, value: str) -> Iterator[tuple[int, Fraction]]:
    for entry in entries:
        start, told = _find(entry, at), _find(entry, value)
        if told is None:
            continue
        try:
            instant, grams = datetime.fromisoformat(str(start)), read_number(told)
        except ValueError as error:
            raise InvalidInput(f"{at} and {value} of an entry are no instant and no number") from error
        if instant.tzinfo is None or grams > HIGHEST:
            raise InvalidInput(f"an instant has no offset, or a value is more than {HIGHEST} grams a kilowatt-hour")
        seconds = int(instant.timestamp())
        yield seconds - seconds % HOUR, grams


def _find(content: Any, path: str) -> Any:
    """Return what is at names with dots between them; None if nothing is."""
    for name in filter(None, path.split(".")):
        content = content.get(name) if isinstance(content, dict) else None
    return content
