# SPDX-License-Identifier: Apache-2.0
"""Mails about entries of the journal: plain text of what has happened, and a calendar entry where dates are told.

All that is told at once is one mail. What is sent again has the same Message-ID, so that readers show it once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from email.headerregistry import Address, BaseHeader, HeaderRegistry, UnstructuredHeader
from email.message import EmailMessage
from email.policy import SMTP, Policy
from email.utils import format_datetime

from icalendar import Calendar, Event
from icalendar.prop import vText
from jinja2 import Environment, StrictUndefined

from blazar.manager.subscriptions.lease_warnings import find_warning, write_time
from blazar.model.journal.entries import NumberedEntry, ObjectType, Verb
from blazar.model.subscriptions.details import Subscription
from blazar.model.subscriptions.messages import Message, subject_of, type_of

MAIL_TYPE = "message/rfc822"
LONGEST_NAME = 80
MOST_SINGLE = 50
"""Entries that a mail tells one by one."""

WORDS = {
    Verb.WAITING: "waits for its turn",
    Verb.LET_GO: "is no longer held",
    Verb.TIMED_OUT: "was not granted in time",
}
"""Verbs that are no participle of what was done."""

IN_CALENDARS = frozenset(
    {Verb.CREATED, Verb.PROMISED, Verb.ADVANCED, Verb.CHANGED, Verb.EXTENDED, Verb.ENDED, Verb.REMINDED}
)
"""What was done after which the dates of a lease are new, or there are none; and what is told for the sake of them."""

_TEXT = """\
{% for item in items %}
{{ item.at }}: {{ item.title }}
{% for line in item.warning %}    {{ line }}
{% endfor %}
{% if item.dates %}    from {{ item.dates[0] }} to {{ item.dates[1] }}, {{ item.status }}
{% endif %}
{% for change in item.changes %}    {{ change }}
{% endfor %}
{% if item.reason %}    reason: {{ item.reason }}
{% endif %}
{% endfor %}
{% if more %}
And besides, of which the journal tells more (blazar journal list):
{% for done, number in more %}
    {{ number }} times something {{ done }}
{% endfor %}
{% endif %}

