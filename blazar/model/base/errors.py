# SPDX-License-Identifier: Apache-2.0
"""The tree of all errors that packages raise to each other.

Every message is written for its reader: what was wrong, which field, what would fit. ``status`` is the HTTP status that
API 1.0 and version 2 answer with. From 1.1 on the ``code`` decides: ``blazar/api/http/faults.py`` has their statuses.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, Self

from blazar.model.base.proof import RefusalProof
from blazar.model.base.reasons import Cause, Reason, ReasonCode
from blazar.model.base.values import dataclass


@dataclass(frozen=True, slots=True)
class FaultPlace:
    """Where in a request something is wrong: the JSON pointer of a field in the body, or another ``kind`` of name."""

    name: str
    kind: Literal["pointer", "parameter", "header"] = "pointer"


def pointer_to(path: Iterable[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) of a path."""
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')[:80]}" for part in path)


def query_field(name: str) -> FaultPlace:
    """Return the place of a query parameter."""
    return FaultPlace(name, "parameter")


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with a request, as answers from 1.1 on list it.

    ``code`` is a word of the catalogue without its prefix, ``detail`` a sentence, ``data`` a JSON object for programs.
    """

    code: str
    detail: str
    at: FaultPlace | None = None
    data: Mapping[str, Any] | None = None


class BlazarError(Exception):
    """The base of all our errors. An instance of this class itself is a bug.

    ``code``, ``at`` and ``data`` are as in ``Fault``; a text is the JSON pointer of a field in the body, and what is
    not given is that of the class. ``public`` is the sentence for those who are no operators, where ``message`` has
    names that are not theirs to see; 1.0 and version 2 show the message.
    """

    status = 500
    code = "internal_error"
    at: FaultPlace | None = None
    public: str | None = None
    cause = Cause(ReasonCode.INTERNAL_ERROR)
    """That of work on a lease that the error ends."""
    retry_after: int | None = None
    """Seconds after which the same request may be retried, where nothing was done and a retry may succeed."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        at: str | FaultPlace | None = None,
        data: Mapping[str, Any] | None = None,
        public: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.code
        self.at = FaultPlace(at) if isinstance(at, str) else at or self.at
        self.data = data
        self.public = public or self.public

    def because(self, cause: Cause | ReasonCode | None) -> Self:
        """Return the error with another cause than that of its class, unless that is None."""
        if cause is not None:
            self.cause = Cause(cause) if isinstance(cause, ReasonCode) else cause
        return self

    @property
    def pointer(self) -> str | None:
        """The JSON pointer of the field in the body; None if the error has none."""
        return self.at.name if self.at is not None and self.at.kind == "pointer" else None

    @pointer.setter
    def pointer(self, pointer: str | None) -> None:
        self.at = None if pointer is None else FaultPlace(pointer)

    @property
    def parameter(self) -> str | None:
        """The name of the query parameter; None if the error has none."""
        return self.at.name if self.at is not None and self.at.kind == "parameter" else None

    @property
    def reason(self) -> Reason:
        """Return why work on a lease that this error ends has failed."""
        return Reason(self.message, self.cause)

    def faults(self, *, operator: bool) -> tuple[Fault, ...]:
        """Return what is wrong, as an operator or somebody else may read it."""
        detail = self.message if operator or self.public is None else self.public
        return (Fault(self.code, detail, self.at, self.data),)


@contextmanager
def pointing_at(pointer: str | None) -> Iterator[None]:
    """Add where it is in the body to an error about a part of it; None: the body does not have it."""
    try:
        yield
    except BlazarError as error:
        if pointer is not None:
            point_at(error, pointer)
        raise


def point_at(error: BlazarError, pointer: str) -> None:
    """Add to an error about a part of the body where that is."""
    if isinstance(error, InvalidInput | NotFound | Conflict):
        error.pointer = pointer + (error.pointer or "")


class InvalidInput(BlazarError):
    """The request is invalid; the message names the field and how to correct it."""

    status = 400
    code = "invalid_value"


class Denied(BlazarError):
    """The caller may not do this."""

    status = 403
    code = "forbidden"


EXTERNAL: Mapping[str, str] = {"limit": "external"}
"""The data of what an external service refuses: nothing else is known of its limits."""


class UsageDenied(BlazarError):
    """Usage enforcement does not grant the lease as requested; the message names the limit and what would fit.

    ``Exceeded`` makes one with its numbers.

    400 for a change, as clients expect: the same caller may get the lease with other dates or fewer hosts. As in the
    existing Blazar, a new lease that a limit refuses is a 403 at 1.0 and in version 2, and one that an external
    service refuses a 400.
    """

    status = 400
    code = "limit_exceeded"


class NotFound(BlazarError):
    """The object named in the request does not exist, or no longer does.

    An error about an object that the path names has the ``code`` of its noun.
    """

    status = 404
    code = "unknown_reference"
    cause = Cause(ReasonCode.CLOUD_REFUSED)


