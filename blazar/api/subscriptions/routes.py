# SPDX-License-Identifier: Apache-2.0
"""``/v1/subscriptions``, from version 1.1 on: to whom events are sent."""

from __future__ import annotations

from functools import cache, partial

from blazar.api.http.answers import IDEMPOTENCY_KEY, IF_MATCH, Answer, key_of, link, link_pages
from blazar.api.http.bodies import normalize
from blazar.api.http.context import Call, identifier
from blazar.api.http.queries import option, paging
from blazar.api.http.readers import Choice, Text
from blazar.api.http.routes import ADMIN, MEMBER, READER, Body, Caching, Part, Root, Route, Rule, in_path
from blazar.api.http.shapes import LINKS, NUMBER, Json, a_list, an_object, ref
from blazar.api.leases.rules import GET as GET_LEASE
from blazar.api.subscriptions.components import (
    CHANGE,
    CHANGES,
    COMPONENTS,
    CREATE,
    CREATED,
    KEYS,
    REWIND,
    REWINDS,
    TAGS,
    answer_with,
    render_failure,
    render_subscription,
)
from blazar.api.subscriptions.own import MINE, ROUTES
from blazar.model.base.dates import date, in_body
from blazar.model.base.errors import Denied, InvalidInput, NotFound, PreconditionFailed, query_field
from blazar.model.leases.requests import IdempotencyKey
from blazar.model.subscriptions.details import (
    Channel,
    Rewind,
    Subscription,
    SubscriptionChange,
    SubscriptionQuestion,
    SubscriptionRequest,
    SubscriptionState,
    unknown_subscription,
)

GET = Rule("blazar:subscriptions:get", READER, "List and show subscriptions of the project; operators see all.")
POST = Rule("blazar:subscriptions:post", MEMBER, "Subscribe to what happens in the project.")
POST_ALL = Rule("blazar:subscriptions:post_all", ADMIN, "Subscribe to what happens in all projects.")
PATCH = Rule("blazar:subscriptions:update", MEMBER, "Change, pause and resume subscriptions of the project.")
TEST = Rule("blazar:subscriptions:test", MEMBER, "Have a test sent to the receiver of a subscription.")
REPLAY = Rule("blazar:subscriptions:replay", MEMBER, "Send what a subscription has sent once more.")
DELETE = Rule("blazar:subscriptions:delete", MEMBER, "Delete subscriptions of the project.")


def index(call: Call) -> Answer:
    """List subscriptions in pages: the project's, or for operators all."""
    asked = call.asked
    project_id = asked.one("project_id")
    if not call.is_operator:
        if project_id not in (None, call.caller.project_id):
            sentence = "subscriptions of other projects are for operators; leave project_id out, or give your own"
            raise Denied(sentence, at=query_field("project_id"))
        project_id = call.caller.project_id
    state = asked.one("state")
    states = () if state is None else (SubscriptionState(state),)
    page = call.manager.subscriptions.page(SubscriptionQuestion(asked.page("created_at"), project_id, states))
    found: Json = {"subscriptions": [asked.only(render_subscription(item)) for item in page.items]}
    return link_pages(found if page.count is None else {**found, "count": page.count}, page.following)


def create(call: Call) -> Answer:
    """Subscribe; the secret of signatures is in this answer only."""
    if not call.caller.project_id:
        raise Denied("The token has no project scope; use a project-scoped token to subscribe.")
    body = call.read()
    key = key_of(body, call.caller, route="POST /v1/subscriptions")
    # A request that was granted is not judged again.
    found = None if key is None else call.manager.subscriptions.replay(key)
    if found is None:
        found = call.manager.subscriptions.create(_request(call, call.checked(normalize(body)), key))
    replayed = {"Idempotency-Replayed": "true"} if found.replayed else {}
    headers = {"Location": link(f"/v1/subscriptions/{found.subscription.id}"), **replayed}
    return answer_with(found.subscription, headers=headers, status=201)


def show(call: Call, subscription_id: str) -> Answer:
    """Show a subscription."""
    return answer_with(visible_subscription(call, subscription_id))


