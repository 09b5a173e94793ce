# SPDX-License-Identifier: Apache-2.0
"""Reminders of leases, and of each lease of a series: what requests may have, and what is shown."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import datetime, timedelta

from blazar.api.http.shapes import TEXT, ZULU, ZULU_OR_NULL, Json, a_list, an_object
from blazar.model.base import dates
from blazar.model.base.clock import zulu, zulu_or_none
from blazar.model.base.dates import Place, in_body
from blazar.model.base.errors import InvalidInput
from blazar.model.base.moments import Duration
from blazar.model.base.window import Window
from blazar.model.leases.reminders import LONGEST_TEXT, MOST_REMINDERS, Anchor, Reminder, spell_duration

_WHEN = "a duration before the end such as -PT2H, or from the start such as +P1D"
_OR_A_DATE = "a duration before the end such as -PT2H, one from the start such as +P1D, or a date"
_JOINERS = "\u200c\u200d"
"""Zero width: Persian and Indian scripts and many an emoji are not written without them."""
_ANCHORS = [*map(str, Anchor), None]
_FROM = (
    "the date of the lease from which the duration counts: start or end; by default the end if it goes back, else the "
    "start; null with a date"
)
_KEYS: Json = {
    "at": {"type": "string", "maxLength": dates.MOST_CHARACTERS, "description": _OR_A_DATE},
    "from": {"enum": _ANCHORS, "description": _FROM},
    "text": {
        "type": "string",
        "minLength": 1,
        "maxLength": LONGEST_TEXT,
        "description": f"one line of 1 to {LONGEST_TEXT} characters",
    },
}
_AS_SHOWN: Json = {"type": ["string", "null"], "maxLength": 64, "description": "as it was shown"}


def _list(keys: Json) -> Json:
    return {
        "type": "array",
        "maxItems": MOST_REMINDERS,
        "items": {
            "type": "object",
            "required": ["at", "text"],
            "additionalProperties": False,
            "properties": keys,
            "description": "an object with at and text",
        },
        "description": f"a list of at most {MOST_REMINDERS} reminders, each a time and what the user wants to be told",
    }


REMINDERS: Json = _list(_KEYS)
"""Those of a new lease."""
CHANGED_REMINDERS: Json = _list({**_KEYS, "time": _AS_SHOWN, "sent_at": _AS_SHOWN})
"""Those that a lease gets instead of what it has. What the service sets may stand there, and says nothing."""
SERIES_REMINDERS: Json = _list({**_KEYS, "at": {**_KEYS["at"], "description": _WHEN}})
"""Those of each lease of a series."""

SHOWN_KEYS: Json = {
    "at": {**TEXT, "description": "a duration, before the date that it counts from if it begins with -, or a date"},
    "from": {"enum": _ANCHORS, "description": _FROM},
    "text": TEXT,
}
SHOWN: Json = {
    **a_list(
        an_object(
            {
                **SHOWN_KEYS,
                "time": {**ZULU, "description": "when it is told as the dates of the lease are"},
                "sent_at": {**ZULU_OR_NULL, "description": "when it was told last; null: not yet, or never"},
            }
        )
    ),
    "description": "what its user wants to be told at times of the lease",
}
"""Those of a lease in answers."""
SHOWN_OF_SERIES: Json = {**a_list(an_object(SHOWN_KEYS)), "description": "those of each of its leases"}
EXAMPLE: Json = {"at": "-PT2H", "from": "end", "text": "copy the results to the share"}
SHOWN_EXAMPLE: Json = {**EXAMPLE, "time": "2030-04-04T06:00:00Z", "sent_at": None}


def parse_reminders(body: Json, *, of_series: bool = False) -> tuple[Reminder, ...] | None:
    """Return the reminders of a body that its schema allows; None if it has none to say. InvalidInput."""
    if "reminders" not in body:
        return None
    zone = dates.zone(body.get("time_zone", "UTC"), in_body("time_zone"))
    wanted = _WHEN if of_series else _OR_A_DATE
    found = [_parse_reminder(item, number, zone, wanted) for number, item in enumerate(body["reminders"])]
    for number, reminder in enumerate(found):
        if of_series and reminder.anchor is None:
            raise in_body("reminders", number, "at").invalid(body["reminders"][number]["at"], wanted)
        if reminder in found[:number]:
            sentence = f"reminders[{number}] is the same as one before it; leave it out"
            raise InvalidInput(sentence, at=f"/reminders/{number}")
    return tuple(found)


def _parse_reminder(item: Json, number: int, zone: str, wanted: str) -> Reminder:
    text, at, place = item["text"], item["at"], in_body("reminders", number, "at")
    if not all(map(_fits_line, text)) or not any(map(str.isprintable, text.replace(" ", ""))):
        sentence = (
            f"reminders[{number}].text has a line break or another control character, or no letter; give one line"
        )
        raise InvalidInput(sentence, at=f"/reminders/{number}/text")
    moment = _parse_moment(at, place, zone, wanted)
    anchor, from_place = item.get("from"), in_body("reminders", number, "from")
    if isinstance(moment, datetime):
        if anchor is not None:
            raise from_place.invalid(anchor, "it with a duration only; of a date leave it out", "invalid_value")
        return Reminder(moment, text)
    if moment.years or moment.months:
        raise place.invalid(at, "weeks, days, hours, minutes or seconds: months differ in length")
    length = timedelta(days=moment.days, seconds=moment.seconds)
    if not moment.backward and anchor == Anchor.END:
        raise place.invalid(at, "a duration that begins with -: after the end of a lease nobody is reminded")
    by_default = Anchor.END if moment.backward else Anchor.START
    return Reminder(-length if moment.backward else length, text, by_default if anchor is None else Anchor(anchor))


def _parse_moment(at: str, place: Place, zone: str, wanted: str) -> datetime | Duration:
    """Return a date or a duration with its sign; of anything else the error says what is ``wanted``, not ``now``."""
    if at[:1] not in ("+", "-"):
        return dates.date(at, place, zone=zone, wanted=wanted)
    moment = dates.moment_or_duration(at, place, zone=zone, backward=True)
    assert isinstance(moment, Duration)
    return moment


def _fits_line(letter: str) -> bool:
    """Tell whether a letter stays in its line: spaces of all widths do, and what joins letters or parts them."""
    return letter.isprintable() or unicodedata.category(letter) == "Zs" or letter in _JOINERS


def render_reminders(reminders: Sequence[Reminder], window: Window) -> list[Json]:
    """Return the reminders of a lease with this window, as JSON."""
    return [
        {**render_reminder(one), "time": zulu(one.moment(window)), "sent_at": zulu_or_none(one.sent_at)}
        for one in reminders
    ]


def render_reminder(value: Reminder) -> Json:
    """Return a reminder as it was asked for, as JSON."""
    sign = "-" if isinstance(value.at, timedelta) and value.at < timedelta(0) else "+"
    at = zulu(value.at) if isinstance(value.at, datetime) else sign + spell_duration(abs(value.at))
    return {"at": at, "from": None if value.anchor is None else str(value.anchor), "text": value.text}
