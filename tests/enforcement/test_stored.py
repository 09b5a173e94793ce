# SPDX-License-Identifier: Apache-2.0
"""Filter notifications in the outbox keep their stored form: older and newer managers read each other's messages."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from blazar.enforcement import Occasion, stored
from blazar.model.base.amounts import Amounts
from blazar.model.leases.lease import SavedAllocation, SavedState
from blazar.model.leases.reservation import Content
from tests.enforcement.builders import NOON, a_view, notification


def one_with_everything():
    view = a_view(hosts=2)
    reservation = replace(
        view.lease.reservations[0], cloud_ids=Content({"aggregate_id": 7}), unassigned=frozenset({3, 2})
    )
    held = (SavedAllocation("r-1", 4, 1, None), SavedAllocation("r-1", 5, 2, Amounts.of({"VCPU": 2})))
    first, second, *rest = view.lease.events
    events = (
        replace(first, saved_state=SavedState(allocations=held, undone=2)),
        replace(second, saved_state=SavedState(action_asked_at=NOON)),
        *rest,
    )
    lease = replace(view.lease, reservations=(reservation,), events=events)
    return notification(Occasion.UPDATED, replace(view, lease=lease))


def test_what_is_stored_is_read_again():
    sent = one_with_everything()
    assert stored.parse(stored.dump(sent)) == sent
    both = replace(sent, before=sent.view)
    assert stored.parse(stored.dump(both)) == both


def test_the_stored_names_and_shapes_are_those_of_earlier_versions():
    lease = json.loads(stored.dump(one_with_everything()))["view"]["lease"]
    (reservation,) = lease["reservations"]
    assert reservation["parameters"] == {"min": 2, "max": 2, "resource_properties": ""}
    assert reservation["cloud_ids"] == {"aggregate_id": 7, "left_out": [2, 3]}
    assert not reservation.keys() & {"unassigned", "failed", "gone"}
    assert [event["saved_state"] for event in lease["events"]] == [
        {"held": [["r-1", 4, 1, None], ["r-1", 5, 2, {"VCPU": 2}]], "undone": 2},
        {"asked_at": NOON.isoformat()},
        None,
        None,
    ]


@pytest.mark.parametrize("text", ["{}", "[]", "nonsense", '{"view": {"lease": {}}}', '{"view": null}'])
def test_anything_else_is_a_value_error(text):
    with pytest.raises(ValueError):  # noqa: PT011 - JSON and pydantic have their own
        stored.parse(text)
