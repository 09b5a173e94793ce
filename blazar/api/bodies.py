# SPDX-License-Identifier: Apache-2.0
"""Parse request bodies from bytes to JSON that is safe to process."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable
from itertools import chain
from typing import Any

from flask import Request
from werkzeug.exceptions import RequestEntityTooLarge

from blazar.api.frames import BadFrame
from blazar.model.json_text import UNUSABLE, TooDeepJson, read_json

DEEPEST = 40


def read_object(request: Request) -> dict[str, Any]:
    """Return the body, a JSON object; an empty body gives an empty object. Raises BadFrame for an invalid body."""
    if request.mimetype not in ("", "application/json"):
        sentence = f"Content-Type is {request.mimetype[:80]!r}; send application/json"
        raise BadFrame(400, sentence, code="unsupported_media_type", header="Content-Type")
    raw = _read(request)
    if not raw:
        return {}
    try:
        body = read_json(raw.decode("utf-8"), pairs=_object)
    except UnicodeDecodeError:
        raise BadFrame(400, "The body is not UTF-8; send JSON in UTF-8.") from None
    except TooDeepJson:
        raise BadFrame(400, f"The body is nested too deeply; at most {DEEPEST} levels are allowed.") from None
    except ValueError as error:
        raise BadFrame(400, f"The body is not JSON: {str(error)[:200]}") from None
    if not isinstance(body, dict):
        raise BadFrame(400, f'The body is a JSON {_kind(body)}; send an object, as in {{"name": …}}.')
    _check_texts(body, has_escapes=b"\\u" in raw)
    return body


def normalized(body: dict[str, Any]) -> dict[str, Any]:
    """Return a body with its name as it is kept: in NFC, in which its length is measured."""
    name = body.get("name")
    return {**body, "name": unicodedata.normalize("NFC", name)} if isinstance(name, str) else body


def _read(request: Request) -> bytes:
    raw = request.get_data(cache=False)
    most = request.max_content_length
    if request.content_length is None and most is not None and len(raw) >= most:
        # werkzeug silently truncates a chunked body at the limit.
        raise RequestEntityTooLarge
    return raw


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:80]!r} occurs twice")
    return found


def _check_texts(body: object, *, has_escapes: bool) -> None:
    """Reject characters that databases cannot store (U+0000 and lone surrogates) and too deep nesting.

    Only escapes can be such characters: JSON has no control characters in its strings, and UTF-8 no surrogates.
    """
    depth, level = 1, [body]
    while level:
        inside = [part for each in level for part in _inside(each)]
        if inside and depth == DEEPEST:
            raise BadFrame(400, f"The body is nested too deeply; at most {DEEPEST} levels are allowed.")
        if has_escapes and any(isinstance(part, str) and UNUSABLE.search(part) for part in inside):
            raise BadFrame(400, "A string in the body has a NUL character or a lone surrogate; remove it.")
        depth, level = depth + 1, [part for part in inside if isinstance(part, dict | list)]


def _inside(value: object) -> Iterable[object]:
    """Return the values, and the keys, that an object or a list has."""
    if isinstance(value, dict):
        return chain(value, value.values())
    return value if isinstance(value, list) else ()


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "literal"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "number"
