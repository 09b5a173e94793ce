# SPDX-License-Identifier: Apache-2.0
"""The filter that asks an external service: a credit system, a portal, a course schedule.

Answers are trusted as little as possible. To a check, 204 grants and 403 denies; to a notification, 2xx accepts and 4xx
refuses permanently. Anything else is no answer; the operator configures what that means. Redirects are not followed,
little is read, and every call has a deadline.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar
from urllib.parse import urljoin

import requests
import tenacity
from oslo_config import cfg

from blazar.clouds.outgoing.calls import FAILURES, OutgoingCalls, check_url, describe_failure
from blazar.context import current
from blazar.enforcement import answers, payload
from blazar.enforcement.answers import NOT_PROCESSED, PASSING, NoAnswer
from blazar.enforcement.values import FilterNotification, NotDelivered, NotificationRefused, Occasion, Question
from blazar.model.base.errors import EXTERNAL, BlazarError, EnforcementUnavailable, InvalidInput, UsageDenied
from blazar.model.base.log_lines import Trouble
from blazar.model.base.values import dataclass
from blazar.model.billing.budgets import BudgetFacts, BudgetSource, ProjectBudget

LOG = logging.getLogger(__name__)

CHECK_CREATE, CHECK_UPDATE = "check-create", "check-update"

TOKENS = ("external_service_token", "external_service_bearer_token", "external_service_keystone_token")
POOL = 64
"""Connections kept open: the number of requests that may ask at the same time."""


DENIED = "the external service that decides about leases does not grant this one, and gives no reason"


@dataclass(slots=True)
class _Exchange:
    """One check or notification, with all its attempts."""

    name: str
    lease_id: str
    text: bytes
    end: float
    maybe_accepted: bool = False
    """Whether the service may have processed it in an earlier attempt."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The time limit of a call with all its attempts, and the maximum number of attempts.

    With ``allow_on_error`` a lease is granted if there is no answer then.
    """

    seconds: float = 5.0
    attempts: int = 3
    allow_on_error: bool = False


class Credential(requests.auth.AuthBase):
    """The credential of a request."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        """Add the headers with the credential."""
        request.headers.update(self.headers())
        return request

    def headers(self) -> Mapping[str, str]:
        """Return the headers; a BlazarError if there is no credential."""
        return {}

    def renew(self) -> bool:
        """Get a new credential after this one was not accepted; return whether there is one."""
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
        """Return the current token."""
        return {"X-Auth-Token": self._tokens.token()}

    def renew(self) -> bool:
        """Log in for the next attempt."""
        self._tokens.renew()
        return True


class ExternalServiceFilter:
    """Asks a service whether a lease may be granted, and notifies it of the results."""

    needs_use: ClassVar[bool] = False
    options: ClassVar[list[cfg.Opt]] = [
        cfg.StrOpt(
            "external_service_base_endpoint",
            deprecated_name="external_service_endpoint",
            help="URL of the service that ExternalServiceFilter asks. check-create, check-update and on-end replace "
            "what follows its last slash: end it with a slash, such as https://HOST/blazar/.",
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
            help="URL to POST to when a lease is booked, before its user gets the answer; what the service refuses is "
            "undone. Unset: no notification.",
        ),
        cfg.StrOpt(
            "external_service_commit_update_endpoint",
            help="URL to POST to when a lease is changed, before its user gets the answer; what the service refuses is "
            "undone. Unset: no notification.",
        ),
        cfg.StrOpt("external_service_token", default="", secret=True, help="Sent to the service as X-Auth-Token."),
        cfg.StrOpt(
            "external_service_bearer_token",
            default="",
            secret=True,
            help="Sent to the service as 'Authorization: Bearer …', instead of external_service_token.",
        ),
        cfg.BoolOpt(
            "external_service_keystone_token",
            default=False,
            help="Send the service a Keystone token of the service user as X-Auth-Token, instead of a fixed one.",
        ),
        cfg.FloatOpt(
            "external_service_timeout",
            default=5.0,
            min=0.1,
            help="Seconds within which the service must answer, retries included; part of request_limit.",
        ),
        cfg.IntOpt(
            "external_service_attempts",
            default=3,
            min=1,
            max=10,
            help="Maximum attempts within that time, if the service cannot be reached or answers 5xx.",
        ),
        cfg.StrOpt(
            "external_service_on_error",
            default="deny",
            choices=[("deny", "the user is told to try again later"), ("allow", "the lease is granted, and logged")],
            help="What happens to a new or changed lease if the service does not answer a check or a notification, or "
            "its answer cannot be understood.",
        ),
        cfg.BoolOpt(
            "external_service_transfers",
            default=False,
            help="The service tells leases apart by their id and their project_id, so that a lease may go to another "
            "project: a lease of that project begins, and then the one of the first project with the same id ends. "
            "Otherwise leases stay with their project.",
        ),
    ]

    def __init__(
        self,
        endpoints: Mapping[str, str],
        *,
        credential: Credential | None = None,
        patience: Patience | None = None,
        verify: bool | str = True,
        knows_transfers: bool = False,
    ) -> None:
        self.endpoints = dict(endpoints)
        self.credential = credential or Credential()
        self._patience = patience or Patience()
        self.knows_transfers = knows_transfers
        self._calls = OutgoingCalls(verify=verify, connections=POOL)
        self.trouble = Trouble(LOG, "The external service that decides about leases answers")

    @property
    def occasions(self) -> frozenset[Occasion]:
        """Return the occasions that have an endpoint."""
        return frozenset(occasion for occasion in Occasion if occasion in self.endpoints)

    @classmethod
    def configured(cls, section: Any, identity: Any) -> ExternalServiceFilter:
        """Return the filter as configured; InvalidInput."""
        return cls(
            _endpoints(section),
            credential=_credential(section, identity),
            patience=Patience(
                section.external_service_timeout,
                section.external_service_attempts,
                section.external_service_on_error == "allow",
            ),
            verify=identity.cafile or True,
            knows_transfers=section.external_service_transfers,
        )

    def budget_window(self, at: datetime) -> None:
        """Return None: the service counts for itself."""

    def list_budgets(self, facts: BudgetFacts) -> tuple[ProjectBudget, ...]:
        """Return that there is a budget, of which only the service knows."""
        return (ProjectBudget(project_id=facts.project_id, source=BudgetSource.EXTERNAL_SERVICE),)

    @property
    def mandatory(self) -> bool:
        """Return whether nothing is granted without an answer of the service."""
        return not self._patience.allow_on_error

    def check(self, question: Question) -> None:
        """Check a question. UsageDenied with the service's reason; EnforcementUnavailable if no answer means no."""
        name = CHECK_CREATE if question.current is None else CHECK_UPDATE
        if name not in self.endpoints:
            return
        lease = question.wanted.lease
        try:
            status, reason = self._post(self._call(name, lease.id, payload.question_body(question)))
            if status == 403:
                self.trouble.log_recovery()
                raise UsageDenied(reason or DENIED, data=EXTERNAL)
            if status != 204:
                raise NoAnswer(f"it answered {status}")
            self.trouble.log_recovery()
        except NoAnswer as error:
            self._note_silence(name, error)
            if self._patience.allow_on_error:
                LOG.warning(
                    "Lease %s of project %s is granted without an answer of the external service to %s: %s",
                    lease.id, lease.project_id, name, error.message,
                )  # fmt: skip
                return
            LOG.error(
                "Lease %s of project %s is refused without an answer of the external service to %s: %s",
                lease.id, lease.project_id, name, error.message,
            )  # fmt: skip
            raise EnforcementUnavailable(
                "the external service that decides about leases is not available; please try again later"
            ) from error

    def notify(self, notification: FilterNotification) -> None:
        """Send a notification; Refused if the service refuses it permanently, Unheard if it does not confirm it."""
        call = self._call(
            str(notification.occasion), notification.view.lease.id, payload.notification_body(notification)
        )
        try:
            status, reason = self._post(call)
            if not 200 <= status < 300:
                if 400 <= status < 500:
                    self.trouble.log_recovery()
                    raise NotificationRefused(reason or DENIED, maybe_accepted=call.maybe_accepted, data=EXTERNAL)
                raise NoAnswer(f"it answered {status}", maybe_accepted=status >= 500)
            self.trouble.log_recovery()
        except NoAnswer as error:
            self._note_silence(call.name, error)
            raise NotDelivered(
                f"the external service was not notified ({notification.occasion}): {error.message}",
                maybe_accepted=call.maybe_accepted or error.maybe_accepted,
            ) from error

    def _note_silence(self, name: str, error: NoAnswer) -> None:
        # Each lease has its line in the log already, where it is refused, or granted without an answer.
        self.trouble.log_failure(f"{name}: {error.message}", level=logging.DEBUG)

    def _call(self, name: str, lease_id: str, body: object) -> _Exchange:
        end = time.monotonic() + self._patience.seconds
        left = current().remaining()
        if left is not None:
            end = min(end, time.monotonic() + left)
        return _Exchange(name, lease_id, json.dumps(body).encode(), end)

    def _post(self, call: _Exchange) -> tuple[int, str | None]:
        """Return the status and, for a 4xx, the reason for the user. NoAnswer."""
        end = call.end
        retrying = tenacity.Retrying(
            retry=tenacity.retry_if_exception(lambda error: isinstance(error, NoAnswer) and error.passing),
            stop=tenacity.stop_after_attempt(self._patience.attempts),
            wait=tenacity.wait_random_exponential(multiplier=0.2, max=2),
            sleep=lambda seconds: time.sleep(max(0.0, min(seconds, end - time.monotonic()))),
            reraise=True,
        )
        return retrying(self._post_once, call)

    def _post_once(self, call: _Exchange) -> tuple[int, str | None]:
        try:
            return self._send(call)
        except NoAnswer as error:
            call.maybe_accepted |= error.maybe_accepted
            raise

    def _send(self, call: _Exchange) -> tuple[int, str | None]:
        left = call.end - time.monotonic()
        if left <= 0:
            raise NoAnswer("the time limit for its answer has passed")
        request_id = current().request_id
        headers = {"Content-Type": "application/json"}
        if request_id is not None:
            headers["X-OpenStack-Request-ID"] = request_id
        url = self.endpoints[call.name]
        try:
            with self._calls.post(url, call.text, auth=self.credential, seconds=left, headers=headers) as response:
                status = response.status_code
                text = answers.read_in_time(response, call.end, whole=status == 403) if 400 <= status < 500 else b""
                hidden = answers.texts_to_hide(response.request)
                if text:
                    denial = status == 403 and call.name in (CHECK_CREATE, CHECK_UPDATE)
                    LOG.log(
                        logging.INFO if denial else logging.WARNING,
                        "External service: answered %s of lease %s with %s: %s",
                        call.name, call.lease_id, status, answers.one_line(text.decode("utf-8", "replace"), hidden),
                    )  # fmt: skip
                if status == 401:
                    raise NoAnswer("it does not accept our token (401)", passing=self.credential.renew())
                if status in PASSING:
                    raise NoAnswer(f"it answered {status}", passing=True, maybe_accepted=status not in NOT_PROCESSED)
                return status, answers.refusal_reason(text, hidden)
        except NoAnswer:
            raise
        except BlazarError as error:
            raise NoAnswer(f"no token is available for it: {error.message}") from error
        except FAILURES as error:
            arrived = answers.may_have_arrived(error)
            raise NoAnswer(describe_failure(error), passing=True, maybe_accepted=arrived) from None


