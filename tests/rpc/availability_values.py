# SPDX-License-Identifier: Apache-2.0
"""Questions about free time and their answers, to be sent over the bus."""

from __future__ import annotations

from datetime import timedelta

import hypothesis.strategies as st

from blazar.model.leases.requests import Actor, ReservationChange, ReservationRequest
from blazar.model.search.availability import (
    Alternative,
    Availability,
    AvailabilityQuestion,
    Change,
    EnforcementRefusal,
    Extension,
    FreeWindow,
    LimitedBy,
    Step,
    StepCode,
    WindowReason,
)
from tests.rpc.values import (
    durations,
    instants,
    maybe_instant,
    maybe_text,
    moments,
    numbers,
    parameters,
    several,
    texts,
    windows,
)

questions = st.builds(
    AvailabilityQuestion,
    st.builds(Actor, texts, texts, st.booleans()),
    several(st.builds(ReservationRequest, texts, parameters)),
    maybe_text,
    several(st.builds(ReservationChange, texts, parameters, maybe_text)),
    duration=st.none() | durations,
    earliest=moments,
    latest=st.none() | moments | durations,
    start=st.none() | moments,
    end=st.none() | moments | durations,
    limit=numbers,
    explain=st.booleans(),
    alternatives=st.booleans(),
)
refusals = several(st.builds(EnforcementRefusal, texts, parameters))
steps = st.builds(Step, st.sampled_from(StepCode), numbers, st.none() | numbers, maybe_instant, maybe_text)
counts = st.none() | several(st.dictionaries(texts, numbers, max_size=2))
answers = st.builds(
    Availability,
    instants,
    windows,
    st.integers(1, 10**8).map(lambda seconds: timedelta(seconds=seconds)),
    instants,
    st.booleans(),
    openings=several(st.builds(FreeWindow, windows, instants, maybe_instant, several(numbers), refusals)),
    not_checked=several(texts),
    reasons=several(st.builds(WindowReason, numbers, windows, numbers, numbers, several(steps), texts)),
    alternatives=several(st.builds(Alternative, st.sampled_from(Change), windows, counts, maybe_text)),
    extension=st.none() | st.builds(Extension, instants, st.sampled_from(LimitedBy), refusals),
)
