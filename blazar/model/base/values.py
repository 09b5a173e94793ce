# SPDX-License-Identifier: Apache-2.0
"""Dataclasses whose methods are written when one of them is first called; what else ``dataclasses`` has is passed on.

A process defines some eight hundred, and few of them have values before its first request. To write and compile six
methods for each took a quarter of the CPU of a start, and a tenth of its memory.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import asdict as asdict
from dataclasses import field as field
from dataclasses import fields as fields
from dataclasses import replace as replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # To what checks types there is no difference.
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        *, frozen: bool = False, slots: bool = False, eq: bool = True, order: bool = False, kw_only: bool = False
    ) -> Callable[[type], type]:
        """Return what ``dataclasses.dataclass`` returns for these options; fields of ``InitVar`` are not supported."""

        def define(kind: type) -> type:
            # The other one would write the signature here.
            kind.__doc__ = kind.__doc__ or kind.__name__
            own = set(vars(kind))
            if "__eq__" in own and vars(kind)["__hash__"] is None:
                # Python has put it there, and not who wrote the class.
                own.remove("__hash__")
            # Who inherits has to be as frozen as the base, by its own rules.
            inherits = any(dataclasses.is_dataclass(base) for base in kind.__mro__)
            kind = dataclasses.dataclass(
                init=False, repr=False, eq=False, frozen=frozen and inherits, slots=slots, kw_only=kw_only
            )(kind)
            kind.__dataclass_params__.frozen = frozen
            if frozen and not inherits:
                _freeze(kind)
                if slots:
                    kind.__getstate__, kind.__setstate__ = _list_fields, _set_fields
            if eq and not frozen and "__hash__" not in own:
                kind.__hash__ = None
            names = ["__init__", "__repr__", *["__eq__"] * eq, *["__hash__"] * (eq and frozen)]
            names += [f"__{name}__" for name in ("lt", "le", "gt", "ge") if order]
            writer = _MethodWriter(
                kind, [name for name in names if name not in own], frozen=frozen, eq=eq, order=order, slots=slots
            )
            writer.put_stand_ins()
            return kind

        return define


class _MethodWriter:
    """Writes the methods of a class when one of them is called."""

    def __init__(self, kind: type, names: list[str], **options: bool) -> None:
        self._kind, self._names, self._options = kind, names, options

    def put_stand_ins(self) -> None:
        """Give the class what takes the place of each method until one is called."""
        for name in self._names:
            setattr(self._kind, name, self._make_stand_in(name))

    def _make_stand_in(self, name: str) -> Callable[..., Any]:
        def stand_in(value: Any, /, *arguments: Any, **named: Any) -> Any:
            return self._write()[name](value, *arguments, **named)

        return stand_in

    def _write(self) -> dict[str, Any]:
        """Give the class all of its methods, those of a twin; threads that do so at once write the same."""
        kind: Any = self._kind
        namespace = {"__module__": kind.__module__, "__qualname__": kind.__qualname__, "__doc__": kind.__doc__}
        if hasattr(kind, "__post_init__"):
            namespace["__post_init__"] = kind.__post_init__
        specified = [(one.name, one.type, one) for one in fields(kind)]
        twin = dataclasses.make_dataclass(kind.__name__, specified, namespace=namespace, **self._options)  # type: ignore[arg-type]
        methods = {name: vars(twin)[name] for name in self._names}
        for name, method in methods.items():
            setattr(kind, name, method)
        return methods


def _freeze(kind: Any) -> None:
    """Have values of a class refuse to be changed."""
    names = frozenset(one.name for one in fields(kind))

    def set_field(value: Any, name: str, content: object) -> None:
        if type(value) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, value).__setattr__(name, content)

    def delete_field(value: Any, name: str) -> None:
        if type(value) is kind or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, value).__delattr__(name)

    kind.__setattr__, kind.__delattr__ = set_field, delete_field


def _list_fields(value: Any) -> list[Any]:
    """Return what a copy is made of; by itself Python would set each field of the copy, which refuses."""
    return [getattr(value, one.name) for one in fields(value)]


def _set_fields(value: Any, contents: list[Any]) -> None:
    for one, content in zip(fields(value), contents, strict=True):
        object.__setattr__(value, one.name, content)
