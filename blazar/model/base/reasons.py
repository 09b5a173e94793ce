# SPDX-License-Identifier: Apache-2.0
"""Why an event of a lease failed or waits: a text for operators, and a code with numbers for everybody.

The text may name servers, hosts and leases of others. The code and its numbers name nothing: they are kept beside the
text, and the API writes from them what a reader may see.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import StrEnum

from blazar.model.base.values import dataclass, replace


def spell_count(number: int, noun: str) -> str:
    """Return how many there are, as a sentence says it: ``1 server``, ``3 servers``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


class ReasonCode(StrEnum):
    """The kinds of reasons. Of several, the one that comes first here stands for all."""

    LEASE_ENDED = "lease_ended"
    GIVEN_UP = "given_up"
    NOT_FINISHED_AT_END = "not_finished_at_end"
    INTERNAL_ERROR = "internal_error"
    QUOTA_EXCEEDED = "quota_exceeded"
    ROLE_MISSING = "role_missing"
    SERVER_IN_THE_WAY = "server_in_the_way"
    PREVIOUS_USER_NOT_LEFT = "previous_user_not_left"
    RESOURCE_FAILED = "resource_failed"
    SAVE_FAILED = "save_failed"
    CLOUD_REFUSED = "cloud_refused"
    CLOUD_UNAVAILABLE = "cloud_unavailable"
    NO_ROOM_MADE = "no_room_made"
    MAKING_ROOM = "making_room"
    HOST_WAKING = "host_waking"
    RESOURCE_NOT_READY = "resource_not_ready"
    REFERENT_FAILED = "referent_failed"

    @classmethod
    def _missing_(cls, value: object) -> ReasonCode:
        """Return the vaguest code for one that a later version wrote or sent."""
        return cls.RESOURCE_NOT_READY


_RANK = {code: rank for rank, code in enumerate(ReasonCode)}


@dataclass(frozen=True, slots=True)
class Cause:
    """What everybody may know of a reason.

    ``servers`` counts servers of the lease itself, or, while room is made for it, those of others that are still to be
    moved. ``resources`` are resources of the lease, by
    calendar id. ``until`` is when it is over, if that is known.
    """

    code: ReasonCode
    servers: int = 0
    resources: frozenset[int] = frozenset()
    until: datetime | None = None

    def at(self, *resources: int) -> Cause:
        """Return the cause with the resources that it is about, by calendar id."""
        return replace(self, resources=frozenset(resources))


@dataclass(frozen=True, slots=True)
class Reason:
    """Why something failed or waits; the ``text`` is for operators."""

    text: str
    cause: Cause


def reason(text: str, code: ReasonCode, *, servers: int = 0, until: datetime | None = None) -> Reason:
    """Return a reason of a code with its numbers."""
    return Reason(text, Cause(code, servers, until=until))


def join_reasons(reasons: Iterable[Reason | None]) -> Reason | None:
    """Return one reason for those that are given; None if there is none."""
    given = [part for part in reasons if part is not None]
    return joint(given) if given else None


def joint(given: Sequence[Reason]) -> Reason:
    """Return one reason for one or more."""
    return Reason("; ".join(part.text for part in given), joint_cause([part.cause for part in given]))


def joint_cause(given: Sequence[Cause]) -> Cause:
    """Return one cause for one or more: the first of their codes, with the numbers of those that have it."""
    code = min((cause.code for cause in given), key=_RANK.__getitem__)
    same = [cause for cause in given if cause.code is code]
    return Cause(
        code,
        sum(cause.servers for cause in same),
        frozenset().union(*(cause.resources for cause in same)),
        max((cause.until for cause in same if cause.until is not None), default=None),
    )
