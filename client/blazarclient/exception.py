# SPDX-License-Identifier: Apache-2.0
"""Errors of this client. A refusal of the service is the class of its code or status, below BlazarClientException."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that the service found wrong.

    ``code``: ``reservation.…``, stable, or None below microversion 1.1. ``detail``: a sentence. At most one of
    ``pointer`` (RFC 6901, into the body), ``parameter`` (of the query) and ``header`` says where it is.
    """

    status: int
    detail: str
    code: str | None = None
    title: str | None = None
    pointer: str | None = None
    parameter: str | None = None
    header: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the sentence, with the place unless it names that itself."""
        place = self.pointer or self.parameter or self.header
        return f"{place}: {self.detail}" if self._field else self.detail

    @property
    def words(self) -> str:
        """The sentence for people, who have not seen the request: with the field unless it names that itself."""
        return f"{self._field}: {self.detail}" if self._field else self.detail

    @property
    def _field(self) -> str:
        """The field that the sentence does not name, nothing if it does, or is about none."""
        place = self.pointer or self.parameter or self.header or ""
        names = [part for part in place.split("/") if part and not part.isdigit()]
        # The first item of a list is mostly the only one.
        if not names or place.endswith("/0") or re.search(rf"(?<!\w){re.escape(names[-1])}(?!\w)", self.detail):
            return ""
        return names[-1]


class BlazarClientException(Exception):
    """Base of all errors of this client.

    ``code``: the HTTP status, or what comes nearest to it; ``kwargs["code"]`` is the same. ``faults`` and
    ``request_id`` are there if the service answered.
    """

    message: ClassVar[str] = "An unknown exception occurred."
    code: int = 500

    def __init__(
        self, message: str | None = None, *, faults: Sequence[Fault] = (), request_id: str | None = None, **kwargs: Any
    ) -> None:
        self.kwargs = kwargs
        self.code = kwargs.setdefault("code", type(self).code)
        self.faults = tuple(faults)
        self.request_id = request_id
        super().__init__(message or _filled(type(self).message, kwargs))

    @property
    def fault(self) -> Fault | None:
        """The first thing that the service found wrong."""
        return self.faults[0] if self.faults else None


def _filled(text: str, values: Mapping[str, Any]) -> str:
    try:
        return text % values
    except (KeyError, TypeError, ValueError):
        return text


# What the service says.


class InvalidRequest(BlazarClientException):
    """Something in the request is wrong, and ``faults`` say what."""

    code = 400


class InvalidDate(InvalidRequest, ValueError):
    """A text is no date; a ValueError, too, which is what programs for version 4 of this client catch."""


class NotAuthorized(BlazarClientException):
    """The token is missing, has expired or was revoked."""

    message = "Not authorized: log in again."
    code = 401


class Forbidden(BlazarClientException):
    """A policy does not allow it."""

    code = 403


class LimitExceeded(Forbidden):
    """A limit of the project does not allow it."""


class NotFound(BlazarClientException):
    """There is none, or none that the project may see."""

    code = 404


class Conflict(BlazarClientException):
    """The state of the lease, or of the cloud, does not allow it."""

    code = 409


class NotEnoughResources(Conflict):
    """Not all that is asked for is free; ``faults[0].data`` has reasons and alternatives, if the service explains.

    Its ``proof`` says whether no arrangement of all leases would have room: ``full_at`` an instant, ``no_arrangement``
    at all, one with ``too_many_moves`` of others, or ``not_proven``.
    """


class PreconditionFailed(BlazarClientException):
    """What was to be changed has changed since it was read."""

    code = 412


class TooManyRequests(BlazarClientException):
    """The service asks to wait; ``retry_after`` says how many seconds."""

    code = 429
    retry_after: float | None = None


class ServiceUnavailable(BlazarClientException):
    """The service, or something that it needs, does not answer. What was asked for may have been done."""

    code = 503
    retry_after: float | None = None


# What this client says.


class CommandError(BlazarClientException):
    """A command was used wrongly."""

    message = "The command is not written as it has to be."
    code = 401


class NoBlazarEndpoint(BlazarClientException):
    """The catalog of the cloud has no reservation service for this region and interface."""

    message = "The catalog of the cloud has no reservation service."
    code = 404


class NoUniqueMatch(BlazarClientException):
    """Several resources have the name."""

    message = "Several resources have this name; give an id."
    code = 409


class UnsupportedVersion(BlazarClientException):
    """The service, or this client, does not speak the version."""

    message = "This version of the API is not supported."
    code = 406


class IncorrectLease(BlazarClientException):
    """Arguments do not describe a lease."""

    message = "The lease parameters are incorrect."
    code = 409


class DuplicatedLeaseParameters(BlazarClientException):
    """A key of a reservation is given twice."""

    message = "A parameter is given twice."
    code = 400


class InsufficientAuthInformation(BlazarClientException):
    """There is neither a session nor a URL with a token."""

    message = "Give a session, or blazar_url and auth_token."
    code = 400


class ResourcePropertyNotFound(NotFound):
    """No resource has the property."""

    message = "There is no such property."


class Timeout(BlazarClientException):
    """What was waited for did not happen in time."""

    message = "It took too long."
    code = 504


class Failed(BlazarClientException):
    """What was waited for cannot happen any more."""

    code = 409


class Uncertain(BlazarClientException):
    """No answer came, or that the service has failed: whether the lease was made is not known.

    ``idempotency_key``: a repetition with it makes the lease, or finds it, and never makes a second one.
    """

    code = 503
    idempotency_key: str | None = None


_BY_CODE: Mapping[str, type[BlazarClientException]] = {
    "reservation.not_enough_resources": NotEnoughResources,
    "reservation.limit_exceeded": LimitExceeded,
    "reservation.version_unsupported": UnsupportedVersion,
}

_BY_STATUS: Mapping[int, type[BlazarClientException]] = {
    400: InvalidRequest,
    401: NotAuthorized,
    403: Forbidden,
    404: NotFound,
    406: UnsupportedVersion,
    409: Conflict,
    412: PreconditionFailed,
    429: TooManyRequests,
    502: ServiceUnavailable,
    503: ServiceUnavailable,
    504: ServiceUnavailable,
}


def refusal(
    status: int,
    faults: Sequence[Fault],
    *,
    message: str,
    request_id: str | None = None,
    retry_after: float | None = None,
) -> BlazarClientException:
    """Return the error for an answer of the service."""
    named = (_BY_CODE.get(fault.code or "") for fault in faults)
    kind = next((kind for kind in named if kind), None) or _BY_STATUS.get(status, BlazarClientException)
    error = kind(message, faults=faults, request_id=request_id, code=status)
    if isinstance(error, TooManyRequests | ServiceUnavailable):
        error.retry_after = retry_after
    return error
