# SPDX-License-Identifier: Apache-2.0
"""In which regions reservations may lie: by their requirements, and together."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from blazar.model.resources.regions import Regions, choose_regions
from blazar.model.resources.requirements import AnyOf, Comparison, Membership, Not, join_requirements, matches

NAMES = ("A", "B", "C")
VALUES = ("small", "large")

_terms = st.one_of(
    st.builds(Comparison, st.sampled_from(["==", "!=", "<", ">="]), st.just("region"), st.sampled_from(NAMES)),
    st.builds(Comparison, st.sampled_from(["==", "!="]), st.just("size"), st.sampled_from(VALUES)),
    st.builds(Membership, st.just("region"), st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple)),
)
_requirements = st.recursive(
    _terms,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(lambda *parts: join_requirements(*parts), inner, inner),
        st.builds(lambda *parts: AnyOf(parts), inner, inner),
    ),
    max_leaves=4,
)


@given(_requirements)
def test_no_region_is_left_out_in_which_some_resource_meets_the_requirement(requirement):
    allowed = Regions(NAMES).list_allowed(requirement)
    for name in NAMES:
        found = any(matches(requirement, {"region": name, **more}) for more in ({}, *({"size": v} for v in VALUES)))
        assert name in allowed or not found


_allowed = st.lists(
    st.sets(st.sampled_from(NAMES), min_size=1).map(lambda names: tuple(n for n in NAMES if n in names)),
    min_size=1,
    max_size=4,
)


@given(_allowed)
def test_each_option_puts_every_reservation_into_one_region_that_it_allows(allowed):
    options = list(choose_regions(allowed).iterate_options())
    assert options
    for option in options:
        assert all(name in names for name, names in zip(option, allowed, strict=True))


@given(_allowed)
def test_the_options_are_those_of_the_oracle(allowed):
    free = [number for number, names in enumerate(allowed) if len(names) > 1]
    together = [o for o in product(*allowed) if len({o[number] for number in free}) <= 1]
    fixed = {names[0] for names in allowed if len(names) == 1}
    beside = [o for o in together if free and o[free[0]] in fixed]
    wanted = (beside or together) if together else [tuple(names[0] for names in allowed)]
    assert sorted(choose_regions(allowed).iterate_options()) == sorted(wanted)


def test_without_names_there_is_one_region_that_has_none():
    assert (list(Regions()), Regions().default, bool(Regions())) == ([""], "", False)
