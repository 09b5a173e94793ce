# SPDX-License-Identifier: Apache-2.0
"""Requests at a microversion over a keystoneauth session; what is safe to repeat is repeated."""

from __future__ import annotations

import os
import random
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, quote

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as keystone

from blazarclient.answers import refused
from blazarclient.exception import (
    BlazarClientException,
    Conflict,
    InvalidRequest,
    NoBlazarEndpoint,
    NotFound,
    ServiceUnavailable,
    TooManyRequests,
    UnsupportedVersion,
)
from blazarclient.library.connections import NoAnswer, NotTrusted, Unreachable, of_session
from blazarclient.sessions import cannot_be_sent, time_limit, within

MICROVERSION = "1.1"
"""What the library speaks; services that do not are those of the existing Blazar, with 1.0."""

SERVICE_TYPE = "reservation"

PATIENCE = 60.0
"""Seconds for one answer."""

IMMEDIATE_PATIENCE = 75.0
"""Seconds for the answer to the request for an immediate lease, at least: services decide it in 45, unless operators
have chosen another time."""

PAUSES = (0.5, 1.0, 2.0, 4.0)
"""Seconds between the tries of a request, unless the service says when to come again; at most this many repetitions."""

LONGEST_PAUSE = 30.0
"""Seconds; a service that asks for more is not waited for."""

_AT_ONCE = frozenset({"reservation.contention", "reservation.lease_busy", "reservation.request_in_progress"})
"""Conflicts that pass by themselves."""


@dataclass(frozen=True)
class Answer:
    """A decoded answer. ``headers`` without regard to case."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)

    def part(self, *keys: str) -> Any:
        """Return what the body has under a key, or under keys one in another; BlazarClientException if it has none."""
        found = self.body
        for key in keys:
            if not isinstance(found, Mapping) or key not in found:
                raise self.without(key)
            found = found[key]
        return found

    def items(self, *keys: str) -> list[Any]:
        """Return a list of the body, as ``part`` does; BlazarClientException if it has none."""
        found = self.part(*keys)
        if not isinstance(found, list):
            raise self.without(f"a list of {keys[-1]}")
        return found

    def without(self, what: str) -> BlazarClientException:
        """Return the error for an answer that lacks something."""
        return BlazarClientException(
            f"The service answered without {what}: is it the reservation service?", code=502, request_id=self.request_id
        )

    @property
    def request_id(self) -> str | None:
        """What the service's log calls the request."""
        return self.headers.get("x-openstack-request-id")

    @property
    def etag(self) -> str | None:
        """The tag of what was read or written, for ``If-Match``."""
        return self.headers.get("ETag")


CSV = "text/csv"
"""What a request accepts whose answer is a text, and no JSON."""


