# SPDX-License-Identifier: Apache-2.0
"""What one look after the other says of resources, and what Nova's notifications are about."""

from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
import pytest
from hypothesis import given

from blazar.manager.health.resource_states import VANISHED, judge
from blazar.manager.health.service_updates import compute_host
from blazar.manager.leases.flags import change_notification, set_flags
from tests.builders import NOON, a_host

DOWN = "its nova-compute is down"


def failed(host):
    return replace(host, failure=DOWN, failed_since=NOON, reservable=False)


def test_a_host_fails_when_so_many_looks_in_a_row_say_so():
    hosts = [a_host(1), a_host(2)]
    seen = {"node-1": DOWN, "node-2": None}
    first = judge(hosts, seen, {}, needed=3)
    second = judge(hosts, seen, first.counts, needed=3)
    third = judge(hosts, seen, second.counts, needed=3)
    assert (first.failed, second.failed, third.failed) == ({}, {}, {1: DOWN})
    assert (first.counts, second.counts, third.counts) == ({1: 1}, {1: 2}, {})


def test_a_look_that_agrees_begins_the_count_again():
    hosts = [a_host(1)]
    first = judge(hosts, {"node-1": DOWN}, {}, needed=2)
    again = judge(hosts, {"node-1": None}, first.counts, needed=2)
    assert judge(hosts, {"node-1": DOWN}, again.counts, needed=2).failed == {}


def test_what_is_not_in_the_list_has_vanished_unless_nothing_of_ours_is():
    hosts = [a_host(1), a_host(2)]
    assert judge(hosts, {"node-2": None}, {}, needed=1).failed == {1: VANISHED}
    assert judge(hosts, {"node-9": None}, {1: 1}, needed=1).counts == {1: 1}
    assert judge(hosts, {}, {}, needed=1).failed == {}


def test_what_was_said_by_the_name_of_the_host_or_its_service_counts_at_once():
    service = replace(a_host(1), attributes={"service_name": "cn1"})
    for hints in ({"node-1"}, {"cn1"}):
        assert judge([service], {"node-1": DOWN}, {}, needed=9, hints=hints).failed == {1: DOWN}
        assert judge([failed(service)], {"node-1": None}, {}, needed=9, hints=hints).recovered == {1}
    assert judge([service], {"node-1": DOWN}, {}, needed=9, hints={"node-10"}).failed == {}


@given(st.lists(st.booleans(), max_size=40), st.integers(1, 4))
def test_the_state_is_that_of_the_last_so_many_looks_that_agreed(looks, needed):
    host, counts = a_host(1), {}
    state, run = True, []
    for well in looks:
        verdict = judge([host], {"node-1": None if well else DOWN}, counts, needed=needed)
        counts = verdict.counts
        if verdict.failed:
            host = failed(host)
        elif verdict.recovered:
            host = a_host(1)
        run = [*run, well] if run and run[-1] == well else [well]
        if len(run) >= needed:
            state = well
        assert (host.failure is None) == state


@pytest.mark.parametrize(
    ("event_type", "payload", "host"),
    [
        ("service.update", {"nova_object.data": {"host": "cn1", "binary": "nova-compute", "disabled": True}}, "cn1"),
        ("service.update", {"nova_object.data": {"host": "cn1", "binary": "nova-conductor"}}, None),
        ("service.update", {"nova_object.data": {"host": "cn1"}}, "cn1"),
        ("service.create", {"nova_object.data": {"host": "cn1", "binary": "nova-compute"}}, None),
        ("service.update", {"nova_object.data": {"host": 5, "binary": "nova-compute"}}, None),
        ("service.update", {"nova_object.data": {"host": "", "binary": "nova-compute"}}, None),
        ("service.update", {"nova_object.data": ["host"]}, None),
        ("service.update", {"host": "cn1"}, None),
        ("service.update", "cn1", None),
        ("service.update", None, None),
    ],
)
def test_a_notification_is_about_a_compute_host_or_about_nothing(event_type, payload, host):
    assert compute_host(event_type, payload) == host


def test_the_world_hears_of_what_gets_worse_and_of_the_end_of_it(world):
    lease = world.lease()
    (reservation,) = lease.reservations

    def with_flags(missing, changed):
        flags = replace(reservation, missing_resources=missing, resources_changed=changed)
        return replace(lease, reservations=(flags,))

    cases = {
        ((False, False), (True, False)): "lease.degraded",
        ((False, False), (False, True)): "lease.degraded",
        ((True, False), (False, False)): "lease.healed",
        ((True, False), (False, True)): "lease.healed",
        ((True, False), (True, True)): None,
        ((True, False), (True, False)): None,
        ((False, True), (True, True)): "lease.degraded",
        ((False, True), (False, True)): None,
    }
    for (before, after), notification in cases.items():
        assert change_notification(with_flags(*before), with_flags(*after)) == notification, (before, after)


def test_flags_that_say_it_already_change_nothing(world):
    lease = world.lease()
    assert set_flags(lease, world.store.calendar.of_lease(lease.id), (), now=NOON) is lease
