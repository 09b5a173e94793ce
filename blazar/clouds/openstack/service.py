# SPDX-License-Identifier: Apache-2.0
"""Calls to one service of a cloud, with a time limit.

Every call is repeated a few times where that is safe, carries the global request id, and raises one of Blazar's errors.
Each call names its microversion, so that an upgrade of the cloud changes no answer.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Any, cast
from urllib.parse import parse_qs, urlsplit

import requests
import tenacity
from keystoneauth1 import exceptions as ksa
from keystoneauth1.adapter import Adapter
from urllib3.exceptions import NewConnectionError

from blazar.clouds.openstack.breaker import Breaker
from blazar.context import check_change, current
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import CloudRefused, CloudUnavailable, Conflict, NotFound
from blazar.model.base.reasons import ReasonCode
from blazar.model.base.values import dataclass
from blazar.observe.cloud_calls import CountedCall, count_cloud_call
from blazar.observe.spans import Side, parent_headers, span

LOG = logging.getLogger(__name__)

Json = dict[str, Any]

TRANSIENT_STATUSES = frozenset({408, 413, 429, 500, 502, 503, 504})
"""Statuses that another attempt may not get."""

SAFE_TO_REPEAT = frozenset({"GET", "PUT", "DELETE"})
"""A POST is repeated only if it certainly had no effect: the connection was refused, or the service answered 503.

