# SPDX-License-Identifier: Apache-2.0
"""Our dataclasses are those of Python in all that can be seen, and write no method before one is called."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import re
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, astuple, field, fields, replace
from functools import cached_property
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from blazar.model.base import values

MAKERS = {"Python's": dataclasses.dataclass, "ours": values.dataclass}


@pytest.fixture(params=MAKERS.values(), ids=MAKERS)
def maker(request) -> Callable[..., Any]:
    return request.param


@pytest.fixture
def point(maker) -> Any:
    @maker(frozen=True, slots=True)
    class Point:
        """Where something is."""

        x: int
        y: int = 0
        tags: list[str] = field(default_factory=list, compare=False, repr=False)

        def __post_init__(self) -> None:
            if self.x < 0:
                raise ValueError("x")

    # To be found by who reads a copy that was sent.
    Point.__qualname__ = "Point"
    vars(sys.modules[__name__])["Point"] = Point
    return Point


def test_a_value_has_its_fields_defaults_and_texts(point):
    value = point(3)
    assert (value.x, value.y, value.tags) == (3, 0, [])
    assert value.tags is not point(3).tags
    assert repr(value) == "Point(x=3, y=0)"
    assert point.__doc__ == "Where something is."
    assert [one.name for one in fields(point)] == ["x", "y", "tags"]
    assert (asdict(value), astuple(value)) == ({"x": 3, "y": 0, "tags": []}, (3, 0, []))
    assert not hasattr(value, "__dict__")
    match value:
        case point(x, y):
            assert (x, y) == (3, 0)


@pytest.mark.parametrize(("arguments", "named"), [((), {}), ((1, 2, [], 4), {}), ((1,), {"z": 1}), ((1,), {"x": 1})])
def test_other_arguments_than_its_fields_are_refused(point, arguments, named):
    with pytest.raises(TypeError, match=r"__init__\(\) (missing|takes|got)"):
        point(*arguments, **named)


def test_it_is_checked_when_it_is_made(point):
    with pytest.raises(ValueError, match="x"):
        point(-1)
    with pytest.raises(ValueError, match="x"):
        replace(point(1), x=-1)


def test_equal_values_are_one_key(point):
    assert point(1, 2, ["a"]) == point(1, 2, ["b"]) != point(1, 3)
    assert len({point(1, 2): "", point(1, 2): "", point(2, 1): ""}) == 2
    assert hash(point(1, 2)) == hash((1, 2))
    assert point(1).__eq__(1) is NotImplemented


def test_a_frozen_value_refuses_to_change(point):
    value = point(1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        value.x = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'x'"):
        del value.x
    assert replace(value, x=2) == point(2)


def test_a_frozen_value_can_be_copied_and_sent(point):
    value = point(1, 2, ["a"])
    copies = [copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))]
    assert copies == [value] * 3
    assert [one.tags for one in copies] == [["a"]] * 3


def test_a_value_that_changes_is_no_key(maker):
    @maker(slots=True)
    class Counter:
        count: int = 0

    value = Counter()
    value.count += 1
    assert value == Counter(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)
    assert copy.copy(value) == value


def test_values_without_equality_are_themselves(maker):
    @maker(frozen=True, slots=True, eq=False)
    class Thing:
        name: str

    value = Thing("a")
    assert value != Thing("a")
    assert {value: 1}[value] == 1


def test_values_have_an_order_if_asked_for(maker):
    @maker(frozen=True, slots=True, order=True)
    class Version:
        major: int
        minor: int

    assert sorted([Version(2, 0), Version(1, 9), Version(1, 10)]) == [Version(1, 9), Version(1, 10), Version(2, 0)]
    assert Version(1, 0) <= Version(1, 0) >= Version(0, 9)
    assert not Version(1, 0) > Version(1, 0)


def test_fields_may_be_given_by_name_alone(maker):
    @maker(frozen=True, kw_only=True)
    class Named:
        size: int = 1
        name: str

    assert Named(name="a") == Named(size=1, name="a")
    with pytest.raises(TypeError, match="takes 1 positional argument"):
        Named("a")


@pytest.mark.parametrize("slots", [True, False], ids=["slots", "no slots"])
def test_a_field_that_nobody_gives_has_its_default_at_once(maker, slots):
    @maker(slots=slots)
    class Cache:
        size: int = 3
        known: str | None = field(default=None, init=False)
        pages: list[int] = field(default_factory=list, init=False)

    assert (Cache().known, Cache().pages, Cache(4)) == (None, [], Cache(size=4))


def test_what_a_class_has_of_its_own_stays(maker):
    @maker(frozen=True)
    class Own:
        name: str

        def __repr__(self) -> str:
            return "mine"

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own)

        @cached_property
        def long(self) -> str:
            return self.name * 2

    assert (repr(Own("a")), Own("a").long) == ("mine", "aa")
    assert Own("a") == Own("b")
    assert hash(Own("a")) == hash(("a",))

    @maker(frozen=True)
    class OwnHash:
        name: str

        def __hash__(self) -> int:
            return 7

    assert (hash(OwnHash("a")), OwnHash("a")) == (7, OwnHash("a"))


def test_a_class_without_fields_has_values(maker):
    @maker(frozen=True, slots=True)
    class Nothing:
        pass

    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1


@pytest.mark.parametrize("heir_of", MAKERS.values(), ids=MAKERS)
def test_classes_inherit_from_one_another(point, heir_of):
    @heir_of(frozen=True, slots=True)
    class Place(point):
        name: str = ""

    place = Place(1, 2, name="here")
    assert (place, hash(place)) == (Place(1, 2, name="here"), hash((1, 2, "here")))
    assert place != point(1, 2)
    assert copy.deepcopy(place) == place
    for name in ("x", "name"):
        with pytest.raises(FrozenInstanceError):
            setattr(place, name, 3)
    with pytest.raises(ValueError, match="x"):
        Place(-1)
    with pytest.raises(TypeError, match="cannot inherit non-frozen"):
        heir_of()(type("Loose", (point,), {}))


def test_other_heirs_may_have_more_than_the_fields(maker):
    @maker(frozen=True)
    class Plain:
        x: int

    class Noted(Plain):
        def __init__(self, x: int) -> None:
            super().__init__(x)
            self.note = "n"

    noted = Noted(5)
    assert (noted.x, noted.note) == (5, "n")
    del noted.note
    with pytest.raises(FrozenInstanceError):
        noted.x = 6


@pytest.fixture
def written(monkeypatch) -> list[str]:
    """The names of classes whose methods have been written."""
    names: list[str] = []
    make = dataclasses.make_dataclass
    monkeypatch.setattr(
        dataclasses, "make_dataclass", lambda name, *args, **more: (names.append(name), make(name, *args, **more))[1]
    )
    return names


def test_methods_are_written_once_and_not_before_one_is_called(written):
    @values.dataclass(frozen=True, slots=True)
    class Rare:
        name: str

    assert written == []
    assert Rare("a") == Rare("a")
    assert repr(Rare("b")).endswith("Rare(name='b')")
    assert written == ["Rare"]
    assert Rare.__init__.__qualname__.endswith("Rare.__init__")


def test_threads_may_need_them_at_once():
    @values.dataclass(frozen=True, slots=True)
    class Shared:
        number: int

    found, together = [], Barrier(8)

    def use(number: int) -> None:
        together.wait(60)
        found.append(Shared(number))

    threads = [Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert {one.number for one in found} == set(range(8))
    assert set(found) == {Shared(number) for number in range(8)}


def test_all_of_the_service_have_their_methods_written_late():
    """A class of Python's own would cost each start its six methods."""
    package = Path(values.__file__).parents[2]
    own = re.compile(r"^from dataclasses import .*\bdataclass\b|^@dataclasses\.dataclass", re.MULTILINE)
    found = {path for path in package.rglob("*.py") if own.search(path.read_text(encoding="utf-8"))}
    assert {str(path.relative_to(package)) for path in found} <= {"model/base/values.py"}
