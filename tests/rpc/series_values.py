# SPDX-License-Identifier: Apache-2.0
"""Series of leases as hypothesis makes them up."""

from __future__ import annotations

from datetime import datetime, timedelta

from hypothesis import strategies as st

from blazar.model.leases.requests import Actor, ReservationRequest
from blazar.model.leases.states import LeaseStatus
from blazar.model.series.changes import SeriesChange
from blazar.model.series.checks import Fit
from blazar.model.series.details import (
    OccurrenceState,
    Series,
    SeriesDetails,
    SeriesOccurrence,
    SeriesOwner,
    SeriesPage,
    SeriesQuestion,
    SeriesRequest,
    SeriesStatus,
    Template,
)
from blazar.model.series.recurrence import LocalEnd, Recurrence
from blazar.model.series.rule import Frequency, Rule, Weekday
from tests.rpc.values import (
    durations,
    instants,
    keys,
    maybe_instant,
    maybe_number,
    maybe_text,
    numbers,
    pages,
    parameters,
    positions,
    reminders,
    several,
    texts,
    windows,
)

locals_ = st.datetimes(datetime(2000, 1, 1), datetime(2200, 1, 1)).map(lambda at: at.replace(microsecond=0, fold=0))
# The members of a larger set may be printed in another order.
rules = st.builds(
    lambda end, **parts: Rule(**parts, **end),
    st.fixed_dictionaries({})
    | st.fixed_dictionaries({"count": st.integers(1, 9)})
    | st.fixed_dictionaries({"until": instants | locals_}),
    frequency=st.sampled_from(Frequency),
    interval=st.integers(1, 366),
    weekdays=several(st.builds(Weekday, st.integers(0, 6), st.none() | st.integers(-5, 5))),
    month_days=several(st.integers(-31, 31)),
    positions=several(st.integers(-31, 31)),
)
lengths = st.integers(1, 10**8).map(lambda seconds: timedelta(seconds=seconds)) | st.builds(
    LocalEnd, st.times().map(lambda at: at.replace(microsecond=0, fold=0)), st.integers(0, 9)
)
recurrences = st.builds(
    Recurrence, locals_, texts, rules, lengths, st.frozensets(locals_, max_size=1), st.frozensets(locals_, max_size=1)
)
templates = st.builds(
    Template, several(st.builds(ReservationRequest, texts, parameters)), st.none() | durations, st.booleans()
)
requests = st.builds(
    SeriesRequest,
    texts,
    texts,
    texts,
    recurrences,
    templates,
    st.sampled_from(Fit),
    st.booleans(),
    st.none() | keys,
)
series = st.builds(
    Series,
    *[texts] * 4,
    recurrences,
    templates,
    st.sampled_from(Fit),
    st.sampled_from(SeriesStatus),
    instants,
    maybe_instant,
    maybe_instant,
    numbers,
    maybe_instant,
    maybe_text,
    maybe_text,
    st.booleans(),
    numbers,
)
occurrences = st.builds(
    SeriesOccurrence,
    locals_,
    instants,
    instants,
    st.sampled_from(OccurrenceState),
    maybe_text,
    maybe_text,
    st.none() | windows,
    st.none() | st.sampled_from(LeaseStatus),
    st.booleans(),
)
details = st.builds(SeriesDetails, series, several(occurrences), st.booleans())

changes = st.builds(
    SeriesChange,
    st.none() | locals_,
    maybe_text,
    st.none() | rules,
    st.none() | locals_,
    maybe_text,
    st.none() | lengths,
    st.none() | st.frozensets(locals_, max_size=1),
    st.none() | st.frozensets(locals_, max_size=1),
    st.none() | durations,
    st.booleans(),
    st.none() | several(st.builds(ReservationRequest, texts, parameters)),
    st.none() | several(reminders),
    st.none() | st.sampled_from(Fit),
    maybe_text,
    st.booleans(),
    st.none() | st.booleans(),
    st.booleans(),
    st.none() | st.builds(Actor, texts, texts, st.booleans()),
    st.booleans(),
)

ARGUMENTS: dict[str, dict[str, st.SearchStrategy[object]]] = {
    "series.page": {
        "question": st.builds(SeriesQuestion, pages, maybe_text, several(st.sampled_from(SeriesStatus))),
    },
    "series.owner": {"series_id": texts},
    "series.one": {"series_id": texts},
    "series.create": {"request": requests},
    "series.replay": {"key": keys},
    "series.change": {"series_id": texts, "change": changes},
    "series.delete": {"series_id": texts, "ends_running": st.booleans()},
}
ANSWERS: dict[str, st.SearchStrategy[object]] = {
    "series.page": st.builds(SeriesPage, several(series), st.none() | positions, maybe_number),
    "series.owner": st.builds(SeriesOwner, texts, texts, texts, st.booleans(), several(texts)),
    "series.one": details,
    "series.create": details,
    "series.replay": st.none() | details,
    "series.change": details,
    "series.delete": st.none(),
}
