# SPDX-License-Identifier: Apache-2.0
"""Actions before the end of a reservation.

A reservation names its action as ``before_end`` or ``before_end_action``: two names that users know for one thing.
There is none at the start, which Chameleon's service has.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from blazar.model.base.errors import CloudUnavailable, InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.base.reasons import Cause, ReasonCode, spell_count
from blazar.model.base.values import dataclass
from blazar.model.leases.reservation import Content
from blazar.model.leases.states import EventType
from blazar.resources.contract.parameters import quote
from blazar.resources.contract.values import Action, Done, Given, NotYet, Progress, Task

BEFORE_END = "before_end"
ALIAS = "before_end_action"
ON_START = "on_start"

RECHECK_SOON = timedelta(seconds=1)
RECHECK_LATER = timedelta(seconds=10)
"""The pause after a restart of something: what fails every time is not retried at every check."""


SERVER_ACTIONS = (Action.NONE, Action.NOTIFICATION, Action.SNAPSHOT, Action.MIGRATION)
"""What can be done for servers."""

CHOICES = ("default", "", *(str(action) for action in SERVER_ACTIONS))
"""Accepted values for servers: 'default' is the operator's default, '' only the notification."""


NOTIFY_ONLY = ("", "default", "email")
"""An operator's values for the notification alone; configuration files of older services have them."""


_EMAIL = "email"


@dataclass(frozen=True, slots=True)
class Tally:
    """Progress of an action: counts begun in this attempt and under way (including these), and the failures."""

    begun: int = 0
    under_way: int = 0
    failures: tuple[str, ...] = ()


def deletion_progress(servers: int, text: str = "being deleted") -> NotYet:
    """Return the progress of a reservation whose own servers are being deleted."""
    return NotYet(
        RECHECK_SOON, f"{spell_count(servers, 'server')} {text}", Cause(ReasonCode.RESOURCE_NOT_READY, servers=servers)
    )


def names_action(given: Json) -> bool:
    """Return whether a request names an action before the end."""
    return BEFORE_END in given or ALIAS in given


def with_action(given: Json) -> Json:
    """Return a request's parameters with the action under ``before_end``.

    InvalidInput if the two names differ, or there is one for the start: it would not be done.
    """
    if given.get(ON_START) not in (None, "", "default"):
        raise InvalidInput(
            f"{ON_START} is {quote(given[ON_START])}, and nothing is run at the start of a reservation; leave it out, "
            "and reserve a virtual:stack for what Heat is to make then",
            at=f"/{ON_START}",
        )
    if ALIAS not in given:
        return given
    rest = {key: value for key, value in given.items() if key != ALIAS}
    if rest.setdefault(BEFORE_END, given[ALIAS]) != given[ALIAS]:
        raise InvalidInput(f"{BEFORE_END} and {ALIAS} are two names of one thing and differ; give one of them")
    return rest


def update_values(current: Json, change: Given) -> Json:
    """Return the values of a reservation, updated with those of a change that it has, too; others are left out."""
    return {**current, **{key: value for key, value in with_action(change.values).items() if key in current}}


def checked_action(given: Json, choices: Sequence[str] = CHOICES) -> str:
    """Return the action as given; InvalidInput if it is none of the choices."""
    action = given[BEFORE_END]
    if action not in choices:
        sentence = f"{BEFORE_END} is {quote(action)}; use one of {', '.join(map(repr, choices))}"
        raise InvalidInput(sentence, at=f"/{BEFORE_END}")
    return str(action)


def simple_action(given: Json, what: str) -> str:
    """Return the action of a reservation of things that have no servers; InvalidInput if it is none for them.

    ``email`` is what clients of Chameleon call the notification.
    """
    stated = given.get(BEFORE_END, "default")
    action = checked_action({BEFORE_END: str(Action.NOTIFICATION) if stated == _EMAIL else stated})
    if action in (Action.SNAPSHOT, Action.MIGRATION):
        raise InvalidInput(
            f"{BEFORE_END} is {action!r}, which saves servers, and {what} have none; use 'notification' or 'none'",
            at=f"/{BEFORE_END}",
        )
    return action


def differ_beside_action(before: Content, after: Content) -> bool:
    """Return whether two versions of a reservation differ in more than the action before the end."""
    one, other = ({k: v for k, v in content.values.items() if k != BEFORE_END} for content in (before, after))
    return one != other


def action_of(stated: str, default: str) -> Action:
    """Return the action of a reservation, using the operator's default where it names none."""
    if stated == "default":
        stated = default
    return Action.NOTIFICATION if stated in NOTIFY_ONLY else Action(stated)


def find_request_time(task: Task) -> datetime | None:
    """Return when a user last requested the action after it had been done; None if never."""
    event = task.lease.event(EventType.BEFORE_END)
    return None if event is None or event.saved_state is None else event.saved_state.action_asked_at


def progress_of_tally(task: Task, tally: Tally, what: str) -> Progress:
    """Return the progress of an action; CloudUnavailable, with the reasons, if all that is left has failed."""
    reasons = list(tally.failures)
    failed = Cause(ReasonCode.SAVE_FAILED, servers=len(reasons))
    if tally.under_way:
        event = task.lease.event(EventType.BEFORE_END)
        once_more = tally.begun > 0 and event is not None and event.reason is not None
        reasons.insert(0, f"{what}: {tally.under_way}")
        cause = failed if tally.failures else Cause(ReasonCode.RESOURCE_NOT_READY, servers=tally.under_way)
        return NotYet(RECHECK_LATER if once_more else RECHECK_SOON, "; ".join(reasons), cause)
    if reasons:
        raise CloudUnavailable("; ".join(reasons)).because(failed)
    return Done()
