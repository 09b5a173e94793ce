# SPDX-License-Identifier: Apache-2.0
"""What metrics tell of messages between API and managers."""

from __future__ import annotations

import oslo_messaging
import pytest

from blazar.model.base.errors import BlazarError, ManagerUnavailable, NotFound
from blazar.model.resources.resource import HOST
from blazar.observe import metrics
from blazar.rpc import client, codec
from tests.counted import growing, number
from tests.observed import FailingManager


def test_an_answer_and_a_refusal_are_counted_at_both_ends(remote):
    call = {"call": "leases.one"}
    with (
        growing(metrics.RPC_CLIENT_CALLS, outcome="refused"),
        growing(metrics.RPC_REQUESTS, **call, outcome="refused"),
        pytest.raises(NotFound),
    ):
        remote.leases.one("00000000-0000-0000-0000-000000000000")
    spent = number(metrics.RPC_CLIENT_CALL_DURATION), number(metrics.RPC_REQUEST_DURATION)
    with growing(metrics.RPC_CLIENT_CALLS, outcome="ok"), growing(metrics.RPC_REQUESTS, outcome="ok"):
        remote.resources.properties(HOST, include_private=False)
    assert (number(metrics.RPC_CLIENT_CALL_DURATION), number(metrics.RPC_REQUEST_DURATION)) == tuple(
        each + 1 for each in spent
    )


def test_a_bug_of_the_manager_is_an_error(serve, world):
    remote = serve(FailingManager(world.manager, ZeroDivisionError("inside")))
    with (
        growing(metrics.RPC_CLIENT_CALLS, outcome="error"),
        growing(metrics.RPC_REQUESTS, outcome="error"),
        pytest.raises(BlazarError),
    ):
        remote.leases.all(None)


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (oslo_messaging.MessagingTimeout("late"), "timeout"),
        (oslo_messaging.MessageUndeliverable("nobody", "blazar.manager", "topic", "message"), "undelivered"),
        (RuntimeError("of a driver"), "undelivered"),
    ],
)
def test_a_message_without_an_answer_says_why(bus, serve, world, monkeypatch, error, outcome):
    serve(world.manager)
    monkeypatch.setattr(client._until_taken, "stop", lambda _: True)

    def fail(send, context, message):
        raise error

    before = number(metrics.RPC_CLIENT_CALLS, outcome=outcome)
    with pytest.raises(ManagerUnavailable):
        bus.wired(fail).leases.all(None)
    assert number(metrics.RPC_CLIENT_CALLS, outcome=outcome) > before


@pytest.mark.parametrize(
    ("message", "outcome"),
    [
        ({"answer": "x"}, "ok"),
        ({"error": "NotFound"}, "refused"),
        ({"error": "StoreUnavailable"}, "error"),
        ({"error": "OfALaterVersion"}, "error"),
        (None, "ok"),
    ],
)
def test_the_outcome_of_a_message_is_that_of_its_error(message, outcome):
    assert codec.read_outcome(message) == outcome