def _endpoints(section: Any) -> dict[str, str]:
    """Return the URLs by their purpose; InvalidInput."""
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
            "[enforcement] enabled_filters names ExternalServiceFilter, but no endpoint of the service is set; set "
            "external_service_base_endpoint, such as https://HOST/blazar/, or one of the single endpoints"
        )
    return found


def _check(url: str, option: str, secret: str | None) -> None:
    check_url(
        url,
        f"[enforcement] {option}",
        example="https://HOST/blazar/",
        credentials="external_service_token or external_service_bearer_token",
        secret=secret,
    )


def _credential(section: Any, identity: Any) -> Credential:
    given = {name: section[name] for name in TOKENS}
    chosen = [name for name, value in given.items() if value]
    if len(chosen) > 1:
        raise InvalidInput(f"[enforcement] {' and '.join(chosen)} are set, but only one can be sent; keep one of them")
    for name in ("external_service_token", "external_service_bearer_token"):
        if given[name] and not (given[name].isascii() and given[name].isprintable()):
            raise InvalidInput(
                f"[enforcement] {name} has characters that a header cannot have; use printable ASCII characters"
            )
    if given["external_service_keystone_token"]:
        if identity.tokens is None:
            raise InvalidInput(
                "[enforcement] external_service_keystone_token is set, but this mode has no Keystone; set "
                "external_service_token instead"
            )
        return ServiceUserToken(identity.tokens)
    if given["external_service_token"]:
        return StaticToken("X-Auth-Token", given["external_service_token"])
    if given["external_service_bearer_token"]:
        return StaticToken("Authorization", f"Bearer {given['external_service_bearer_token']}")
    return Credential()