def change(call: Call, subscription_id: str) -> Answer:
    """Change a subscription. What is as it was shown stays."""
    before = _changeable(call, subscription_id)
    read = cache(lambda: before)

    def current() -> None:
        TAGS.check(read().revision)

    body = call.changes(lambda: render_subscription(read()), current=current)
    if not body:
        current()
        return answer_with(read())
    wanted = SubscriptionChange(
        url=body.get("url"),
        events=tuple(body["events"]) if "events" in body else None,
        batch=body.get("batch"),
        state=SubscriptionState(body["state"]) if "state" in body else None,
        new_secret=body.get("new_secret", False),
        revisions=TAGS.wanted(),
    )
    try:
        return answer_with(call.manager.subscriptions.change(before.id, wanted))
    except PreconditionFailed as error:
        raise TAGS.refused(error) from error


def test(call: Call, subscription_id: str) -> Answer:
    """Have a test sent to the receiver."""
    return answer_with(call.manager.subscriptions.test(_changeable(call, subscription_id).id), status=202)


def replay(call: Call, subscription_id: str) -> Answer:
    """Send what has happened again, from a place or a date on."""
    found, body = _changeable(call, subscription_id), call.body()
    if ("after" in body) == ("from" in body):
        sentence = "give one of after and from" if body else "after is missing; give a position, or from with a date"
        code, at = ("invalid_value", "/from") if body else ("missing_field", "/after")
        raise InvalidInput(sentence, code=code, at=at)
    since = date(body["from"], in_body("from")) if "from" in body else None
    return answer_with(call.manager.subscriptions.rewind(found.id, Rewind(body.get("after"), since)), status=202)


def failures(call: Call, subscription_id: str) -> Answer:
    """List the messages that the receiver has refused for good."""
    found, asked = visible_subscription(call, subscription_id), call.asked
    page = call.manager.subscriptions.failures(found.id, asked.page("at"))
    items: Json = {"failures": [render_failure(item) for item in page.items]}
    return link_pages(items if page.count is None else {**items, "count": page.count}, page.following)


def delete(call: Call, subscription_id: str) -> None:
    """Delete a subscription. That of a user to their own leases stays: without it, they would get the usual mail."""
    found = _changeable(call, subscription_id)
    if found.own:
        raise Denied(f"subscription {found.id} is a user's own and stays; change its events instead")
    try:
        call.manager.subscriptions.delete(found.id, TAGS.wanted())
    except PreconditionFailed as error:
        raise TAGS.refused(error) from error


def _request(call: Call, body: Json, key: IdempotencyKey | None) -> SubscriptionRequest:
    """Return the request for a subscription; Denied for another project than the own one."""
    caller = call.caller
    project_id = body.get("project_id", caller.project_id)
    if project_id is None:
        call.services.policy.check(POST_ALL.name, caller)
    elif project_id != caller.project_id:
        raise Denied("project_id is not that of the token; leave it out, or use a token of that project")
    if (lease_id := body.get("lease_id")) is not None:
        _check_lease(call, lease_id, project_id)
    return SubscriptionRequest(
        project_id=project_id,
        user_id=caller.user_id,
        url=body.get("url"),
        channel=Channel(body.get("channel", Channel.WEBHOOK)),
        events=tuple(body["events"]),
        lease_id=lease_id,
        batch=body.get("batch", False),
        key=key,
    )


def _check_lease(call: Call, lease_id: str, project_id: str | None) -> None:
    """Refuse a lease of which nothing would ever be told, with InvalidInput; that of others is one as unknown ones."""
    try:
        owner = call.manager.leases.owner(lease_id)
    except NotFound:
        owner = None
    if (
        owner is None
        or project_id not in (None, owner.project_id)
        or not call.allows(GET_LEASE.name, {"project_id": owner.project_id, "user_id": owner.user_id})
    ):
        sentence = f"lease_id is {lease_id!r}, and the project has no such lease; give the id of one of its leases"
        raise InvalidInput(sentence, at="/lease_id")


def visible_subscription(call: Call, subscription_id: str) -> Subscription:
    """Return a subscription; NotFound if the caller may not see it, Denied if not do this."""
    found = call.manager.subscriptions.one(identifier(subscription_id))
    if found.project_id is None:
        if not call.allows(POST_ALL.name):
            raise unknown_subscription(found.id)
        call.authorize()
        return found
    target = {"project_id": found.project_id, "user_id": found.user_id}
    if not call.allows(GET.name, target):
        raise unknown_subscription(found.id)
    call.authorize(target)
    return found


