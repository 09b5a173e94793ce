# SPDX-License-Identifier: Apache-2.0
"""What a type or a kind of another's making can do, by the methods that it has."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Generic, Protocol, TypeVar, cast

Capability = TypeVar("Capability")


def able(plain: object, capability: Callable[..., Capability]) -> Capability | None:
    """Return what is given, if it has all members of a protocol; None if it lacks one.

    As ``isinstance`` would say, in a seventh of its time: up to Python 3.11 that collects the members again for each
    object, which was much of what it takes to make a manager.
    """
    has_all = all(getattr(plain, name, None) is not None for name in _members(cast(type, capability)))
    return cast(Capability, plain) if has_all else None


@cache
def _members(protocol: type) -> tuple[str, ...]:
    bases = [base for base in protocol.__mro__ if base not in (object, Protocol, Generic)]
    return tuple({name for base in bases for name in vars(base) if not name.startswith("_")})
