# SPDX-License-Identifier: Apache-2.0
"""What tests name in texts is there: what they replace, and what programs that they write import."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FORMER = ROOT / "tests" / "cmd" / "test_extensions.py"
"""Writes packages that were made for the existing Blazar, and name its modules."""
FILES = sorted(
    path for folder in ("tests", "bench", "conformance") for path in (ROOT / folder).rglob("*.py") if path != FORMER
)
IMPORTED = re.compile(r"^\s*from (blazar(?:\.\w+)*) import ([\w, ]+)$", re.M)
OURS = ("blazar.", "blazarclient.", "blazarconformance.")


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


def has(name: str) -> bool:
    """Tell whether a dotted name is a module, or an attribute of one, or of its class."""
    parts = name.split(".")
    for number in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:number]))
        except ModuleNotFoundError:
            continue
        for part in parts[number:]:
            if not hasattr(found, part) and part not in getattr(found, "__annotations__", {}):
                return False
            found = getattr(found, part, None)
        return True
    return False


def replaced(tree: ast.Module) -> Iterator[str]:
    """Yield the dotted names that a file replaces with ``patch``, ``patch.object`` or ``setattr``."""
    imported = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        # Most calls are none of these; to spell one takes time.
        if getattr(node.func, "attr", getattr(node.func, "id", "")) not in ("patch", "object", "setattr"):
            continue
        if not ast.unparse(node.func).endswith(("patch", "patch.object", "setattr")):
            continue
        owner, *rest = node.args
        if isinstance(owner, ast.Constant) and isinstance(owner.value, str):
            yield owner.value
        elif rest and isinstance(rest[0], ast.Constant) and isinstance(rest[0].value, str):
            first, _, more = ast.unparse(owner).partition(".")
            if first in imported:
                yield ".".join(filter(None, (imported[first], more, rest[0].value)))


def written(tree: ast.Module) -> Iterator[str]:
    """Yield what programs in the texts of a file import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names in IMPORTED.findall(node.value):
                yield from (f"{module}.{name.split(' as ')[0].strip()}" for name in names.split(",") if name.strip())


@pytest.mark.parametrize("names_of", [replaced, written], ids=lambda each: each.__name__)
def test_each_name_is_there(names_of):
    named = {
        (str(path.relative_to(ROOT)), name)
        for path in FILES
        for name in names_of(parse(path))
        # Its modules make an application, of the configuration of the host, when they are imported.
        if name.startswith(OURS) and not name.startswith("blazar.wsgi.")
    }
    assert len(named) > 5
    assert sorted(one for one in named if not has(one[1])) == []
