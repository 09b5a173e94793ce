# SPDX-License-Identifier: Apache-2.0
"""What goes wrong before the service has answered, in a sentence each: no token, no endpoint, no connection."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import requests
from keystoneauth1 import exceptions as keystone
from urllib3 import exceptions as urllib3

from blazarclient.answers import refused
from blazarclient.exception import (
    BlazarClientException,
    NoBlazarEndpoint,
    NotAuthorized,
    ServiceUnavailable,
)
from blazarclient.sessions import cannot_be_sent


class NoAnswer(ServiceUnavailable):
    """The connection was lost, or no answer came in time: what was asked for may have been done."""


class Unreachable(NoAnswer):
    """There was no connection: nothing was asked for."""


class NotTrusted(Unreachable):
    """There was no secure connection; there will be none if it is tried again."""


def leaves_open(error: BlazarClientException) -> bool:
    """Return whether what was asked for may have been done, in spite of this error."""
    if isinstance(error, Unreachable):
        return False
    if any(fault.code == "reservation.request_in_progress" for fault in error.faults):
        # It was sent before, and is not decided yet.
        return True
    # A service that says that it failed may have done it before.
    return isinstance(error, ServiceUnavailable) or (error.code >= 500 and bool(error.faults))


def of_session(error: keystone.ClientException) -> BlazarClientException:
    """Return our error for one of a session."""
    text = str(error).strip().rstrip(".")
    match error:
        case keystone.EmptyCatalog():
            return NoBlazarEndpoint(f"The token has no catalog, and so no reservation service: {text}. Name a project")
        case keystone.EndpointNotFound():
            return NoBlazarEndpoint(
                f"The catalog of the cloud has no reservation service for this region and interface: {text}"
            )
        case keystone.Unauthorized() | keystone.AuthorizationFailure() | keystone.AuthPluginException():
            return NotAuthorized(f"The cloud does not let you in: {text}")
        case keystone.ConnectionError():
            return _of_connection(error, text)
        case keystone.DiscoveryFailure():
            return Unreachable(text)
        case keystone.HttpError():
            # With the service itself no status is an error of the session: this is of Keystone, or of discovery.
            return refused(error.http_status, str(error), {}, prefix="No token, or no endpoint: ")
        case _:
            return BlazarClientException(text)


def _of_connection(error: keystone.ConnectionError, text: str) -> BlazarClientException:
    causes = list(_causes(error))
    if any(isinstance(cause, requests.exceptions.InvalidHeader) for cause in causes):
        return cannot_be_sent()
    why = _why(causes).rstrip(".")
    where = _where(causes)
    if isinstance(error, keystone.SSLError):
        return NotTrusted(f"No secure connection{where}: {why or text}{_hint(causes, text)}")
    if any(isinstance(cause, TimeoutError) and "handshake" in str(cause) for cause in causes):
        return NotTrusted(f"No secure connection{where}: nothing comes from there. Is it http://?")
    if any(isinstance(cause, _NEVER_MADE) for cause in causes):
        return Unreachable(f"No connection{where}: {why or text}")
    if isinstance(error, keystone.ConnectTimeout):
        return NoAnswer(f"No answer in time{where}")
    return NoAnswer(f"The connection was lost before the answer came{where}: {why or text}")


def _hint(causes: list[BaseException], text: str) -> str:
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return ". If its authority is your own, name it with --os-cacert, OS_CACERT or cacert in clouds.yaml"
    return ". Is it http://?" if "WRONG_VERSION_NUMBER" in text else ""


_NEVER_MADE = (
    requests.exceptions.ConnectTimeout,
    requests.exceptions.InvalidSchema,
    requests.exceptions.InvalidURL,
    requests.exceptions.MissingSchema,
    requests.exceptions.ProxyError,
    urllib3.NewConnectionError,
    urllib3.ConnectTimeoutError,
)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and what led to it, the outermost first: requests and urllib3 keep it in several places."""
    seen: set[int] = set()
    open_ends: list[object] = [error]
    while open_ends:
        one = open_ends.pop(0)
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        open_ends += [one.__cause__, one.__context__, getattr(one, "reason", None), *one.args]


def _why(causes: list[BaseException]) -> str:
    """Return the innermost reason that is a sentence."""
    for cause in reversed(causes):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return cause.verify_message
        if isinstance(cause, urllib3.IncompleteRead):
            return f"it was cut off after {cause.partial} bytes"
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
    return str(causes[-1]) if len(causes) > 1 else ""


def _where(causes: list[BaseException]) -> str:
    urls = (getattr(getattr(cause, "request", None), "url", None) for cause in causes)
    url = next((url for url in urls if url), None)
    if url is None:
        return ""
    parts = urlsplit(url)
    # Not all of it: a URL may have a password in it.
    return f" to {parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