class Transport:
    """Makes requests; errors are those of ``blazarclient.exception``.

    ``session``: a keystoneauth session or adapter. ``patience``: seconds for one answer, by default those of the
    session, and ``PATIENCE`` at most. ``sleep`` and ``dice`` are for tests.
    """

    def __init__(
        self,
        session: Any,
        *,
        patience: float | None = None,
        user_agent: str = "python-blazarclient",
        sleep: Callable[[float], None] = time.sleep,
        dice: Callable[[], float] = random.random,
        **options: Any,
    ) -> None:
        self._adapter = adapter.Adapter(
            session,
            user_agent=user_agent,
            default_microversion=MICROVERSION,
            **{"service_type": SERVICE_TYPE, "version": "1", **options},
        )
        self._patience = patience or min(time_limit(session) or PATIENCE, PATIENCE)
        self._process = os.getpid()
        self._reached = False
        self._sleep = sleep
        self._dice = dice

    def ask(
        self,
        method: str,
        path: str,
        *,
        body: object = None,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        repeatable: bool | None = None,
        gone_is_done: bool | None = None,
        patience: float = 0.0,
    ) -> Answer:
        """Make a request and return its answer.

        ``repeatable``: whether it may be sent again after an answer was lost; by default all but POST and PATCH.
        ``gone_is_done``: whether it was done if it is sent again and nothing is there any more; by default only
        DELETE. ``patience``: seconds for one answer, if these are more than usual.
        """
        safe = method not in ("POST", "PATCH") if repeatable is None else repeatable
        ends = method == "DELETE" if gone_is_done is None else gone_is_done
        lost = False
        for pause in (*PAUSES, None):
            try:
                return self._once(method, path, body, query, headers, patience)
            except NotFound:
                if lost and ends:
                    # It was there, and the try whose answer was lost has ended it.
                    return Answer(204, None)
                raise
            except (ServiceUnavailable, TooManyRequests, Conflict) as error:
                wait = _pause(error, pause, safe=safe, reached=self._reached)
                if wait is None:
                    if lost and isinstance(error, Unreachable):
                        raise NoAnswer(str(error)) from error
                    raise
                lost = lost or (isinstance(error, ServiceUnavailable) and not isinstance(error, Unreachable))
                # Clients that were refused together do not come again together.
                self._sleep(wait * (1 + 0.2 * self._dice()))
        raise AssertionError("the last try returns or raises")

    def pages(
        self,
        path: str,
        *keys: str,
        query: Mapping[str, Any] | None = None,
    ) -> Iterator[Any]:
        """Yield the items of a list, reading its pages one by one; ``keys``: where an answer has the list."""
        asked = {name: value for name, value in (query or {}).items() if value is not None}
        while True:
            answer = self.ask("GET", path, query=asked)
            yield from answer.items(*keys)
            marker = self.next_marker(answer)
            if marker is None:
                return
            if marker == asked.get("marker"):
                # Without this, there would be no end to it.
                raise answer.without("a next page, but with the same one again")
            asked["marker"] = marker

    @staticmethod
    def next_marker(answer: Answer) -> str | None:
        """Return the marker of the page after this one, None if it is the last.

        Only the marker is read of the link to it: behind a proxy the service may have another address.
        """
        links = answer.body.get("links") or ()
        for link in links if isinstance(links, list) else ():
            if isinstance(link, Mapping) and link.get("rel") == "next":
                found = parse_qs(str(link.get("href")).partition("?")[2]).get("marker")
                if not found:
                    # To stop here would be to tell a part of the list as the whole.
                    raise answer.without("a marker in the link to the next page")
                return str(found[0])
        return None

    def _once(
        self,
        method: str,
        path: str,
        body: object,
        query: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None,
        patience: float,
    ) -> Answer:
        self._leave_connections_of_parent()
        options: dict[str, Any] = {} if body is None else {"json": body}
        try:
            response = self._adapter.request(
                path,
                method,
                params=_written(query or {}),
                headers={"Accept": "application/json", **(headers or {})},
                microversion=MICROVERSION,
                raise_exc=False,
                timeout=max(self._patience, patience),
                **options,
            )
        except keystone.ClientException as error:
            told = of_session(error)
            # What led to it may have the token in it.
            raise told from None if isinstance(told, InvalidRequest) else error
        except UnicodeEncodeError:
            raise cannot_be_sent() from None
        except OSError as error:
            # A certificate, or its key, that is not where it is said to be.
            raise NotTrusted(f"No secure connection: {error}") from error
        self._reached = True
        if response.status_code >= 400:
            raise _refused(response)
        try:
            is_text = (headers or {}).get("Accept") == CSV
            decoded = response.text if is_text else response.json() if response.content else None
        except ValueError as error:
            raise NoBlazarEndpoint(
                f"{_place(response)} answered with something that is not JSON: it is not the reservation service"
            ) from error
        if response.ok and not _speaks(response):
            done = "" if method == "GET" else ", and may have done what was asked"
            raise _too_old(response, f"it answered without naming a version{done}")
        return Answer(response.status_code, decoded, response.headers)

    def _leave_connections_of_parent(self) -> None:
        """Make new connections after a fork: on one of both, each process would read answers to the other."""
        if os.getpid() != self._process:
            within(self._adapter).session.close()
            self._process = os.getpid()


