# SPDX-License-Identifier: Apache-2.0
"""What every route has from 1.1 on: lists of errors, known queries, pages, tags and compression; a made-up table."""

from __future__ import annotations

import gzip
import json
import re
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from blazar.api.app import create_app
from blazar.api.http.answers import Answer, link_pages, weak_tag, zstd
from blazar.api.http.faults import CODES, PREFIX
from blazar.api.http.identity import StandaloneIdentity
from blazar.api.http.openapi import Served
from blazar.api.http.policy import Policy
from blazar.api.http.queries import compare_by, filter_by, marker_of, option, paging, read
from blazar.api.http.readers import Choice, Date, Flag, JsonText, Length, Number, Text
from blazar.api.http.routes import READER, Body, Caching, Part, Root, Route, Rule, in_path
from blazar.api.parts import BUILTIN
from blazar.model.base import errors
from blazar.model.base.clock import zulu
from blazar.model.base.errors import BlazarError, CloudRefused, InvalidInput, NotFound
from blazar.model.base.moments import Duration
from blazar.model.base.paging import Condition, Operator, Page, Position
from blazar.rpc.interface import Manager
from tests.api.conftest import token

RULE = Rule("blazar:stars:use", READER, "Look.")
KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, BlazarError)]
NAMES = [f"star-{number:03}" for number in range(250)]
STAR = {
    "type": "object",
    "required": ["name", "size"],
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string", "description": "a name"},
        "size": {"enum": ["dwarf", "giant"], "description": "dwarf or giant"},
        "planets": {"type": "array", "items": {"type": "object", "required": ["a/b"], "description": "planets"}},
    },
}
PARAMETERS = (
    *paging(["name", "size"], fields=["name", "size"]),
    filter_by("name", Text(), "the name"),
    filter_by("seen", Flag(), "whether it was seen"),
    compare_by("since", Date(), "seen since"),
    option("step", Length(), "a step"),
    option("group_by", Choice(("name", "size")), "a group", most=2),
    option("hosts", Number(1, 20), "how many"),
    option("requirement", JsonText(), "a requirement"),
)
raised: list[Exception] = []


def listed(call):
    page = call.asked.page("name")
    after = page.after.id if isinstance(page.after, Position) else page.after or ""
    rest = [name for name in NAMES if name > after]
    shown = rest[: page.limit]
    following = Position(shown[-1], shown[-1]) if len(rest) > page.limit else None
    return link_pages({"stars": [call.asked.only({"id": n, "name": n, "size": 1}) for n in shown]}, following)


def fails(call):
    raise raised[-1]


def one(call, name):
    return Answer({"name": name * 2000}, etag='"14.1.a"', headers={"X-Star": name})


route = partial(Route, root=Root.V1, rule=RULE, summary="Stars", answers={200: {}}, render=lambda v: v)
PART = Part(
    "stars",
    routes=(
        route(method="GET", path="/stars", name="stars", handler=listed, parameters=PARAMETERS),
        route(
            method="POST",
            path="/stars",
            name="make_star",
            handler=lambda call: Answer(call.body(), etag='"1"', status=201),
            body=Body("Star", STAR, ({"name": "x", "size": "dwarf"},)),
        ),
        route(
            method="GET",
            path="/stars/{name}",
            name="star",
            handler=one,
            parameters=(in_path("name", "its name"),),
            caching=Caching.STRONG,
        ),
        route(method="GET", path="/failures", name="failure", handler=fails),
        route(method="GET", path="/secrets", name="secrets", handler=lambda call: {"a": 1}, caching=Caching.NONE),
    ),
    rules=(RULE,),
)


@pytest.fixture(scope="module")
def http():
    parts = (*BUILTIN, PART)
    served, policy = Served(parts, newest=(1, 1)), Policy(parts=parts)
    app = create_app(cast(Manager, None), identity=StandaloneIdentity(), policy=policy, served=served)
    return app.test_client()


def ask(http, path, method="GET", headers=None, **more):
    versioned = {"OpenStack-API-Version": "reservation 1.1", **token(), **(headers or {})}
    return http.open(path, method=method, headers=versioned, **more)


def faults(answer):
    return answer.json["errors"]


def test_every_class_of_errors_has_a_code_of_the_catalogue(http):
    assert {kind.code for kind in KINDS} <= CODES.keys()
    document = http.get("/openapi.json").json["x-error-codes"]
    assert document == {PREFIX + c: {"status": each.status, "title": each.title} for c, each in CODES.items()}


def test_the_page_has_every_code_with_its_status():
    page = (
        (Path(__file__).parents[3] / "docs" / "api.md").read_text(encoding="utf-8").partition("## Codes of errors")[2]
    )
    rows = re.findall(r"^\| (`.*?) \| (\d+) \|", page.partition("\n## ")[0], re.M)
    assert {code: int(status) for codes, status in rows for code in re.findall(r"`(\w+)`", codes)} == {
        code: each.status for code, each in CODES.items()
    }


