# SPDX-License-Identifier: Apache-2.0
"""Texts of others in lines of the log: no character of theirs begins a line, or reaches the terminal of a reader."""

from __future__ import annotations

import re
import unicodedata

LONGEST = 80

_PLAIN = re.compile(r"[ -~]*")
_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are not seen, or that change how others are: controls, directions, separators."""


def printable(text: str, longest: int = LONGEST) -> str:
    r"""Return a text with its control characters written as ``\x1b``, cut at a length."""
    cut = text if len(text) <= longest else text[: longest - 1] + "…"
    return escaped(cut)


def escaped(text: str) -> str:
    r"""Return a text with its control characters written as ``\x1b``."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(_escape(each) if unicodedata.category(each) in _HIDDEN else each for each in text)


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