If its answer is lost, the event is retried, and first reads what is in the cloud."""

_QUOTAS = frozenset({"OverQuota", "RequestLimitExceeded"})
"""Words by which Neutron and Heat say that a quota is used up."""

ENDPOINT_SECONDS = 10.0
"""How long an endpoint is used before it is read from the catalog again."""


LOOK_SECONDS = 3.0
"""Seconds that a service has to show that it is there."""


class VersionMissing(CloudRefused):
    """The service does not support the microversion that a call needs."""


class StaleGeneration(Conflict):
    """A resource provider was changed by others since it was read; the caller reads it again and decides again."""


class TypedConflict(Conflict):
    """A conflict of which the service says by a word, ``type``, what it is."""

    def __init__(self, message: str, type: str, *, public: str) -> None:
        super().__init__(message, public=public)
        self.type = type


class Explained(CloudRefused):
    """A refusal with the sentence of the service, ``explanation``, for who wrote what it refuses.

    ``type`` is the word by which the service says what it is; empty if it has none.
    """

    def __init__(self, message: str, explanation: str, *, type: str = "") -> None:
        super().__init__(message)
        self.explanation = explanation
        self.type = type


class Transient(Exception):
    """A transient failure, which is worth another attempt; ``error`` is what callers get if that fails, too."""

    def __init__(self, error: CloudUnavailable) -> None:
        super().__init__(error.message)
        self.error = error


@dataclass(frozen=True, slots=True)
class _Endpoint:
    """URL of a service in the catalog of a login."""

    url: str
    login: object
    until: float


@dataclass(frozen=True, slots=True)
class _Request:
    """A call, as it is made at each attempt."""

    method: str
    path: str
    body: object | None
    microversion: str | None
    params: Mapping[str, Any] | None
    content_type: str | None

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def changes(self) -> bool:
        return self.method != "GET"

    @property
    def is_repeatable(self) -> bool:
        return self.method in SAFE_TO_REPEAT

    @property
    def has_generation(self) -> bool:
        return isinstance(self.body, dict) and "resource_provider_generation" in self.body

    @property
    def headers(self) -> Mapping[str, str]:
        headers = {"Content-Type": self.content_type} if self.content_type else {}
        return headers | ({"X-OpenStack-Request-ID": id_} if (id_ := current().request_id) else {}) | parent_headers()


class CloudService:
    """One service of the cloud, as Nova or Placement.

    ``adapter`` sends its requests; the first one logs in to find the service, and may fail. ``breaker`` is that of the
    service, for all projects; by default one of its own.
    """

    def __init__(
        self, name: str, adapter: Adapter, *, timeout: float, attempts: int, breaker: Breaker | None = None
    ) -> None:
        self._name = name
        self._adapter = adapter
        self._timeout = timeout
        self._attempts = attempts
        self._endpoint: _Endpoint | None = None
        self._breaker = breaker or Breaker(name)

    def get(self, path: str, *, microversion: str | None = None, params: Mapping[str, Any] | None = None) -> Json:
        """Return the JSON at a path. NotFound, CloudRefused, CloudUnavailable."""
        return self.call("GET", path, microversion=microversion, params=params)

    def call(
        self,
        method: str,
        path: str,
        *,
        body: object | None = None,
        microversion: str | None = None,
        params: Mapping[str, Any] | None = None,
        content_type: str | None = None,
    ) -> Json:
        """Make a call and return its JSON, {} if the answer has none.

        NotFound on 404, Conflict on 409, CloudRefused on another 4xx, CloudUnavailable on transient failures.
        """
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception_type(Transient),
            stop=tenacity.stop_after_attempt(self._attempts),
            wait=tenacity.wait_random_exponential(multiplier=0.4, max=2),
            sleep=_sleep_within_limits,
            reraise=True,
        )
        try:
            return retrying(self._call_guarded, _Request(method, path, body, microversion, params, content_type))
        except Transient as transient:
            raise transient.error from transient.__cause__

    def pages(
        self, path: str, key: str, *, microversion: str | None = None, params: Mapping[str, Any] | None = None
    ) -> Iterator[Json]:
        """Yield every item of a list, whatever the page size of the service."""
        query = dict(params or {})
        while True:
            answer = self.get(path, microversion=microversion, params=query)
            yield from answer[key]
            next_page = _next_page_link(answer, key)
            if next_page is None or not answer[key]:
                return
            # Only the query of the link is used: its host may be unreachable from here.
            query |= parse_qs(urlsplit(next_page).query)

    @property
    def name(self) -> str:
        """Its name in metrics and checks."""
        return self._name.lower()

    def look(self) -> None:
        """Raise CloudUnavailable unless the service answers, whatever it says; no call to one that is not there."""
        try:
            url = self._adapter.get_endpoint()
            if url is None:
                return
            answer = self._adapter.session.get(url, authenticated=False, raise_exc=False, timeout=LOOK_SECONDS)
        except ksa.EndpointNotFound:
            return
        except (ksa.ClientException, requests.RequestException) as error:
            raise CloudUnavailable(f"{self._name} does not answer: {brief(error)}") from error
        if answer.status_code >= 500:
            raise CloudUnavailable(f"{self._name} answers with status {answer.status_code}")

    def _call_guarded(self, asked: _Request) -> Json:
        with count_cloud_call(self.name, self._breaker.region) as counted:
            counted.outcome = "not_sent"
            response = self._ask(asked, counted)
            if response.status_code >= 400:
                error = self._describe_refusal(asked, response)
                passes = isinstance(error, Transient | CloudUnavailable)
                counted.outcome = "unavailable" if passes else "refused"
                raise error
            counted.outcome = "ok"
        if not response.content or "json" not in response.headers.get("Content-Type", ""):
            return {}
        try:
            return cast(Json, response.json())
        except ValueError as garbled:
            sentence = f"{self._name} answered {asked} with a JSON content type, but the body is not JSON"
            raise CloudUnavailable(sentence) from garbled

    def _ask(self, asked: _Request, counted: CountedCall) -> requests.Response:
        """Return the answer of the service, unless it would be waited for in vain."""
        left = current().remaining()
        if left is not None and left <= 0:
            raise CloudUnavailable(f"{self._name} took too long; the time for this request is over")
        with span(f"cloud {self._name} {asked.method}", side=Side.CLIENT) as note, self._breaker.call() as call:
            response = self._attempt(asked, counted)
            note.note_status(response.status_code)
            call.note_answer()
        return response

    def _attempt(self, asked: _Request, counted: CountedCall) -> requests.Response:
        left = current().remaining()
        timeout = self._timeout if left is None else min(self._timeout, left)
        repeatable = True
        try:
            # A login, which takes time, comes before the check of the claim, not between it and the call.
            endpoint = self._find_endpoint()
            if asked.changes:
                self._adapter.get_token()
                most = check_change()
                timeout = timeout if most is None else min(timeout, most)
            # A request that fails from here on may have reached the service.
            repeatable = asked.is_repeatable
            counted.outcome = "unavailable"
            response: requests.Response = self._adapter.request(
                asked.path,
                asked.method,
                endpoint_override=endpoint,
                json=asked.body,
                params=dict(asked.params or {}),
                microversion=asked.microversion,
                headers=asked.headers,
                timeout=timeout,
                raise_exc=False,
                # The library repeats no change, because each attempt needs a check of its own.
                connect_retries=0 if asked.changes else None,
                # We do that; of Ironic it would repeat 409, too, past the end of a claim.
                status_code_retries=0,
                allow_reauth=not asked.changes,
            )
        except (ksa.ClientException, requests.RequestException) as error:
            if isinstance(error, ksa.ConnectTimeout | requests.Timeout):
                counted.outcome = "timeout"
            late = f"{self._name} did not answer within {timeout:.0f} s ({asked})"
            raise self._explain(error, late, repeatable=repeatable) from error
        if asked.changes and response.status_code == 401:
            self._adapter.invalidate()
            raise Transient(CloudUnavailable(f"{self._name} does not accept our token: {_error_message(response)}"))
        return response

    def _find_endpoint(self) -> str | None:
        """Return the URL of the service; None if the catalog has none, which the library's call then reports.

        The library reads the whole catalog for it, which takes as long as the rest of its work for a call.
        """
        known, adapter = self._endpoint, self._adapter
        if known is None or known.login is not _login_identity(adapter) or monotonic() >= known.until:
            url = adapter.get_endpoint()
            if url is None:
                return None
            # The library would take a percent sign for the start of a variable.
            known = _Endpoint(url.replace("%", "%%"), _login_identity(adapter), monotonic() + ENDPOINT_SECONDS)
            self._endpoint = known
        return known.url

    def _explain(self, error: Exception, late: str, *, repeatable: bool) -> Exception:
        """Return what is raised for an error of the library, ``late`` if no answer came in time.

        It is Transient if the call may be made again.
        """
        if isinstance(error, (ksa.ConnectTimeout, ksa.UnknownConnectionError)):
            failure = CloudUnavailable(late)
            return Transient(failure) if repeatable else failure
        if isinstance(error, ksa.ClientException) and not isinstance(error, ksa.ConnectFailure):
            return CloudUnavailable(f"no way into {self._name}: {brief(error)}")
        failure = CloudUnavailable(f"{self._name} cannot be reached: {brief(error)}")
        again = isinstance(error, ksa.ConnectFailure) and (repeatable or _was_refused(error))
        return Transient(failure) if again else failure

    def _describe_refusal(self, asked: _Request, response: requests.Response) -> Exception:
        """Return what is raised for an answer that is an error; it is Transient if the call may be made again."""
        status, text = response.status_code, _error_message(response)
        LOG.debug("%s of %s: %d %s", asked, self._name, status, text)
        # Cinder refuses with 413 what a quota does not allow, which another attempt would not get either.
        if status in TRANSIENT_STATUSES and not (status == 413 and "quota" in text.lower()):
            failure = CloudUnavailable(f"{self._name} failed with {status}: {text}")
            return Transient(failure) if asked.is_repeatable or status == 503 else failure
        # Nova and Glance refuse what a quota does not allow with 403 or 413, Neutron with 409, Heat with 400.
        kind = _error_type(response)
        quota = ReasonCode.QUOTA_EXCEEDED if kind in _QUOTAS or "quota" in text.lower() else None
        sentence = f"{self._name}: {text}"
        match status:
            case 404:
                return NotFound(sentence, public="The cloud does not have what this request needs")
            case 409 if "placement.concurrent_update" in response.text:
                return StaleGeneration(sentence) if asked.has_generation else Transient(CloudUnavailable(sentence))
            case 409:
                public = "The cloud refuses this in its present state"
                return TypedConflict(sentence, kind, public=public).because(quota)
            case 406:
                return VersionMissing(f"{self._name} is too old for {asked}: {text}")
            case 401:
                return CloudUnavailable(f"{self._name} does not accept our token: {text}")
        return Explained(f"{self._name} refused {asked} with {status}: {text}", text, type=kind).because(quota)


def _login_identity(adapter: Adapter) -> object:
    """Return what identifies the library's last login; it is another object after the next login."""
    return getattr(adapter.session.auth, "auth_ref", None)