@pytest.mark.parametrize("code", sorted(CODES))
def test_an_error_has_the_status_and_the_title_of_its_code(http, code):
    raised.append(NotFound("No such star.", code=code, at="/a/0", data={"maximum": 3}))
    answer = ask(http, "/v1/failures")
    assert answer.status_code == CODES[code].status
    (fault,) = faults(answer)
    assert fault == {
        "status": CODES[code].status,
        "code": f"reservation.{code}",
        "title": CODES[code].title,
        "detail": "No such star.",
        "request_id": answer.headers["x-openstack-request-id"],
        "pointer": "/a/0",
        "data": {"maximum": 3},
        "links": [{"rel": "help", "href": f"http://localhost/openapi.json#/x-error-codes/reservation.{code}"}],
    }
    wait = CODES[code].retry_after
    assert answer.headers.get("Retry-After") == (None if wait is None else str(wait))
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["OpenStack-API-Version"] == "reservation 1.1"


@pytest.mark.parametrize("error", [BlazarError("secret"), RuntimeError("secret")], ids=["ours", "another"])
def test_of_a_bug_nothing_but_the_request_id_is_told(http, error):
    raised.append(error)
    answer = ask(http, "/v1/failures")
    assert (answer.status_code, faults(answer)[0]["code"]) == (500, "reservation.internal_error")
    assert "secret" not in answer.text


def test_a_code_of_a_later_manager_becomes_that_of_the_class(http):
    raised.append(InvalidInput("no", code="not_yet_known"))
    assert faults(ask(http, "/v1/failures"))[0]["code"] == "reservation.invalid_value"


def test_the_words_of_the_cloud_are_for_operators(http):
    raised.append(CloudRefused("Nova refused node-7"))
    assert "node-7" not in ask(http, "/v1/failures").text
    assert "node-7" in ask(http, "/v1/failures", headers=token("root", "demo", "admin")).text


@pytest.mark.parametrize("kind", KINDS)
def test_what_a_member_reads_of_an_error_of_the_cloud_names_nothing(http, kind):
    raised.append(kind("Nova on node-7 is not there"))
    answer = ask(http, "/v1/failures")
    tells = kind.public is not None
    assert tells or not issubclass(kind, errors.CloudUnavailable | errors.CloudRefused) or kind is errors.ClaimLost
    assert ("node-7" in answer.text) == (not tells and kind is not BlazarError)


def test_every_fault_of_a_body_is_told_in_its_order(http):
    body = {"planets": [{}], "size": "tiny", "status": 1, "colour/": 2, "name": 5}
    answer = ask(http, "/v1/stars", "POST", json=body)
    assert answer.status_code == 400
    assert [(f["code"].partition(".")[2], f["pointer"]) for f in faults(answer)] == [
        ("missing_field", "/planets/0/a~1b"),
        ("invalid_value", "/size"),
        ("read_only_field", "/status"),
        ("unknown_field", "/colour~1"),
        ("invalid_value", "/name"),
    ]
    assert faults(answer)[1]["data"] == {"allowed": ["dwarf", "giant"]}
    missing = ask(http, "/v1/stars", "POST", json={})
    assert [f["pointer"] for f in faults(missing)] == ["/name", "/size"]
    many = ask(http, "/v1/stars", "POST", json={f"key{n}": n for n in range(200)})
    assert len(faults(many)) == 50


@pytest.mark.parametrize(
    ("data", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "invalid_json"),
        (b"[]", "application/json", 400, "invalid_json"),
        (b'{"a": 1, "a": 2}', "application/json", 400, "invalid_json"),
        (b"<x/>", "text/xml", 415, "unsupported_media_type"),
        (b'{"name": "' + b"x" * 1_100_000 + b'"}', "application/json", 413, "body_too_large"),
    ],
)
def test_a_body_that_cannot_be_read_is_told_in_the_same_shape(http, data, kind, status, code):
    answer = ask(http, "/v1/stars", "POST", data=data, content_type=kind)
    assert (answer.status_code, faults(answer)[0]["code"]) == (status, f"reservation.{code}")


def test_unknown_urls_and_methods_are_told_in_the_same_shape(http):
    assert faults(ask(http, "/v1/nowhere"))[0]["code"] == "reservation.uri_not_found"
    wrong = ask(http, "/v1/stars", "PATCH")
    assert (wrong.headers["Allow"], faults(wrong)[0]["code"]) == (
        "GET, HEAD, OPTIONS, POST",
        "reservation.method_not_allowed",
    )
    assert "error_message" in http.get("/v1/nowhere", headers=token()).json


