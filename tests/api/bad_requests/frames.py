# SPDX-License-Identifier: Apache-2.0
"""Bodies that are no JSON, and whatever else is wrong with a request before its content is."""

from __future__ import annotations

from tests.api.bad_requests.builders import MEMBER, Bad


def raw(name: str, data: bytes, says: str, method: str = "POST", path: str = "/v1/leases") -> Bad:
    return Bad(
        f"body: {name}", method, path, 400, says, raw=data, headers={**MEMBER, "Content-Type": "application/json"}
    )


BODIES = [
    raw("no JSON", b"{", "not JSON"),
    raw("a text", b'"x"', "string"),
    raw("a number", b"5", "number"),
    raw("a list", b"[]", "array"),
    raw("null", b"null", "literal"),
    raw("NaN", b'{"name": NaN}', "NaN"),
    raw("infinity", b'{"name": -Infinity}', "Infinity"),
    raw("not UTF-8", b'{"name": "\xff\xfe"}', "UTF-8"),
    raw("UTF-16", '{"name": "x"}'.encode("utf-16"), "UTF-8"),
    raw("a key twice", b'{"name": "a", "name": "b"}', "twice"),
    raw("a NUL character", b'{"name": "a\\u0000b"}', "NUL"),
    raw("half of a pair", b'{"name": "\\ud800"}', "surrogate"),
    raw("bottomless", b"[" * 100000 + b"]" * 100000, "deep"),
    raw("bottomless inside", b'{"reservations": ' + b"[" * 60 + b"]" * 60 + b"}", "deep"),
    raw("a number beyond all", b'{"name": 1e999}', "too large"),
    raw("a number below all", b'{"reservations": [{"x": [-1e999]}]}', "too large"),
    raw("a number without end", b'{"name": ' + b"9" * 5000 + b"}", "JSON"),
    raw("an update that is a list", b"[]", "array", "PUT", "/v1/leases/{lease}"),
    Bad("body: XML", "POST", "/v1/leases", 400, "application/json", raw=b"<x/>", headers={"Content-Type": "text/xml"}),
    Bad(
        "body: a form",
        "POST",
        "/v1/os-hosts",
        400,
        "application/json",
        raw=b"a=b",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    ),
    Bad(
        "body: too big",
        "POST",
        "/v1/leases",
        413,
        "",
        raw=b'{"name": "' + b"x" * 1100000 + b'"}',
        headers={"Content-Type": "application/json"},
    ),
]


FRAMES = [
    Bad("frame: no such path", "GET", "/v1/nothing", 404, "openapi"),
    Bad("frame: the plugins, which no client can ask for", "GET", "/v1/plugins", 404, "openapi"),
    Bad("frame: no such version", "GET", "/v3/leases", 404, "openapi"),
    Bad("frame: a trailing slash", "GET", "/v1/leases/", 404, "slash"),
    Bad("frame: a method", "PATCH", "/v1/leases", 405, "method"),
    Bad("frame: a method of a lease", "POST", "/v1/leases/{lease}", 405, "method"),
    Bad(
        "frame: a malformed version",
        "GET",
        "/v1/leases",
        400,
        "is not a version",
        headers={"OpenStack-API-Version": "reservation one"},
    ),
    Bad(
        "frame: a version too high",
        "GET",
        "/v1/leases",
        406,
        "not supported",
        headers={"OpenStack-API-Version": "reservation 9.9"},
    ),
    Bad(
        "frame: a version too low",
        "GET",
        "/v1/leases",
        406,
        "not supported",
        headers={"OpenStack-API-Version": "reservation 0.9"},
    ),
    *(
        Bad(f"frame: {header} {name!r}", "GET", "/v1/leases", status, says, headers={header: name})
        for header, status, says in (("Host", 400, "not a valid host name"), ("Origin", 401, "requires authentication"))
        for name in ("[", "[::1", "//", "a b", "evil@127.0.0.1", "127.0.0.1#x", "localhost:x")
    ),
    Bad(
        "frame: a version far too high",
        "GET",
        "/v1/leases",
        406,
        "not supported",
        headers={"OpenStack-API-Version": "reservation 99999.0"},
    ),
    Bad("frame: no caller", "GET", "/v1/leases", 401, "requires authentication", headers={"X-Auth-Token": "x"}),
    Bad(
        "frame: half a caller", "GET", "/v1/leases", 401, "requires authentication", headers={"X-Auth-Token": "curie:"}
    ),
    Bad(
        "frame: a strange role",
        "GET",
        "/v1/leases",
        401,
        "requires authentication",
        headers={"X-Auth-Token": "a:b:c d"},
    ),
]
