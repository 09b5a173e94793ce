# SPDX-License-Identifier: Apache-2.0
"""Rules as operators write them. InvalidInput names the field, and what would fit."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from blazar.model.base import dates
from blazar.model.base.dates import in_body
from blazar.model.base.errors import InvalidInput
from blazar.model.billing.document_parts import DocumentPart, parse_week_hours, read_optional
from blazar.model.rules.open_time import OpenTime
from blazar.model.rules.values import AppliesTo, BookingRule, Gap, Hours, OpenAt, RuleKind

MOST_RULES = 100
"""Rules of a site: each of them is looked at with each request."""
MOST_HOURS = 100
MOST_CLOSED_DAYS = 1000
MOST_PROJECTS = 1000

_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}", re.ASCII)
_DAY = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def parse_rule(
    name: str,
    document: Mapping[str, Any],
    *,
    revision: int,
    created_at: datetime,
    updated_at: datetime | None = None,
) -> BookingRule:
    """Return the rule that a document describes: its ``kind``, ``content``, perhaps ``applies_to``, ``active``."""
    if not _NAME.fullmatch(name):
        raise InvalidInput(
            f"the name {name[:64]!r} is invalid; give up to 64 small letters, digits and ._- that begin with a letter "
            "or digit",
            code="invalid_value",
        )
    given = DocumentPart(dict(document)).fields(("kind", "content"), ("applies_to", "active"))
    kind = RuleKind(given["kind"].one_of(tuple(map(str, RuleKind))))
    active = given["active"].value if "active" in given else True
    if not isinstance(active, bool):
        raise given["active"].refuse("true or false, without quotes")
    return BookingRule(
        name=name,
        revision=revision,
        terms=_parse_hours(given["content"]) if kind is RuleKind.HOURS else _parse_gap(given["content"]),
        applies_to=read_optional(given, "applies_to", _parse_applies_to, AppliesTo()),
        active=active,
        content=json.dumps(document, sort_keys=True, ensure_ascii=False),
        created_at=created_at,
        updated_at=updated_at,
    )


def show_document(rule: BookingRule, project_id: str | None = None) -> Mapping[str, Any]:
    """Return the document of a rule; with a project, as its members see it: of the projects named only their own."""
    found: dict[str, Any] = json.loads(rule.content)
    if project_id is not None and "applies_to" in found:
        named = {key: value for key, value in found["applies_to"].items() if key != "except_projects"}
        if "projects" in named:
            named["projects"] = [project_id]
        found["applies_to"] = named
    return found


def _parse_hours(part: DocumentPart) -> Hours:
    given = part.fields(("time_zone", "open"), ("closed_on", "apply", "longest_across"))
    opened = tuple(
        parse_week_hours(item.fields((), ("days", "from", "to"))) for item in given["open"].items(MOST_HOURS)
    )
    if not opened:
        raise given["open"].refuse('at least one entry, as {"days": ["MO"], "from": "08:00", "to": "20:00"}')
    apply = read_optional(given, "apply", lambda one: OpenAt(one.one_of(tuple(map(str, OpenAt)))), OpenAt.START)
    if "longest_across" in given and apply is not OpenAt.ALL:
        place = in_body("content", "longest_across")
        sentence = f"{place.name} belongs to apply: all; leave it out, or give that"
        raise InvalidInput(sentence, code="invalid_value", at=place.at)
    return Hours(
        OpenTime(
            dates.zone(given["time_zone"].text(), given["time_zone"].place),
            opened,
            read_optional(given, "closed_on", _parse_days, frozenset()),
        ),
        apply,
        read_optional(given, "longest_across", DocumentPart.length, 0),
    )


def _parse_days(part: DocumentPart) -> frozenset[date]:
    return frozenset(map(_parse_day, part.items(MOST_CLOSED_DAYS)))


def _parse_day(part: DocumentPart) -> date:
    wanted = "a day such as 2030-12-25"
    text = part.match(_DAY, wanted)
    try:
        found = date.fromisoformat(text)
    except ValueError:
        raise part.refuse(wanted) from None
    if not dates.FIRST_YEAR <= found.year <= dates.LAST_YEAR:
        raise part.refuse(f"a day of the years {dates.FIRST_YEAR} to {dates.LAST_YEAR}")
    return found


def _parse_gap(part: DocumentPart) -> Gap:
    given = part.fields(("at_least",), ("over", "same"))
    same = read_optional(given, "same", lambda one: one.one_of(("kind", "any")), "kind")
    return Gap(given["at_least"].length(), read_optional(given, "over", DocumentPart.length, 0), same == "kind")


def _parse_applies_to(part: DocumentPart) -> AppliesTo:
    given = part.fields((), ("projects", "except_projects", "resource_types"))
    return AppliesTo(
        read_optional(given, "projects", _parse_names, None),
        read_optional(given, "except_projects", _parse_names, frozenset()),
        read_optional(given, "resource_types", _parse_names, None),
    )


def _parse_names(part: DocumentPart) -> frozenset[str]:
    names = [item.text() for item in part.items(MOST_PROJECTS)]
    if not names or not all(0 < len(name) <= 255 for name in names):
        raise part.refuse("a list of at least one id or name of 1 to 255 characters; leave it out for all")
    return frozenset(names)
