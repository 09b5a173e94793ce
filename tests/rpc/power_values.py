# SPDX-License-Identifier: Apache-2.0
"""Random values of the calls about the power of hosts."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import strategies as st

from blazar.model.power.addresses import PowerAdapter, PowerAddress
from blazar.model.power.hosts import (
    PastMove,
    PowerChange,
    PoweredHost,
    PowerLogPage,
    PowerPage,
    PowerQuestion,
    PowerReport,
    PowerSums,
    StateCount,
)
from blazar.model.power.settings import PowerMode, PowerPolicy
from blazar.model.power.states import HostPower, PowerReason, PowerState
from tests.rpc.values import (
    conditions,
    durations,
    instants,
    maybe_instant,
    maybe_number,
    maybe_text,
    moments,
    numbers,
    pages,
    positions,
    resources,
    several,
    texts,
)

states, reasons = st.sampled_from(PowerState), st.sampled_from(PowerReason)
policies = st.sampled_from(PowerPolicy)
addresses = st.builds(PowerAddress, st.sampled_from(PowerAdapter), texts)
lengths = st.integers(0, 10**8).map(lambda seconds: timedelta(seconds=seconds))
powers = st.builds(
    HostPower,
    *[numbers, states, instants, reasons, texts, st.booleans(), st.booleans(), maybe_instant],
    *[st.none() | addresses, policies, numbers],
)
hosts = st.builds(PoweredHost, resources, powers, st.none() | powers)
moves = st.builds(PastMove, numbers, instants, states, lengths, states, reasons, st.booleans())
sums = st.builds(PowerSums, lengths, numbers, numbers, numbers, numbers)
counts = several(st.builds(StateCount, states, reasons, numbers))
host_ids = {"host_id": texts}

ARGUMENTS = {
    "power.report": {"since": st.none() | moments | durations},
    "power.page": {"question": st.builds(PowerQuestion, pages, several(conditions), maybe_text)},
    "power.one": host_ids,
    "power.change": {
        **host_ids,
        "change": st.builds(PowerChange, st.none() | addresses, st.booleans(), st.none() | policies),
    },
    "power.wake": host_ids,
    "power.log": {**host_ids, "page": pages},
}
ANSWERS = {
    "power.report": st.builds(
        PowerReport,
        *[st.sampled_from(PowerMode), instants, instants, numbers, numbers, counts, counts, sums, sums],
    ),
    "power.page": st.builds(PowerPage, several(hosts), st.none() | positions, maybe_number),
    "power.one": hosts,
    "power.change": hosts,
    "power.wake": hosts,
    "power.log": st.builds(PowerLogPage, several(moves), st.none() | positions, maybe_number),
}