class Repeated(tuple[str, ...]):
    """Values of a query, each under the key again; those of a list are joined by commas."""

    __slots__ = ()


def patience_for(kind: str | None) -> float:
    """Return the seconds to wait for the answer to a request for a lease of this kind, at least."""
    return IMMEDIATE_PATIENCE if kind == "immediate" else 0.0


def part_of_path(text: str) -> str:
    """Return an id or a name as one part of a path, whatever is in it. InvalidRequest for what cannot be one."""
    named(text)
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise InvalidRequest(f"{text!r} is neither an id nor a name") from None


def exactly(text: str) -> str:
    """Return the filter for one name, also for one that begins as an operator does, such as ``in:``."""
    named(text)
    return f"eq:{text}" if ":" in text else text


def is_uuid(text: str) -> bool:
    """Return whether a text is the id of a lease, and not a name."""
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


def named(text: object) -> None:
    """InvalidRequest for what is neither an id nor a name: None would be no filter at all, and find anything."""
    if not isinstance(text, str):
        raise InvalidRequest(f"{text!r} is neither an id nor a name; both are texts")
    if text in ("", ".", ".."):
        raise InvalidRequest(f"{text!r} is neither an id nor a name")


def _refused(response: Any) -> BlazarClientException:
    error = refused(response.status_code, response.text, response.headers)
    if isinstance(error, UnsupportedVersion):
        return _too_old(response, str(error), error)
    unknown = isinstance(error, NotFound | InvalidRequest) and not _speaks(response)
    if unknown and all(fault.code is None for fault in error.faults):
        if "json" not in response.headers.get("Content-Type", ""):
            return NoBlazarEndpoint(f"{_place(response)} is not the reservation service, it answered: {error}")
        return _too_old(response, str(error), error)
    return error


def _too_old(response: Any, said: str, error: BlazarClientException | None = None) -> UnsupportedVersion:
    return UnsupportedVersion(
        f"The reservation service of this cloud does not speak microversion {MICROVERSION}, which this needs: {said}",
        faults=error.faults if error else (),
        request_id=response.headers.get("x-openstack-request-id"),
    )


def _speaks(response: Any) -> bool:
    # As "reservation 1.1", or a list of services and versions.
    told = response.headers.get("OpenStack-API-Version", "")
    return MICROVERSION in told.replace(",", " ").split()


def _place(response: Any) -> str:
    """Return the URL without the query, which may be long."""
    return str(response.url).partition("?")[0]


def _pause(error: BlazarClientException, planned: float | None, *, safe: bool, reached: bool) -> float | None:
    """Return the seconds after which a request is repeated, or None if it is not."""
    if planned is None or isinstance(error, NotTrusted):
        return None
    if isinstance(error, Conflict):
        # Nothing was done.
        return planned if any(fault.code in _AT_ONCE for fault in error.faults) else None
    if isinstance(error, Unreachable):
        # A service that was there comes back; one that never was is rather a wrong address.
        return planned if reached else None
    if isinstance(error, ServiceUnavailable) and not safe:
        return None
    asked = getattr(error, "retry_after", None)
    if asked is not None and asked > LONGEST_PAUSE:
        return None
    return max(planned, asked or 0)


def _written(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return a query as the service reads it: booleans in lower case, lists with commas."""
    written: dict[str, Any] = {}
    for key, value in query.items():
        if isinstance(value, bool):
            written[key] = str(value).lower()
        elif isinstance(value, Repeated):
            written[key] = list(value)
        elif isinstance(value, list | tuple):
            written[key] = ",".join(map(str, value))
        elif value is not None:
            written[key] = value
    return written
