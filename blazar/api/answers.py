# SPDX-License-Identifier: Apache-2.0
"""Answers from microversion 1.1 on: tags, what caches may keep, compression, and the links of a page."""

from __future__ import annotations

import hashlib
import re
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from flask import Response, request

from blazar.api import microversion
from blazar.api.preconditions import LONGEST_TAGS
from blazar.api.queries import marker_of
from blazar.api.routes import Caching
from blazar.api.shapes import Json
from blazar.api.urls import link
from blazar.model.paging import Position

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSED_FROM = 1024
"""Bodies of fewer bytes are not compressed."""
LEVEL = 6
ZSTANDARD_LEVEL = 1
GZIP = 31
"""The format of zlib with the header of gzip, in which it writes no time: the same body has the same bytes."""

_LONGEST_CODINGS = 1024
"""Characters of a list of codings that is read; there are a dozen codings."""

PRIVATE = "private, no-cache"
"""Only the caller's own cache keeps the answer, and asks each time whether it has changed."""

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler returns if the value that is rendered is not all: ``etag`` as it is sent, more headers.

    ``status`` is that of success by default.
    """

    value: Any
    etag: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int | None = None


def weak_tag(*parts: object) -> str:
    """Return a weak tag of texts, numbers and bytes: a hash of them."""
    found = hashlib.sha256()
    for part in parts:
        raw = part if isinstance(part, bytes) else str(part).encode("utf-8", "replace")
        found.update(len(raw).to_bytes(8, "big") + raw)
    return f'W/"{found.hexdigest()[:32]}"'


def self_link() -> Json:
    """Return the link to what was asked for."""
    return _link("self", request.args.to_dict(flat=False))


def page_links(following: Position | None) -> list[Json]:
    """Return the links of a page; ``following`` is the position of its last item, None if no page follows."""
    if following is None:
        return [self_link()]
    asked = {name: values for name, values in request.args.to_dict(flat=False).items() if name != "marker"}
    return [self_link(), _link("next", {**asked, "marker": [marker_of(following)]})]


def paged(value: Json, following: Position | None, *, etag: str | None = None) -> Answer:
    """Return a page with its links, and the ``Link`` header if another page follows."""
    links = page_links(following)
    headers = {} if following is None else {"Link": f'<{links[-1]["href"]}>; rel="next"'}
    return Answer({**value, "links": links}, etag=etag, headers=headers)


def _link(rel: str, query: Mapping[str, list[str]]) -> Json:
    text = urlencode([(name, value) for name, values in query.items() for value in values], safe=",:")
    return {"rel": rel, "href": link(request.path) + (f"?{text}" if text else "")}


def unchanged(etag: str | None) -> Response | None:
    """Return a 304 if the caller of a GET has what the tag names, else None."""
    if etag is None or request.method not in ("GET", "HEAD"):
        return None
    # What is too long to be tags of ours has none of ours: the answer is as without it.
    known = request.headers.get("If-None-Match", "")[:LONGEST_TAGS]
    opaque = etag.removeprefix("W/")
    if known.strip() != "*" and opaque not in {f'"{tag}"' for _, tag in _TAG.findall(known)}:
        return None
    return Response(status=304, headers={"ETag": etag})


def finished(response: Response, caching: Caching) -> Response:
    """Set what caches may keep of an answer; tag and compress it if it has no tag of its own."""
    reads = request.method in ("GET", "HEAD") and response.status_code in (200, 304)
    if not reads or caching is Caching.NONE:
        response.headers["Cache-Control"] = "no-store"
        return response
    response.headers["Cache-Control"] = PRIVATE if caching is Caching.WEAK else f"{PRIVATE}, no-transform"
    if caching is Caching.WEAK:
        response.headers["Vary"] = f"{microversion.HEADER}, Accept-Encoding"
    if caching is Caching.WEAK and response.status_code == 200:
        etag = response.headers.get("ETag")
        if etag is None:
            etag = response.headers["ETag"] = weak_tag(response.get_data())
        if (known := unchanged(etag)) is not None:
            for name in ("Cache-Control", "Vary", "Link"):
                if name in response.headers:
                    known.headers[name] = response.headers[name]
            return known
        _compress(response)
    return response


def gzipped(raw: bytes) -> bytes:
    """Return a body compressed by gzip.

    Bodies are full of ids, which no short match makes shorter: so only longer ones are looked for (``Z_FILTERED``),
    which makes a calendar smaller by a tenth in the same time.
    """
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP, zlib.DEF_MEM_LEVEL, zlib.Z_FILTERED)
    return packer.compress(raw) + packer.flush()


def zstandard(raw: bytes) -> bytes:
    """Return a body compressed by Zstandard (RFC 8878): smaller than gzip by a seventh, in a tenth of the time.

    Higher levels look for short matches, which make ids longer: a calendar is smallest at the lowest level.
    """
    return zstd.compress(raw, ZSTANDARD_LEVEL)


def _coding() -> tuple[str, Callable[[bytes], bytes]] | None:
    """Return the content coding that the caller likes best, and how to make it; None for none."""
    if len(request.headers.get("Accept-Encoding", "")) > _LONGEST_CODINGS:
        return None
    # "*" stands for codings that the caller did not name, gzip is one that everybody knows.
    named = dict(request.accept_encodings)
    by_gzip, by_zstandard = request.accept_encodings["gzip"], named.get("zstd", 0)
    if by_zstandard > 0 and by_zstandard >= by_gzip:
        return "zstd", zstandard
    return ("gzip", gzipped) if by_gzip > 0 else None


def _compress(response: Response) -> None:
    """Compress a long body, if the caller takes that."""
    raw = response.get_data()
    if len(raw) >= COMPRESSED_FROM and (coding := _coding()) is not None:
        name, compressed = coding
        response.set_data(compressed(raw))
        response.headers["Content-Encoding"] = name
