# SPDX-License-Identifier: Apache-2.0
"""Query parameters from microversion 1.1 on: rows declare them as data, and one parser reads them.

``option``, ``filter_by`` and ``paging`` make the parameters of a row; ``read`` makes a ``Query`` of what was sent, with
a page within the bounds that the operator has chosen.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import unquote_to_bytes

from blazar.api.http.readers import Choice, Flag, Names, Number, SortKey, Text, TextReader, as_text
from blazar.api.http.routes import Parameter
from blazar.api.http.shapes import Json
from blazar.model.base import dates
from blazar.model.base.dates import Place
from blazar.model.base.errors import InvalidInput, query_field
from blazar.model.base.json_text import read_json
from blazar.model.base.paging import COMPARISONS, PAGES, Condition, Operator, Page, PageBounds, Position, unknown_marker
from blazar.model.base.values import dataclass

MOST_VALUES = 50
MOST_CONDITIONS = 50
_MARK = "c."
_LONGEST_MARK = 16 * 1024
"""Characters of a marker that we made: it has the value that a page was sorted by, in base64."""
_UNBOUNDED = 10**18
_LIMIT = "items of a page; bounds in GET /v1/info tells how many they are by default, and at most"
_FIELDS = "only these keys of items, and id"
_ONE_OF = (Operator.EQ, Operator.IN)


@dataclass(frozen=True, slots=True)
class Query:
    """The query of a request: the values of options by name, the filters, and the page that is wanted.

    ``pages`` are the bounds of a page.
    """

    values: Mapping[str, tuple[Any, ...]]
    conditions: tuple[Condition, ...] = ()
    pages: PageBounds = PAGES

    def one(self, name: str, default: Any = None) -> Any:
        """Return the value of an option; the default if it was not sent."""
        return self.values[name][0] if name in self.values else default

    def all(self, name: str) -> tuple[Any, ...]:
        """Return the values of an option that may be repeated."""
        return self.values.get(name, ())

    @property
    def fields(self) -> frozenset[str] | None:
        """The keys of items that were asked for, ``id`` among them; None: all of them."""
        asked: frozenset[str] | None = self.one("fields")
        return None if asked is None else asked | {"id"}

    def page(self, sort_key: str, *, bounds: PageBounds | None = None) -> Page:
        """Return the page that is wanted, by default by this key, ascending; with ``bounds`` of its own, if given."""
        return Page(
            limit=(bounds or self.pages).limit(self.one("limit")),
            sort_key=self.one("sort_key", sort_key),
            descending=self.one("sort_dir", "asc") == "desc",
            after=self.one("marker"),
            with_count=self.one("with_count", False),
        )

    def only(self, item: Json) -> Json:
        """Return an item with the keys that were asked for."""
        fields = self.fields
        return item if fields is None else {key: value for key, value in item.items() if key in fields}


@dataclass(frozen=True, slots=True)
class Marker:
    """The marker of a page; gives a ``Position`` or an id."""

    schema: Json

    def read(self, text: str, place: Place) -> Position | str:
        """Return where the page begins."""
        if not text.startswith(_MARK):
            if not 0 < len(text) <= 255 or "\0" in text:
                raise unknown_marker()
            return text
        if len(text) > _LONGEST_MARK:
            raise unknown_marker()
        try:
            raw = text.removeprefix(_MARK)
            found = read_json(base64.b64decode(raw + "=" * (-len(raw) % 4), altchars=b"-_", validate=True).decode())
            value, id_ = found["k"], found["i"]
        except (binascii.Error, KeyError, TypeError, ValueError):
            raise unknown_marker() from None
        if not isinstance(id_, str) or not (value is None or isinstance(value, str)) or "\0" in f"{value}{id_}":
            raise unknown_marker()
        return Position(value, id_)


def marker_of(position: Position) -> str:
    """Return the marker of a position, which keeps its place when the item moves or goes."""
    raw = json.dumps({"k": position.value, "i": position.id}, separators=(",", ":")).encode()
    return _MARK + base64.urlsafe_b64encode(raw).decode().rstrip("=")


def option(name: str, reader: TextReader, description: str, *, most: int = 1) -> Parameter:
    """Return a query parameter that is sent at most ``most`` times; ``Query.one`` and ``Query.all`` have its values."""
    return Parameter(name, "query", description, reader=reader, most=most)


def filter_by(
    name: str,
    reader: TextReader,
    description: str,
    *,
    operators: Collection[Operator] = _ONE_OF,
    most: int = MOST_CONDITIONS,
) -> Parameter:
    """Return a filter: ``name=value`` or ``name=in:a,b``; repeated ones must all hold. ``Query.conditions`` has it."""
    return Parameter(name, "query", description, reader=reader, operators=tuple(operators), most=most)


def compare_by(name: str, reader: TextReader, description: str) -> Parameter:
    """Return a filter that compares: ``name=gte:value`` and so on."""
    return filter_by(name, reader, description, operators=COMPARISONS)


def paging(sort_keys: Sequence[str], *, fields: Sequence[str] = (), by_property: bool = False) -> tuple[Parameter, ...]:
    """Return the parameters of a list in pages; it is sorted by the first of the keys unless asked otherwise.

    ``by_property``: of resources, which any property may give the order.
    """
    marker = Marker({"type": "string"})
    keys: TextReader = SortKey(tuple(sort_keys)) if by_property else Choice(tuple(sort_keys))
    return (
        option("limit", Number(1, _UNBOUNDED, cut=True), _LIMIT),
        option("marker", marker, "where the page begins: from a next link, or the id of the last item seen"),
        option("sort_key", keys, f"by default {sort_keys[0]}; ties are in the order of the ids"),
        option("sort_dir", Choice(("asc", "desc")), "by default asc"),
        option("with_count", Flag(), "also count the items that the filters leave"),
        *((option("fields", Names(tuple({"id": None, **dict.fromkeys(fields)})), _FIELDS),) if fields else ()),
    )


def decode_query(query: bytes) -> Mapping[str, Sequence[str]]:
    """Return the texts of a query by name. InvalidInput if one of them is not UTF-8."""
    sent: dict[str, list[str]] = {}
    for part in filter(None, query.split(b"&")):
        raw, _, value = part.replace(b"+", b" ").partition(b"=")
        name = unquote_to_bytes(raw).decode("utf-8", "replace")
        try:
            text = unquote_to_bytes(value).decode()
        except UnicodeDecodeError:
            raise InvalidInput(
                f"{name[:80]} is not UTF-8; send its characters in UTF-8, percent-encoded",
                code="invalid_query",
                at=query_field(name[:80]),
            ) from None
        sent.setdefault(name, []).append(text)
    return sent


def read(declared: Sequence[Parameter], sent: Mapping[str, Sequence[str]], pages: PageBounds = PAGES) -> Query:
    """Return what was sent, read as it is declared; ``pages`` are the bounds. InvalidInput names the parameter."""
    known = {parameter.name: parameter for parameter in declared if parameter.place == "query"}
    for name in sent:
        if name not in known:
            allowed = f"this list of parameters is allowed: {', '.join(known)}" if known else "none is allowed here"
            raise InvalidInput(
                f"{name[:80]} is unknown as a query parameter; {allowed}",
                code="unknown_query_parameter",
                at=query_field(name[:80]),
            )
    values: dict[str, tuple[Any, ...]] = {}
    conditions: list[Condition] = []
    for name, texts in sent.items():
        parameter, place = known[name], dates.in_query(name)
        if len(texts) > parameter.most:
            how_often = "once" if parameter.most == 1 else f"at most {parameter.most} times"
            raise InvalidInput(
                f"{name} is given {len(texts)} times; give it {how_often}", code="invalid_query", at=query_field(name)
            )
        if parameter.operators:
            conditions += (_condition(parameter, text, place) for text in texts)
        else:
            reader: TextReader = parameter.reader or Text(0, 64 * 1024)
            values[name] = tuple(reader.read(text, place) for text in texts)
    return Query(values, tuple(conditions), pages)


def _condition(parameter: Parameter, text: str, place: Place) -> Condition:
    operator, rest = _operator(parameter, text, place)
    texts = rest.split(",") if operator is Operator.IN else [rest]
    if len(texts) > MOST_VALUES:
        raise InvalidInput(
            f"{place.name} has {len(texts)} values; at most {MOST_VALUES} are allowed",
            code="out_of_bounds",
            at=place.at,
            data={"maximum": MOST_VALUES},
        )
    reader = parameter.reader or Text()
    return Condition(parameter.name, operator, tuple(as_text(reader.read(text, place)) for text in texts))


def _operator(parameter: Parameter, text: str, place: Place) -> tuple[Operator, str]:
    word, sign, rest = text.partition(":")
    if not sign or word not in [operator.value for operator in Operator]:
        return Operator.EQ, text
    if word not in parameter.operators:
        allowed = ", ".join(f"{operator}:" for operator in parameter.operators if operator is not Operator.EQ) or "none"
        raise InvalidInput(
            f"{place.name} begins with {word}:; of such operators {allowed} can be given here",
            code="invalid_query",
            at=place.at,
        )
    return Operator(word), rest
