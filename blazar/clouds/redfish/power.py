# SPDX-License-Identifier: Apache-2.0
"""The port of power by Redfish: a system's state, its reset, and the watts of its chassis."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypeVar

from oslo_config import cfg

from blazar.clouds.outgoing.addresses import Allowed, TargetNames
from blazar.clouds.outgoing.posting import Poster
from blazar.clouds.ports.power import MachinePower, PowerReading, PowerRef, by_id
from blazar.clouds.redfish.client import Bmc, BmcSilent, RedfishClient
from blazar.clouds.redfish.options import SECTION, CredentialsSource
from blazar.clouds.side_by_side import ask_each
from blazar.context import check_change, current
from blazar.model.base.clock import monotonic
from blazar.model.base.errors import BlazarError, CloudRefused, CloudUnavailable, InvalidInput
from blazar.model.base.json_text import Json
from blazar.model.power.addresses import PowerAddress

CALLERS = 16
"""BMCs that are asked at the same time."""

SILENT_SECONDS = 60.0
"""How long a BMC that did not answer is not asked for its state again."""

MOST_WATTS = 1_000_000
"""More than any machine draws."""

TARGET = re.compile(r"/redfish/v1/Systems/[A-Za-z0-9._~%-]+")
EXAMPLE = "https://BMC/redfish/v1/Systems/1"

RESETS: Mapping[tuple[MachinePower, bool], tuple[str, ...]] = {
    (MachinePower.ON, False): ("On", "ForceOn"),
    (MachinePower.ON, True): ("On", "ForceOn"),
    (MachinePower.OFF, True): ("GracefulShutdown",),
    (MachinePower.OFF, False): ("ForceOff",),
}
"""Kinds of reset by what is wanted and whether softly: the first that a system allows."""

STATES = {"On": MachinePower.ON, "Off": MachinePower.OFF}

Answer = TypeVar("Answer")


class RedfishPower:
    """Implements the port of power for hosts whose BMC speaks Redfish. Safe to use from several threads."""

    def __init__(
        self,
        client: RedfishClient,
        allowed: Allowed,
        credentials: CredentialsSource,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._client = client
        self._allowed = allowed
        self._credentials = credentials
        self._clock = clock
        self._silent: dict[str, tuple[float, str]] = {}
        self._meters: dict[str, str] = {}
        self._lock = threading.Lock()

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts) -> RedfishPower:
        """Return the adapter as configured; InvalidInput names the option."""
        section = conf[SECTION]
        named = TargetNames(field="target", section=SECTION)
        allowed = Allowed.of((), section.allowed_networks, http=section.allow_http, named=named)
        poster = Poster(allowed, conf.cafile, verify=not section.insecure)
        client = RedfishClient(poster, timeout=section.timeout, sessions=section.sessions)
        return cls(client, allowed, CredentialsSource.configured(section))

    def check_address(self, address: PowerAddress) -> None:
        """Raise InvalidInput if the target is no URL of a system that may be asked."""
        if not self._allowed.networks:
            # Who sets a target would choose what is sent the name and the password of BMCs.
            raise InvalidInput(
                f"target: BMCs are asked with a password, and [{SECTION}] allowed_networks is not set in blazar.conf; "
                "have the operator name the networks of the BMCs there",
                at="/target",
            )
        parts = self._allowed.check_url(address.target)
        if not TARGET.fullmatch(parts.path) or parts.query:
            raise InvalidInput(f"target is not the URL of a system; write it as {EXAMPLE}", at="/target")

    def power_states(self, refs: Collection[PowerRef]) -> Mapping[str, PowerReading]:
        """Return what the BMCs say; one that was silent a moment ago is not asked again."""
        return ask_each(by_id(refs), self._read_state, callers=CALLERS)

    def begin_switch(self, ref: PowerRef, to: MachinePower, *, soft: bool) -> None:
        """Reset the system. A system that cannot shut down softly is left for the hard switch that follows."""
        bmc = self._find(ref)
        seconds = self._seconds(check_change())
        end = monotonic() + seconds
        system = self._client.get(bmc, bmc.parts.path, seconds)
        if STATES.get(str(system.get("PowerState"))) is to:
            return
        path, kinds = _read_reset(system)
        kind = next((kind for kind in RESETS[to, soft] if kinds is None or kind in kinds), None)
        if kind is None and soft:
            return
        if kind is None:
            raise CloudRefused(
                f"its BMC offers no reset {' or '.join(RESETS[to, soft])}, only {', '.join(kinds or ())}"
            )
        # The claim may have run out while the first answer was awaited.
        left = min(end - monotonic(), self._seconds(check_change()))
        if left <= 0:
            raise CloudUnavailable("its BMC did not answer in time")
        self._client.post(bmc, path, {"ResetType": kind}, left)

    def power_watts(self, refs: Collection[PowerRef]) -> Mapping[str, float]:
        """Return the watts of the chassis of each system that tells them."""
        found = ask_each(by_id(refs), self._read_watts, callers=CALLERS)
        return {id_: watts for id_, watts in found.items() if watts is not None}

    def _read_state(self, ref: PowerRef) -> PowerReading:
        def ask(bmc: Bmc) -> PowerReading:
            said = str(self._client.get(bmc, bmc.parts.path, self._seconds(None)).get("PowerState"))
            state = STATES.get(said, MachinePower.UNKNOWN)
            return PowerReading(state, "" if said in STATES else f"its BMC says {said[:40]}")

        answer = self._ask(ref, ask)
        return PowerReading(MachinePower.UNKNOWN, answer.message) if isinstance(answer, BlazarError) else answer

    def _read_watts(self, ref: PowerRef) -> float | None:
        def ask(bmc: Bmc) -> float | None:
            path = self._meters.get(ref.address.target)
            if path is None:
                path = self._meters[ref.address.target] = self._find_meter(bmc)
            return _read_meter(self._client.get(bmc, path, self._seconds(None))) if path else None

        answer = self._ask(ref, ask)
        return None if isinstance(answer, BlazarError) else answer

    def _find_meter(self, bmc: Bmc) -> str:
        """Return the path of what tells the watts of a system; empty if nothing does."""
        system = self._client.get(bmc, bmc.parts.path, self._seconds(None))
        for link in _links(system.get("Links"), "Chassis"):
            chassis = self._client.get(bmc, link, self._seconds(None))
            for name in ("EnvironmentMetrics", "Power"):
                for path in _links(chassis, name):
                    return path
        return ""

    def _ask(self, ref: PowerRef, ask: Callable[[Bmc], Answer]) -> Answer | BlazarError:
        """Return an answer, or why there is none."""
        target = ref.address.target
        with self._lock:
            until, reason = self._silent.get(target, (0.0, ""))
        if self._clock() < until:
            return CloudUnavailable(reason)
        try:
            return ask(self._find(ref))
        except BmcSilent as error:
            with self._lock:
                self._silent[target] = (self._clock() + SILENT_SECONDS, error.message)
            return error
        except BlazarError as error:
            return error

    def _find(self, ref: PowerRef) -> Bmc:
        try:
            self.check_address(ref.address)
        except InvalidInput as error:
            # The operator has changed the options since it was set.
            raise CloudRefused(error.message) from error
        return Bmc(self._allowed.check_url(ref.address.target), self._credentials.find(ref.host))

    def _seconds(self, most: float | None) -> float:
        left = [seconds for seconds in (most, current().remaining()) if seconds is not None]
        seconds = min([self._client.timeout, *left])
        if seconds <= 0:
            raise CloudUnavailable("no time was left to ask its BMC")
        return seconds


def _read_reset(system: Json) -> tuple[str, tuple[str, ...] | None]:
    """Return the path of the reset of a system, and the kinds that it allows; None if it does not say."""
    actions: Any = system.get("Actions")
    reset = actions.get("#ComputerSystem.Reset") if isinstance(actions, dict) else None
    if not isinstance(reset, dict) or not isinstance(reset.get("target"), str):
        raise CloudRefused("its BMC offers no reset of this system")
    kinds = reset.get("ResetType@Redfish.AllowableValues")
    return reset["target"], tuple(map(str, kinds)) if isinstance(kinds, list) else None


def _links(content: Any, name: str) -> list[str]:
    """Return the paths that a resource links to by a name."""
    found = content.get(name) if isinstance(content, dict) else None
    entries = found if isinstance(found, list) else [found]
    paths = [entry.get("@odata.id") for entry in entries if isinstance(entry, dict)]
    return [path for path in paths if isinstance(path, str)]


def _read_meter(content: Json) -> float | None:
    """Return the watts that EnvironmentMetrics or Power tells; None for what is no number of watts."""
    sensor: Any = content.get("PowerWatts")
    watts = sensor.get("Reading") if isinstance(sensor, dict) else None
    controls: Any = content.get("PowerControl")
    if watts is None and isinstance(controls, list) and controls and isinstance(controls[0], dict):
        watts = controls[0].get("PowerConsumedWatts")
    # Compared, not converted: JSON has whole numbers that no float holds.
    if isinstance(watts, bool) or not isinstance(watts, int | float) or not 0 <= watts <= MOST_WATTS:
        return None
    return float(watts)
