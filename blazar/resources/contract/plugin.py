# SPDX-License-Identifier: Apache-2.0
"""What types and kinds have in common: members with defaults, of which each has some of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from inspect import get_annotations, getattr_static, isfunction, signature
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar

from oslo_config import cfg

from blazar.clouds.ports import Cloud
from blazar.model.base.errors import InvalidInput

T = TypeVar("T", bound=type)
Forward = Callable[[str, Callable[..., Any]], Callable[..., Any]]
"""Makes a method of a class that stands in front of others, from its name and the method of the contract."""


class Plugin:
    """A resource type or a kind: what it does not define has a default."""

    needed: ClassVar[tuple[str, ...]] = ()
    """Members without a default."""
    together: ClassVar[tuple[tuple[str, ...], ...]] = ()
    """Members of which a class defines all or none: one alone would be ignored without a word."""

    @classmethod
    def configured(cls, conf: cfg.ConfigOpts, cloud: Cloud) -> Self:
        """Return it as configured, by default without options; InvalidInput names the option."""
        return cls()

    def has(self, member: str) -> bool:
        """Return whether it defines a member itself, and does not use the default."""
        return member in vars(self) or defines(type(self), member)


_DEFINED: dict[tuple[type[Plugin], str], bool] = {}


def defines(plugin: type[Plugin], member: str) -> bool:
    """Return whether a class defines a member of its contract itself; it is looked up once."""
    if (plugin, member) not in _DEFINED:
        own = getattr_static(plugin, member, None)
        _DEFINED[plugin, member] = own is not getattr_static(_contract_of(plugin), member, None)
    return _DEFINED[plugin, member]


def check_members(plugin: Plugin | type[Plugin]) -> None:
    """Raise InvalidInput unless a type or kind, or its class, has what is needed, and what goes together whole."""
    has = plugin.has if isinstance(plugin, Plugin) else partial(defines, plugin)
    if missing := [name for name in plugin.needed if not has(name)]:
        raise InvalidInput(f"it has no {', '.join(missing)}")
    for group in plugin.together:
        present, missing = ([name for name in sorted(group) if has(name) is own] for own in (True, False))
        if present and missing:
            wanted = "both or neither" if len(group) == 2 else "all or none"
            raise InvalidInput(f"it has {' and '.join(present)}, but not {' and '.join(missing)}: it needs {wanted}")


_MEMBERS: dict[type[Plugin], Mapping[str, Any]] = {}


def members_of(contract: type[Plugin]) -> Mapping[str, Any]:
    """Return the members that a type or kind may have, by name: methods, properties and values; looked up once."""
    if contract not in _MEMBERS:
        found: dict[str, Any] = {}
        for base in contract.__mro__[:-1]:
            for name in (*vars(base), *get_annotations(base)):
                if name[0] != "_" and name not in vars(Plugin):
                    found.setdefault(name, vars(base).get(name))
        _MEMBERS[contract] = MappingProxyType(found)
    return _MEMBERS[contract]


def stands_for(contract: type[Plugin], forward: Forward) -> Callable[[T], T]:
    """Complete a class that stands in front of types or kinds by ``forward``: it has each method of the contract.

    What the class defines itself stays. The values of the contract are for ``copy_values``.
    """

    def complete(cls: T) -> T:
        for name, member in members_of(contract).items():
            if name not in vars(cls):
                setattr(cls, name, forward(name, member) if isfunction(member) else None)
        return cls

    return complete


def copy_values(front: Plugin, plain: Plugin) -> None:
    """Give what stands in front of a type or kind the values that this one has."""
    for name, member in members_of(_contract_of(type(front))).items():
        if not isfunction(member) and vars(type(front)).get(name) is None:
            setattr(front, name, getattr(plain, name))


def first_parameter(method: Callable[..., Any]) -> str:
    """Return the annotation of the first parameter of a method after ``self``; empty if it has none."""
    return next((str(parameter.annotation) for parameter in list(signature(method).parameters.values())[1:]), "")


def returns(method: Callable[..., Any]) -> str:
    """Return the annotation of what a method returns."""
    return str(signature(method).return_annotation)


def _contract_of(plugin: type[Plugin]) -> type[Plugin]:
    """Return the class with the defaults: the last but those that it is made of."""
    return next(base for base in plugin.__mro__ if vars(base).get("needed"))
