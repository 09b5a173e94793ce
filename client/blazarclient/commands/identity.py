# SPDX-License-Identifier: Apache-2.0
"""Names of projects and users, which Keystone knows: the service itself has their ids only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as keystone
from keystoneauth1.plugin import AUTH_INTERFACE

from blazarclient.exception import BlazarClientException, Forbidden, NotFound, NoUniqueMatch, ServiceUnavailable

PATIENCE = 60.0
"""Seconds for an answer of Keystone."""

_OWN: Mapping[str, tuple[str, str]] = {"project": ("project_id", "project_name"), "user": ("user_id", "username")}
"""Of what is named: where a token has its id and its name."""

_ID = re.compile(r"[0-9a-f]{32}|[0-9a-f]{64}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def id_of(session: Any, noun: str, text: str, option: str) -> str:
    """Return the id of a ``project`` or a ``user`` that an option gives by id or name.

    ``session``: of keystoneauth. Without Keystone, names are ids. NotFound; NoUniqueMatch; Forbidden and
    ServiceUnavailable if Keystone does not tell.
    """
    if _ID.fullmatch(text) or not hasattr(session.auth, "get_access"):
        return text
    try:
        response = adapter.Adapter(session, service_type="identity", interface=AUTH_INTERFACE, version="3").get(
            f"/{noun}s",
            params={"name": text},
            headers={"Accept": "application/json"},
            timeout=PATIENCE,
            raise_exc=False,
        )
    except keystone.ConnectionError as error:
        raise _untold(
            ServiceUnavailable, option, text, f"Keystone does not answer: {str(error).rstrip('.')}"
        ) from error
    if response.status_code in (401, 403):
        own, name = (getattr(session.auth.get_access(session), key) for key in _OWN[noun])
        if name == text:
            return str(own)
        raise _untold(Forbidden, option, text, "Keystone does not let you look it up by its name")
    if response.status_code != 200:
        raise _untold(ServiceUnavailable, option, text, f"Keystone answered with HTTP {response.status_code}")
    ids = [str(each["id"]) for each in response.json()[f"{noun}s"] if each.get("name", "").lower() == text.lower()]
    if not ids:
        raise NotFound(f"{option}: there is no {noun} called {text} that you may see; give its id")
    if len(ids) > 1:
        raise NoUniqueMatch(f"{option}: several {noun}s are called {text}; give an id: {', '.join(ids)}")
    return ids[0]


def names_of(session: Any, noun: str) -> Mapping[str, str]:
    """Return the names of all projects or users by their ids; of those that Keystone does not tell, the own one only.

    ``session``: of keystoneauth. Names are no more than a help: where Keystone does not answer, there are none.
    """
    if not hasattr(session.auth, "get_access"):
        return {}
    try:
        access = session.auth.get_access(session)
        response = adapter.Adapter(session, service_type="identity", interface=AUTH_INTERFACE, version="3").get(
            f"/{noun}s", headers={"Accept": "application/json"}, timeout=PATIENCE, raise_exc=False
        )
    except keystone.ClientException:
        return {}
    own, name = (getattr(access, key) for key in _OWN[noun])
    try:
        listed = response.json()[f"{noun}s"] if response.status_code == 200 else ()
        names = {str(each["id"]): str(each["name"]) for each in listed}
    except (KeyError, TypeError, ValueError):
        # Some other server answers there.
        names = {}
    return {str(own): str(name), **names}


def _untold(kind: type[BlazarClientException], option: str, text: str, why: str) -> BlazarClientException:
    return kind(f"{option}: the id of {text} is not known, {why}; give the id")
