# SPDX-License-Identifier: Apache-2.0
"""``/v1/leases/{lease_id}/history``, from version 1.1 on: who did what to a lease, past ones too."""

from __future__ import annotations

from blazar.api.history.entries import EXAMPLE, FIELDS, render_entry
from blazar.api.http.answers import Answer, link_pages
from blazar.api.http.context import Call
from blazar.api.http.queries import paging
from blazar.api.http.routes import Caching, Part, Root, Route, Rule, all_of, in_path
from blazar.api.http.shapes import LINKS, NUMBER, Json, a_list, an_object, one_of, ref
from blazar.api.leases.rules import GET as SEE_LEASE
from blazar.api.leases.rules import visible
from blazar.model.journal.entries import LEASE_VERBS
from blazar.model.journal.views import show_to

GET = Rule("blazar:leases:get_history", all_of(SEE_LEASE), "Show what was done to a lease, and by whom.")

ENTRY = an_object({**FIELDS, "verb": one_of(LEASE_VERBS)}, example=EXAMPLE)


def index(call: Call, lease_id: str) -> Answer:
    """List what was done to a lease."""
    owner = visible(call, lease_id)
    asked = call.asked
    page = call.manager.leases.history(owner.id, asked.page("at"))
    own = None if call.is_operator else call.caller.project_id
    items = page.items if own is None else [show_to(past_entry, own, page.projects) for past_entry in page.items]
    found: Json = {"history": [render_entry(past_entry, own) for past_entry in items]}
    return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)


PART = Part(
    "history",
    routes=(
        Route(
            root=Root.V1,
            method="GET",
            path="/leases/{lease_id}/history",
            name="list_lease_history",
            summary="List what was done to a lease, and by whom",
            handler=index,
            rule=GET,
            on_target=True,
            caching=Caching.NONE,
            errors=(404,),
            answers={
                200: an_object(
                    {"history": a_list(ref("LeaseHistoryEntry")), "count": NUMBER, "links": LINKS}, optional=("count",)
                )
            },
            parameters=(in_path("lease_id", "the lease's id"), *paging(["at"])),
        ),
    ),
    rules=(GET,),
    components={"LeaseHistoryEntry": ENTRY},
)
