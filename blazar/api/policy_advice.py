# SPDX-License-Identifier: Apache-2.0
"""What a policy file leaves to defaults: rules that the existing Blazar does not know, and what their defaults mean."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from blazar.api.microversion import MIN_VERSION
from blazar.api.routes import ADMIN, MEMBER, READER, Part, Rule

_REFERENCE = re.compile(r"rule:([^\s()]+)")
_GONE = frozenset({"blazar:plugins:get"})
"""Rules of the existing Blazar without a route of ours."""
_WHO: Mapping[str, str] = {
    ADMIN: "operators only",
    MEMBER: "members of the project, and operators",
    READER: "readers of the project, and operators",
    "rule:project_member_api": "members of the project",
    "rule:project_reader_api": "readers of the project",
    "@": "anybody",
}


def newer_rules(parts: Sequence[Part]) -> tuple[Rule, ...]:
    """Return the rules that no route of 1.0 or of version 2 checks."""
    earlier = {row.rule for part in parts for row in part.routes if row.serves(MIN_VERSION)}
    return tuple(rule for part in parts for rule in (*part.rules, *part.views) if rule not in earlier)


def explain_defaults(parts: Sequence[Part], given: Mapping[str, str]) -> list[str]:
    """Return a sentence for each meaning that the defaults of newer rules have which the file does not set."""
    by_meaning: dict[str, list[str]] = {}
    for rule in newer_rules(parts):
        if rule.name not in given:
            by_meaning.setdefault(_meaning(rule.check), []).append(rule.name)
    return [f"{meaning}: {', '.join(names)}" for meaning, names in by_meaning.items()]


def explain_mistakes(known: Iterable[str], given: Mapping[str, str]) -> list[str]:
    """Return a sentence for each rule of a file that no route asks for, and for each that refers to one that is not."""
    rules = {*known, *given}
    found = [
        f"{name} is no rule of this service, so it limits nobody; see etc/blazar/policy.yaml.sample for the names"
        for name in sorted(given.keys() - {*known} - _GONE)
        if name.startswith("blazar:")
    ]
    for name, check in given.items():
        if check in ("", "None", "[]"):
            found.append(f'{name} is empty, so it allows everybody; write "@" if that is meant')
        lost = [each for each in _REFERENCE.findall(check) if each not in rules]
        found += [
            f"{name} refers to the rule {each}, which does not exist: that part of it allows nobody" for each in lost
        ]
    return found


def circle_of(rules: Mapping[str, str]) -> tuple[str, ...]:
    """Return rules that refer to each other in a circle, its first one at the end again; empty if none do."""
    done: set[str] = set()

    def walk(name: str, path: tuple[str, ...]) -> tuple[str, ...]:
        if name in path:
            return (*path[path.index(name) :], name)
        if name in done:
            return ()
        for further in _REFERENCE.findall(rules.get(name, "")):
            if found := walk(further, (*path, name)):
                return found
        done.add(name)
        return ()

    return next(filter(None, (walk(name, ()) for name in sorted(rules))), ())


def _meaning(check: str) -> str:
    """Return what a default means: the rules that it follows, or who is allowed."""
    followed = [each for each in _REFERENCE.findall(check) if each.startswith("blazar:")]
    if not followed:
        return f"not set, for {_WHO.get(check, check)}"
    if "%(kind)s" in check:
        return f"not set, as the rule of the kind ({', '.join(followed)}), for other kinds operators only"
    further = [who for each, who in _WHO.items() if each in check.split()]
    return f"not set, as {' and '.join(followed)}" + (f", {further[0]}" if further else "")
