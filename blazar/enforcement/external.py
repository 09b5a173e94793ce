# SPDX-License-Identifier: Apache-2.0
"""The filter that asks a service of the operator's: a credit system, a portal, a course schedule.

What comes back is believed as little as possible. To a check, 204 grants and 403 denies; to a message, 2xx accepts and
4xx refuses for good. Anything else is no answer, and what that means is for the operator to say. No redirect is
followed, little is read, and every call ends in time.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any, ClassVar
from urllib.parse import urljoin, urlsplit

import requests
import tenacity
import urllib3
from oslo_config import cfg

from blazar import __version__
from blazar.context import current
from blazar.enforcement import answers, payload
from blazar.enforcement.answers import NOT_PROCESSED, PASSING, NoAnswer
from blazar.enforcement.punctual import PunctualAdapter
from blazar.enforcement.values import News, Occasion, Question, Refused, Unheard
from blazar.model.errors import BlazarError, EnforcementUnavailable, InvalidInput, UsageDenied

LOG = logging.getLogger(__name__)

CHECK_CREATE, CHECK_UPDATE = "check-create", "check-update"

TOKENS = ("external_service_token", "external_service_bearer_token", "external_service_keystone_token")
POOL = 64
"""Connections kept open: as many as there are requests that may ask at once."""

DENIED = "the external service that decides about leases does not grant this one, and gives no reason"


@dataclass(slots=True)
class _Call:
    """One question or message, through all of its tries."""

    name: str
    lease_id: str
    text: bytes
    end: float
    heard: bool = False
    """Whether the service may have taken note of it in an earlier try."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a question may take, with all tries, and how many tries there are."""

    seconds: float = 5.0
    attempts: int = 3


class Credential(requests.auth.AuthBase):
    """Says who we are. Given with every request, so that no ``.netrc`` is looked at."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Put what proves it into the headers."""
        request.headers.update(self.headers())
        return request

    def headers(self) -> Mapping[str, str]:
        """Return the headers; a BlazarError if there is nothing to prove it with."""
        return {}

    def renew(self) -> bool:
        """Get another proof, as this one was not accepted; tell whether there is one."""
        return False


class StaticToken(Credential):
    """A header that never changes."""

    def __init__(self, header: str, value: str) -> None:
        self._headers = {header: value}

    def headers(self) -> Mapping[str, str]:
        """Return the header."""
        return self._headers


class ServiceUserToken(Credential):
    """A Keystone token of the service user."""

    def __init__(self, tokens: Any) -> None:
        self._tokens = tokens

    def headers(self) -> Mapping[str, str]:
        """Return the token of the moment."""
        return {"X-Auth-Token": self._tokens.token()}

    def renew(self) -> bool:
        """Log in again for the next try."""
        self._tokens.renew()
        return True


