# SPDX-License-Identifier: Apache-2.0
"""Values of the model as text for the message bus, and back.

What arrives is data: it is checked against the types of the interface, and never says which code to run.
"""

from __future__ import annotations

import base64
import inspect
import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from blazar.model import errors
from blazar.model.allocations import ResourceAllocations
from blazar.model.errors import BlazarError
from blazar.model.resource import PropertyValues
from blazar.rpc.interface import Manager

LONG = 32 * 1024
"""Texts beyond so many bytes travel packed: a long list is mostly the same words again."""

MOST = 256 * 1024 * 1024
"""Bytes that a packed text may unpack to: many times what the longest list needs, and less than a machine has."""

_PACKED = "z:"

CALLS = frozenset(name for name, member in vars(Manager).items() if inspect.isfunction(member) and name[0] != "_")
"""What can be asked of a manager, and nothing else can."""

_ERRORS: Mapping[str, type[BlazarError]] = {
    name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, BlazarError)
}

_TEXTS = TypeAdapter(dict[str, str])


MOST_IN_ONE = 8 * 1024 * 1024
"""Bytes of a list in one message, before they are packed: even of texts that can not be packed, what is sent then is
below the 16 MiB that a message bus takes by default."""


class Garbled(Exception):
    """A message is not what the interface says."""


class Unknown(Garbled):
    """A message asks for a call, or gives an argument, that the interface of this process does not have."""


def encode_arguments(call: str, arguments: Mapping[str, Any]) -> dict[str, str]:
    """Return the arguments of a call as texts."""
    hints = _hints(call)
    return {name: _pack(_adapter(hints[name]).dump_json(value)) for name, value in arguments.items()}


def decode_arguments(call: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Return the arguments of a call; Garbled if they are not those of the interface."""
    if not isinstance(call, str) or call not in CALLS:
        raise Unknown(f"there is no call {call!r}")
    texts = _message(texts, f"the arguments of {call}")
    hints, needed = _hints(call), _needed(call)
    unknown = texts.keys() - hints.keys() | texts.keys() & {"return"}
    if unknown or not texts.keys() >= needed:
        raise Unknown(f"{call} takes {sorted(hints.keys() - {'return'})}, and was given {sorted(texts)}")
    return {name: _load(hints[name], text, f"{name} of {call}") for name, text in texts.items()}


def encode_answer(call: str, answer: object, *, after: str | None = None, skip: int = 0) -> dict[str, str]:
    """Return a call's answer as a message.

    Of a list it is the part after the item with the key ``after``, or all of it if that item is gone: the caller knows
    which items it has. From a caller of an earlier version, which gives no key, it is the part after ``skip`` items. Of
    what is too long for one message it is the first part, and ``more`` is in it.
    """
    adapter = _adapter(_hints(call)["return"])
    if not isinstance(answer, tuple):
        return {"answer": _pack(adapter.dump_json(answer))}
    wanted = answer[skip:] if after is None else _following(answer, after)
    raw = adapter.dump_json(wanted)
    if len(raw) <= MOST_IN_ONE or len(wanted) < 2:
        return {"answer": _pack(raw)}
    fitting = _fitting([len(adapter.dump_json((item,))) for item in wanted])
    return {"answer": _pack(adapter.dump_json(wanted[:fitting])), "more": str(len(wanted) - fitting)}


def key_of(item: Any) -> str:
    """Return what tells an item of a list from all others, whatever changes in it."""
    match item:
        case PropertyValues():
            return item.property.name
        case ResourceAllocations():
            return str(item.resource.id)
        case _:
            return str(item.id)


def _following(items: tuple[Any, ...], after: str) -> tuple[Any, ...]:
    return items[next((place for place, item in enumerate(items, 1) if key_of(item) == after), 0) :]


def _fitting(sizes: list[int]) -> int:
    """Return how many of these fit into one message, and 1 at least."""
    total = 0
    for number, size in enumerate(sizes):
        total += size
        if total > MOST_IN_ONE:
            return max(1, number)
    return len(sizes)


def is_cut(message: Mapping[str, str]) -> bool:
    """Tell whether there is more of a list than this message has."""
    return isinstance(message, Mapping) and "more" in message


def encode_error(error: BlazarError) -> dict[str, str]:
    """Return a call's failure as a message, under the nearest name that every process knows."""
    known = next(kind for kind in type(error).__mro__ if _ERRORS.get(kind.__name__) is kind)
    return {"error": known.__name__, "message": error.message}


def decode_answer(call: str, message: Mapping[str, str]) -> Any:
    """Return a call's answer, or raise its error; Garbled if it is neither."""
    message = _message(message, f"the answer to {call}")
    if "error" in message:
        raise _ERRORS.get(message["error"], BlazarError)(message.get("message", "no reason given"))
    if "answer" not in message:
        raise Garbled(f"the answer to {call} has no content")
    return _load(_hints(call)["return"], message["answer"], f"answer to {call}")


def _load(hint: Any, text: str, what: str) -> Any:
    try:
        return _adapter(hint).validate_json(_unpack(text))
    except ValidationError as error:
        raise Garbled(f"{what}: {error.errors(include_url=False, include_input=False)[:3]}") from None
    except (ValueError, zlib.error) as error:
        raise Garbled(f"{what}: {error}") from None


def _message(given: object, what: str) -> dict[str, str]:
    try:
        return _TEXTS.validate_python(given, strict=True)
    except ValidationError:
        raise Garbled(f"{what} should be texts by name") from None


@cache
def _hints(call: str) -> Mapping[str, Any]:
    return get_type_hints(getattr(Manager, call))


@cache
def _needed(call: str) -> frozenset[str]:
    parameters = list(inspect.signature(getattr(Manager, call)).parameters.values())[1:]
    return frozenset(parameter.name for parameter in parameters if parameter.default is parameter.empty)


@cache
def _adapter(hint: Any) -> TypeAdapter[Any]:
    return TypeAdapter(hint)


def _pack(raw: bytes) -> str:
    if len(raw) <= LONG:
        return raw.decode()
    return _PACKED + base64.b64encode(zlib.compress(raw, 1)).decode()


def _unpack(text: str) -> bytes:
    if not text.startswith(_PACKED):
        return text.encode()
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(base64.b64decode(text.removeprefix(_PACKED), validate=True), MOST)
    if not unpacker.eof:
        raise ValueError("it is cut off, or unpacks to too much")
    return raw