class TooManyRequests(BlazarError):
    """The caller has too many requests of this kind in progress; nothing was done."""

    status = 429
    code = "too_many_requests"
    retry_after = 1


class Conflict(BlazarError):
    """The request is valid, but conflicts with the current state."""

    status = 409
    code = "invalid_state"
    cause = Cause(ReasonCode.CLOUD_REFUSED)


class NotEnoughResources(Conflict):
    """Too few resources match the demand and are free in the window.

    ``kinds`` are those of the resources that lack; none where that is not known. ``proof`` is what a search has found
    that lets others get other hosts; None if there was none.
    """

    code = "not_enough_resources"
    kinds: tuple[str, ...] = ()
    proof: RefusalProof | None = None


class OthersWait(Conflict):
    """Somebody who waits would be delayed: what is free, or becomes so, is for those who wait first."""

    code = "others_wait"


class WrongState(Conflict):
    """The lease, reservation or host is not in a state that allows the operation."""


class Contention(Conflict):
    """Other bookings repeatedly took the same resources first; a retry may succeed."""

    code = "contention"


class PreconditionFailed(Conflict):
    """The object has another revision than the one that the request asks for."""

    status = 412
    code = "precondition_failed"
    at = FaultPlace("If-Match", "header")


def check_revision(revision: int, wanted: Collection[int] | None, sentence: str) -> None:
    """Raise PreconditionFailed, with a sentence that something has changed, unless its revision is wanted (None: any).

    The sentence goes on.
    """
    if wanted is not None and revision not in wanted:
        hint = "read it, and send the change with its present tag"
        raise PreconditionFailed(f"{sentence}; {hint}", data={"revision": revision})


class CloudError(BlazarError):
    """The cloud did not do what was requested."""

    status = 503
    code = "cloud_unavailable"
    cause = Cause(ReasonCode.CLOUD_UNAVAILABLE)


class CloudUnavailable(CloudError):
    """A transient error (timeout, 5xx, connection refused): the same call may succeed later."""

    public: str | None = "The cloud does not do what this needs at present; please try again later"


@contextmanager
def naming_region(region: str) -> Iterator[None]:
    """Work with the cloud of a region, which everybody may read of where it fails."""
    try:
        yield
    except CloudUnavailable as error:
        if region and error.public and error.public == CloudUnavailable.public:
            error.public = error.public.replace("The cloud", f"The cloud of the region {region}", 1)
        raise


class ClaimLost(CloudUnavailable):
    """The claim on the work has expired, or soon will: its owner must not change anything more in the cloud.

    Another manager finishes or undoes the work. Code that gets this error must not undo anything. Who has asked for the
    work learns that the manager was away: the cloud was not.
    """

    code = "manager_unavailable"
    public = None


class RoleMissing(CloudUnavailable):
    """The service user has no role in the project of a lease, in which it has to make something.

    A request is refused with it. Work on a lease is retried, as an operator may grant the role at any time.
    """

    status = 409
    code = "role_missing"
    cause = Cause(ReasonCode.ROLE_MISSING)
    public = (
        "The service has no role in your project, in which it has to make something for this reservation; please ask "
        "an operator to grant it"
    )


class CloudRefused(CloudError):
    """A permanent error: the cloud understood the call and rejected it. A retry will not help."""

    status = 409
    code = "cloud_refused"
    cause = Cause(ReasonCode.CLOUD_REFUSED)
    public = "The cloud refused a step of this request; the log of the service has its reason under the request id"


class StoreUnavailable(BlazarError):
    """The database does not answer, or does not answer in time."""

    status = 503
    code = "database_unavailable"
    pause = 1.0
    """Seconds after which work that it delays is tried once more."""


class ManagerUnavailable(BlazarError):
    """No manager took the request, or no manager answered in time."""

    status = 503
    code = "manager_unavailable"


class NothingDone(ManagerUnavailable):
    """No manager started the request, so it may be retried unchanged."""

    retry_after = 5


class TooLate(NothingDone):
    """The caller no longer waits for the answer when the work would begin."""


class OutOfTime(ManagerUnavailable):
    """A question could not be answered in the time that a request has; nothing was changed."""

    retry_after = 5


class OtherVersion(NothingDone):
    """The manager that took the request does not know the call, as during an upgrade; another manager may."""


class EnforcementUnavailable(BlazarError):
    """The service that decides about the lease does not answer, or its answer cannot be understood."""

    public = "The service that decides about leases cannot be asked at present; please try again later"
    status = 503
    code = "enforcement_unavailable"


class StaleLease(BlazarError):
    """The lease was changed since it was read: read it and decide once more.

    Never reaches a user: the code that writes a lease catches it.
    """


class ClaimedLease(StaleLease):
    """Somebody has a claim on an event of the lease, for a moment: read it and decide once more after that."""


class PlanSuperseded(BlazarError):
    """Another plan of the waiting list was carried out meanwhile, so that this one grants nothing more."""


class StaleCalendar(BlazarError):
    """A chosen resource was booked by another request since the calendar was read.

    Never reaches a user: the booking loop catches it and plans once more.
    """
