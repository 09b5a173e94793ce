# SPDX-License-Identifier: Apache-2.0
"""Whatever somebody sends is read in a moment, or refused in one: each parser has a bound in bytes and in work.

Here are all parsers that a member can reach, each with the largest texts that it takes and with hostile ones. What is
sent to routes as a whole is in ``tests/api/http/test_hostile_requests.py``.
"""

from __future__ import annotations

import ast
import base64
import importlib
import inspect
import json
import pkgutil
import re
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import ModuleType

import pytest
from flask import Flask, Response, request
from werkzeug.exceptions import HTTPException

from blazar.api.app import MAX_BODY_BYTES
from blazar.api.http import answers, bodies, microversion, queries, readers
from blazar.api.http.answers import Tags, key_of, link
from blazar.api.http.faults import BadFrame
from blazar.api.http.openapi import Served
from blazar.api.http.routes import Caching
from blazar.api.leases.limits import MOST_TEXT
from blazar.api.leases.v1_0.formats import parse_instant, parse_minute
from blazar.api.parts import all_parts
from blazar.api.series.requests import local
from blazar.manager.requests.resource_lists import page_of
from blazar.model.base import dates
from blazar.model.base.dates import in_query
from blazar.model.base.errors import BlazarError, InvalidInput
from blazar.model.base.paging import Page
from blazar.model.billing.statements import parse_month
from blazar.model.resources.requirements import LONGEST_TEXT, parse_requirement
from blazar.model.series.checks import Fit, SeriesLimits, check_series
from blazar.model.series.recurrence import Recurrence
from blazar.model.series.rule_text import MOST_CHARACTERS, WEEKDAYS, parse_rule
from blazar.resources.networks.parameters import subnet_of
from blazar.resources.request_schemas import SCHEMAS, default_values
from blazar.resources.servers.access import LONGEST_USER_DATA
from blazar.resources.servers.parameters import ServerParameters
from blazar.resources.stacks.documents import parse_document
from blazar.resources.stacks.source import StackSource
from tests.hostile import json_texts, requirement_texts, stack_texts, yaml_texts
from tests.work import Work, work_of

MOST = Work(cpu=0.1, gap=0.05)
MOST_QUERY = 256 * 1024
"""Bytes of a head of a request: the server takes no longer one."""