class ExternalServiceFilter:
    """Asks a service whether a lease may be, and tells it what became of leases."""

    needs_use: ClassVar[bool] = False
    options: ClassVar[list[cfg.Opt]] = [
        cfg.StrOpt(
            "external_service_base_endpoint",
            help="URL of the service that ExternalServiceFilter asks. check-create, check-update and on-end take the "
            "place of what follows its last slash: end it with one, as https://HOST/blazar/.",
        ),
        *(
            cfg.StrOpt(f"external_service_{name}_endpoint", help=f"URL to POST to {occasion}, if not under the base.")
            for name, occasion in (
                ("check_create", "before a lease is booked"),
                ("check_update", "before a lease is changed"),
                ("on_end", "when the end of a lease has begun"),
            )
        ),
        cfg.StrOpt(
            "external_service_commit_create_endpoint",
            help="URL to POST to when a lease is booked, before its user is answered; what the service refuses is "
            "undone. Without one nobody is told.",
        ),
        cfg.StrOpt(
            "external_service_commit_update_endpoint",
            help="URL to POST to when a lease is changed, before its user is answered; what the service refuses is "
            "undone. Without one nobody is told.",
        ),
        cfg.StrOpt("external_service_token", default="", secret=True, help="Sent to the service as X-Auth-Token."),
        cfg.StrOpt(
            "external_service_bearer_token",
            default="",
            secret=True,
            help="Sent to the service as 'Authorization: Bearer …', in the place of external_service_token.",
        ),
        cfg.BoolOpt(
            "external_service_keystone_token",
            default=False,
            help="Send the service a Keystone token of the service user as X-Auth-Token, in the place of a fixed one.",
        ),
        cfg.FloatOpt(
            "external_service_timeout",
            default=5.0,
            min=0.1,
            help="Seconds that the service has for an answer, further tries included; part of request_limit.",
        ),
        cfg.IntOpt(
            "external_service_attempts",
            default=3,
            min=1,
            max=10,
            help="How often the service is asked within that time, if it can not be reached or says 5xx.",
        ),
        cfg.StrOpt(
            "external_service_on_error",
            default="deny",
            choices=[("deny", "the user is told to try again later"), ("allow", "the lease is granted, and logged")],
            help="What becomes of a lease, or of a change, about which the service gives no answer, or none that can "
            "be understood, when it is asked or told of it.",
        ),
    ]

    def __init__(
        self,
        endpoints: Mapping[str, str],
        *,
        credential: Credential | None = None,
        patience: Patience | None = None,
        allow_on_error: bool = False,
        verify: bool | str = True,
    ) -> None:
        self._endpoints = dict(endpoints)
        self._credential = credential or Credential()
        self._patience = patience or Patience()
        self._allow_on_error = allow_on_error
        self._verify = verify
        self._session = requests.Session()
        self._session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, PunctualAdapter(pool_maxsize=POOL))

    @property
    def hears(self) -> frozenset[Occasion]:
        """Return the occasions that have an endpoint."""
        return frozenset(occasion for occasion in Occasion if occasion in self._endpoints)

    @classmethod
    def configured(cls, section: Any, identity: Any) -> ExternalServiceFilter:
        """Return the filter as the configuration says; InvalidInput."""
        return cls(
            _endpoints(section),
            credential=_credential(section, identity),
            patience=Patience(section.external_service_timeout, section.external_service_attempts),
            allow_on_error=section.external_service_on_error == "allow",
            verify=identity.cafile or True,
        )

    @property
    def insists(self) -> bool:
        """Tell whether nothing is granted without an answer of the service."""
        return not self._allow_on_error

    def check(self, question: Question) -> None:
        """Ask. UsageDenied with the service's reason; EnforcementUnavailable where no answer means no."""
        name = CHECK_CREATE if question.current is None else CHECK_UPDATE
        if name not in self._endpoints:
            return
        lease = question.wanted.lease
        try:
            status, reason = self._post(self._call(name, lease.id, payload.of_question(question)))
            if status == 403:
                raise UsageDenied(reason or DENIED)
            if status != 204:
                raise NoAnswer(f"it answered {status}")
        except NoAnswer as error:
            if self._allow_on_error:
                LOG.warning(
                    "Lease %s of project %s is granted although the external service was no help with %s: %s",
                    lease.id, lease.project_id, name, error.message,
                )  # fmt: skip
                return
            LOG.error(
                "Lease %s of project %s is refused because the external service was no help with %s: %s",
                lease.id, lease.project_id, name, error.message,
            )  # fmt: skip
            raise EnforcementUnavailable(
                "the external service that decides about leases can not be asked at the moment; please try again later"
            ) from error

    def tell(self, news: News) -> None:
        """Tell; Refused if the service refuses it for good, Unheard unless it says that it has understood."""
        call = self._call(str(news.occasion), news.view.lease.id, payload.of_news(news))
        try:
            status, reason = self._post(call)
            if not 200 <= status < 300:
                if 400 <= status < 500:
                    raise Refused(reason or DENIED, heard=call.heard)
                raise NoAnswer(f"it answered {status}", heard=status >= 500)
        except NoAnswer as error:
            raise Unheard(
                f"the external service was not told ({news.occasion}): {error.message}",
                heard=call.heard or error.heard,
            ) from error

    def _call(self, name: str, lease_id: str, body: object) -> _Call:
        end = time.monotonic() + self._patience.seconds
        left = current().remaining()
        if left is not None:
            end = min(end, time.monotonic() + left)
        return _Call(name, lease_id, json.dumps(body).encode(), end)

    def _post(self, call: _Call) -> tuple[int, str | None]:
        """Return status and, of a 4xx, the reason for the user. NoAnswer."""
        end = call.end
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, NoAnswer) and error.passing),
            stop=tenacity.stop_after_attempt(self._patience.attempts),
            wait=tenacity.wait_random_exponential(multiplier=0.2, max=2),
            sleep=lambda seconds: time.sleep(max(0.0, min(seconds, end - time.monotonic()))),
            reraise=True,
        )
        return retrying(self._once, call)

    def _once(self, call: _Call) -> tuple[int, str | None]:
        try:
            return self._sent(call)
        except NoAnswer as error:
            call.heard |= error.heard
            raise

    def _sent(self, call: _Call) -> tuple[int, str | None]:
        left = call.end - time.monotonic()
        if left <= 0:
            raise NoAnswer("the time for its answer was over")
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"blazar/{__version__}",
        }
        if (request_id := current().request_id) is not None:
            headers["X-OpenStack-Request-ID"] = request_id
        try:
            with self._session.post(
                self._endpoints[call.name],
                data=call.text,
                headers=headers,
                auth=self._credential,
                timeout=left,
                allow_redirects=False,
                stream=True,
                verify=self._verify,
            ) as response:
                status = response.status_code
                text = answers.read(response, call.end, whole=status == 403) if 400 <= status < 500 else b""
                hidden = answers.to_hide(response.request)
                if text:
                    denial = status == 403 and call.name in (CHECK_CREATE, CHECK_UPDATE)
                    LOG.log(
                        logging.INFO if denial else logging.WARNING,
                        "The external service answered %s of lease %s with %s: %s",
                        call.name, call.lease_id, status, answers.line(text.decode("utf-8", "replace"), hidden),
                    )  # fmt: skip
                if status == 401:
                    raise NoAnswer("it does not accept our token (401)", passing=self._credential.renew())
                if status in PASSING:
                    raise NoAnswer(f"it answered {status}", passing=True, heard=status not in NOT_PROCESSED)
                return status, answers.reason(text, hidden)
        except NoAnswer:
            raise
        except BlazarError as error:
            raise NoAnswer(f"there is no token for it: {error.message}") from error
        except (requests.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
            # The library's own words have the URL in them, and whatever an operator has put there.
            raise NoAnswer(answers.why(error), passing=True, heard=answers.was_sent(error)) from None


def _endpoints(section: Any) -> dict[str, str]:
    """Return the URLs by what they are for; InvalidInput."""
    found: dict[str, str] = {}
    base = section.external_service_base_endpoint
    secret = next((name for name in TOKENS if section[name]), None)
    if base:
        _check(base, "external_service_base_endpoint", secret)
        found |= {name: urljoin(base, name) for name in (CHECK_CREATE, CHECK_UPDATE, str(Occasion.ENDED))}
    for name in (CHECK_CREATE, CHECK_UPDATE, *Occasion):
        option = f"external_service_{name.replace('-', '_')}_endpoint"
        if url := section[option]:
            _check(url, option, secret)
            found[str(name)] = url
    if not found:
        raise InvalidInput(
            "[enforcement] enabled_filters names ExternalServiceFilter, and nothing says where the service is; set "
            "external_service_base_endpoint, as https://HOST/blazar/, or one of the endpoints for itself"
        )
    return found


def _check(url: str, option: str, secret: str | None) -> None:
    # The URL itself is not told: there may be a password in it.
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise InvalidInput(f"[enforcement] {option} is no URL of a service; write it as https://HOST/blazar/")
    if parts.username is not None or parts.password is not None:
        raise InvalidInput(
            f"[enforcement] {option} has a name or password in it; take it out, and set external_service_token or "
            "external_service_bearer_token"
        )
    if secret and parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
        raise InvalidInput(
            f"[enforcement] {option} is an http:// URL of another machine, and {secret} would travel to it in the "
            f"clear; give an https:// URL, or one on loopback"
        )


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _credential(section: Any, identity: Any) -> Credential:
    given = {name: section[name] for name in TOKENS}
    chosen = [name for name, value in given.items() if value]
    if len(chosen) > 1:
        raise InvalidInput(f"[enforcement] {' and '.join(chosen)} are set, and only one of them can be sent; keep one")
    for name in ("external_service_token", "external_service_bearer_token"):
        if given[name] and not (given[name].isascii() and given[name].isprintable()):
            raise InvalidInput(
                f"[enforcement] {name} has characters that no header can have; letters and digits are fine"
            )
    if given["external_service_keystone_token"]:
        if identity.tokens is None:
            raise InvalidInput(
                "[enforcement] external_service_keystone_token is set, and there is no Keystone in this mode; set "
                "external_service_token instead"
            )
        return ServiceUserToken(identity.tokens)
    if given["external_service_token"]:
        return StaticToken("X-Auth-Token", given["external_service_token"])
    if given["external_service_bearer_token"]:
        return StaticToken("Authorization", f"Bearer {given['external_service_bearer_token']}")
    return Credential()
