# SPDX-License-Identifier: Apache-2.0
"""Requirements as people write them on a command line: ``gpu=A100``, ``vcpus>=32``, or JSON."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence

from blazarclient.exception import CommandError

_COMPARISON = re.compile(r"\s*\$?([^\s=!<>]+)\s*(==|=|!=|>=|<=|>|<)\s*(.+?)\s*", re.DOTALL)


def add_requirement(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option that chooses hosts, or other resources, by their properties."""
    parser.add_argument(
        "--requirement",
        metavar="<requirement>",
        action="append",
        default=[],
        help=f"only {what} that meet it: gpu=A100, 'vcpus>=32', or JSON (may be repeated: all of them hold)",
    )


def read_requirement(text: str) -> list[object]:
    """Return a requirement as the service takes it. CommandError."""
    if text.lstrip().startswith("["):
        try:
            return list(json.loads(text))
        except ValueError as error:
            raise CommandError(f"The requirement {text!r} is no JSON: {error}", code=400) from None
    found = _COMPARISON.fullmatch(text)
    if found is None:
        raise CommandError(
            f"{text!r} is no requirement; write it as gpu=A100, 'vcpus>=32', or as JSON: "
            """'["in", "$gpu", ["A100", "H100"]]'""",
            code=400,
        )
    key, operator, value = found.groups()
    return ["==" if operator == "=" else operator, f"${key}", value]


def read_requirements(texts: Sequence[str]) -> str | None:
    """Return the requirement that all of these make, in JSON; None if there are none. CommandError."""
    parts = [read_requirement(text) for text in texts]
    if not parts:
        return None
    return json.dumps(parts[0] if len(parts) == 1 else ["and", *parts])
