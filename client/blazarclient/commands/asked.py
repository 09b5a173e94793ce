# SPDX-License-Identifier: Apache-2.0
"""A lease as it is asked for: by options, or in a file."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from blazarclient import times
from blazarclient.commands.base import local, utc, zone_name
from blazarclient.commands.refusals import Places
from blazarclient.commands.reminders import read_reminders
from blazarclient.exception import IncorrectLease
from blazarclient.utils import API_DATE_FORMAT

USUAL_LENGTH = times.Duration(seconds=24 * 3600)
"""Of a lease that says nothing of its end."""

_ANSWERS: Mapping[str, bool | None] = {"true": True, "false": False, "none": None}

_KEYS: Mapping[str, str] = {
    "name": "name",
    "start": "start",
    "start_date": "start",
    "end": "end",
    "end_date": "end",
    "duration": "duration",
    "before_end": "before_end",
    "before_end_date": "before_end",
    "timezone": "timezone",
    "time_zone": "timezone",
    "kind": "kind",
    "queue_until": "queue_until",
    "tries": "tries",
    "latest_start": "latest_start",
    "at_least": "at_least",
    "if_free_until": "if_free_until",
    "max_price": "max_price",
    "quoted_at": "quoted_at",
    "keep_hosts": "keep_hosts",
    "confirm_within": "confirm_within",
    "reservations": "reservations",
    "reminders": "reminders",
}
"""Keys of a file, and the fields that they are."""


@dataclass(frozen=True)
class Asked:
    """A lease as people write it; ``reservations`` as microversion 1.0 takes them, or as later ones do."""

    name: str | None = None
    start: str | None = None
    end: str | None = None
    duration: str | None = None
    before_end: str | None = None
    timezone: str | None = None
    reservations: Sequence[Mapping[str, Any]] = field(default=())
    kind: str | None = None
    queue_until: str | None = None
    tries: int | None = None
    latest_start: str | None = None
    at_least: str | None = None
    if_free_until: str | None = None
    max_price: str | None = None
    quoted_at: str | None = None
    reminders: Sequence[object] = field(default=())
    keep_hosts: bool | None = None
    confirm_within: str | None = None

    @property
    def new_kind(self) -> str | None:
        """Its kind if microversion 1.0 cannot book it."""
        is_new = self.queue_until or self.if_free_until or self.reminders or self.keep_hosts
        is_new = is_new or self.max_price is not None or self.quoted_at or self.confirm_within
        return self.kind or ("scheduled" if is_new else None)


@dataclass(frozen=True)
class Window:
    """When a lease is to be; ``start`` None: now. ``length``: where the end was told by it."""

    start: datetime | None
    end: datetime
    before_end: datetime | None
    length: times.Duration | None

    def dates(self) -> dict[str, Any]:
        """Return the dates as microversions beyond 1.0 take them.

        Where nothing of the clock is needed there is none in it, so that the same command is the same request.
        """
        name = zone_name(self.end.tzinfo)
        relative = self.start is None and self.length is not None
        dates: dict[str, Any] = {
            "start_date": utc(self.start) or "now",
            "end_date": f"+{self.length.iso()}" if relative and self.length else utc(self.end),
        }
        if relative and name:
            dates["time_zone"] = name
        if self.before_end is not None:
            dates["before_end_date"] = utc(self.before_end)
        return dates

    def old_dates(self) -> dict[str, str | None]:
        """Return the dates as the manager of version 1 takes them: whole minutes of UTC."""

        def text(value: datetime | None) -> str | None:
            return None if value is None else value.astimezone(timezone.utc).strftime(API_DATE_FORMAT)

        return {"start": text(self.start) or "now", "end": text(self.end), "before_end": text(self.before_end)}


def window(asked: Asked, now: datetime, places: Places) -> Window:
    """Return the window of a lease, in the zone of ``now``; ``places``: what has said the dates.

    BadTime; IncorrectLease if it ends before it begins.
    """
    if asked.end and asked.duration:
        raise IncorrectLease("Both an end and a duration are given; give one of them")
    start = None
    if asked.start not in (None, "now"):
        with times.named(places["/start_date"]):
            # Days of the length are those of the user's zone, however the start is written.
            start = times.read_time(str(asked.start), now=now).astimezone(now.tzinfo)
    begin = start or now
    with times.named(places["/end_date"]):
        length = _length(asked)
        end = length.after(begin) if length else _end(str(asked.end), now, begin)
    if length and length.days and zone_name(now.tzinfo) is None:
        # The service cannot count days in a zone that has no name.
        length = times.Duration(seconds=round((times.utc(end) - times.utc(begin)).total_seconds()))
    # What comes from the command line may have no seconds.
    if times.utc(end) <= times.utc(begin).replace(second=0, microsecond=0):
        begins = local(begin, now.tzinfo or timezone.utc)
        raise IncorrectLease(
            f"The end, {asked.end}, is not after the start, {begins}; give a later one, or a length such as +2d"
        )
    before_end = None
    if asked.before_end:
        with times.named(places["/before_end_date"]):
            before_end = warning(asked.before_end, now, begin, end)
        if not times.utc(begin) <= times.utc(before_end) <= times.utc(end):
            raise IncorrectLease(
                f"The warning, at {asked.before_end}, is not within the lease; give a time that is, or how long before "
                "its end, such as 2h"
            )
    return Window(start, end, before_end, length)


def _length(asked: Asked) -> times.Duration | None:
    """Return how long a lease is to be, None if its end is given as a time. BadTime."""
    if asked.duration:
        return times.read_duration(asked.duration)
    if asked.end is None:
        return USUAL_LENGTH
    text = asked.end.strip()
    return times.read_duration(text[1:]) if text.startswith("+") else None


def _end(text: str, now: datetime, start: datetime) -> datetime:
    """Return an end; a day of the week, or a time of day, is the next one after the start. BadTime."""
    end = times.read_time(text, now=now, start=start)
    if times.utc(end) > times.utc(start) or text.strip().lower().startswith(("now", "today", "tomorrow")):
        return end
    # Of a date with its year this is the same.
    return times.read_time(text, now=start, start=start)


def confirmation(asked: Asked) -> dict[str, Any]:
    """Return within what time a lease is to be confirmed, as the service takes it, if it is. BadTime."""
    if not asked.confirm_within:
        return {}
    with times.named("--confirm-within"):
        return {"confirm_within": times.read_duration(asked.confirm_within).iso()}


def wait(asked: Asked, now: datetime) -> dict[str, Any]:
    """Return how a lease waits for its turn, as the service takes it, if it does. BadTime; IncorrectLease."""
    options = {"--tries": asked.tries, "--latest-start": asked.latest_start, "--at-least": asked.at_least}
    if not asked.queue_until:
        for option, value in options.items():
            if value is not None:
                raise IncorrectLease(f"{option} is for a lease that waits in line; give --queue-until, too")
        return {}
    with times.named("--queue-until"):
        found: dict[str, Any] = {"until": queue(asked.queue_until, now)}
    if asked.tries is not None:
        found["tries"] = int(asked.tries)
    if asked.latest_start is not None:
        with times.named("--latest-start"):
            found["latest"] = queue(asked.latest_start, now)
    if asked.at_least is not None:
        with times.named("--at-least"):
            found["at_least"] = times.read_duration(asked.at_least).iso()
    return {"wait": found}


def extension(asked: Asked, window: Window, now: datetime) -> dict[str, Any]:
    """Return up to when a lease is prolonged by itself, as the service takes it, if it is. BadTime; IncorrectLease."""
    text = (asked.if_free_until or "").strip()
    if not text or text.lower() == "never":
        return {}
    if not text.startswith("+"):
        if asked.queue_until:
            raise IncorrectLease(
                f"--if-free-until is {text}, but when a lease in line ends is not known yet; give how long after its "
                "end, such as +3d"
            )
        with times.named("--if-free-until"):
            return {"extend_if_free": {"until": utc(_end(text, now, window.end))}}
    with times.named("--if-free-until"):
        length = times.read_duration(text[1:])
        zone = zone_name(now.tzinfo)
        if length.days and zone is None:
            # As of the lease itself: the service cannot count days in a zone that has no name.
            later = times.utc(length.after(window.end)) - times.utc(window.end)
            length = times.Duration(seconds=round(later.total_seconds()))
    in_days = {"time_zone": zone} if length.days else {}
    return {"extend_if_free": {"until": f"+{length.iso()}"}, **in_days}


def reminders(asked: Asked, now: datetime) -> dict[str, Any]:
    """Return the reminders of a lease, as the service takes them, if it has some. BadTime; IncorrectLease."""
    return {"reminders": read_reminders(asked.reminders, now)} if asked.reminders else {}


def queue(text: str, now: datetime) -> str:
    """Return until when a lease waits for its turn, as the service takes it. BadTime."""
    if text.strip().startswith("+"):
        return f"+{times.read_duration(text.strip()[1:]).iso()}"
    return str(utc(times.read_time(text, now=now)))


def warning(text: str, now: datetime, start: datetime, end: datetime) -> datetime:
    """Return when to warn; a length of time is one before the end, with or without a sign."""
    try:
        return times.read_duration(text.strip().removeprefix("-")).before(end)
    except times.BadTime:
        return times.read_time(text, now=now, start=start)


def changed(reservation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the change of a reservation for microversions beyond 1.0: a requirement that is emptied is a list."""
    emptied: dict[str, Any] = {
        key: [] for key, value in reservation.items() if value == "" and key.endswith("_properties")
    }
    return modern({**reservation, **emptied})


