# SPDX-License-Identifier: Apache-2.0
"""The power of hosts by whichever adapter each of them has."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import TypeVar

from oslo_config import cfg

from blazar.clouds.hooks.power import HookPower
from blazar.clouds.openstack.access import Access
from blazar.clouds.openstack.bulkhead import Bulkhead
from blazar.clouds.openstack.ironic import IronicPower
from blazar.clouds.ports.hooks import Hooks
from blazar.clouds.ports.power import MachinePower, Power, PowerReading, PowerRef
from blazar.clouds.redfish.power import RedfishPower
from blazar.model.base.clock import Clock
from blazar.model.base.errors import BlazarError, CloudRefused, InvalidInput
from blazar.model.power.addresses import PowerAdapter, PowerAddress

Answer = TypeVar("Answer")


class PowerOfAdapters:
    """Implements the port of power by one implementation for each adapter.

    None of them takes the last threads of a pool. One that fails as a whole costs the others nothing.
    """

    def __init__(self, adapters: Mapping[PowerAdapter, Power]) -> None:
        self._adapters = adapters
        self._bulkheads = {adapter: Bulkhead(f"power by {adapter}") for adapter in adapters}

    def check_address(self, address: PowerAddress) -> None:
        """Raise InvalidInput if a host at this address could not be switched."""
        if address.adapter not in self._adapters:
            fit = ", ".join(self._adapters)
            raise InvalidInput(
                f"adapter is {address.adapter}, which this cloud does not have; give one of {fit}", at="/adapter"
            )
        self._adapters[address.adapter].check_address(address)

    def power_states(self, refs: Collection[PowerRef]) -> Mapping[str, PowerReading]:
        """Return a reading for each host."""

        reasons: dict[str, str] = {}
        found = self._ask(refs, lambda power, some: power.power_states(some), reasons)
        return {
            id_: found.get(id_) or PowerReading(MachinePower.UNKNOWN, reasons.get(id_, "its adapter did not tell"))
            for id_ in (ref.resource_id for ref in refs)
        }

    def begin_switch(self, ref: PowerRef, to: MachinePower, *, soft: bool) -> None:
        """Begin to switch a host by its adapter."""
        power = self._adapters.get(ref.address.adapter)
        if power is None:
            raise CloudRefused(f"its adapter {ref.address.adapter} is not one of this cloud")
        bulkhead = self._bulkheads[ref.address.adapter]
        with bulkhead.admit_call():
            power.begin_switch(ref, to, soft=soft)
        bulkhead.note_answer()

    def power_watts(self, refs: Collection[PowerRef]) -> Mapping[str, float]:
        """Return the watts of the hosts that are measured."""
        return self._ask(refs, lambda power, some: power.power_watts(some), {})

    def _ask(
        self,
        refs: Collection[PowerRef],
        read: Callable[[Power, Collection[PowerRef]], Mapping[str, Answer]],
        reasons: dict[str, str],
    ) -> Mapping[str, Answer]:
        """Return what was answered of each host, and add to ``reasons`` why there is no answer of others."""
        by_adapter: dict[PowerAdapter, list[PowerRef]] = defaultdict(list)
        for ref in refs:
            by_adapter[ref.address.adapter].append(ref)
        found: dict[str, Answer] = {}
        for adapter, some in by_adapter.items():
            if adapter not in self._adapters:
                reasons |= {ref.resource_id: f"its adapter {adapter} is not one of this cloud" for ref in some}
                continue
            try:
                with self._bulkheads[adapter].admit_call():
                    found |= read(self._adapters[adapter], some)
                self._bulkheads[adapter].note_answer()
            except BlazarError as error:
                reasons |= {ref.resource_id: error.message for ref in some}
        return found


def open_power(conf: cfg.ConfigOpts, access: Access, hooks: Hooks, clock: Clock) -> Power:
    """Return the power of the hosts of a cloud, without calling anything; InvalidInput names the option."""
    shutdown_timeout = timedelta(seconds=conf.power.shutdown_timeout)
    return PowerOfAdapters(
        {
            PowerAdapter.REDFISH: RedfishPower.configured(conf),
            PowerAdapter.HOOK: HookPower(hooks, clock),
            PowerAdapter.IRONIC: IronicPower(access, shutdown_timeout=shutdown_timeout),
        }
    )