@pytest.mark.parametrize(
    ("version", "status", "code"), [("one", 400, "invalid_version"), ("9.9", 406, "version_unsupported")]
)
def test_an_error_of_the_version_header_has_both_shapes(http, version, status, code):
    answer = http.get("/v1/stars", headers={"OpenStack-API-Version": f"reservation {version}", **token()})
    (fault,) = faults(answer)
    assert (answer.status_code, answer.json["error"], fault["status"]) == (status, status, status)
    assert answer.json["error_message"] == fault["detail"]
    assert fault["code"] == f"reservation.{code}"
    assert (fault["header"], fault["min_version"], fault["max_version"]) == ("OpenStack-API-Version", "1.0", "1.1")


def test_a_401_has_the_shape_of_keystone(http):
    answer = ask(http, "/v1/stars", headers={"X-Auth-Token": "nobody"})
    assert (answer.status_code, answer.json["error"]["code"]) == (401, 401)


@pytest.mark.parametrize(
    ("query", "code", "parameter"),
    [
        ("colour=red", "unknown_query_parameter", "colour"),
        ("limit=0", "invalid_query", "limit"),
        ("limit=-1", "invalid_query", "limit"),
        ("limit=many", "invalid_query", "limit"),
        ("limit=%D9%A1", "invalid_query", "limit"),
        ("limit=1&limit=2", "invalid_query", "limit"),
        ("sort_key=colour", "invalid_query", "sort_key"),
        ("sort_dir=up", "invalid_query", "sort_dir"),
        ("with_count=1", "invalid_query", "with_count"),
        ("fields=name,colour", "invalid_query", "fields"),
        ("seen=yes", "invalid_query", "seen"),
        ("seen=gt:true", "invalid_query", "seen"),
        ("name=in:" + ",".join("x" * 51), "out_of_bounds", "name"),
        ("name=", "invalid_query", "name"),
        ("name=a%00b", "invalid_query", "name"),
        ("since=yesterday", "invalid_date", "since"),
        ("since=in:now", "invalid_query", "since"),
        ("since=2026-11-26T16:00+01:00", "invalid_date", "since"),
        ("step=0s", "invalid_date", "step"),
        ("group_by=name&group_by=name&group_by=size", "invalid_query", "group_by"),
        ("hosts=21", "out_of_bounds", "hosts"),
        ("requirement={", "invalid_query", "requirement"),
        ("requirement=5", "invalid_query", "requirement"),
        ("requirement=" + "[" * 41 + "]" * 41, "invalid_query", "requirement"),
        ("requirement=[NaN]", "invalid_query", "requirement"),
        ("marker=", "invalid_marker", "marker"),
        ("marker=c.x", "invalid_marker", "marker"),
        ("marker=c.e30", "invalid_marker", "marker"),
        ("marker=c.bnVsbA", "invalid_marker", "marker"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused_with_the_name_of_the_parameter(http, query, code, parameter):
    answer = ask(http, f"/v1/stars?{query}")
    assert answer.status_code == 400
    (fault,) = faults(answer)
    assert (fault["code"], fault["parameter"]) == (f"reservation.{code}", parameter)


def test_who_may_not_see_a_list_does_not_learn_what_is_wrong_with_the_query(http):
    assert ask(http, "/v1/stars?colour=red", headers=token("nova", "x", "service")).status_code == 403


def test_a_query_is_read_as_it_is_declared():
    sent = {
        "name": ["in:a,b", "neq"],
        "seen": ["true"],
        "since": ["gte:2026-11-26T16:00Z", "lt:now"],
        "step": ["1h"],
        "group_by": ["name", "size"],
        "requirement": ['["==", "$a", "b"]'],
        "limit": ["5000"],
        "marker": [marker_of(Position(None, "i"))],
        "sort_dir": ["desc"],
    }
    query = read(PARAMETERS, sent)
    assert query.conditions == (
        Condition("name", Operator.IN, ("a", "b")),
        Condition("name", Operator.EQ, ("neq",)),
        Condition("seen", Operator.EQ, ("true",)),
        Condition("since", Operator.GTE, ("2026-11-26T16:00:00Z",)),
        Condition("since", Operator.LT, ("now",)),
    )
    assert (query.one("step"), query.all("group_by")) == (Duration(seconds=3600), ("name", "size"))
    assert query.one("requirement") == ["==", "$a", "b"]
    assert query.page("name") == Page(1000, "name", descending=True, after=Position(None, "i"))
    assert query.one("hosts", 3) == 3


def test_a_walk_along_the_links_sees_everything_once(http):
    seen, url = [], "/v1/stars?limit=100&fields=name"
    while url:
        answer = ask(http, url)
        seen += answer.json["stars"]
        links = {link["rel"]: link["href"] for link in answer.json["links"]}
        assert links["self"] == f"http://localhost{url}".replace("http://localhosthttp", "http")
        url = links.get("next")
        assert answer.headers.get("Link") == (f'<{url}>; rel="next"' if url else None)
    assert seen == [{"id": name, "name": name} for name in NAMES]


def test_a_list_has_a_weak_tag_and_is_not_sent_twice(http):
    first = ask(http, "/v1/stars")
    tag = first.headers["ETag"]
    assert tag.startswith('W/"')
    assert first.headers["Cache-Control"] == "private, no-cache"
    for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = ask(http, "/v1/stars", headers={"If-None-Match": known})
        assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", tag)
        assert (again.headers["Cache-Control"], again.headers["Vary"]) == (
            "private, no-cache",
            first.headers["Vary"],
        )
    assert ask(http, "/v1/stars", headers={"If-None-Match": '"other"'}).status_code == 200
    assert ask(http, "/v1/stars?limit=1").headers["ETag"] != tag


def test_a_long_list_is_compressed_for_those_who_take_that(http):
    plain = ask(http, "/v1/stars")
    packed = ask(http, "/v1/stars", headers={"Accept-Encoding": "gzip, br"})
    assert packed.headers["Content-Encoding"] == "gzip"
    assert gzip.decompress(packed.data) == plain.data
    assert int(packed.headers["Content-Length"]) == len(packed.data) < len(plain.data) / 4
    assert packed.headers["Vary"] == plain.headers["Vary"] == "OpenStack-API-Version, Accept-Encoding"
    assert packed.headers["ETag"] == plain.headers["ETag"]
    refused = ask(http, "/v1/stars", headers={"Accept-Encoding": "gzip;q=0"})
    assert "Content-Encoding" not in refused.headers
    assert "Content-Encoding" not in ask(http, "/v1/stars?limit=1", headers={"Accept-Encoding": "gzip"}).headers


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip, deflate, br, zstd", "zstd"),
        ("zstd", "zstd"),
        ("zstd;q=0.5, gzip;q=0.5", "zstd"),
        ("zstd;q=0.5, gzip", "gzip"),
        ("zstd;q=0, gzip", "gzip"),
        ("zstd, gzip;q=0", "zstd"),
        ("*", "gzip"),
        ("*;q=0, zstd", "zstd"),
        ("zstd;q=0, *;q=0", None),
        ("br, deflate", None),
    ],
)
def test_a_coding_is_used_that_the_caller_names(http, accepted, coding):
    plain = ask(http, "/v1/stars")
    packed = ask(http, "/v1/stars", headers={"Accept-Encoding": accepted})
    assert packed.headers.get("Content-Encoding") == coding
    unpacked = {None: bytes, "gzip": gzip.decompress, "zstd": zstd.decompress}[coding](packed.data)
    assert unpacked == plain.data
    assert packed.headers["ETag"] == plain.headers["ETag"]
    # A tag is weak, so that one coding's answer may be kept for another.
    kept = ask(http, "/v1/stars", headers={"Accept-Encoding": "gzip", "If-None-Match": packed.headers["ETag"]})
    assert kept.status_code == 304


def test_a_strong_tag_is_of_bytes_that_nobody_changes(http):
    answer = ask(http, "/v1/stars/vega", headers={"Accept-Encoding": "gzip"})
    assert (answer.headers["ETag"], answer.headers["X-Star"]) == ('"14.1.a"', "vega")
    assert answer.headers["Cache-Control"] == "private, no-cache, no-transform"
    assert answer.headers["Vary"] == "OpenStack-API-Version"
    assert "Content-Encoding" not in answer.headers
    again = ask(http, "/v1/stars/vega", headers={"If-None-Match": 'W/"14.1.a"'})
    assert (again.status_code, again.data, again.headers["ETag"]) == (304, b"", '"14.1.a"')


def test_what_is_made_has_a_tag_and_is_not_kept(http):
    made = ask(http, "/v1/stars", "POST", json={"name": "x", "size": "dwarf"}, headers={"If-None-Match": "*"})
    assert (made.status_code, made.headers["ETag"]) == (201, '"1"')
    assert made.headers["Cache-Control"] == "no-store"
    secret = ask(http, "/v1/secrets")
    assert (secret.headers["Cache-Control"], "ETag" in secret.headers) == ("no-store", False)


def test_a_head_has_the_headers_of_a_get(http):
    get, head = ask(http, "/v1/stars"), ask(http, "/v1/stars", "HEAD")
    assert head.data == b""
    for name in ("ETag", "Cache-Control", "Vary", "Link", "Content-Length"):
        assert head.headers.get(name) == get.headers.get(name)


def test_weak_tags_differ_where_parts_do():
    assert weak_tag("a", "bc") != weak_tag("ab", "c")
    assert weak_tag(1, json.dumps([1])) == weak_tag("1", b"[1]")


def test_an_instant_is_written_to_the_second(world):
    assert zulu(world.clock.now()) == "2030-04-01T12:00:00Z"
