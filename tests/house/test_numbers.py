# SPDX-License-Identifier: Apache-2.0
"""The house keeps its sizes: a number that a rebuilding has reached gets no worse with what is built next.

Each number has a limit, which is what it is today, and a goal. Who makes one better lowers its limit here.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

PRODUCT = Path(__file__).parents[2] / "blazar"
LONG_FILE, CRUMB, LONG_FUNCTION = 400, 50, 40  # lines

PARTICIPLE = re.compile(
    r"""_?(
        of|in|on|at|by|to|for|from|with|without|as|than|beside|within|past|each|having
        |(\w+_)?(told|taken|kept|found|held|left|given|known|made|shown|said|gone|lost|done|begun|meant|sent)
        |[a-z]+ed(_(by|of|in|on|with|for|from|to|at|as))?
        |(told|taken|kept|found|held|left|given|known|made|shown|said|gone)_\w+
    )""",
    re.VERBOSE,
)
VERBS = {"need", "feed", "seed", "embed", "exceed", "proceed", "shed", "speed", "heed"}


@dataclass(frozen=True)
class Module:
    """A file of the service: its rooms and name, its number of lines, and what it says."""

    name: str
    lines: int
    tree: ast.Module

    @property
    def rooms(self) -> tuple[str, ...]:
        return tuple(self.name.split("/")[:-1])

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        return tuple(ast.walk(self.tree))

    @cached_property
    def functions(self) -> tuple[ast.FunctionDef, ...]:
        return tuple(node for node in self.nodes if isinstance(node, ast.FunctionDef))

    @cached_property
    def classes(self) -> tuple[ast.ClassDef, ...]:
        return tuple(node for node in self.nodes if isinstance(node, ast.ClassDef))


@cache
def modules() -> tuple[Module, ...]:
    found = []
    for path in sorted(PRODUCT.rglob("*.py")):
        if "migrations" not in path.parts:
            text = path.read_text("utf-8")
            found.append(Module(str(path.relative_to(PRODUCT)), text.count("\n"), ast.parse(text)))
    return tuple(found)


def is_participle(name: str) -> bool:
    """Tell whether a function is named by what is done, or by a preposition, and not by what it does."""
    return PARTICIPLE.fullmatch(name) is not None and name.strip("_") not in VERBS


def files_of(is_counted: Callable[[Module], bool]) -> list[str]:
    return [module.name for module in modules() if is_counted(module)]


def loose(room: str) -> list[str]:
    return files_of(lambda module: module.rooms == (room,) and not module.name.endswith("__init__.py"))


def long_functions() -> list[str]:
    return [
        f"{module.name}:{one.name}" for module in modules() for one in module.functions if length(one) > LONG_FUNCTION
    ]


def length(function: ast.FunctionDef) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def names_used_twice() -> list[str]:
    names = Counter(one.name for module in modules() for one in module.classes)
    return sorted(name for name, number in names.items() if number > 1)


def participles() -> list[str]:
    return [
        f"{module.name}:{one.name}"
        for module in modules()
        for one in module.tree.body
        if isinstance(one, ast.FunctionDef) and is_participle(one.name)
    ]


def loops_over_each() -> list[str]:
    """Return where a loop has "each" for what it goes over, in the place of its noun."""
    return [
        f"{module.name}:{one.lineno}"
        for module in modules()
        for one in module.nodes
        if "each" in (getattr(one, "id", None), getattr(one, "arg", None))
    ]


def percent_of_biggest_room() -> int:
    rooms = Counter[str]()
    for module in modules():
        if module.rooms[:1] == ("manager",) and len(module.rooms) > 1:
            rooms[module.rooms[1]] += module.lines
    return round(100 * max(rooms.values()) / rooms.total())


def methods_of_largest_class() -> int:
    return max(
        sum(isinstance(one, ast.FunctionDef) for one in each.body)
        for module in modules()
        for each in module.classes
        if "Protocol" not in [ast.unparse(base) for base in each.bases]
    )


def widest_constructor() -> int:
    """Return the most arguments, the object aside, that an ``__init__`` takes."""
    arguments = (one.args for module in modules() for one in module.functions if one.name == "__init__")
    return max(len(each.args) - 1 + len(each.kwonlyargs) for each in arguments)


def floors(room: str) -> int:
    """Return how many layers the contract of a room has, which leaves out none of its modules and folders."""
    text = (PRODUCT.parent / "pyproject.toml").read_text("utf-8")
    contracts = tomllib.loads(text)["tool"]["importlinter"]["contracts"]
    (found,) = (each for each in contracts if each.get("containers") == [room])
    assert found["exhaustive"]
    return len(found["layers"])


COUNTED = {
    "lines": (lambda: sum(module.lines for module in modules()), 136_000, 78_000),
    "files": (lambda: len(modules()), 882, 480),
    "long files": (lambda: files_of(lambda module: module.lines > LONG_FILE), 0, 0),
    "crumbs": (
        lambda: files_of(lambda module: module.lines < CRUMB and not module.name.endswith("__init__.py")),
        8,
        8,
    ),
    "percent of the manager in its biggest room": (percent_of_biggest_room, 13, 13),
    "loose modules of api": (lambda: loose("api"), 3, 3),
    "floors of api": (lambda: floors("blazar.api"), 6, 6),
    "floors of api/http": (lambda: floors("blazar.api.http"), 8, 8),
    "loose modules of store": (lambda: loose("store"), 3, 3),
    "loose modules of model": (lambda: loose("model"), 3, 3),
    "methods of the largest class": (methods_of_largest_class, 20, 20),
    "arguments of the widest constructor": (widest_constructor, 5, 5),
    "lines of the longest function": (lambda: max(length(one) for m in modules() for one in m.functions), 50, 50),
    "long functions": (long_functions, 6, 6),
    "names of more than one class": (names_used_twice, 4, 4),
    "functions named by a participle or a preposition": (participles, 3, 3),
    "loops over each": (loops_over_each, 0, 0),
}
"""What is counted: how, its limit, and its goal."""


@pytest.mark.parametrize("what", COUNTED)
def test_a_number_of_the_house_gets_no_worse(what):
    count, limit, goal = COUNTED[what]
    found = count()
    number = found if isinstance(found, int) else len(found)
    assert goal <= limit
    assert number <= limit, f"{number} {what}, and {limit} at most: {found}"


@pytest.mark.parametrize("name", ["told", "_kept_in", "loaded", "_ordered_by", "made_for", "of", "_beside"])
def test_a_participle_is_found(name):
    assert is_participle(name)


@pytest.mark.parametrize("name", ["tell", "_feed", "need", "find_used", "order_by", "make_types", "offers", "red_line"])
def test_a_verb_or_a_noun_is_none(name):
    assert not is_participle(name)
