# SPDX-License-Identifier: Apache-2.0
"""What requests and answers have beside their bodies from microversion 1.1 on.

Answers have tags, links, what caches may keep, and compression. ``If-Match`` allows a change only if the object is
still as the caller has seen it; by ``Idempotency-Key`` a request that is sent again is carried out once.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import sys
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextvars import Context, copy_context
from itertools import chain, islice
from typing import Any, Protocol
from urllib.parse import urlencode

from flask import Response, request
from werkzeug.wrappers import Request

from blazar.api.http import microversion
from blazar.api.http.identity import Caller
from blazar.api.http.queries import marker_of
from blazar.api.http.routes import Caching, in_header
from blazar.api.http.shapes import Json
from blazar.model.base.errors import BlazarError, FaultPlace, InvalidInput, PreconditionFailed
from blazar.model.base.paging import Position
from blazar.model.base.values import dataclass, field
from blazar.model.leases.requests import IdempotencyKey

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

LOG = logging.getLogger(__name__)

COMPRESSED_FROM = 1024
"""Bodies of fewer bytes are not compressed."""
LEVEL = 6
ZSTANDARD_LEVEL = 1
GZIP = 31
"""The format of zlib with the header of gzip, in which it writes no time: the same body has the same bytes."""

_LONGEST_CODINGS = 1024
"""Characters of a list of codings that is read; there are a dozen codings."""

JSON = "application/json"
_LONGEST_ACCEPT = 1024
"""Characters of a header ``Accept`` that is read; browsers send some two hundred."""

PAGES = "blazar.pages"
"""Where in the environment of a request it is at which URL the web pages are; not there if none are served."""

PRIVATE = "private, no-cache"
"""Only the caller's own cache keeps the answer, and asks each time whether it has changed."""

encode = json.JSONEncoder(separators=(",", ":")).encode
"""Writes JSON as answers have it, without spaces."""

_TAG = re.compile(r'(W/)?"([\x21\x23-\x7e\x80-\xff]*)"')


