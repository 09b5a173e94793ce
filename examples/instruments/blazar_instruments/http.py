# SPDX-License-Identifier: Apache-2.0
"""The control service over HTTP: ``GET instruments``, ``GET grants``, ``PUT`` and ``DELETE grants/RESERVATION``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

from oslo_config import cfg

from blazar.context import check_change
from blazar.model.base.errors import CloudRefused, CloudUnavailable, InvalidInput, NotFound
from blazar_instruments.options import SECTION
from blazar_instruments.port import Instrument


class HttpControl:
    """Calls the control service; each call has a time limit."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        options = conf[SECTION]
        if not options.url:
            raise InvalidInput("[instruments] url is not set; give the base URL of the control service")
        self._url = options.url.rstrip("/") + "/"
        self._token = options.token or ""
        self._timeout = options.timeout

    def instruments(self) -> tuple[Instrument, ...]:
        """Return all instruments."""
        return tuple(Instrument(**each) for each in self._call("GET", "instruments")["instruments"])

    def grants(self) -> Mapping[str, str]:
        """Return the ids of reservations that have channels → the id of their instrument."""
        return {each["reservation"]: each["instrument"] for each in self._call("GET", "grants")["grants"]}

    def grant(self, reservation_id: str, *, instrument_id: str, project_id: str, channels: int) -> None:
        """Ensure that a reservation has exactly these channels of one instrument. NotFound."""
        granted = {"instrument": instrument_id, "project": project_id, "channels": channels}
        self._call("PUT", f"grants/{quote(reservation_id, safe='')}", granted, limit=check_change())

    def revoke(self, reservation_id: str) -> None:
        """Ensure that a reservation has no channels."""
        try:
            self._call("DELETE", f"grants/{quote(reservation_id, safe='')}", limit=check_change())
        except NotFound:
            return

    def _call(self, method: str, path: str, body: object = None, *, limit: float | None = None) -> Any:
        request = Request(
            self._url + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"X-Auth-Token": self._token, "Content-Type": "application/json"},
        )
        try:
            with urlopen(request, timeout=min(self._timeout, limit or self._timeout)) as answer:
                return json.loads(answer.read() or b"null")
        except HTTPError as error:
            if error.code == 404:
                raise NotFound(f"the control service does not know {path}") from error
            if error.code < 500:
                raise CloudRefused(f"the control service refuses {method} {path}: {error.code}") from error
            raise CloudUnavailable(f"the control service answers {error.code}") from error
        except (URLError, OSError, ValueError) as error:
            raise CloudUnavailable(f"the control service cannot be reached: {error}") from error
