# SPDX-License-Identifier: Apache-2.0
"""The power of hosts, for operators: what sleeps and why, by what each host is switched, and wakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from blazarclient.exception import NotFound
from blazarclient.library.decoding import decode
from blazarclient.library.registered import KEEP
from blazarclient.library.transport import Transport, named, part_of_path
from blazarclient.library.written import Date, written


@dataclass(frozen=True, kw_only=True)
class PowerStatus:
    """A power state (``on``, ``going_off``, ``off``, ``waking``), since when, and why."""

    state: str
    since: datetime
    reason: str = ""


@dataclass(frozen=True, kw_only=True)
class HostPower:
    """The power of a host, or of a pool of volumes. Without an ``adapter`` nothing switches it.

    Until ``kept_until`` it stays on. ``rehearsed`` is what a dry run would have it be; in truth it is on then.
    """

    id: str
    name: str = ""
    adapter: str | None = None
    target: str | None = None
    policy: str = "auto"
    state: str = "on"
    since: datetime | None = None
    reason: str = ""
    kept_until: datetime | None = None
    rehearsed: PowerStatus | None = None


@dataclass(frozen=True, kw_only=True)
class PowerMove:
    """What has become of the power of a host: the state before, for how many seconds, the state after, and why."""

    id: str
    at: datetime
    before: str
    seconds: int
    after: str
    reason: str
    rehearsed: bool = False


@dataclass(frozen=True, kw_only=True)
class PowerCount:
    """How many hosts are in a state for a reason."""

    state: str
    reason: str
    hosts: int


@dataclass(frozen=True, kw_only=True)
class PowerSums:
    """What has happened within a period, added up."""

    slept_hours: float = 0.0
    switched_off: int = 0
    woken: int = 0
    failed_wakes: int = 0
    missed_starts: int = 0


@dataclass(frozen=True, kw_only=True)
class PowerResults(PowerSums):
    """How many hosts are in which state, and what has happened within the period, of all hosts together."""

    hosts: tuple[PowerCount, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PowerClass:
    """Hosts with the same values of the properties in ``group``, by which requests tell them apart.

    ``asleep`` are those that sleep, in a dry run those that would. ``spare`` free ones stay awake; ``lead_seconds``
    before a start its hosts are woken, and a wake takes ``wake_seconds`` at most, but for one of a hundred.
    ``spare_source`` is where the spare comes from: ``fixed`` by ``spare_rule`` of the operators, or else that of all
    classes; ``asked``, half more than ``asked_at_once``; or ``share``, a share of the hosts.
    """

    group: Mapping[str, Any] = field(default_factory=dict)
    hosts: int = 0
    asleep: int = 0
    spare: int = 0
    spare_source: str = "fixed"
    spare_rule: str | None = None
    asked_at_once: int = 0
    lead_seconds: int = 0
    wake_seconds: int = 0


@dataclass(frozen=True, kw_only=True)
class PowerOfPools(PowerSums):
    """How many pools of volumes have an adapter, are kept on and sleep, and what has happened of them."""

    switched: int = 0
    kept: int = 0
    asleep: int = 0


@dataclass(frozen=True, kw_only=True)
class PowerReport:
    """What sleeps, and what that has saved: ``done`` in truth, ``rehearsed`` in a dry run."""

    mode: str
    to: datetime
    switched_hosts: int = 0
    kept_hosts: int = 0
    done: PowerResults = PowerResults()
    rehearsed: PowerResults = PowerResults()
    classes: tuple[PowerClass, ...] = ()
    pools: PowerOfPools = PowerOfPools()


_WORDS = {"host": ("host", "hosts"), "volume": ("pool", "pools")}
"""By kind of resource the words for one and for several in paths and answers."""


class Power:
    """The power of the registered hosts, and of the pools of volumes (``kind="volume"``)."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def report(self, *, since: Date | None = None) -> PowerReport:
        """Return what sleeps, and what that has saved ``since``: a date, or a duration back such as ``-P7D``.

        By default 30 days are summed up.
        """
        query = {"from": None if since is None else written(since)}
        return decode(PowerReport, self._transport.ask("GET", "/power", query=query).part("power"))

    def list(self, /, kind: str = "host", **filters: Any) -> Iterator[HostPower]:
        """Yield hosts with their power, or pools (``volume``), by name.

        Filters: ``state``, ``policy``, ``adapter``, ``text``.
        """
        _, words = _WORDS[kind]
        for item in self._transport.pages(f"/power/{words}", words, query=filters):
            yield decode(HostPower, item)

    def get(self, host_id: str, *, kind: str = "host") -> HostPower:
        """Return a host, or a pool, with its power. NotFound."""
        return _read(self._transport.ask("GET", _path(host_id, kind)), kind)

    def find(self, name_or_id: str, *, kind: str = "host") -> HostPower:
        """Return the host, or pool, with this id or name, with its power. NotFound."""
        named(name_or_id)
        try:
            return self.get(name_or_id, kind=kind)
        except NotFound:
            found = [host for host in self.list(kind, text=name_or_id) if host.name == name_or_id]
        if not found:
            raise NotFound(f"There is no {_WORDS[kind][0]} {name_or_id}", code=404)
        return found[0]

    def change(
        self,
        host_id: str,
        *,
        adapter: Any = KEEP,
        target: Any = KEEP,
        policy: str | None = None,
        kind: str = "host",
    ) -> HostPower:
        """Set by what one is switched (both None: by nothing), and its policy, ``auto`` or ``keep``. Conflict."""
        given = {"adapter": adapter, "target": target, "policy": KEEP if policy is None else policy}
        body = {key: value for key, value in given.items() if value is not KEEP}
        return _read(self._transport.ask("PUT", _path(host_id, kind), body=body, repeatable=True), kind)

    def wake(self, host_id: str, *, kind: str = "host") -> HostPower:
        """Wake one that sleeps, or have it stay on, for four hours. Conflict if the service switches nothing."""
        return _read(self._transport.ask("POST", f"{_path(host_id, kind)}/wake", repeatable=True), kind)

    def log(self, host_id: str, /, kind: str = "host", **filters: Any) -> Iterator[PowerMove]:
        """Yield what has become of the power of one, the oldest first; ``sort_dir`` is ``desc`` for the latest."""
        for item in self._transport.pages(f"{_path(host_id, kind)}/log", "log", query=filters):
            yield decode(PowerMove, item)


def _path(host_id: str, kind: str) -> str:
    return f"/power/{_WORDS[kind][1]}/{part_of_path(host_id)}"


def _read(answer: Any, kind: str) -> HostPower:
    return decode(HostPower, answer.part(_WORDS[kind][0]))