def _sleep_within_limits(seconds: float) -> None:
    left = current().remaining()
    tenacity.nap.sleep(seconds if left is None else min(seconds, left))


def _was_refused(failure: ksa.ConnectFailure) -> bool:
    """Return whether no connection was made; False if one was closed after the request had been sent."""
    # keystoneauth raises it while it handles the error of requests, whose argument is the error of urllib3.
    error = failure.__context__
    cause = error.args[0] if isinstance(error, requests.ConnectionError) and error.args else None
    return isinstance(getattr(cause, "reason", None), NewConnectionError)


def _next_page_link(answer: Json, key: str) -> str | None:
    """Return the link to the next page, in the format of Nova or of Glance."""
    for link in answer.get(f"{key}_links", ()):
        if link.get("rel") == "next":
            return str(link["href"])
    next_page = answer.get("next")
    return str(next_page) if next_page else None


def _error_message(response: requests.Response) -> str:
    """Return the message in the body of an error; Nova, Placement and Glance each have a format of their own."""
    try:
        body = response.json()
    except ValueError:
        return _short(response.reason or "no reason given")
    if isinstance(body, dict):
        errors = body.get("errors")
        if isinstance(errors, list) and errors and isinstance(errors[0], dict):
            return _short(str(errors[0].get("detail") or errors[0].get("title")))
        for value in body.values():
            if isinstance(value, dict) and "message" in value:
                return _short(str(value["message"]))
        if isinstance(body.get("message"), str):
            return _short(body["message"])
    return _short(response.reason or "no reason given")


def _error_type(response: requests.Response) -> str:
    """Return the word by which Neutron or Heat says what is wrong; empty if there is none."""
    try:
        body = response.json()
        return str((body.get("NeutronError") or body["error"])["type"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return ""


def brief(error: Exception) -> str:
    """Return the message of an error in one short line."""
    return _short(str(error) or type(error).__name__)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 300 else line[:297] + "..."