def modern(reservation: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reservation for microversions beyond 1.0: what is empty is left out, an id is text, and true is none."""
    written = {key: value for key, value in reservation.items() if value not in ("", None)}
    # On a command line an id of digits looks like a number.
    written |= {key: str(value) for key, value in written.items() if key.endswith("_id") and isinstance(value, int)}
    affinity = written.get("affinity")
    if isinstance(affinity, str) and affinity.lower() in _ANSWERS:
        written["affinity"] = _ANSWERS[affinity.lower()]
    return written


def read_file(path: str) -> Asked:
    """Return the lease that a file of YAML or JSON describes; ``-`` is the standard input. IncorrectLease."""
    import yaml

    class Loader(yaml.SafeLoader):
        """Leaves times as they are written, for they are those of the user's zone."""

    Loader.yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    try:
        text = sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
        # A safe loader, for it is a subclass of one.
        values = yaml.load(text, Loader=Loader)
    except (OSError, UnicodeDecodeError) as error:
        raise IncorrectLease(f"The file cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise IncorrectLease(f"{path} is no YAML: {' '.join(str(error).split())}") from error
    return _asked(path, values)


def _asked(path: str, values: object) -> Asked:
    if not isinstance(values, dict):
        raise IncorrectLease(f"{path} has no keys; write name, start, duration and reservations")
    found: dict[str, Any] = {}
    for key, value in values.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(str(key), _KEYS, n=1)
            meant = f"; did you mean {near[0]}?" if near else f"; choose from {', '.join(sorted(_KEYS))}"
            raise IncorrectLease(f"{path} has a key {key} that a lease has not{meant}")
        if _KEYS[key] in found:
            raise IncorrectLease(f"{path} has {_KEYS[key]} twice")
        found[_KEYS[key]] = value
    listed = found.setdefault("reservations", [])
    if not isinstance(listed, list) or not all(isinstance(each, dict) and "resource_type" in each for each in listed):
        raise IncorrectLease(f"reservations of {path} is no list of reservations, each with its resource_type")
    reminders = found.get("reminders", [])
    if not isinstance(reminders, list) or not all(isinstance(each, str | dict) for each in reminders):
        raise IncorrectLease(
            f"reminders of {path} is no list, of texts as of --reminder or of objects with at and text"
        )
    for key, value in found.items():
        if key == "tries" and isinstance(value, int) and not isinstance(value, bool):
            continue
        if key == "keep_hosts" and isinstance(value, bool):
            continue
        if key not in ("reservations", "reminders") and not isinstance(value, str):
            raise IncorrectLease(f"{key} of {path} is {value!r}; put it in quotes")
    return Asked(**found)
