# SPDX-License-Identifier: Apache-2.0
"""The tree of all errors that packages raise to each other.

Every message is written for its reader: what was wrong, which field, what would fit. ``status`` is the HTTP status that
the API answers with; no other place maps errors to statuses.
"""

from __future__ import annotations


class BlazarError(Exception):
    """The base of all our errors. An instance of this class itself is a bug."""

    status = 500
    retry_after: int | None = None
    """Seconds after which the same request may be retried, where nothing was done and a retry may succeed."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(BlazarError):
    """The request is invalid; the message names the field and how to correct it."""

    status = 400


class Denied(BlazarError):
    """The caller may not do this."""

    status = 403


class UsageDenied(BlazarError):
    """Usage enforcement does not grant the lease as requested; the message names the limit and what would fit.

    400 for a change, as clients expect: the same caller may get the lease with other dates or fewer hosts. The API
    answers 403 for a new lease, as the existing Blazar does.
    """

    status = 400


class NotFound(BlazarError):
    """The object named in the request does not exist, or no longer does."""

    status = 404


class Conflict(BlazarError):
    """The request is valid, but conflicts with the current state."""

    status = 409


class NotEnoughResources(Conflict):
    """Too few resources match the demand and are free in the window."""


class WrongState(Conflict):
    """The lease, reservation or host is not in a state that allows the operation."""


class Contention(Conflict):
    """Other bookings repeatedly took the same resources first; a retry may succeed."""


class CloudError(BlazarError):
    """The cloud did not do what was requested."""

    status = 503


class CloudUnavailable(CloudError):
    """A transient error (timeout, 5xx, connection refused): the same call may succeed later."""


class ClaimLost(CloudUnavailable):
    """The claim on the work has expired, or soon will: its owner must not change anything more in the cloud.

    Another manager finishes or undoes the work. Code that gets this error must not undo anything.
    """


class CloudRefused(CloudError):
    """A permanent error: the cloud understood the call and rejected it. A retry will not help."""

    status = 409


class StoreUnavailable(BlazarError):
    """The database does not answer, or does not answer in time."""

    status = 503


class ManagerUnavailable(BlazarError):
    """No manager took the request, or no manager answered in time."""

    status = 503


class NothingDone(ManagerUnavailable):
    """No manager started the request, so it may be retried unchanged."""

    retry_after = 5


class TooLate(NothingDone):
    """The caller no longer waits for the answer when the work would begin."""


class OtherVersion(NothingDone):
    """The manager that took the request does not know the call, as during an upgrade; another manager may."""


class EnforcementUnavailable(BlazarError):
    """The service that decides about the lease does not answer, or its answer cannot be understood."""

    status = 503


class StaleLease(BlazarError):
    """The lease was changed since it was read: read it and decide once more.

    Never reaches a user: the code that writes a lease catches it.
    """


class StaleCalendar(BlazarError):
    """A chosen resource was booked by another request since the calendar was read.

    Never reaches a user: the booking loop catches it and plans once more.
    """
