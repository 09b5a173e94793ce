# SPDX-License-Identifier: Apache-2.0
"""Settings of use: when leases that nobody uses are released."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from oslo_config import cfg

from blazar.model.base.errors import InvalidInput
from blazar.model.use.policy import UseMode, UsePolicies, UsePolicy

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

_SOURCES = [
    ("states", "the states of servers: one that runs is used"),
    ("prometheus", "a measurement too: a server that runs is idle while prometheus_query gives less than idle_below"),
]


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
    cfg.StrOpt(
        "source",
        default="states",
        choices=_SOURCES,
        help="What tells whether servers are used. With prometheus leases are released although servers run in them.",
    ),
    cfg.FloatOpt(
        "idle_below",
        default=0.05,
        help="The value of prometheus_query below which a server that runs is idle, in the unit of the query.",
    ),
]
POLICY_OPTIONS: list[cfg.Opt] = [
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


def read(conf: cfg.ConfigOpts) -> UsePolicies:
    """Return the policies as configured. InvalidInput with a sentence that names the option."""
    section = conf[SECTION]
    usual = {name: getattr(section, name) for name in _SECONDS}
    below = section.idle_below if section.source == "prometheus" else None
    default = _policy(section.mode, usual, below, "the options of [unused]")
    overrides: dict[tuple[str, str], UsePolicy] = {}
    for text in section.policy:
        given = _words(text)
        mode = given.pop("mode", section.mode)
        if mode not in {name for name, _ in _MODES}:
            raise InvalidInput(f"[unused] policy {text!r}: mode is {mode!r}; give off, dry_run or on")
        key = (given.pop("resource_type", ""), given.pop("project", ""))
        if key == ("", "") or key in overrides:
            raise InvalidInput(
                f"[unused] policy {text!r}: give a resource_type or a project, or both, that no other policy has"
            )
        below = _below(given, section, text)
        overrides[key] = _policy(mode, {**usual, **_numbers(given, text)}, below, f"[unused] policy {text!r}")
    if any(policy.idle_below is not None for policy in (default, *overrides.values())) and not section.prometheus_url:
        raise InvalidInput("[unused] source is prometheus, and prometheus_url is not set; set it, and prometheus_query")
    return replace(
        UsePolicies(default),
        overrides=overrides,
        exempt=frozenset(section.exempt_projects),
        brake=section.brake_percent / 100,
    )


def _words(text: str) -> dict[str, str]:
    pairs = [word.partition("=") for word in text.split()]
    known = {"resource_type", "project", "mode", "source", "idle_below", *_SECONDS}
    if wrong := [name for name, equals, value in pairs if not equals or not value or name not in known]:
        raise InvalidInput(f"[unused] policy {text!r}: {wrong[0]!r} is none of {', '.join(sorted(known))} with a value")
    return {name: value for name, _, value in pairs}


def _below(given: dict[str, str], section: Any, text: str) -> float | None:
    """Return the bound of a policy, and take it from its words; None if it is not measured."""
    source, bound = given.pop("source", section.source), given.pop("idle_below", str(section.idle_below))
    if source not in {name for name, _ in _SOURCES}:
        raise InvalidInput(f"[unused] policy {text!r}: source is {source!r}; give states or prometheus")
    try:
        below = float(bound)
    except ValueError:
        below = math.nan
    if not math.isfinite(below):
        raise InvalidInput(f"[unused] policy {text!r}: idle_below is {bound!r}; give a number")
    return below if source == "prometheus" else None


def _numbers(given: Mapping[str, str], text: str) -> dict[str, int]:
    numbers = {}
    for name, value in given.items():
        least, most = _SECONDS[name]
        if not value.isdecimal() or not least <= int(value) <= most:
            raise InvalidInput(f"[unused] policy {text!r}: {name} is {value!r}; give seconds from {least} to {most}")
        numbers[name] = int(value)
    return numbers


def _policy(mode: str, seconds: Mapping[str, int], below: float | None, where: str) -> UsePolicy:
    try:
        return UsePolicy(
            mode=UseMode(mode),
            unused_after=timedelta(seconds=seconds["unused_after"]),
            idle_after=timedelta(seconds=seconds["idle_after"]) if seconds["idle_after"] else None,
            warn_before=timedelta(seconds=seconds["warn_before"]),
            undo=timedelta(seconds=seconds["undo"]),
            idle_below=below,
        )
    except ValueError as error:
        raise InvalidInput(f"{where}: {error}") from error
