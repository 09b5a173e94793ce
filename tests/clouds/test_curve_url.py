# SPDX-License-Identifier: Apache-2.0
"""The curve of carbon by HTTPS: what is read of an answer, and what is refused."""

from __future__ import annotations

import json
from fractions import Fraction
from types import SimpleNamespace

import pytest

from blazar.clouds.curve_url import MOST_BYTES, CurveUrl, read_json
from blazar.clouds.outgoing.posting import NotAllowed, Reply
from blazar.model.base.errors import CloudUnavailable, InvalidInput

HOUR = 3600
ENTRIES = {
    "history": [
        {"datetime": "1970-01-01T00:00:00.000Z", "carbonIntensity": 302},
        {"datetime": "1970-01-01T01:00:00.000Z", "carbonIntensity": None},
        {"datetime": "1970-01-01T02:00:00.000Z", "carbonIntensity": 290.5},
    ]
}


def a_section(**more):
    usual = {
        "carbon_url": "https://carbon.example.org/v3/history?zone=DE",
        "carbon_list": "history",
        "carbon_time": "datetime",
        "carbon_value": "carbonIntensity",
        "carbon_header": "auth-token",
        "carbon_token": "secret",
        "carbon_networks": [],
        "carbon_timeout": 1.0,
    }
    return SimpleNamespace(**{**usual, **more})


def a_curve(reply=None, *, error=None, **more):
    """Return a curve whose service answers like this, and what it was sent."""
    curve, sent = CurveUrl.configured(a_section(**more), Fraction(1), None), []

    def send(request, seconds):
        sent.append(request)
        if error is not None:
            raise error
        return reply

    curve._poster = SimpleNamespace(send=send)
    return curve, sent


def test_json_is_read_by_the_names_that_are_configured():
    curve, sent = a_curve(Reply(200, body=json.dumps(ENTRIES).encode()))
    assert curve.read_curve().values == {}
    assert curve.fetch_curve().values == {0: 302, 2 * HOUR: Fraction(581, 2)}
    assert curve.read_curve().values == curve.fetch_curve().values
    (request, *_) = sent
    assert (request.method, request.path) == ("GET", "/v3/history?zone=DE")
    assert (request.headers["auth-token"], request.most) == ("secret", MOST_BYTES)


def test_parts_of_an_hour_have_their_mean_in_it():
    entries = [
        {"from": "1970-01-01T00:00Z", "intensity": {"actual": 100}},
        {"from": "1970-01-01T00:30Z", "intensity": {"actual": 101}},
    ]
    curve = read_json({"data": entries}, "data", "from", "intensity.actual")
    assert curve.values == {0: Fraction(201, 2)}
    assert read_json(entries, "", "from", "intensity.actual").values == curve.values


def test_csv_is_read_as_that_of_a_file():
    curve, _ = a_curve(Reply(200, body=b"start,value\n1970-01-01T00:00:00Z,302\n"))
    assert curve.fetch_curve().values == {0: 302}


@pytest.mark.parametrize(
    ("reply", "sentence"),
    [
        (Reply(302), "answered 302, a redirect, which is never followed"),
        (Reply(401, body=b"{}"), "answered 401"),
        (Reply(200), "more than 1048576 bytes, or did not arrive whole"),
        (Reply(200, body=b"{"), "neither CSV nor JSON"),
        (Reply(200, body=b"[" * 100_000), "neither CSV nor JSON"),
        (Reply(200, body=b"\xff"), "neither CSV nor JSON"),
        (Reply(200, body=b"{}"), "carbon_list is 'history', and there is no list"),
        (Reply(200, body=b"<html>"), "the first line must be start,value"),
        (Reply(200, body=b'{"history": [{"datetime": "x", "carbonIntensity": 1}]}'), "no instant and no number"),
        (Reply(200, body=b'{"history": [{"datetime": "1970-01-01", "carbonIntensity": 1}]}'), "has no offset"),
    ],
)
def test_what_cannot_be_read_is_no_curve_and_the_last_one_stays(reply, sentence):
    curve, _ = a_curve(Reply(200, body=json.dumps(ENTRIES).encode()))
    known = curve.fetch_curve()
    curve._poster.send = lambda *_: reply
    with pytest.raises(CloudUnavailable, match=sentence):
        curve.fetch_curve()
    assert curve.read_curve() is known


@pytest.mark.parametrize("error", [NotAllowed("not there"), TimeoutError(), ConnectionRefusedError()])
def test_a_service_that_cannot_be_asked_tells_nothing(error):
    curve, _ = a_curve(error=error)
    with pytest.raises(CloudUnavailable, match="the"):
        curve.fetch_curve()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"carbon_url": "http://carbon.example.org/"}, "carbon_url begins with http://"),
        ({"carbon_url": "https://169.254.169.254/"}, "no network of .energy. carbon_networks has it"),
        ({"carbon_url": "https://127.0.0.1/"}, "an address of this machine"),
        ({"carbon_url": "https://me:word@carbon.example.org/"}, "leave out the user name and password"),
        ({"carbon_header": "a b"}, "give the name of a header"),
        ({"carbon_token": "ä"}, "carbon_token has characters that a header cannot have"),
    ],
)
def test_a_url_that_must_not_be_called_is_refused_when_a_process_starts(options, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        CurveUrl.configured(a_section(**options), Fraction(1), None)