@dataclass(frozen=True, slots=True)
class Answer:
    """What a handler returns if the value that is rendered is not all: ``etag`` as it is sent, more headers.

    ``status`` is that of success by default. A value of bytes is JSON already.
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


def link(path: str) -> str:
    """Return the URL of a path; the prefix of a proxy or mount point is part of the URL that clients use."""
    return request.host_url.rstrip("/") + request.script_root + path


def prefers(asked: Request, content_type: str) -> bool:
    """Return whether who has sent a request wants a type rather than JSON, by ``Accept``."""
    if len(asked.headers.get("Accept", "")) > _LONGEST_ACCEPT:
        return False
    return asked.accept_mimetypes.best_match([JSON, content_type]) == content_type


def self_link() -> Json:
    """Return the link to what was asked for."""
    return _link("self", request.args.to_dict(flat=False))


def page_links(following: Position | None) -> list[Json]:
    """Return the links of a page; ``following`` is the position of its last item, None if no page follows."""
    if following is None:
        return [self_link()]
    asked = {name: values for name, values in request.args.to_dict(flat=False).items() if name != "marker"}
    return [self_link(), _link("next", {**asked, "marker": [marker_of(following)]})]


def link_pages(value: Json, following: Position | None) -> Answer:
    """Return a page with its links, and the ``Link`` header if another page follows."""
    links = page_links(following)
    return Answer({**value, "links": links}, headers=_name_next(links))


def link_text(text: str, following: Position | None, *, etag: str) -> Answer:
    """Return a page that is JSON already, an object, as ``link_pages`` does."""
    links = page_links(following)
    return Answer(f'{text[:-1]},"links":{encode(links)}}}\n'.encode(), etag=etag, headers=_name_next(links))


def _name_next(links: Sequence[Json]) -> dict[str, str]:
    return {"Link": f'<{links[-1]["href"]}>; rel="next"'} if links[-1]["rel"] == "next" else {}


def _link(rel: str, query: Mapping[str, list[str]]) -> Json:
    text = urlencode([(name, value) for name, values in query.items() for value in values], safe=",:")
    return {"rel": rel, "href": link(request.path) + (f"?{text}" if text else "")}


def answer_unchanged(etag: str | None) -> Response | None:
    """Return a 304 if the caller of a GET has what the tag names, else None."""
    if etag is None or request.method not in ("GET", "HEAD"):
        return None
    # What is too long to be tags of ours has none of ours: the answer is as without it.
    known = request.headers.get("If-None-Match", "")[:LONGEST_TAGS]
    opaque = etag.removeprefix("W/")
    if known.strip() != "*" and opaque not in {f'"{tag}"' for _, tag in _TAG.findall(known)}:
        return None
    return Response(status=304, headers={"ETag": etag})


def finish(response: Response, caching: Caching, *, as_csv: bool = False) -> Response:
    """Set what caches may keep of an answer; tag and compress it if it has no tag of its own.

    ``as_csv``: the header ``Accept`` says what it is.
    """
    reads = request.method in ("GET", "HEAD") and response.status_code in (200, 304)
    if not reads or caching is Caching.NONE:
        response.headers["Cache-Control"] = "no-store"
        return response
    response.headers["Cache-Control"] = PRIVATE if caching is Caching.WEAK else f"{PRIVATE}, no-transform"
    if caching is Caching.WEAK:
        response.headers["Vary"] = f"{microversion.HEADER}, Accept-Encoding{', Accept' if as_csv else ''}"
    if caching is Caching.WEAK and response.status_code == 200:
        etag = response.headers.get("ETag")
        if etag is None:
            etag = response.headers["ETag"] = weak_tag(response.get_data())
        if (known := answer_unchanged(etag)) is not None:
            for name in ("Cache-Control", "Vary", "Link"):
                if name in response.headers:
                    known.headers[name] = response.headers[name]
            return known
        _compress(response)
    return response


class _Packer(Protocol):
    """Compresses a body that comes in pieces."""

    def compress(self, data: bytes, /) -> bytes:
        """Return what is ready of the compressed body."""

    def flush(self) -> bytes:
        """Return the rest of it."""


@dataclass(frozen=True, slots=True)
class _Coding:
    """A content coding: how a body is compressed at once, and what does so in the least time while it is sent."""

    name: str
    compress: Callable[[bytes], bytes]
    make_packer: Callable[[], _Packer]


def compress_by_gzip(raw: bytes) -> bytes:
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


_GZIP = _Coding("gzip", compress_by_gzip, lambda: zlib.compressobj(1, zlib.DEFLATED, GZIP))
_ZSTANDARD = _Coding("zstd", zstandard, lambda: zstd.ZstdCompressor(level=ZSTANDARD_LEVEL))


def _coding() -> _Coding | None:
    """Return the content coding that the caller likes best; None for none."""
    if len(request.headers.get("Accept-Encoding", "")) > _LONGEST_CODINGS:
        return None
    # "*" stands for codings that the caller did not name, gzip is one that everybody knows.
    named = dict(request.accept_encodings)
    by_gzip, by_zstandard = request.accept_encodings["gzip"], named.get("zstd", 0)
    if by_zstandard > 0 and by_zstandard >= by_gzip:
        return _ZSTANDARD
    return _GZIP if by_gzip > 0 else None


def _compress(response: Response) -> None:
    """Compress a long body, if the caller takes that."""
    raw = response.get_data()
    if len(raw) >= COMPRESSED_FROM and (coding := _coding()) is not None:
        response.set_data(coding.compress(raw))
        response.headers["Content-Encoding"] = coding.name


def stream_json(opening: bytes, pieces: Iterator[bytes], closing: bytes) -> Response:
    """Return a long list at 1.0, sent while it is read; the pieces are joined by commas, and empty ones left out.

    The first two are read at once: what goes wrong until then is an error as any other, and a list of one piece is
    sent as a whole. What goes wrong later cuts the answer off before its end, as a proxy and the client can tell. A
    client that has left stops the reading.
    """
    filled = filter(None, pieces)
    head = list(islice(filled, 2))
    # Later pieces are read after the request has left its context.
    later = _read_within(copy_context(), filled)
    parts: Iterable[bytes] = chain((opening,), head[:1], (b"," + piece for piece in chain(head[1:], later)), (closing,))
    whole = b"".join(parts) if len(head) < 2 else None
    coding = _coding() if whole is None or len(whole) >= COMPRESSED_FROM else None
    body = parts if whole is None else [whole]
    if coding is not None:
        body = _pack(coding.make_packer(), body)
    response = Response(body if whole is None else b"".join(body), mimetype=JSON)
    response.call_on_close(later.close)
    response.vary.add("Accept-Encoding")
    if coding is not None:
        response.headers["Content-Encoding"] = coding.name
    return response


def _read_within(context: Context, pieces: Iterator[bytes]) -> Generator[bytes]:
    """Yield pieces that are read in a context; log why there are no more."""
    end = b""
    try:
        while piece := context.run(next, pieces, end):
            yield piece
    except BlazarError as error:
        LOG.error("A list is cut off, as its rest cannot be read: %s: %s", type(error).__name__, error.message)
        raise


def _pack(packer: _Packer, parts: Iterable[bytes]) -> Iterator[bytes]:
    for part in parts:
        if packed := packer.compress(part):
            yield packed
    yield packer.flush()


_IF_MATCH = "If-Match"
IF_MATCH = in_header(_IF_MATCH, "tags of earlier answers: a 412 if the object has changed since")
LONGEST_TAGS = 8 * 1024
"""Characters of tags in a header; a tag has some dozens."""


@dataclass(frozen=True, slots=True)
class Tags:
    """The strong tags of one object: each is a revision and an ``ending``, which stays the same.

    With ``parted`` an answer also shows what changes without a new revision: a tag may have a part for it, which
    tells answers apart and is no condition of a change.
    """

    ending: str
    parted: bool = False

    def of(self, revision: int, shown: str = "") -> str:
        """Return the tag of a revision; ``shown`` is what else is in the answer."""
        part = f".{hashlib.sha256(shown.encode()).hexdigest()[:12]}" if shown else ""
        return f'"{revision}{part}{self.ending}"'

    def wanted(self) -> tuple[int, ...] | None:
        """Return the revisions that ``If-Match`` allows; None: any. InvalidInput if it is too long."""
        sent = request.headers.get(_IF_MATCH)
        if sent is None or sent.strip() == "*":
            return None
        if len(sent) > LONGEST_TAGS:
            raise InvalidInput(
                f"{_IF_MATCH} has {len(sent)} characters; send at most {LONGEST_TAGS}, the ETag of one answer",
                at=FaultPlace(_IF_MATCH, "header"),
            )
        part = r"(?:\.[0-9a-f]{12})?" if self.parted else ""
        ours = re.compile(rf"(\d{{1,18}}){part}{re.escape(self.ending)}")
        matches = (ours.fullmatch(tag) for weak, tag in _TAG.findall(sent) if not weak)
        return tuple(int(match[1]) for match in matches if match is not None)

    def check(self, revision: int) -> None:
        """Raise PreconditionFailed unless ``If-Match`` allows this revision, of an object that is not changed."""
        wanted = self.wanted()
        if wanted is not None and revision not in wanted:
            raise self.refused(PreconditionFailed("it has changed; read it, and send its present tag"), revision)

    def refused(self, error: PreconditionFailed, revision: int = 0) -> PreconditionFailed:
        """Return the error for tags that do not match, with the present one; the error knows the revision best."""
        present = int((error.data or {}).get("revision", revision))
        message = error.message
        if self.wanted() == ():
            sent = request.headers.get(_IF_MATCH, "")
            what = "only a weak tag, which never matches" if "W/" in sent else "no tag that an answer had in its ETag"
            message = f"{_IF_MATCH} has {what}; read what is to be changed again, and send the ETag of that answer"
        return PreconditionFailed(message, data={"etag": self.of(present), "revision": present})


KEY_HEADER = "Idempotency-Key"
LONGEST_KEY = 255
MEANING = 1
"""Raised when the same body means something else: in all versions from 1.1 on it has meant the same."""
IDEMPOTENCY_KEY = in_header(
    KEY_HEADER, f"1 to {LONGEST_KEY} visible ASCII characters: however often the request is sent, it makes one"
)
_KEY = re.compile(rf'"([\x21\x23-\x7e]{{1,{LONGEST_KEY}}})"|([\x21\x23-\x7e]{{1,{LONGEST_KEY}}})')


def key_of(body: Json, caller: Caller, *, route: str = "POST /v1/leases") -> IdempotencyKey | None:
    """Return the key of a request to a route that makes something; None if it has none. InvalidInput if malformed.

    The body counts as it was sent: ``now`` and durations are the same when they are sent again.
    """
    sent = request.headers.get(KEY_HEADER)
    if sent is None:
        return None
    match = _KEY.fullmatch(sent.strip())
    if match is None:
        sentence = f"{KEY_HEADER} is invalid; give 1 to {LONGEST_KEY} visible ASCII characters, in quotes or without"
        raise InvalidInput(sentence, at=FaultPlace(KEY_HEADER, "header"))
    scope = (route, caller.project_id, caller.user_id, match[1] or match[2])
    return IdempotencyKey(_hash(list(scope)), _hash([MEANING, body]))


def _hash(value: list[object]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
