# SPDX-License-Identifier: Apache-2.0
"""Reminders of leases, and of each lease of a series: the option that asks for one, and how they are told."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Any

from blazarclient import times
from blazarclient.commands.base import local, utc
from blazarclient.exception import IncorrectLease

if TYPE_CHECKING:
    from blazarclient.library.values import Reminder

OPTION = "--reminder"
_FORM = "before-end=2h,text=copy the results"
_WHEN: Mapping[str, tuple[str, str]] = {
    "before-end": ("-", "end"),
    "before-start": ("-", "start"),
    "after-start": ("+", "start"),
}


def add_reminders(parser: argparse.ArgumentParser, *, instead: bool = False, dates: bool = True) -> None:
    """Add the option; ``instead``: it is of a change, and says all that there are then. ``dates``: it may name one."""
    dated = ", at=<time>" if dates else ""
    group = parser.add_mutually_exclusive_group() if instead else parser
    group.add_argument(
        OPTION,
        metavar="before-end=<length>,text=<text>",
        dest="reminders",
        action="append",
        help=f"what to tell you then, by your subscriptions and calendar; also before-start, after-start{dated}; "
        f"may be repeated{', and takes the place of those that there are' if instead else ''}",
    )
    if instead:
        group.add_argument("--no-reminders", action="store_true", help="remind of nothing any more")


def read_reminders(given: Iterable[object], now: datetime) -> list[dict[str, Any]]:
    """Return reminders as the service takes them, from texts of the option; what a file has as objects stays.

    BadTime; IncorrectLease.
    """
    return [dict(each) if isinstance(each, Mapping) else _read(str(each), now) for each in given]


def _read(text: str, now: datetime) -> dict[str, Any]:
    when, comma, said = text.partition(",text=")
    name, equals, value = when.partition("=")
    if not comma or not equals or name not in (*_WHEN, "at"):
        choices = ", ".join((*_WHEN, "at"))
        raise IncorrectLease(
            f"{OPTION} is {text!r}; write it as {_FORM!r}, with one of {choices} and with the text last"
        )
    with times.named(OPTION):
        if name == "at":
            return {"at": utc(times.read_time(value, now=now)), "text": said}
        sign, anchor = _WHEN[name]
        return {"at": f"{sign}{times.read_duration(value.removeprefix(sign)).iso()}", "from": anchor, "text": said}


def describe_reminders(reminders: Sequence[Reminder], zone: tzinfo) -> str:
    """Return a line for each reminder: when it is told, its text, and whether it was told."""
    return "\n".join(
        f"{local(each.time, zone)}: {each.text}" + (f" (told {local(each.sent_at, zone)})" if each.sent_at else "")
        for each in reminders
    )
