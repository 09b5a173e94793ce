# SPDX-License-Identifier: Apache-2.0
"""Schemas of rules. What they mean, and all their bounds, is in ``blazar/model/rules/documents.py``."""

from __future__ import annotations

from blazar.api.http.shapes import FLAG, NUMBER, TEXT, ZULU, ZULU_OR_NULL, Json, an_object
from blazar.model.rules.values import OpenAt, RuleKind

_KINDS: Json = {"enum": [str(kind) for kind in RuleKind], "description": "what the rule is about"}
_NAMES: Json = {"type": "array", "maxItems": 1000, "items": {"type": "string"}}

_APPLIES_TO: Json = {
    "type": "object",
    "additionalProperties": False,
    "description": "for whose leases, and which; what is left out is all",
    "properties": {
        "projects": {**_NAMES, "description": "a list of ids of projects"},
        "except_projects": {**_NAMES, "description": "a list of ids of projects for which it does not hold"},
        "resource_types": {**_NAMES, "description": "a list of resource types such as physical:host"},
    },
}
_CONTENT: Json = {
    "type": "object",
    "description": "of hours: time_zone, open with days, from and to, closed_on, apply "
    f"({', '.join(OpenAt)}) and longest_across; of a gap: at_least, over and same (kind, any)",
}
OPENING_HOURS: Json = {
    "kind": "hours",
    "content": {
        "time_zone": "Europe/Berlin",
        "open": [{"days": ["MO", "TU", "WE", "TH", "FR"], "from": "08:00", "to": "20:00"}],
        "closed_on": ["2030-12-25"],
        "apply": "start",
    },
    "applies_to": {"resource_types": ["physical:host"], "except_projects": ["71bb40c6a5b94e0f8f2f0a3d1c9e7b55"]},
    "active": True,
}
NO_STACKING: Json = {"kind": "gap", "content": {"at_least": "PT12H", "over": "PT6H", "same": "kind"}}
DOCUMENT: Json = {
    "type": "object",
    "required": ["kind", "content"],
    "additionalProperties": False,
    "properties": {
        "kind": _KINDS,
        "content": _CONTENT,
        "applies_to": _APPLIES_TO,
        "active": {"type": "boolean", "description": "false: it is kept, and does not hold"},
    },
}

COMPONENTS: Json = {
    "Rule": {
        **an_object(
            {
                "name": TEXT,
                "kind": _KINDS,
                "content": _CONTENT,
                "applies_to": {
                    **_APPLIES_TO,
                    "description": "for whose leases, and which; members see of projects only their own",
                },
                "active": FLAG,
                "revision": NUMBER,
                "created_at": ZULU,
                "updated_at": ZULU_OR_NULL,
            }
        ),
        "examples": [
            {
                "name": "daytime",
                **OPENING_HOURS,
                "revision": 3,
                "created_at": "2030-03-01T12:00:00Z",
                "updated_at": None,
            }
        ],
    }
}
