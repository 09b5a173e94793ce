# SPDX-License-Identifier: Apache-2.0
"""Render a feed as iCalendar (RFC 5545, RFC 7986). The same content always gives the same bytes."""

from __future__ import annotations

from datetime import datetime, timedelta

from icalendar import Alarm, Calendar, Event, FreeBusy
from icalendar.prop import vDatetime, vDuration, vPeriod, vText

from blazar.model.feeds import FeedContent, FeedItem, FeedKind
from blazar.model.leases.reminders import Reminder

TYPE = "text/calendar; charset=utf-8"
REFRESH = timedelta(minutes=15)


def render(content: FeedContent) -> bytes:
    """Return the calendar of a feed."""
    calendar = Calendar()
    calendar.add("prodid", "-//OpenStack//Blazar//EN")
    calendar.add("version", "2.0")
    calendar.add("calscale", "GREGORIAN")
    # The newer name and the one that most programs know.
    for key in ("name", "x-wr-calname"):
        calendar.add(key, _line(content.feed.name))
    calendar.add("refresh-interval", vDuration(REFRESH), parameters={"VALUE": "DURATION"})
    calendar.add("x-published-ttl", vDuration(REFRESH))
    if content.feed.kind is FeedKind.FREE_BUSY:
        calendar.add_component(_free_busy(content))
    for item in content.items:
        calendar.add_component(_event(item, with_project=content.feed.kind is FeedKind.RESOURCE))
    return bytes(calendar.to_ical())


def _event(item: FeedItem, *, with_project: bool) -> Event:
    event = Event()
    event.add("uid", item.lease_id)
    event.add("sequence", item.revision)
    # When it was last changed, not when it is read: programs compare what they get.
    event.add("dtstamp", item.changed_at.replace(microsecond=0))
    event.add("created", item.created_at.replace(microsecond=0))
    event.add("last-modified", item.changed_at.replace(microsecond=0))
    event.add("dtstart", item.window.start)
    event.add("dtend", item.window.end)
    event.add("summary", _line(f"{item.name} ({item.project_id})" if with_project else item.name))
    event.add("description", "\n".join(f"{count} x {resource_type}" for resource_type, count in item.reserves))
    event.add("status", "CANCELLED" if item.cancelled else "CONFIRMED")
    # A lease does not keep its user from meeting somebody.
    event.add("transp", "TRANSPARENT")
    if item.before_end is not None and not item.cancelled:
        event.add_component(_alarm(_line(f"{item.name} ends soon"), item.before_end))
    if not with_project and not item.cancelled:
        for reminder in item.reminders:
            if reminder.moment(item.window) < item.window.end:
                event.add_component(_reminder(reminder))
    return event


def _alarm(text: str, at: datetime) -> Alarm:
    alarm = Alarm()
    alarm.add("action", "DISPLAY")
    alarm.add("description", text)
    alarm.add("trigger", vDatetime(at), parameters={"VALUE": "DATE-TIME"})
    return alarm


def _reminder(reminder: Reminder) -> Alarm:
    """Return a reminder as programs for calendars have it, which know from which date its time counts."""
    if isinstance(reminder.at, datetime):
        return _alarm(_line(reminder.text), reminder.at)
    alarm = Alarm()
    alarm.add("action", "DISPLAY")
    alarm.add("description", _line(reminder.text))
    alarm.add("trigger", vDuration(reminder.at), parameters={"RELATED": str(reminder.anchor).upper()})
    return alarm


def _line(text: str) -> vText:
    """Return a text as one line without the control characters that the format does not have."""
    return vText("".join(letter if letter.isprintable() else " " for letter in text))


def _free_busy(content: FeedContent) -> FreeBusy:
    found = FreeBusy()
    found.add("uid", content.feed.id)
    found.add("dtstamp", content.window.start)
    found.add("dtstart", content.window.start)
    found.add("dtend", content.window.end)
    for busy in content.busy:
        found.add("freebusy", vPeriod((busy.start, busy.end)), parameters={"FBTYPE": "BUSY"})
    return found