_ID = in_path("subscription_id", "the id of the subscription", is_uuid=True)
_PATH = "/subscriptions/{subscription_id}"
_ONE = an_object({"subscription": ref("Subscription")})
_on_list = partial(Route, root=Root.V1, path="/subscriptions", caching=Caching.NONE)
_on_one = partial(
    Route,
    root=Root.V1,
    path=_PATH,
    on_target=True,
    errors=(404,),
    parameters=(_ID,),
    caching=Caching.NONE,
)

PART = Part(
    "subscriptions",
    routes=(
        *ROUTES,
        _on_list(
            method="GET",
            name="list_subscriptions",
            summary="List the project's subscriptions; operators see all",
            handler=index,
            rule=GET,
            answers={
                200: an_object(
                    {"subscriptions": a_list(ref("Subscription")), "count": NUMBER, "links": LINKS},
                    optional=("count",),
                )
            },
            parameters=(
                option("state", Choice(tuple(map(str, SubscriptionState))), "the state"),
                option("project_id", Text(1, 255), "the project, for operators"),
                *paging(["created_at"], fields=KEYS),
            ),
        ),
        _on_list(
            method="POST",
            name="create_subscription",
            summary="Subscribe to what happens; the secret is in this answer only",
            handler=create,
            rule=POST,
            body=Body("SubscriptionCreate", CREATE, CREATED),
            answers={201: _ONE},
            errors=(409,),
            parameters=(IDEMPOTENCY_KEY,),
        ),
        _on_one(
            method="GET",
            name="show_subscription",
            summary="Show a subscription",
            handler=show,
            rule=GET,
            answers={200: _ONE},
        ),
        _on_one(
            method="PATCH",
            name="update_subscription",
            summary="Change, pause or resume a subscription, or give it a new secret",
            handler=change,
            rule=PATCH,
            body=Body("SubscriptionUpdate", CHANGE, CHANGES),
            answers={200: _ONE},
            errors=(404, 412),
            parameters=(_ID, IF_MATCH),
        ),
        _on_one(
            method="POST",
            path=f"{_PATH}/test",
            name="test_subscription",
            summary="Have a test sent to the receiver; its state and reason tell soon what came of it",
            handler=test,
            rule=TEST,
            answers={202: _ONE},
            errors=(404, 409),
        ),
        _on_one(
            method="POST",
            path=f"{_PATH}/replay",
            name="replay_subscription",
            summary="Send what has happened again, with the same ids",
            handler=replay,
            rule=REPLAY,
            body=Body("SubscriptionReplay", REWIND, REWINDS),
            answers={202: _ONE},
        ),
        _on_one(
            method="GET",
            path=f"{_PATH}/failures",
            name="list_failures_of_subscription",
            summary="List the messages that the receiver has refused for good in the last 30 days",
            handler=failures,
            rule=GET,
            answers={
                200: an_object(
                    {"failures": a_list(ref("DeliveryFailure")), "count": NUMBER, "links": LINKS}, optional=("count",)
                )
            },
            parameters=(_ID, *paging(["at"])),
        ),
        _on_one(
            method="DELETE",
            name="delete_subscription",
            summary="Delete a subscription: nothing more is sent",
            handler=delete,
            rule=DELETE,
            answers={204: None},
            errors=(404, 412),
            parameters=(_ID, IF_MATCH),
        ),
    ),
    rules=(GET, POST, PATCH, DELETE, TEST, REPLAY, MINE),
    views=(POST_ALL,),
    components=COMPONENTS,
)


def _changeable(call: Call, subscription_id: str) -> Subscription:
    """Return a subscription that the caller changes, as ``visible_subscription``; Denied also for another's mail.

    A web hook is the project's, as its leases are; what is in somebody's letter box is for them to choose.
    """
    found = visible_subscription(call, subscription_id)
    if found.channel is Channel.MAIL and found.user_id != call.caller.user_id and not call.is_operator:
        raise Denied(f"subscription {found.id} sends mail to another user, and only they and operators may change it")
    return found
