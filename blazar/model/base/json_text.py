# SPDX-License-Identifier: Apache-2.0
"""JSON that somebody sent: only JSON is read, and no more of it than can be worked on in a moment. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any

MOST_VALUES = 50_000
"""Maximum values of a text. A megabyte can have half a million, and each costs a microsecond in every step."""

_BOTTOMLESS = "[" * 1000
"""The beginning of a text that no library reads to its bottom."""

UNUSABLE = re.compile("[\0\ud800-\udfff]")
"""Matches characters that no database can store: U+0000 and halves of characters."""

# The quotes at its end may be missing, so that no text is scanned again from each of its quotes.
_TEXT = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


class TooDeepJson(ValueError):
    """A text that is nested deeper than it can be read."""


def read_json(text: str, *, pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """Return the value of a JSON text. ValueError says what is wrong, TooDeepJson is one.

    ``pairs`` makes an object of its keys and values.
    """
    if _most_values(text) > MOST_VALUES:
        if _BOTTOMLESS in text:
            raise TooDeepJson("it is nested too deeply")
        raise ValueError(f"it has more than {MOST_VALUES} values")
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_parse_float, object_pairs_hook=pairs)
    except RecursionError:
        raise TooDeepJson("it is nested too deeply") from None


def _most_values(text: str) -> int:
    """Return how many values a text can have at most. What is in its strings counts only if it might be too much."""
    found = _count_separators(text)
    # A value has two strings at most, its key and itself. Those of more need not be looked for.
    strings = (text.count('"') - text.count('\\"')) // 2
    if found <= MOST_VALUES or strings > 2 * MOST_VALUES:
        return max(found, strings // 2)
    return _count_separators(_TEXT.sub("", text))


def _count_separators(text: str) -> int:
    return 1 + sum(map(text.count, "[{,"))


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not a JSON number")


def _parse_float(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        # 1e999 would become Infinity, which JSON does not have.
        raise ValueError(f"the number {text[:40]} is too large")
    return number


Json = Mapping[str, object]
"""A JSON object as a client sent it or as the API shows it."""
