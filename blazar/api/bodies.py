# SPDX-License-Identifier: Apache-2.0
"""Parse request bodies from bytes to JSON that is safe to process."""

from __future__ import annotations

import json
import math
import unicodedata
from collections import Counter
from typing import Any

from flask import Request
from werkzeug.exceptions import RequestEntityTooLarge

from blazar.api.frames import BadFrame

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
        body = json.loads(
            raw.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_float, object_pairs_hook=_object
        )
    except UnicodeDecodeError:
        raise BadFrame(400, "The body is not UTF-8; send JSON in UTF-8.") from None
    except RecursionError:
        raise BadFrame(400, f"The body is nested too deeply; at most {DEEPEST} levels are allowed.") from None
    except ValueError as error:
        raise BadFrame(400, f"The body is not JSON: {str(error)[:200]}") from None
    if not isinstance(body, dict):
        raise BadFrame(400, f'The body is a JSON {_kind(body)}; send an object, as in {{"name": …}}.')
    _check_texts(body)
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


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        # 1e999 would become Infinity, which JSON does not have.
        raise ValueError(f"the number {text[:40]} is too large")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
        raise ValueError(f"the key {twice[:80]!r} occurs twice")
    return found


def _check_texts(body: object) -> None:
    """Reject characters that databases cannot store (U+0000 and lone surrogates) and too deep nesting."""
    left = [(body, 1)]
    while left:
        value, depth = left.pop()
        if depth > DEEPEST:
            raise BadFrame(400, f"The body is nested too deeply; at most {DEEPEST} levels are allowed.")
        if isinstance(value, str):
            if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
                raise BadFrame(400, "A string in the body has a NUL character or a lone surrogate; remove it.")
        elif isinstance(value, dict):
            left.extend((part, depth + 1) for pair in value.items() for part in pair)
        elif isinstance(value, list):
            left.extend((part, depth + 1) for part in value)


def _kind(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "literal"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "number"
