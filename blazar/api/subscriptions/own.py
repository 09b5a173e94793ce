# SPDX-License-Identifier: Apache-2.0
"""``/v1/subscriptions/mine``, which mails one gets about one's own leases; and the link in mails that ends them."""

from __future__ import annotations

import html
from functools import cache, partial

from flask import Response, request

from blazar.api.http.access import UNSUBSCRIBE, note_of
from blazar.api.http.answers import IF_MATCH, PAGES, PRIVATE, Answer, prefers
from blazar.api.http.context import Call, identifier
from blazar.api.http.routes import READER, Body, Caching, Root, Route, Rule, in_path
from blazar.api.http.shapes import an_object, ref
from blazar.api.subscriptions.components import CHANGE_MINE, CHANGES_OF_MINE, TAGS, answer_with, render_subscription
from blazar.model.base.dates import in_body, zone
from blazar.model.base.errors import Denied, ManagerUnavailable, NotFound, PreconditionFailed, StoreUnavailable
from blazar.model.subscriptions.details import Digest, SubscriptionChange, SubscriptionState

MINE = Rule("blazar:subscriptions:mine", READER, "Show and change which mails one gets about one's own leases.")

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="robots" content="noindex"><title>Mail of Blazar</title></head>
<body><main><h1>Mail of Blazar</h1><p>{text}</p>{form}</main></body></html>
"""
PAUSE = 60
"""Seconds after which a reader may try again while the service is not there."""

_FORM = '<form method="post"><button type="submit">Send me no more</button></form>'


def show_mine(call: Call) -> Answer:
    """Show which mails the caller gets about their own leases."""
    return answer_with(call.manager.subscriptions.mine(_user(call)))


def change_mine(call: Call) -> Answer:
    """Change which mails the caller gets about their own leases. What is as it was shown stays."""
    user_id = _user(call)
    read = cache(lambda: call.manager.subscriptions.mine(user_id))

    def current() -> None:
        TAGS.check(read().revision)

    body = call.changes(lambda: render_subscription(read()), current=current)
    if not body:
        current()
        return answer_with(read())
    wanted = SubscriptionChange(
        events=tuple(body["events"]) if "events" in body else None,
        digest=Digest(body["digest"]) if "digest" in body else None,
        time_zone=zone(body["time_zone"], in_body("time_zone")) if "time_zone" in body else None,
        state=SubscriptionState(body["state"]) if "state" in body else None,
        revisions=TAGS.wanted(),
    )
    try:
        return answer_with(call.manager.subscriptions.change_mine(user_id, wanted))
    except PreconditionFailed as error:
        raise TAGS.refused(error) from error


def show_unsubscribing(call: Call, subscription_id: str, link_secret: str) -> Response:
    """Ask who follows the link of a mail whether no more is to be sent: programs that look at links end nothing."""
    try:
        call.manager.subscriptions.check_link(identifier(subscription_id), link_secret)
    except NotFound as error:
        return _answer_dead_link(error)
    except (ManagerUnavailable, StoreUnavailable) as error:
        return _answer_outage(error)
    return _page("Do you want no more mail about what happens to these leases?", _FORM)


def unsubscribe(call: Call, subscription_id: str, link_secret: str) -> Response:
    """Send no more mail of a subscription."""
    try:
        call.manager.subscriptions.unsubscribe(identifier(subscription_id), link_secret)
    except NotFound as error:
        return _answer_dead_link(error)
    except (ManagerUnavailable, StoreUnavailable) as error:
        return _answer_outage(error)
    return _page(f"No more mail is sent. {_lead_on()}")


def _answer_dead_link(error: NotFound) -> Response:
    """Tell a reader what to do about a link that leads nowhere; raise the error for programs."""
    if not prefers(request, "text/html"):
        raise error
    note_of(request.environ).error = error.code
    return _page(f"This link does not work: what it was to end has ended, or it is not whole. {_lead_on()}", status=404)


def _answer_outage(error: ManagerUnavailable | StoreUnavailable) -> Response:
    """Tell a reader that the service is not there now, in a page; raise the error for programs."""
    if not prefers(request, "text/html"):
        raise error
    note_of(request.environ).error = error.code
    page = _page("The service cannot be reached now. Please open the link once more in a few minutes.", status=503)
    page.headers["Retry-After"] = str(PAUSE)
    return page


def _lead_on() -> str:
    """Return a sentence about where one chooses what one is told, with a link if this service has pages."""
    pages = request.environ.get(PAGES)
    place = "Notifications" if pages is None else f'<a href="{html.escape(pages)}notifications">Notifications</a>'
    return f"You can choose what you want to be told under {place}."


def _page(text: str, form: str = "", status: int = 200) -> Response:
    response = Response(_PAGE.format(text=text, form=form), status, content_type="text/html; charset=utf-8")
    response.headers["Cache-Control"] = PRIVATE
    response.headers["Vary"] = "Accept"
    response.headers["Referrer-Policy"] = "no-referrer"
    response.headers["Content-Security-Policy"] = "default-src 'none'; form-action 'self'; frame-ancestors 'none'"
    return response


def _user(call: Call) -> str:
    if not call.caller.user_id:
        raise Denied("The token is of no user; use one of the user whose leases these are.")
    return call.caller.user_id


_on_mine = partial(Route, root=Root.V1, path="/subscriptions/mine", caching=Caching.NONE, rule=MINE)
_ONE = an_object({"subscription": ref("Subscription")})
_on_link = partial(
    Route,
    root=Root.SERVICE,
    path=UNSUBSCRIBE + "{subscription_id}/{link_secret}",
    answers={200: None},
    errors=(404, 503),
    as_page=True,
    parameters=(
        in_path("subscription_id", "the id of the subscription"),
        in_path("link_secret", "the secret of the link"),
    ),
    is_open=True,
)

ROUTES = (
    _on_mine(
        method="GET",
        name="show_own_subscription",
        summary="Show which mails one gets about one's own leases",
        handler=show_mine,
        answers={200: _ONE},
    ),
    _on_mine(
        method="PATCH",
        name="update_own_subscription",
        summary="Change which mails one gets about one's own leases, how often, and in which time zone",
        handler=change_mine,
        body=Body("OwnSubscriptionUpdate", CHANGE_MINE, CHANGES_OF_MINE),
        answers={200: _ONE},
        errors=(412,),
        parameters=(IF_MATCH,),
    ),
    _on_link(
        method="GET",
        name="show_unsubscribing",
        summary="Ask whether no more mail is to be sent, for who follows the link in one",
        handler=show_unsubscribing,
    ),
    _on_link(
        method="POST",
        name="unsubscribe",
        summary="Send no more mail of a subscription, as RFC 8058 has it",
        handler=unsubscribe,
    ),
)
