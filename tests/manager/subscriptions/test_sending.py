# SPDX-License-Identifier: Apache-2.0
"""A round of messages: several at a time, those about one object in order, and what is said of all of them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

from blazar.clouds.ports.webhooks import Reception, WebhookReceipt
from blazar.manager.subscriptions.sending import LANES, MANY, Sending, merge_lanes, share_messages
from blazar.model.base.clock import SystemClock
from blazar.model.subscriptions.messages import Message
from blazar.model.subscriptions.rounds import Round


def about(position: int, *objects: str) -> Message:
    return Message(f"e-{position}", "x", b"", frozenset(objects), ((position, f"e-{position}", "t", objects[0]),))


def send(messages, answer, *, several: bool = True) -> tuple[Round, list[tuple[int, int]]]:
    """Send messages; return the result, and the place and the thread of each call."""
    called, lock = [], threading.Lock()

    @contextmanager
    def line() -> Iterator:
        def one(message: Message) -> WebhookReceipt:
            with lock:
                called.append((message.entries[0][0], threading.get_ident()))
            return answer(message)

        yield one

    sending = Sending(line, SystemClock(), threading.Event())
    result = sending.send_all(messages, through=1000, several=several)
    assert sending.calls == len(called)
    return result, called


def accept(message: Message) -> WebhookReceipt:
    return WebhookReceipt(Reception.ACCEPTED)


@pytest.mark.parametrize("several", [True, False])
def test_what_is_told_of_an_object_is_told_in_order(several):
    messages = [about(n, f"lease-{n % 7}") for n in range(1, 101)]
    together, first = threading.Barrier(LANES), {1, 2, 3, 4}

    def meet(message: Message) -> WebhookReceipt:
        if several and message.entries[0][0] in first:
            together.wait(20)
        return accept(message)

    result, called = send(messages, meet, several=several)
    assert result == Round(1000, accepted=100)
    by_object = defaultdict(list)
    for position, _ in called:
        by_object[position % 7].append(position)
    assert all(found == sorted(found) for found in by_object.values())
    assert several or len({thread for _, thread in called}) == 1


def test_a_few_and_lists_go_one_after_the_other():
    few = [about(n, str(n)) for n in range(1, MANY)]
    lists = [about(n, str(n), str(n + 1)) for n in range(1, 2 * MANY)]
    assert [len(share_messages(found, LANES)) for found in (few, lists, [])] == [1, 1, 0]
    assert merge_lanes([], through=5) == Round(5)


@given(st.lists(st.integers(0, 9), max_size=120), st.integers(1, 6))
def test_each_message_is_in_one_lane_with_all_about_its_object(objects, lanes):
    messages = [about(n + 1, str(name)) for n, name in enumerate(objects)]
    shared = share_messages(messages, lanes)
    assert sorted(m.entries[0][0] for lane in shared for m in lane.messages) == list(range(1, len(messages) + 1))
    owners = defaultdict(set)
    for number, lane in enumerate(shared):
        assert [m.entries[0][0] for m in lane.messages] == sorted(m.entries[0][0] for m in lane.messages)
        for message in lane.messages:
            owners[message.objects].add(number)
    assert all(len(found) == 1 for found in owners.values())
    assert len(shared) <= lanes


@given(st.sets(st.integers(1, 60)), st.sets(st.integers(1, 60), max_size=3))
def test_the_place_goes_no_further_than_what_was_accepted_or_refused(refused, failing):
    messages = [about(n, f"lease-{n % 9}") for n in range(1, 61)]

    def judge(message: Message) -> WebhookReceipt:
        place = message.entries[0][0]
        reception = Reception.FAILED if place in failing else Reception.REFUSED if place in refused else None
        return WebhookReceipt(reception or Reception.ACCEPTED, "no" if reception else None)

    result, called = send(messages, judge)
    done = {place for place, _ in called} - failing
    left = min((p for p in (result.held, result.failed, *(m.position for m in result.refused)) if p), default=1001)
    assert all(place in done for place in range(1, min(left, 61)))
    assert {m.position for m in result.refused} == refused & done
    assert result.accepted == len(done - refused)
    assert (result.failure is None) is (not ({place for place, _ in called} & failing))
