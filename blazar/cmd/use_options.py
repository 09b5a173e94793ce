# SPDX-License-Identifier: Apache-2.0
"""The options of ``[unused]``: when leases that nobody uses are released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from oslo_config import cfg

from blazar.model.unused import UseMode, UsePolicies, UsePolicy

SECTION = "unused"
_DAY, _YEAR = 24 * 3600, 366 * 24 * 3600
_MODES = [
    ("off", "nobody looks"),
    ("dry_run", "leases are looked at; what would be done is written down and reported, and nobody is told"),
    ("on", "owners are warned, and leases that stay unused are ended"),
]

_SECONDS: Mapping[str, tuple[int, int]] = {
    "unused_after": (600, _YEAR),
    "idle_after": (0, _YEAR),
    "warn_before": (120, _YEAR),
    "undo": (60, _DAY),
}
"""The options in seconds that a policy may name too, with their bounds."""


def _seconds(name: str, default: int, text: str) -> cfg.Opt:
    least, most = _SECONDS[name]
    return cfg.IntOpt(name, default=default, min=least, max=most, help=text)


OPTIONS: list[cfg.Opt] = [
    cfg.StrOpt(
        "mode",
        default="dry_run",
        choices=_MODES,
        help="What comes of leases that nobody uses. off and dry_run also stop what was begun.",
    ),
    _seconds(
        "unused_after",
        9 * 3600,
        "Seconds after the start of a lease at which it is released if nothing was ever there.",
    ),
    _seconds(
        "idle_after",
        0,
        "Seconds for which everything in a lease has been stopped, shelved or gone when it is released; 0: what "
        "was used once is never released.",
    ),
    _seconds(
        "warn_before",
        3 * 3600,
        "Seconds between the warning and the release; shorter than unused_after and idle_after.",
    ),
    _seconds(
        "undo",
        15 * 60,
        "Seconds between the last notice and the release; shorter than warn_before.",
    ),
    cfg.MultiStrOpt(
        "policy",
        default=[],
        help="Other values for a resource type or a project or both, once for each, as "
        "'resource_type=physical:host project=PROJECT_ID mode=on unused_after=21600'. What is not named is as above. "
        "Of several policies that of type and project counts, then that of the project, then that of the type; for a "
        "lease with several types the most patient.",
    ),
    cfg.ListOpt(
        "exempt_projects",
        default=[],
        help="Ids of projects whose leases are never looked at.",
    ),
    cfg.IntOpt(
        "brake_percent",
        default=20,
        min=1,
        max=100,
        help="If more than this percentage of all leases in use, and more than three, would be released within an "
        "hour, none of them is, and an error is logged: then a probe is probably broken.",
    ),
]


def use_policies(section: Any) -> UsePolicies:
    """Return the policies of ``[unused]``. ValueError with a sentence that names the option."""
    usual = {name: getattr(section, name) for name in _SECONDS}
    default = _policy(section.mode, usual, "the options of [unused]")
    overrides: dict[tuple[str, str], UsePolicy] = {}
    for text in section.policy:
        given = _words(text)
        mode = given.pop("mode", section.mode)
        if mode not in {name for name, _ in _MODES}:
            raise ValueError(f"[unused] policy {text!r}: mode is {mode!r}; give off, dry_run or on")
        key = (given.pop("resource_type", ""), given.pop("project", ""))
        if key == ("", "") or key in overrides:
            raise ValueError(
                f"[unused] policy {text!r}: give a resource_type or a project, or both, that no other policy has"
            )
        overrides[key] = _policy(mode, {**usual, **_numbers(given, text)}, f"[unused] policy {text!r}")
    return replace(
        UsePolicies(default),
        overrides=overrides,
        exempt=frozenset(section.exempt_projects),
        brake=section.brake_percent / 100,
    )


def _words(text: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in text.split()]
    known = {"resource_type", "project", "mode", *_SECONDS}
    if wrong := [name for name, equals, value in pairs if not equals or not value or name not in known]:
        raise ValueError(f"[unused] policy {text!r}: {wrong[0]!r} is none of {', '.join(sorted(known))} with a value")
    return {name: value for name, _, value in pairs}


def _numbers(given: Mapping[str, str], text: str) -> dict[str, int]:
    numbers = {}
    for name, value in given.items():
        least, most = _SECONDS[name]
        if not value.isdecimal() or not least <= int(value) <= most:
            raise ValueError(f"[unused] policy {text!r}: {name} is {value!r}; give seconds from {least} to {most}")
        numbers[name] = int(value)
    return numbers


def _policy(mode: str, seconds: Mapping[str, int], where: str) -> UsePolicy:
    try:
        return UsePolicy(
            mode=UseMode(mode),
            unused_after=timedelta(seconds=seconds["unused_after"]),
            idle_after=timedelta(seconds=seconds["idle_after"]) if seconds["idle_after"] else None,
            warn_before=timedelta(seconds=seconds["warn_before"]),
            undo=timedelta(seconds=seconds["undo"]),
        )
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error
