# SPDX-License-Identifier: Apache-2.0
"""The template of a query, and what its answer says of servers. Pure.

A value counts only if there can be no doubt about it: an answer with warnings, as a partial one has, says nothing of
any server, and a server with no series, several of them, or a value that is no number has none.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from blazar.model.errors import CloudUnavailable, InvalidInput

PLACE = "{server_id}"
LONGEST = 2000

OLDEST = 600.0
"""Seconds after which a value says nothing any more: as an answer from a cache."""

_MATCHER = re.compile(r'([A-Za-z_][A-Za-z0-9_]*)\s*=~\s*"\{server_id\}"')
_ID = re.compile(r"[A-Za-z0-9-]{1,64}")


@dataclass(frozen=True, slots=True)
class QueryTemplate:
    """A query in PromQL with a matcher ``LABEL=~"{server_id}"``; ``label`` has the id of the server in its answers."""

    text: str
    label: str

    @classmethod
    def of(cls, text: str, option: str) -> QueryTemplate:
        """Return a template; InvalidInput names the option."""
        labels = {found.group(1) for found in _MATCHER.finditer(text)}
        places = text.count(PLACE)
        if len(text) > LONGEST or not text.isprintable():
            raise InvalidInput(f"{option} must be one line of at most {LONGEST} printable characters")
        if len(labels) != 1 or len(_MATCHER.findall(text)) != places:
            raise InvalidInput(
                f"{option} must have {PLACE} in matchers of one label with the id of the server, and nowhere else, as "
                f'rate(libvirt_domain_info_cpu_time_seconds_total{{instanceId=~"{PLACE}"}}[1h])'
            )
        return cls(text, labels.pop())

    def query(self, server_ids: Collection[str]) -> str:
        """Return the query for some servers. CloudUnavailable for ids that no cloud gives to servers."""
        if not server_ids or not all(_ID.fullmatch(id_) for id_ in server_ids):
            # Nothing that could be read as a part of the query is ever sent.
            raise CloudUnavailable("a server has an id that cannot be asked for")
        # A hyphen means nothing in a regular expression outside of a class; there is nothing else to escape.
        return self.text.replace(PLACE, "|".join(sorted(server_ids)))


def values_of(answer: Any, template: QueryTemplate, server_ids: Collection[str], now: float) -> Mapping[str, float]:
    """Return the certain values of an answer by server. CloudUnavailable if it says nothing at all."""
    if not isinstance(answer, dict) or answer.get("status") != "success":
        raise CloudUnavailable("Prometheus did not answer the query")
    if answer.get("warnings"):
        raise CloudUnavailable("Prometheus answered with warnings: its answer may be partial")
    data = answer.get("data")
    if not isinstance(data, dict) or data.get("resultType") != "vector" or not isinstance(data.get("result"), list):
        raise CloudUnavailable("Prometheus did not answer with a vector; the query must give one value for each server")
    series = [_of_series(each, template.label) for each in data["result"]]
    if any(id_ not in server_ids for id_, _, _ in series):
        raise CloudUnavailable(
            f"Prometheus answered with a series whose label {template.label} has none of the servers that it was asked "
            f"for; an aggregation in the query must keep it: by ({template.label})"
        )
    several = Counter(id_ for id_, _, _ in series)
    return {
        id_: value
        for id_, value, at in series
        if several[id_] == 1 and math.isfinite(value) and abs(now - at) <= OLDEST
    }


def _of_series(series: Any, label: str) -> tuple[str, float, float]:
    """Return the server, value and time of a series; not a number for a value that is none."""
    try:
        labels, (at, text) = series["metric"], series["value"]
        if not isinstance(text, str):
            return str(labels.get(label)), math.nan, float(at)
        return str(labels.get(label)), float(text), float(at)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CloudUnavailable("Prometheus gave an answer that cannot be understood") from error
