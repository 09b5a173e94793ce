# SPDX-License-Identifier: Apache-2.0
"""How far a request for a plain lease of hosts goes through the service: each feature that it passes makes it longer.

Who makes the way shorter lowers its limits here.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType

import pytest
from sqlalchemy import event

import blazar
from tests.prices import publish
from tests.statements import counted

ROOT = os.path.dirname(blazar.__file__) + os.sep
PARTS = ("<genexpr>", "<listcomp>", "<dictcomp>", "<setcomp>", "<lambda>")
"""Frames of expressions: newer versions of Python have none of them."""
LEDGER_CALLS = 100
"""How many calls of functions of ours it takes to know what a new lease costs, and to write that: accounts, plans."""


def is_ours(code: CodeType) -> bool:
    return code.co_filename.startswith(ROOT) and code.co_name not in PARTS


@dataclass
class Way:
    """The calls of functions of ours, and how many of them are on the stack at each INSERT."""

    calls: Counter[CodeType] = field(default_factory=Counter)
    stacks: list[int] = field(default_factory=list)

    @property
    def files(self) -> set[str]:
        return {code.co_filename for code in self.calls}


@contextmanager
def followed(engine) -> Iterator[Way]:
    way = Way()

    def note_call(frame: FrameType, what: str, _: object) -> None:
        if what == "call" and is_ours(frame.f_code):
            way.calls[frame.f_code] += 1

    def note_stack(connection, cursor, statement, parameters, context, many) -> None:
        if statement.startswith("INSERT"):
            frame: FrameType | None = sys._getframe()
            depth = 0
            while frame is not None:
                depth += is_ours(frame.f_code)
                frame = frame.f_back
            way.stacks.append(depth)

    event.listen(engine, "before_cursor_execute", note_stack)
    sys.setprofile(note_call)
    try:
        yield way
    finally:
        sys.setprofile(None)
        event.remove(engine, "before_cursor_execute", note_stack)


@pytest.fixture
def create(app):
    client = app.test_client()

    def send(day):
        host = {"resource_type": "physical:host", "min": 1, "max": 1}
        needs = {"hypervisor_properties": "", "resource_properties": ""}
        dates = {"start_date": f"2030-05-0{day} 10:00", "end_date": f"2030-05-0{day} 12:00"}
        made = client.post("/v1/leases", json={"name": "x", **dates, "reservations": [{**host, **needs}]})
        assert made.status_code == 201, made.text

    return send


def test_a_plain_lease_of_hosts_passes_only_what_it_uses(create, world):
    # The second one is the first that finds something in the calendar that is kept.
    create(1)
    create(4)
    with followed(world.engine) as way:
        create(2)
    with counted(world.engine) as statements:
        create(3)
    assert statements.count <= 10
    # The last sends rows, or collects them to be sent with others.
    assert way.stacks[0] <= 11
    # 447 of 75 files before metrics, traces and the journal: a count and a time for each transaction, call and booking.
    # Four for reminders: each write of a lease asks whether it has some. Three for the report of what is refused.
    # Some thirty for money: the ledger asks whether there are prices, budgets whether a share is reached; starts and
    # outages are noted. Ten for the calendar in memory, into which what the creation before has changed is read;
    # two of them tell its two sequences apart, and what this process has booked itself is not read back. Three for what
    # is scarce, and a dozen for how hosts lie to each other.
    # Sixteen for a second write that is shared with others, and has only the columns that differ.
    assert way.calls.total() <= 603, way.calls.most_common(10)
    assert len(way.files) <= 96, sorted(way.files)


def test_a_price_list_makes_the_way_of_a_creation_longer_by_no_more_than_its_ledger(create, world):
    """CPU says little on a machine that does other things: calls and statements are the same on each."""
    create(1)
    with followed(world.engine) as plain:
        create(2)
    publish(world)
    create(3)
    with followed(world.engine) as priced:
        create(4)
    assert len(priced.stacks) - len(plain.stacks) == 2
    assert priced.calls.total() - plain.calls.total() <= LEDGER_CALLS, (priced.calls - plain.calls).most_common(20)
