# SPDX-License-Identifier: Apache-2.0
"""The options of ``[unused]``: when leases that nobody uses are released."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

from oslo_config import cfg

from blazar.clouds.outgoing.urls import check_url
from blazar.clouds.ports.metrics import Metrics, NoMetrics
from blazar.clouds.prometheus.http import Login, Prometheus
from blazar.clouds.prometheus.template import QueryTemplate
from blazar.model.errors import InvalidInput
from blazar.model.unused import UseMode, UsePolicies, UsePolicy

SECTION = "unused"
_DAY, _YEAR = 24 * 3600, 366 * 24 * 3600
_TOKEN = "prometheus_bearer_token"
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
    cfg.StrOpt(
        "prometheus_url",
        default="",
        help="URL of Prometheus, without /api/v1: https://HOST:9090/. It is trusted as [DEFAULT] cafile says.",
    ),
    cfg.StrOpt(
        "prometheus_query",
        default="",
        help='The query in PromQL, with the label that has the id of the server as LABEL=~"{server_id}", and with one '
        'value for each server: max by (LABEL) (max_over_time(METRIC{LABEL=~"{server_id}"}[2h])). It is asked once for '
        "all servers of a lease. A server of which it says nothing keeps its lease.",
    ),
    cfg.StrOpt("prometheus_username", default="", help="Name for Prometheus; unset: none is sent."),
    cfg.StrOpt("prometheus_password", default="", secret=True, help="Password for Prometheus."),
    cfg.StrOpt(
        "prometheus_bearer_token",
        default="",
        secret=True,
        help="Sent to Prometheus as 'Authorization: Bearer …', instead of a name and a password.",
    ),
    cfg.FloatOpt(
        "prometheus_timeout",
        default=10.0,
        min=0.1,
        max=60,
        help="Seconds within which Prometheus must answer a query.",
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
    below = section.idle_below if section.source == "prometheus" else None
    default = _policy(section.mode, usual, below, "the options of [unused]")
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
        below = _below(given, section, text)
        overrides[key] = _policy(mode, {**usual, **_numbers(given, text)}, below, f"[unused] policy {text!r}")
    if any(each.idle_below is not None for each in (default, *overrides.values())) and not section.prometheus_url:
        raise ValueError("[unused] source is prometheus, and prometheus_url is not set; set it, and prometheus_query")
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
        raise ValueError(f"[unused] policy {text!r}: {wrong[0]!r} is none of {', '.join(sorted(known))} with a value")
    return {name: value for name, _, value in pairs}


def _below(given: dict[str, str], section: Any, text: str) -> float | None:
    """Return the bound of a policy, and take it from its words; None if it is not measured."""
    source, bound = given.pop("source", section.source), given.pop("idle_below", str(section.idle_below))
    if source not in {name for name, _ in _SOURCES}:
        raise ValueError(f"[unused] policy {text!r}: source is {source!r}; give states or prometheus")
    try:
        below = float(bound)
    except ValueError:
        below = math.nan
    if not math.isfinite(below):
        raise ValueError(f"[unused] policy {text!r}: idle_below is {bound!r}; give a number")
    return below if source == "prometheus" else None


def metrics(section: Any, cafile: str | None) -> Metrics:
    """Return the source of measurements; InvalidInput with a sentence that names the option."""
    if not section.prometheus_url:
        return NoMetrics()
    secrets = {"prometheus_password": section.prometheus_password, _TOKEN: section.prometheus_bearer_token}
    secret = next((name for name, value in secrets.items() if value), None)
    check_url(
        section.prometheus_url,
        "[unused] prometheus_url",
        example="https://HOST:9090/",
        credentials="prometheus_username and prometheus_password, or prometheus_bearer_token",
        secret=secret,
    )
    if section.prometheus_bearer_token and (section.prometheus_username or section.prometheus_password):
        raise InvalidInput(f"[unused] {_TOKEN} and a name or password are set, but only one can be sent; keep one")
    if bool(section.prometheus_username) != bool(section.prometheus_password):
        raise InvalidInput("[unused] prometheus_username and prometheus_password go together; set both, or none")
    token = section.prometheus_bearer_token
    if not (token.isascii() and (token.isprintable() or not token)):
        raise InvalidInput(
            f"[unused] {_TOKEN} has characters that a header cannot have; use printable ASCII characters"
        )
    return Prometheus(
        section.prometheus_url,
        QueryTemplate.of(section.prometheus_query, "[unused] prometheus_query"),
        login=Login(section.prometheus_username, section.prometheus_password, token),
        timeout=section.prometheus_timeout,
        cafile=cafile,
    )


def _numbers(given: Mapping[str, str], text: str) -> dict[str, int]:
    numbers = {}
    for name, value in given.items():
        least, most = _SECONDS[name]
        if not value.isdecimal() or not least <= int(value) <= most:
            raise ValueError(f"[unused] policy {text!r}: {name} is {value!r}; give seconds from {least} to {most}")
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
        raise ValueError(f"{where}: {error}") from error
