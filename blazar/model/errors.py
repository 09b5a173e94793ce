# SPDX-License-Identifier: Apache-2.0
"""The one tree of errors that cross a room's border.

Every message is written for the person who reads it: what was wrong, which field, what would fit.
``status`` is the HTTP status that the API answers with; no other place maps errors to statuses.
"""

from __future__ import annotations


class BlazarError(Exception):
    """Base of all our errors; an instance of this very class is a bug of ours."""

    status = 500
    retry_after: int | None = None
    """Seconds after which the same request may be sent again, where nothing was done and trying again may help."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message


class InvalidInput(BlazarError):
    """The request can not mean anything; the message names the field and how to mend it."""

    status = 400


class Denied(BlazarError):
    """The caller may not do this."""

    status = 403


class UsageDenied(BlazarError):
    """Usage enforcement does not grant the lease as it was asked for; the message names the limit and what would fit.

    400 for a change, as clients know it: with other dates or fewer hosts the same caller may well have the lease. The
    API answers 403 for a new lease, as the existing Blazar does.
    """

    status = 400


class NotFound(BlazarError):
    """The thing named in the request does not exist (or no longer does)."""

    status = 404


class Conflict(BlazarError):
    """The request is fine, but not in the present state of things."""

    status = 409


class NotEnoughResources(Conflict):
    """Too few resources match the demand and are free in the window."""


class WrongState(Conflict):
    """The lease, reservation or host is not in a state that allows the operation."""


class Contention(Conflict):
    """Other bookings kept winning the race for the same resources; trying again is worthwhile."""


class CloudError(BlazarError):
    """The cloud did not do what was asked of it."""

    status = 503


class CloudUnavailable(CloudError):
    """A passing fault (time-out, 5xx, connection refused): the same call may succeed later."""


class ClaimLost(CloudUnavailable):
    """The claim on the work has expired, or soon will: nothing may be changed in the cloud any more.

    Another manager finishes or undoes the work. Nobody who gets this undoes anything.
    """


class CloudRefused(CloudError):
    """A lasting fault: the cloud understood, and said no. Repeating the call will not help."""

    status = 409


class StoreUnavailable(BlazarError):
    """The database does not answer, or not in time."""

    status = 503


class ManagerUnavailable(BlazarError):
    """No manager took the request, or none answered in time."""

    status = 503


class NothingDone(ManagerUnavailable):
    """No manager began with the request, so that it may be sent again as it is."""

    retry_after = 5


class TooLate(NothingDone):
    """Nobody waits for the answer any more by the time that the work would begin."""


class OtherVersion(NothingDone):
    """The manager that took the request does not know what it asks for, as during an upgrade; another one may."""


class EnforcementUnavailable(BlazarError):
    """Whoever is to say whether the lease may be does not answer, or not what can be understood."""

    status = 503


class StaleLease(BlazarError):
    """Somebody else changed the lease since it was read: read again and decide again.

    Never reaches a user: whoever writes a lease catches it.
    """


class StaleCalendar(BlazarError):
    """A chosen resource was booked by somebody else since the calendar was read.

    Never reaches a user: the booking loop catches it and places anew.
    """
