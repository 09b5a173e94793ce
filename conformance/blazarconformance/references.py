# SPDX-License-Identifier: Apache-2.0
"""References to other reservations of the lease, and the rank at the end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from jsonschema import Draft202012Validator

from blazar.model.leases.reservation import Content
from blazar.resources.contract.parameters import RESERVATION, with_ids
from blazar.resources.contract.values import Given, Rank, Reference
from blazarconformance.catalogue import CHANGES, RANKED, REFERRING, SCHEMA, check, require
from blazarconformance.parameters import refusal
from blazarconformance.trial import Trial

OTHER = "5b0c1a2e-0000-4000-8000-00000000000{}"
"""Ids of other reservations, with a digit."""

NO_REFERENCES: tuple[object, ...] = (
    {RESERVATION: -1},
    {RESERVATION: True},
    {RESERVATION: 1.5},
    {RESERVATION: None},
    {RESERVATION: []},
    {RESERVATION: {RESERVATION: 0}},
    {RESERVATION: 0, "more": 1},
)


def _in(value: Any, pointer: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the references that are anywhere in a value, with their JSON pointers."""
    if isinstance(value, Mapping) and RESERVATION in value:
        yield pointer, value[RESERVATION]
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _in(item, f"{pointer}/{key}")
    elif isinstance(value, list | tuple):
        for number, item in enumerate(value):
            yield from _in(item, f"{pointer}/{number}")


def _replaced(value: Any, keys: list[str], by: object) -> Any:
    """Return a copy of a value with something else in the place that the keys lead to."""
    if not keys:
        return by
    if isinstance(value, Mapping):
        return {**value, keys[0]: _replaced(value[keys[0]], keys[1:], by)}
    number = int(keys[0])
    return [*value[:number], _replaced(value[number], keys[1:], by), *value[number + 1 :]]


def _kept(trial: Trial) -> tuple[Content, tuple[Reference, ...]]:
    """Return the parameters of the request that refers to others, and its references."""
    assert trial.harness.referring is not None
    kept = trial.parameters(trial.harness.referring)
    return kept, trial.type.references(kept)


def _stored(trial: Trial) -> tuple[Content, Mapping[str, str]]:
    """Return these parameters with ids, as they are stored, and the ids by pointer."""
    kept, found = _kept(trial)
    ids = {each.pointer: OTHER.format(number) for number, each in enumerate(found)}
    return with_ids(kept, ids), ids


@check(REFERRING)
def every_reference_of_a_request_is_found(trial: Trial) -> None:
    """A type finds every reference of a request, with the index that the request has, and none in others."""
    _, found = _kept(trial)
    given = sorted(str(index) for _, index in _in(trial.harness.referring))
    told = sorted(str(each.reservation) for each in found)
    require(told == given, f"the request has the references {given}, and the type tells {told}.")
    plain = trial.type.references(trial.parameters())
    require(len(plain) == len(list(_in(trial.harness.request))), f"of the plain request the type tells {plain}.")


@check(REFERRING)
def references_are_found_again_by_id(trial: Trial) -> None:
    """A type finds the same references, in the same places, when the manager has put ids into them."""
    stored, ids = _stored(trial)
    told = {each.pointer: each.reservation for each in trial.type.references(stored)}
    require(told == ids, f"they were {dict(ids)}, and the type tells {told}.")


@check(REFERRING, CHANGES)
def a_change_of_something_else_keeps_references(trial: Trial) -> None:
    """References with ids stay what they are in a change that does not name them."""
    stored, ids = _stored(trial)
    after = trial.type.changed(stored, Given({}))
    told = {each.pointer: each.reservation for each in trial.type.references(after)}
    require(told == ids, f"they were {dict(ids)}, and after the change {told}.")


@check(REFERRING)
def what_is_no_reference_is_refused(trial: Trial) -> None:
    """What has another form than a reference is refused with a sentence that names the parameter."""
    for pointer, _ in _in(trial.harness.referring):
        keys = pointer.split("/")[1:]
        for wrong in NO_REFERENCES:
            error = refusal(trial, _replaced(trial.harness.referring, keys, wrong), f"{keys[0]} = {wrong!r}")
            require(error is not None, f"{keys[0]} = {wrong!r} is taken as a reference.")
            if error is not None:
                named = keys[0] in error.message
                require(named, f"the refusal of {wrong!r} does not name {keys[0]}: {error.message[:200]!r}.")


@check(REFERRING, SCHEMA)
def its_schema_takes_references(trial: Trial) -> None:
    """The schema of a type takes a request that refers to other reservations, and no such thing that is none."""
    schema = Draft202012Validator(dict(trial.type.schema or {}))
    wrong = [error.message for error in schema.iter_errors(trial.harness.referring)]
    require(not wrong, f"the schema refuses it: {wrong}.")
    for pointer, _ in _in(trial.harness.referring):
        spoiled = _replaced(trial.harness.referring, pointer.split("/")[1:], {RESERVATION: None})
        require(list(schema.iter_errors(spoiled)), f"the schema takes null as the reservation at {pointer}.")


@check(RANKED)
def its_rank_is_one_of_the_ranks(trial: Trial) -> None:
    """The rank of a type is one of the ranks, and the same in every manager."""
    ranks = [getattr(each, "rank", None) for each in (trial.site.type, trial.site.another_type())]
    require(all(isinstance(rank, Rank) for rank in ranks) and ranks[0] == ranks[1], f"its ranks are {ranks!r}.")
