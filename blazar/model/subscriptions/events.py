# SPDX-License-Identifier: Apache-2.0
"""What can be subscribed to, by name: ``lease.started``, or ``lease.*`` for all of leases."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from blazar.model.base.errors import InvalidInput
from blazar.model.journal.entries import Verb

MOST_EVENTS = 50
"""Names of events in a subscription."""

LONGEST_NAME = 40

TEST_EVENT = "subscription.test"
"""What is sent to ask whether a receiver is there, and wants it. Nobody subscribes to it."""

_ALL = "*"
_UNTOLD = frozenset({Verb.LEFT_OUT})
"""Verbs of entries that say something about the journal, and not about what has happened."""

OF_MEMBERS = ("lease", "series", "subscription", "budget", "charge", "server")
OF_OPERATORS = (*OF_MEMBERS, "resource", "property", "maintenance", "feed", "service")
"""Nouns of events that members, and operators, may be told of."""


def list_event_names(*, operator: bool) -> tuple[str, ...]:
    """Return all names that may be subscribed to, in the order of the nouns."""
    nouns = OF_OPERATORS if operator else OF_MEMBERS
    verbs = [str(verb) for verb in Verb if verb not in _UNTOLD]
    return tuple(f"{noun}.{verb}" for noun in nouns for verb in (_ALL, *verbs))


def check_events(events: Sequence[str], *, operator: bool) -> tuple[str, ...]:
    """Return names of events, each once and in the order given; InvalidInput names the first unknown one."""
    known = set(list_event_names(operator=operator))
    for number, name in enumerate(events):
        if name in known:
            continue
        noun = name.partition(".")[0]
        if noun in OF_OPERATORS and noun not in OF_MEMBERS and not operator:
            nouns = " or ".join(f"{n}." for n in OF_MEMBERS)
            raise InvalidInput(
                f"events[{number}]: {name[:LONGEST_NAME]!r} is for operators who give project_id null; "
                f"give names that begin with {nouns}",
                at=f"/events/{number}",
            )
        raise InvalidInput(
            f"events[{number}]: there is no event {name[:LONGEST_NAME]!r}; give names such as lease.started, "
            "lease.before_end or lease.*, as docs/history.md lists them",
            at=f"/events/{number}",
        )
    return tuple(dict.fromkeys(events))


def matches_event(events: Collection[str], object_type: str, verb: str) -> bool:
    """Return whether names of events have what was done to an object of a type."""
    return f"{object_type}.{verb}" in events or (f"{object_type}.{_ALL}" in events and verb not in _UNTOLD)
