# SPDX-License-Identifier: Apache-2.0
"""Errors that are both: what programs for openstacksdk catch, and what this client tells."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from openstack import exceptions

from blazarclient import exception
from blazarclient.exception import BlazarClientException

_THEIRS: tuple[tuple[type[BlazarClientException], type[Exception]], ...] = (
    (exception.NotFound, exceptions.NotFoundException),
    (exception.NoBlazarEndpoint, exceptions.EndpointNotFound),
    (exception.NoUniqueMatch, exceptions.DuplicateResource),
    (exception.Conflict, exceptions.ConflictException),
    (exception.Forbidden, exceptions.ForbiddenException),
    (exception.InvalidRequest, exceptions.BadRequestException),
    (exception.PreconditionFailed, exceptions.PreconditionFailedException),
    (exception.UnsupportedVersion, exceptions.NotSupported),
    (exception.Timeout, exceptions.ResourceTimeout),
    (exception.Failed, exceptions.ResourceFailure),
    (exception.NotAuthorized, exceptions.HttpException),
    (exception.TooManyRequests, exceptions.HttpException),
    (exception.ServiceUnavailable, exceptions.HttpException),
    (BlazarClientException, exceptions.SDKException),
)


@contextmanager
def told() -> Iterator[None]:
    """Raise errors of this client as those of openstacksdk, too: ``except`` works with either."""
    try:
        yield
    except BlazarClientException as error:
        if isinstance(error, exceptions.SDKException):
            raise
        raise _both(error) from error


def _both(error: BlazarClientException) -> BlazarClientException:
    both: BlazarClientException = _class(type(error))(str(error), faults=error.faults, **error.kwargs)
    # What the classes add: request_id, retry_after, idempotency_key.
    vars(both).update(vars(error), status_code=error.code)
    return both


def _class(ours: type[BlazarClientException]) -> type[BlazarClientException]:
    if ours not in _made:
        theirs = next(theirs for base, theirs in _THEIRS if issubclass(ours, base))
        # By its name, pickle would find the class of ours that is half of it.
        parts = {"__doc__": ours.__doc__, "__module__": ours.__module__, "__reduce__": _reduced}
        _made[ours] = type(ours.__name__, (ours, theirs), parts)
    return _made[ours]


def _reduced(both: BlazarClientException) -> tuple[Any, ...]:
    return _again, (type(both).__bases__[0], str(both), vars(both))


def _again(ours: type[BlazarClientException], text: str, state: dict[str, Any]) -> BlazarClientException:
    both = _class(ours)(text)
    vars(both).update(state)
    return both


_made: dict[type[BlazarClientException], type[BlazarClientException]] = {}
"""Classes as they were asked for: errors of one kind have one class."""
