# SPDX-License-Identifier: Apache-2.0
"""How the managers of the client make requests at microversion 1.0: by a session, or by a URL and a token."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

import requests
from keystoneauth1 import adapter
from keystoneauth1 import exceptions as keystone

from blazarclient import exception
from blazarclient.answers import refused
from blazarclient.sessions import cannot_be_sent, time_limit

USER_AGENT = "python-blazarclient"

TIME_LIMIT = 300
"""Seconds for an answer, unless the session has a limit of its own.

A booking at microversion 1.0 cannot be sent twice: it is better to wait for an answer that comes late.
"""

Answer = tuple[Any, Any]
"""The response, and its decoded JSON or None."""


class Requests(Protocol):
    """What a manager asks of its ``request_manager``."""

    def get(self, url: str) -> Answer:
        """Make a request."""

    def post(self, url: str, body: object) -> Answer:
        """Make a request."""

    def put(self, url: str, body: object) -> Answer:
        """Make a request."""

    def patch(self, url: str, body: object) -> Answer:
        """Make a request."""

    def delete(self, url: str) -> Answer:
        """Make a request."""


class RequestManager:
    """Makes requests at a URL with a token. Deprecated: a session renews its token and knows the catalog."""

    def __init__(self, blazar_url: str, auth_token: str, user_agent: str) -> None:
        self.blazar_url = blazar_url
        self.auth_token = auth_token
        self.user_agent = user_agent

    def get(self, url: str) -> Answer:
        """Make a request."""
        return self.request(url, "GET")

    def post(self, url: str, body: object) -> Answer:
        """Make a request."""
        return self.request(url, "POST", body=body)

    def put(self, url: str, body: object) -> Answer:
        """Make a request."""
        return self.request(url, "PUT", body=body)

    def patch(self, url: str, body: object) -> Answer:
        """Make a request."""
        return self.request(url, "PATCH", body=body)

    def delete(self, url: str) -> Answer:
        """Make a request."""
        return self.request(url, "DELETE")

    def request(self, url: str, method: str, **kwargs: Any) -> Answer:
        """Make a request at a path; a ``body`` is sent as JSON. BlazarClientException for a status from 400 on."""
        headers = {**kwargs.pop("headers", {}), "User-Agent": self.user_agent, "Accept": "application/json"}
        headers["X-Auth-Token"] = self.auth_token
        if "body" in kwargs:
            headers["Content-Type"] = "application/json"
            kwargs["data"] = json.dumps(kwargs.pop("body"))
        response = requests.request(method, self.blazar_url + url, headers=headers, timeout=TIME_LIMIT, **kwargs)
        try:
            body = json.loads(response.text)
        except ValueError:
            body = None
        if response.status_code >= 400:
            raise refused(response.status_code, response.text, response.headers, prefix="ERROR: ")
        return response, body


class SessionClient(adapter.LegacyJsonAdapter):
    """Makes requests by a keystoneauth session, or by an adapter, whose defaults it keeps."""

    def request(self, url: str, method: str, **kwargs: Any) -> Answer:
        """Make a request at a path; a ``body`` is sent as JSON. BlazarClientException for a status from 400 on."""
        kwargs.setdefault("raise_exc", False)
        if time_limit(self.session) is None:
            kwargs.setdefault("timeout", TIME_LIMIT)
        try:
            response, body = super().request(url, method, **kwargs)
        except UnicodeEncodeError:
            raise cannot_be_sent() from None
        except keystone.UnknownConnectionError as error:
            if isinstance(error.original, requests.exceptions.InvalidHeader):
                # Its text has the header in it, which may be the token.
                raise cannot_be_sent() from None
            raise
        if response.status_code >= 400:
            text = body if body is not None else getattr(response, "text", None)
            raise refused(response.status_code, text, response.headers, prefix="ERROR: ")
        return response, body


def part(body: Any, key: str) -> Any:
    """Return what a body has under a key; BlazarClientException if it has none, as a page of a proxy."""
    if not isinstance(body, Mapping) or key not in body:
        raise exception.BlazarClientException(
            f"The service answered without {key}: is it the reservation service?", code=502
        )
    return body[key]


class BaseClientManager:
    """Makes requests about one kind of resource; ``request_manager`` is open to programs that need more."""

    user_agent = USER_AGENT

    def __init__(
        self, blazar_url: str | None, auth_token: str | None, session: Any | None, version: str = "1", **kwargs: Any
    ) -> None:
        self.blazar_url = blazar_url
        self.auth_token = auth_token
        self.session = session
        self.version = version
        self.request_manager: Requests
        if session:
            self.request_manager = SessionClient(
                session=session,
                user_agent=self.user_agent,
                version=version,
                **{"service_type": "reservation", **kwargs},
            )
        elif blazar_url and auth_token:
            self.request_manager = RequestManager(blazar_url, auth_token, self.user_agent)
        else:
            raise exception.InsufficientAuthInformation()
