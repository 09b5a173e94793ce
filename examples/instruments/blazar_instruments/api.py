# SPDX-License-Identifier: Apache-2.0
"""``/v1/instruments``: the instruments that can be reserved."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from blazar.api.context import Call, identifier
from blazar.api.kinds.lists import resource_list
from blazar.api.queries import filter_by, option
from blazar.api.readers import JsonText, Text
from blazar.api.routes import ADMIN, READER, Body, Part, Root, Route, Rule, in_path
from blazar.api.shapes import COUNT, FLAG, TEXT, Json, a_list, a_reservation, an_object, ref
from blazar.model.requests import Registration
from blazar.model.resource import Resource
from blazar_instruments.kind import CHANNEL, INSTRUMENT

GET = Rule("blazar:instruments:get", READER, "List and show instruments.")
POST = Rule("blazar:instruments:post", ADMIN, "Register an instrument.")
DELETE = Rule("blazar:instruments:delete", ADMIN, "Unregister an instrument.")
CREATE: Json = {
    "type": "object",
    "description": "an object",
    "required": ["name"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string", "maxLength": 255, "description": "the name of an instrument"}},
}


def index(call: Call) -> Sequence[Resource]:
    """List instruments."""
    return call.manager.resources.all(INSTRUMENT)


def create(call: Call) -> Resource:
    """Register an instrument."""
    return call.manager.resources.register(INSTRUMENT, Registration(call.body()))


def show(call: Call, instrument_id: str) -> Resource:
    """Show an instrument."""
    return call.manager.resources.one(INSTRUMENT, identifier(instrument_id))


def delete(call: Call, instrument_id: str) -> None:
    """Unregister an instrument."""
    call.manager.resources.unregister(INSTRUMENT, identifier(instrument_id))


def _shown(found: Resource) -> Json:
    return {
        "id": found.external_id,
        "name": found.name,
        **found.attributes,
        "channels": found.capacity.get(CHANNEL),
        "reservable": found.reservable,
    }


_INSTRUMENT: Json = {"id": TEXT, "name": TEXT, "model": TEXT, "channels": COUNT, "reservable": FLAG}
_EXAMPLE: Json = {"id": "m-1", "name": "microscope-1", "model": "confocal", "channels": 4, "reservable": True}
_ID = in_path("instrument_id", "the id of the instrument")
_ONE = an_object({"instrument": ref("Instrument")})
_on_list = partial(Route, root=Root.V1, path="/instruments")
_on_one = partial(Route, root=Root.V1, path="/instruments/{instrument_id}", parameters=(_ID,))

PART = Part(
    "instruments",
    routes=(
        _on_list(
            method="GET",
            name="list_instruments",
            summary="List the instruments that can be reserved",
            handler=index,
            rule=GET,
            render=lambda found: {"instruments": [_shown(each) for each in found]},
            answers={200: an_object({"instruments": a_list(ref("Instrument"))})},
            until=(1, 0),
        ),
        resource_list(
            INSTRUMENT,
            "instruments",
            _shown,
            item=ref("InstrumentInList"),
            sort_keys=("name", "created_at"),
            parameters=(
                filter_by("model", Text(), "the model"),
                option("requirement", JsonText(), "instruments that meet this, as in reservations"),
            ),
            fields=tuple(_INSTRUMENT),
            path="/instruments",
            name="list_instruments",
            summary="List the instruments that can be reserved",
            rule=GET,
        ),
        _on_list(
            method="POST",
            name="create_instrument",
            summary="Register an instrument",
            handler=create,
            rule=POST,
            body=Body("InstrumentCreate", CREATE, ({"name": "microscope-1"},)),
            render=lambda found: {"instrument": _shown(found)},
            answers={201: _ONE},
            errors=(404, 409),
        ),
        _on_one(
            method="GET",
            name="show_instrument",
            summary="Show an instrument",
            handler=show,
            rule=GET,
            render=lambda found: {"instrument": _shown(found)},
            answers={200: _ONE},
            errors=(404,),
        ),
        _on_one(
            method="DELETE",
            name="delete_instrument",
            summary="Unregister an instrument",
            handler=delete,
            rule=DELETE,
            answers={204: None},
            errors=(404, 409),
        ),
    ),
    rules=(GET, POST, DELETE),
    components={
        "Instrument": an_object(_INSTRUMENT, example=_EXAMPLE),
        # With fields=name,model an item has only these keys, and its id.
        "InstrumentInList": an_object(_INSTRUMENT, optional=tuple(_INSTRUMENT), example=_EXAMPLE),
    },
    reservations={
        "InstrumentReservation": a_reservation(
            "lab:instrument",
            {"channels": COUNT, "resource_properties": TEXT, "instrument": TEXT},
            {"channels": 2, "resource_properties": "", "instrument": "microscope-1"},
        ),
    },
    fields={"channels": {"description": "lab:instrument: the number of channels of one instrument"}},
)
