# SPDX-License-Identifier: Apache-2.0
"""Bodies that pages send to ``/ui/session``. Passwords in them are never shown, not even by a traceback."""

from __future__ import annotations

from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, SecretStr, TypeAdapter, ValidationError
from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Request

from blazar.api.web.answers import PageRefusal

T = TypeVar("T")

LONGEST = 16 * 1024
"""Bytes of a body: more than any password or token needs."""

_Name = Annotated[str, Field(min_length=1, max_length=255)]
_Id = Annotated[str, Field(min_length=1, max_length=64)]
_Secret = Annotated[SecretStr, Field(min_length=1, max_length=8192)]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)


class ByPassword(_Body):
    """A user's name, domain and password. ``project`` is the id of the project to begin with, if it can be."""

    method: Literal["password"]
    user: _Name
    domain: _Name
    password: _Secret
    project: _Id | None = None


class ByPasscode(_Body):
    """The second step: the receipt of the first, and a one-time passcode."""

    method: Literal["totp"]
    receipt: _Secret
    passcode: _Secret
    project: _Id | None = None


class ByApplicationCredential(_Body):
    """The id of an application credential and its secret."""

    method: Literal["application_credential"]
    id: _Id
    secret: _Secret


class ByToken(_Body):
    """A token that the user got elsewhere."""

    method: Literal["token"]
    token: _Secret
    project: _Id | None = None


class OtherProject(_Body):
    """The id of the project to work in from now on."""

    project: _Id


SignIn = ByPassword | ByPasscode | ByApplicationCredential | ByToken
_SIGN_IN: TypeAdapter[SignIn] = TypeAdapter(Annotated[SignIn, Field(discriminator="method")])
_OTHER_PROJECT = TypeAdapter(OtherProject)


def sign_in(request: Request) -> SignIn:
    """Return what a page sends to sign in; PageRefusal if it is not valid."""
    return _read(request, _SIGN_IN)


def other_project(request: Request) -> OtherProject:
    """Return what a page sends to switch the project; PageRefusal if it is not valid."""
    return _read(request, _OTHER_PROJECT)


def _read(request: Request, adapter: TypeAdapter[T]) -> T:
    # A form of another site cannot have this type without asking first.
    if request.mimetype != "application/json":
        raise PageRefusal(415, "unsupported_media_type", "The body must be application/json.")
    request.max_content_length = LONGEST
    try:
        raw = request.get_data()
    except RequestEntityTooLarge:
        raise PageRefusal(413, "body_too_large", f"The body must be smaller than {LONGEST} bytes.") from None
    try:
        return adapter.validate_json(raw)
    except ValidationError as error:
        raise PageRefusal(400, "invalid_value", _sentence(error)) from None


def _sentence(error: ValidationError) -> str:
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    field = ".".join(str(part) for part in first["loc"][-1:]) or "body"
    return f"The {field} cannot be used: {first['msg']}."
