# SPDX-License-Identifier: Apache-2.0
"""Documents that operators send from files."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from blazarclient.exception import CommandError


def read_document(path: str, hint: str) -> Mapping[str, Any]:
    """Return the document in a file; ``-`` is the standard input. CommandError, with a ``hint`` what it has to hold."""
    name = "The standard input" if path == "-" else path
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        # Editors of Windows begin a file with a mark.
        found = json.loads(data.decode("utf-8-sig"), object_pairs_hook=_once)
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}", code=400) from None
    except UnicodeDecodeError:
        raise CommandError(f"{name} is not in UTF-8; save it as JSON in UTF-8", code=400) from None
    except ValueError as error:
        raise CommandError(f"{name} is no JSON: {error}", code=400) from None
    if not isinstance(found, dict):
        raise CommandError(f"{name} holds no JSON object; {hint}", code=400)
    return found


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object; ValueError if it has a key twice, of which one would be lost."""
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice; leave one out")
    return found