{% if lease_id %}More about it: blazar lease show {{ lease_id }}
{% endif %}
Times are those of {{ subscription.time_zone }}.
{% if subscription.own %}This is about your own leases. To choose what, and when: blazar subscription mine --help
{% else %}You have subscribed to this. To end it: blazar subscription delete {{ subscription.id }}
{% endif %}
{% if link %}To end it without a login: {{ link }}
{% endif %}
"""
_TEMPLATE = Environment(
    autoescape=False,  # it is plain text
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    undefined=StrictUndefined,
).from_string(_TEXT)


class LinkHeader(UnstructuredHeader, BaseHeader):
    """A header with a link: one line, however long that is.

    The library would break it into encoded words, which are for texts: a mail program does not find the link in them.
    """

    def fold(self, *, policy: Policy) -> str:
        """Return the header as it is sent."""
        return f"{self.name}: {self}{policy.linesep}"


_HEADERS = HeaderRegistry()
_HEADERS.map_to_type("list-unsubscribe", LinkHeader)
MAIL_POLICY = SMTP.clone(header_factory=_HEADERS, cte_type="7bit")
"""How mail is written: in ASCII, since not each server on the way takes more (RFC 6152)."""


def make_mail(
    entries: Sequence[NumberedEntry],
    subscription: Subscription,
    *,
    sender: str,
    recipient: str,
    at: datetime,
    link: str | None = None,
) -> Message:
    """Return one mail about entries, of which there is at least one; ``link`` ends such mail without a login.

    Of many the first are told one by one, and the others counted. What of these is for others must be hidden before
    (``show_entry``), as in histories.
    """
    first, last = entries[0], entries[-1]
    mail = EmailMessage(policy=MAIL_POLICY)
    mail["From"], mail["To"] = sender, Address(addr_spec=recipient)
    title = str(_describe(first, subscription)["title"]) if len(entries) == 1 else f"{len(entries)} events"
    mail["Subject"] = f"[Blazar] {title}"
    mail["Date"] = format_datetime(at)
    domain = sender.rpartition("@")[2].strip("> ")
    mail["Message-ID"] = f"<{first.past.id}.{last.past.id}.{subscription.id}@{domain}>"
    _mark(mail, link)
    objects = {entry.about.id for entry in entries}
    about_lease = len(objects) == 1 and first.about.object_type is ObjectType.LEASE
    # What is told to those who do not have the lease, or not any more, has no revision: it would not be shown to them.
    shown = about_lease and last.about.revision is not None
    mail.set_content(_write_text(entries, subscription, first.about.id if shown else None, link))
    if about_lease and last.past.verb in IN_CALENDARS and last.snapshot:
        mail.add_attachment(
            make_calendar(last), maintype="text", subtype="calendar", filename="lease.ics", params={"method": "PUBLISH"}
        )
    named = tuple((entry.position, entry.past.id, type_of(entry), subject_of(entry)) for entry in entries)
    return Message(first.past.id, MAIL_TYPE, mail.as_bytes(), frozenset(objects), named)


def _write_text(
    entries: Sequence[NumberedEntry], subscription: Subscription, lease_id: str | None, link: str | None
) -> str:
    """Return the text of a mail; ``lease_id`` if it is about one lease only, which its reader has."""
    more = Counter(WORDS.get(entry.past.verb, f"was {entry.past.verb}") for entry in entries[MOST_SINGLE:])
    return _TEMPLATE.render(
        items=[_describe(entry, subscription) for entry in entries[:MOST_SINGLE]],
        more=more.most_common(),
        subscription=subscription,
        lease_id=lease_id,
        link=link,
    )


def _mark(mail: EmailMessage, link: str | None) -> None:
    """Say to programs that nobody has written a mail, and how its reader gets no more of them (RFC 8058)."""
    mail["Auto-Submitted"] = "auto-generated"
    if link is not None:
        mail["List-Unsubscribe"] = f"<{link}>"
        mail["List-Unsubscribe-Post"] = "List-Unsubscribe=One-Click"


def make_calendar(entry: NumberedEntry) -> bytes:
    """Return the calendar entry of a lease: with the UID that it has in feeds, so that calendars change theirs."""
    snapshot = entry.snapshot or {}
    calendar, event = Calendar(), Event()
    for key, value in (("prodid", "-//OpenStack//Blazar//EN"), ("version", "2.0"), ("method", "PUBLISH")):
        calendar.add(key, value)
    event.add("uid", entry.about.id)
    event.add("sequence", entry.about.revision or 0)
    event.add("dtstamp", entry.past.at.replace(microsecond=0))
    event.add("dtstart", datetime.fromisoformat(snapshot["start_date"]))
    event.add("dtend", datetime.fromisoformat(snapshot["end_date"]))
    event.add("summary", vText(_clean(entry.about.name)))
    calendar.add_component(event)
    return bytes(calendar.to_ical())


def _describe(entry: NumberedEntry, subscription: Subscription) -> dict[str, object]:
    """Return what the text says of an entry."""
    zone = subscription.time_zone
    about, past, snapshot = entry.about, entry.past, entry.snapshot or {}
    dates = None
    if "start_date" in snapshot:
        dates = [write_time(datetime.fromisoformat(snapshot[key]), zone) for key in ("start_date", "end_date")]
    warning = find_warning(entry, subscription)
    done = WORDS.get(past.verb, f"was {past.verb}") if warning is None else warning.says
    return {
        "at": write_time(past.at, zone),
        "title": f"{str(about.object_type).capitalize()} {_clean(about.name or about.id)} {done}",
        "warning": () if warning is None else warning.lines,
        "dates": dates,
        "status": snapshot.get("status"),
        "changes": [
            f"{change.field}: {_clean(change.before)} -> {_clean(change.after)}"
            for change in past.changes
            if change.before is not None
        ],
        "reason": _find_reason(entry) if warning is None else None,
    }


def _find_reason(entry: NumberedEntry) -> str | None:
    """Return why something was done, also why a receiver is sent nothing any more."""
    told = next((change.after for change in entry.past.changes if change.field == "reason"), None)
    return entry.past.reason if told is None else _clean(told)


def _clean(text: str | None) -> str:
    """Return what somebody has written as one short line, which is no line of a header."""
    return "".join(letter if letter.isprintable() else " " for letter in text or "-")[:LONGEST_NAME]
