# SPDX-License-Identifier: Apache-2.0
"""What services, proxies and Keystone say when they refuse, and the exceptions that it becomes."""

from __future__ import annotations

import pytest
from blazarclient import answers, exception
from blazarclient.exception import BlazarClientException, Fault

PAGE = """<!DOCTYPE html><html><head><title>503</title><style>h1 {color: red}</style></head>
<body><h1>503 Service Unavailable</h1><script>alert(1)</script><p>No server is available.</p></body></html>"""


def one(status, body):
    [fault] = answers.faults(status, body)
    return fault


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"error_code": 404, "error_message": "lease not found"}, "lease not found"),
        ({"error": {"code": 401, "message": "Expired", "title": "Unauthorized"}}, "Expired"),
        ({"error": "Denied"}, "Denied"),
        ({"faultstring": "No such flavor"}, "No such flavor"),
        ({"error_message": {"faultstring": "Wrapped"}}, "Wrapped"),
        ({"message": "Slow down"}, "Slow down"),
        ('{"error_message": "as text"}', "as text"),
        ({"errors": [{"title": "Only a title"}]}, "Only a title"),
        ({"errors": [{}]}, "HTTP 500"),
        ({"unknown": 1}, 'HTTP 500: {"unknown": 1}'),
        ([1, 2], "HTTP 500: [1, 2]"),
        ("plain words", "HTTP 500: plain words"),
        ("", "HTTP 500 without a word of explanation"),
        (None, "HTTP 500 without a word of explanation"),
        (PAGE, "HTTP 500: 503 Service Unavailable No server is available."),
    ],
)
def test_every_shape_of_a_refusal_has_a_sentence(body, expected):
    assert one(500, body).detail == expected


def test_a_long_page_is_cut():
    assert len(one(500, "x " * 5000).detail) < 450


def test_several_faults_of_one_body_are_all_told_with_their_places():
    errors = [
        {"status": 400, "code": "reservation.invalid_value", "detail": "is too long", "pointer": "/name"},
        {"status": "400", "code": "reservation.out_of_bounds", "detail": "limit is 1000", "parameter": "limit"},
        {"status": 400, "code": "reservation.unknown_field", "detail": "5 is unknown", "pointer": "/reservations/0/n"},
    ]
    refused = answers.refused(400, {"errors": errors}, {})
    assert str(refused) == "/name: is too long limit is 1000 /reservations/0/n: 5 is unknown"
    assert [fault.status for fault in refused.faults] == [400, 400, 400]
    assert refused.fault.pointer == "/name"


def test_an_item_is_named_unless_it_is_the_first():
    assert str(Fault(400, "10 is too many", pointer="/reservations/1")) == "/reservations/1: 10 is too many"
    assert str(Fault(409, "Not enough hosts.", pointer="/reservations/0")) == "Not enough hosts."


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, exception.InvalidRequest),
        (401, exception.NotAuthorized),
        (403, exception.Forbidden),
        (404, exception.NotFound),
        (406, exception.UnsupportedVersion),
        (409, exception.Conflict),
        (412, exception.PreconditionFailed),
        (429, exception.TooManyRequests),
        (500, BlazarClientException),
        (502, exception.ServiceUnavailable),
        (503, exception.ServiceUnavailable),
        (504, exception.ServiceUnavailable),
        (418, BlazarClientException),
    ],
)
def test_the_status_is_the_class_and_the_code(status, kind):
    error = answers.refused(status, {"error_message": "no"}, {"x-openstack-request-id": "req-1"}, prefix="ERROR: ")
    assert type(error) is kind
    assert (error.code, error.kwargs["code"], error.request_id) == (status, status, "req-1")
    assert str(error) == "ERROR: no"


def test_a_code_says_more_than_the_status():
    for code, kind in (("limit_exceeded", exception.LimitExceeded), ("forbidden", exception.Forbidden)):
        errors = [{"status": 403, "code": f"reservation.{code}", "detail": "no"}]
        assert type(answers.refused(403, {"errors": errors}, {})) is kind


@pytest.mark.parametrize(
    ("value", "expected"),
    [(None, None), ("5", 5), ("0.5", 0.5), ("-1", 0), ("soon", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0)],
)
def test_how_long_to_wait(value, expected):
    assert answers.seconds_to_wait(value) == expected


@pytest.mark.parametrize("zone", ["GMT", "-0000"])
def test_how_long_to_wait_until_a_date(zone):
    assert answers.seconds_to_wait(f"Wed, 21 Oct 2400 07:28:00 {zone}") > 1e9


def test_an_exception_has_a_message_of_its_class_or_its_own():
    assert str(exception.NoUniqueMatch()) == "Several resources have this name; give an id."
    assert str(BlazarClientException("50% of it")) == "50% of it"
    assert BlazarClientException("x", code=418, more=1).kwargs == {"code": 418, "more": 1}
    assert exception.ResourcePropertyNotFound().code == 404
    assert BlazarClientException().fault is None