FIELD = in_query("field")
NOW = datetime(2030, 4, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Parser:
    """A parser, and the hostile texts for it by name."""

    read: Callable[[str], object]
    texts: Mapping[str, str]


LONG = {
    "digits": "1" * MOST_QUERY,
    "blanks": " " * MOST_QUERY,
    "letters": "a" * MOST_QUERY,
    "commas": "," * MOST_QUERY,
    "quotes": '"' * MOST_QUERY,
    "percent": "%41" * (MOST_QUERY // 3),
    "and": "&a=b" * (MOST_QUERY // 4),
    "others": "\u0661\ud7ff\u00b2\u202e" * (MOST_QUERY // 8),
    "combining": "e" + "\u0301" * (MOST_QUERY // 2),
    "pairs": ('W/"a",' * MOST_QUERY)[:MOST_QUERY],
    "dates": ("2030-04-01T08:00:00." + "9" * MOST_QUERY)[:MOST_QUERY] + "Z",
    "duration": "P" + "9" * MOST_QUERY + "Y",
}
DATES = {
    **LONG,
    "years": f"+P{'9' * 60}Y",
    "months": f"+P{'9' * 60}M",
    "seconds": f"+PT{'9' * 58}S",
    "fraction": f"2030-04-01T08:00:00.{'9' * 43}Z",
    "first": "1970-01-01T00:00:00+23:59",
    "year 1": "0001-01-01T00:00:00+23:59",
    "last": "9999-12-31T23:59:59-23:59",
    "offset": "2030-04-01T08:00:00+99:99",
}
RULES = {
    **{name: text[:MOST_CHARACTERS] for name, text in LONG.items()},
    **LONG,
    "semicolons": ";" * MOST_CHARACTERS,
    "days": "FREQ=MONTHLY;BYDAY=" + ",".join(f"{n}{day}" for n in range(1, 6) for day in WEEKDAYS),
    "every day of months": "FREQ=YEARLY;BYMONTHDAY=" + ",".join(map(str, range(1, 32))),
    "never": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "never of months": "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=2,4,6,9,11",
    "never of years": "FREQ=YEARLY;INTERVAL=999;BYMONTH=2;BYDAY=5MO,5TU,5WE,5TH,5FR,5SA,5SU;BYSETPOS=31",
    "positions": "FREQ=YEARLY;BYDAY=MO,TU,WE,TH,FR,SA,SU;BYSETPOS=" + ",".join(map(str, range(1, 32))),
    "most": "FREQ=DAILY;COUNT=1000",
    "until": "FREQ=DAILY;UNTIL=89991231T235959Z",
    "no end": "FREQ=DAILY",
}


def series(text: str) -> object:
    start = datetime(2030, 4, 1, 13)
    added = frozenset(start + timedelta(days=n, hours=1) for n in range(1, 201))
    recurrence = Recurrence(start, "Europe/Paris", parse_rule(text), timedelta(minutes=10), frozenset(), added)
    return check_series(recurrence, Fit.AS_MANY, SeriesLimits(), NOW)


def body(text: str) -> object:
    raw = text.encode("utf-8", "surrogatepass")
    with Flask(__name__).test_request_context(method="POST", data=raw, content_type="application/json"):
        return bodies.read_object(request)


def header(name: str, read: Callable[[], object]) -> Callable[[str], object]:
    def given(text: str) -> object:
        with Flask(__name__).test_request_context(headers={name: text.encode("latin-1", "replace").decode("latin-1")}):
            return read()

    return given


def compressed() -> object:
    return answers.finish(Response(b"x" * answers.COMPRESSED_FROM), Caching.WEAK)


def marked(text: str) -> object:
    """Read a marker of a page, as it is and with the text in it, and show the page."""
    inside = base64.urlsafe_b64encode(json.dumps({"k": text, "i": "1"}).encode("utf-8", "replace")).decode()
    for each in (text, f"c.{text}", f"c.{inside}"):
        with suppress(InvalidInput):
            after = queries.Marker({}).read(each, FIELD)
            page_of([1, 2], Page(10, "name", after=after), value_of=lambda item: item, id_of=str)
    return None


def server_of(field: str) -> Callable[[str], object]:
    usual = {
        **dict.fromkeys(SCHEMAS["virtual:server"]["properties"]),
        **default_values(SCHEMAS["virtual:server"]),
        **{"image": "i", "flavor": "f", "vcpus": 1, "memory_mb": 1, "disk_gb": 1, "before_end": ""},
    }
    return lambda text: ServerParameters.checked({**usual, field: text}, None)


PARSERS: Mapping[str, Parser] = {
    "YAML": Parser(lambda text: parse_document(text, name="template", pointer="/template"), yaml_texts(MOST_TEXT)),
    "template": Parser(lambda text: StackSource.checked({"template": text}), yaml_texts(MOST_TEXT)),
    "stack": Parser(lambda text: StackSource.checked(json.loads(text)), stack_texts()),
    "body": Parser(body, json_texts(MAX_BODY_BYTES)),
    "JSON of a query": Parser(lambda text: readers.JsonText().read(text, FIELD), requirement_texts(LONGEST_TEXT)),
    "long JSON of a query": Parser(lambda text: readers.JsonText().read(text, FIELD), LONG),
    "requirement": Parser(lambda text: parse_requirement(text, field="f"), requirement_texts(LONGEST_TEXT)),
    "requirement as it is": Parser(
        lambda text: parse_requirement(json.loads(text), field="f"),
        {name: text for name, text in requirement_texts(LONGEST_TEXT).items() if name in ("or", "in", "most parts")},
    ),
    "date": Parser(lambda text: dates.date(text, FIELD), DATES),
    "date or duration": Parser(lambda text: dates.moment_or_duration(text, FIELD, backward=True), DATES),
    "day or date": Parser(
        lambda text: readers.DayOrDate().read(text, FIELD), {**DATES, "day": "9999-99-99", "year 0": "0000-01-01"}
    ),
    "month": Parser(parse_month, DATES),
    "duration": Parser(lambda text: dates.duration(text.removeprefix("+"), FIELD), DATES),
    "time zone": Parser(lambda text: dates.zone(text, FIELD), {**LONG, "path": "../" * 9999, "NUL": "UTC\0"}),
    "local time": Parser(lambda text: local(text, "start"), DATES),
    "date of 1.0": Parser(lambda text: parse_minute(text, "start_date"), DATES),
    "date of version 2": Parser(lambda text: parse_instant(text, "start_date"), DATES),
    "rule": Parser(parse_rule, RULES),
    "series": Parser(series, RULES),
    "query": Parser(lambda text: queries.read((), queries.decode_query(text.encode())), LONG),
    "filter": Parser(
        lambda text: queries.read(queries.paging(["name"]), {"limit": [text], "sort_key": [text], "fields": [text]}),
        LONG,
    ),
    "number of a query": Parser(lambda text: readers.Number(1, 9, cut=True).read(text, FIELD), LONG),
    "name of a query": Parser(lambda text: readers.Name(80).read(text, FIELD), LONG),
    "marker": Parser(marked, {**LONG, "number": "1" + "0" * 400, "infinite": "1e400", "deep": "[" * 9000}),
    "If-Match": Parser(header("If-Match", Tags("x", parted=True).wanted), LONG),
    "If-None-Match": Parser(header("If-None-Match", lambda: answers.answer_unchanged('W/"a"')), LONG),
    "Accept-Encoding": Parser(
        header("Accept-Encoding", compressed), {**LONG, "weights": "a;q=0.1," * (MOST_QUERY // 8)}
    ),
    "Content-Type": Parser(
        header("Content-Type", lambda: request.mimetype), {**LONG, "options": 'a/b;a="' + "\\" * 9999}
    ),
    "Host": Parser(header("Host", lambda: link("/v1")), LONG),
    "Cookie": Parser(header("Cookie", lambda: request.cookies), {**LONG, "many": "a=b;" * (MOST_QUERY // 4)}),
    "X-Forwarded-For": Parser(header("X-Forwarded-For", lambda: list(request.access_route)), LONG),
    "Idempotency-Key": Parser(header("Idempotency-Key", lambda: key_of({}, None)), LONG),  # type: ignore[arg-type]
    "OpenStack-API-Version": Parser(lambda text: microversion.read_version(f"reservation {text}", (1, 3)), LONG),
    "user data": Parser(
        server_of("user_data"),
        {
            "most": "QUFB" * (LONGEST_USER_DATA // 4),
            "too much": "QUFB" * (MAX_BODY_BYTES // 4),
            "none": "=" * MAX_BODY_BYTES,
        },
    ),
    "public key": Parser(server_of("public_key"), {**LONG, "data": "ssh-rsa " + "QUFB" * 4000}),
    "metadata": Parser(server_of("metadata"), LONG),
    "subnet": Parser(
        lambda text: [subnet_of({"cidr": text}), subnet_of({"cidr": "10.0.0.0/24", "dns_nameservers": [text]})],
        {
            **LONG,
            "all": "10.0.0.0/0",
            "dots": "." * 9999,
            "zone": "fe80::1%" + "a" * 9999,
            "bits": "10.0.0.0/" + "9" * 9999,
        },
    ),
}
CASES = [
    pytest.param(each, text, id=f"{name}: {what}")
    for name, each in PARSERS.items()
    for what, text in each.texts.items()
]

READ_HERE = {
    "blazar.api.http.answers": "If-None-Match",
    "blazar.api.http.microversion": "OpenStack-API-Version",
    "blazar.model.base.dates": "date",
    "blazar.api.leases.v1_0.formats": "date of 1.0",
    "blazar.api.http.queries": "marker",
    "blazar.api.http.readers": "day or date",
    "blazar.api.series.requests": "local time",
    "blazar.model.base.json_text": "body",
    "blazar.model.billing.statements": "month",
    "blazar.model.resources.requirements": "requirement",
    "blazar.model.series.rule_text": "rule",
    "blazar.resources.networks.parameters": "subnet",
    "blazar.resources.servers.access": "user data",
    "blazar.resources.stacks.yaml_text": "YAML",
}
"""Modules that parse what somebody sends, and their parser in the table."""

OUR_OWN = {
    "blazar.model.billing.published": "what the store has, which was read when it was published",
    "blazar.model.rules.documents": "days of ten characters, and rules that the store has",
    "blazar.model.journal.object_entries": "rules that the store has, which were read when they were written",
    "blazar.api.http.identity": "who listens: the configuration",
    "blazar.api.leases.v1_1.render": "requirements that a lease keeps, checked when it was made",
    "blazar.api.http.csv_text": "dates of reports that the service made",
    "blazar.api.series.render": "requirements that a series keeps, checked when it was made",
    "blazar.api.web.attempts": "the address of a connection",
    "blazar.api.web.cookies": "cookies, after their signature and length were checked",
    "blazar.api.web.pages": "the list of files of the pages",
    "blazar.api.web.origin": "names of hosts, which the standard library refuses by their length",
    "blazar.clouds.outgoing.addresses": "URLs of hooks and subscriptions, which have a schema with a maximum",
    "blazar.clouds.hooks.http": "answers, cut at a maximum",
    "blazar.clouds.outgoing.calls": "URLs of options",
    "blazar.clouds.outgoing.posting": "addresses that a resolver gave",
    "blazar.enforcement.answers": "answers of the external service, cut at a maximum",
    "blazar.enforcement.stored": "what enforcement keeps",
    "blazar.manager.booking.held_calendar": "parameters that a lease keeps",
    "blazar.manager.subscriptions.lease_warnings": "dates that the journal keeps",
    "blazar.manager.search.free_time": "dates that refusals offer",
    "blazar.api.billing.statements": "amounts that the ledger has",
    "blazar.manager.subscriptions.mails": "dates that the journal keeps",
    "blazar.model.billing.focus": "numbers that were computed",
    "blazar.model.energy.carbon": "the curve of a site, which an operator names; at most so many lines",
    "blazar.model.calendar.cells": "what Nova tells of the processors of a host",
    "blazar.model.leases.reminders": "what a lease keeps",
    "blazar.model.leases.stored": "what a lease keeps",
    "blazar.api.leases.v1_0.texts": "what a lease keeps",
    "blazar.model.use.policy": "what a lease keeps",
    "blazar.model.queue": "what a lease keeps",
    "blazar.resources.floating_ips.registration": "subnets and addresses as Neutron tells them, addresses to register",
    "blazar.resources.hosts.pci_aliases": "lines of the configuration, read at the start",
    "blazar.resources.hosts.flavors": "the flavor that a reservation keeps, as Nova told it",
    "blazar.resources.networks.teardown": "addresses that Neutron tells",
    "blazar.resources.contract.schemas": "schemas of packages that are installed",
    "blazar.manager.booking.ranking": "what reservations asked for, checked when they were made",
}
"""Modules that parse nothing that somebody else could make long, and why."""

_PARSING = {"loads", "fromisoformat", "strptime", "b64decode", "ip_network", "ip_address", "ip_interface", "Decimal"}
_PACKAGES = ("api", "clouds.hooks", "clouds.outgoing", "enforcement", "manager", "model", "resources")


@pytest.mark.sample(150)
@pytest.mark.parametrize(("parser", "text"), CASES)
def test_a_parser_reads_or_refuses_in_a_moment(parser, text):
    def read() -> None:
        with suppress(BlazarError, BadFrame, HTTPException):
            parser.read(text)

    work = work_of(read, most=MOST)
    assert work.cpu <= MOST.cpu
    assert work.gap <= MOST.gap


def modules() -> Iterable[ModuleType]:
    """Return the modules that work on what is sent to the service."""
    for name in _PACKAGES:
        package = importlib.import_module(f"blazar.{name}")
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"blazar.{name}."):
            yield importlib.import_module(found.name)


def parses(module: ModuleType) -> bool:
    """Return whether a module calls a parser of a library."""
    calls = (node.func for node in ast.walk(ast.parse(inspect.getsource(module))) if isinstance(node, ast.Call))
    return any(
        (func.attr in _PARSING or ast.unparse(func).startswith("yaml."))
        if isinstance(func, ast.Attribute)
        else isinstance(func, ast.Name) and func.id in _PARSING
        for func in calls
    )


def test_every_module_that_parses_is_in_the_table_or_says_why_not():
    assert READ_HERE.keys().isdisjoint(OUR_OWN)
    assert set(READ_HERE.values()) <= PARSERS.keys()
    found = {module.__name__ for module in modules() if parses(module)}
    assert found - OUR_OWN.keys() <= READ_HERE.keys()
    assert OUR_OWN.keys() <= found


PIECES = ("0", "a", " ", ":", ".", "-", "=", '"', "[", "a.", "a-", "1.", "a:", "A0_", 'W/"a",', "%", "\n", "/")


def patterns() -> Mapping[str, tuple[re.Pattern[str], bool]]:
    """Return the regular expressions of our modules and of schemas, and whether they are looked for within a text."""
    found = {
        f"{module.__name__}.{name}": (value, _is_searched(module, name))
        for module in modules()
        for name, value in vars(module).items()
        if isinstance(value, re.Pattern) and isinstance(value.pattern, str)
    }
    document = json.loads(Served(all_parts()).document("http://x"))
    left: list[object] = [document]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            if isinstance(text := part.get("pattern"), str):
                found[f"pattern {text}"] = re.compile(text), True
            left += part.values()
        elif isinstance(part, list):
            left += part
    return found


def _is_searched(module: ModuleType, name: str) -> bool:
    return re.search(rf"\b{name}\.(search|findall|finditer|sub|split)\b", inspect.getsource(module)) is not None


def test_no_regular_expression_of_ours_goes_back_and_forth():
    """A text of 4 KiB takes each of them some microseconds; one that tries every way takes minutes."""
    found = patterns()
    assert len(found) > 40
    slow = []
    for name, (pattern, is_searched) in found.items():
        began = time.thread_time()
        for piece in PIECES:
            text = piece * (4 * 1024 // len(piece))
            for each in (text, f"{text}!", f"1{text}\0", f"a{text}é"):
                pattern.match(each), pattern.fullmatch(each)
                if is_searched:
                    pattern.search(each), pattern.sub("", each)
        if time.thread_time() - began > len(PIECES) * MOST.cpu:
            slow.append(name)
    assert slow == []
