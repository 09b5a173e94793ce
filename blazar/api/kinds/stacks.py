# SPDX-License-Identifier: Apache-2.0
"""Reservations of stacks in the document. What they take is that of other kinds, and so are its routes."""

from __future__ import annotations

from blazar.api.http.routes import Part
from blazar.api.http.shapes import BEFORE_END, COUNT, TEXT, TEXT_OR_NULL, Json, a_list, a_reservation, an_object

_DOCUMENT: Json = {"type": ["object", "string", "null"], "description": "as it was sent, without hidden parameters"}
_TAKES = an_object(
    {
        "servers": a_list(an_object({"flavor": TEXT, "flavor_id": TEXT, "amount": COUNT})),
        "volumes": a_list(an_object({"volume_type": TEXT, "size": COUNT, "amount": COUNT})),
        "addresses": a_list(an_object({"network_id": TEXT, "resources": a_list(TEXT)})),
        "key_pairs": a_list(TEXT),
    }
)
_RESERVATION = a_reservation(
    "virtual:stack",
    {
        "template": {"type": ["object", "string"]},
        "files": {"type": ["object", "null"]},
        "environment": _DOCUMENT,
        "parameters": _DOCUMENT,
        "stack_name": TEXT_OR_NULL,
        "timeout_mins": {"type": ["integer", "null"]},
        "takes": {**_TAKES, "description": "what of it is reserved"},
        "before_end": BEFORE_END,
        "stack_id": {**TEXT_OR_NULL, "description": "as soon as it is being made"},
        "stack_reason": {**TEXT_OR_NULL, "description": "why it failed, as Heat says"},
    },
    {
        "template": "heat_template_version: 2018-08-31",
        "files": None,
        "environment": None,
        "parameters": {"flavor": "m1.small"},
        "stack_name": "web",
        "timeout_mins": None,
        "takes": {
            "servers": [{"flavor": "m1.small", "flavor_id": "3", "amount": 2}],
            "volumes": [],
            "addresses": [],
            "key_pairs": [],
        },
        "before_end": "default",
        "stack_id": "0f3c2d3e-1111-4222-8333-444455556666",
        "stack_reason": None,
    },
)
RESERVATIONS: Json = {"StackReservation": _RESERVATION}
FIELDS: Json = {
    "template": {"description": "virtual:stack: a template of Heat, as YAML text or as an object"},
    "files": {"description": "virtual:stack: the texts of files that the template names, by name"},
    "environment": {"description": "virtual:stack: an environment of Heat"},
    "parameters": {"description": "virtual:stack: values of the template's parameters, by name"},
    "stack_name": {"description": "virtual:stack: the name of the stack"},
    "timeout_mins": {"description": "virtual:stack: minutes after which Heat gives up making it"},
}
"""What a request for a reservation of a stack may have."""

PART = Part("stacks", reservations=RESERVATIONS, fields=FIELDS)
