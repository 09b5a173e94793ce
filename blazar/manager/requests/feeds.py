# SPDX-License-Identifier: Apache-2.0
"""Feeds of calendar programs: they are made and revoked, and what they show."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from blazar.calendar.blocks import Use, join_spans, list_out_of_use
from blazar.manager.common.runtime import Runtime
from blazar.manager.requests.visible_resources import Visible, find_kind
from blazar.model.base.clock import to_second
from blazar.model.base.errors import InvalidInput
from blazar.model.base.window import Window
from blazar.model.calendar.views import HOST_TYPE, Viewer
from blazar.model.feeds import (
    AHEAD,
    BACK,
    LIFE,
    Feed,
    FeedContent,
    FeedKind,
    FeedOwner,
    FeedPage,
    FeedQuestion,
    FeedRequest,
)
from blazar.model.maintenance.windows import MaintenanceBlock
from blazar.model.resources.requirements import parse_requirement
from blazar.model.resources.resource import Resource, ResourceKind
from blazar.resources.contract.kind import Kind
from blazar.store.calendar.uses import LeasesRead

Span = tuple[datetime, datetime]


class FeedService:
    """Answers the calls about feeds."""

    def __init__(self, runtime: Runtime, kinds: Mapping[ResourceKind, Kind]) -> None:
        self._feeds = runtime.store.feeds
        self._calendar = runtime.store.calendar
        self._clock = runtime.clock
        self._types = runtime.types
        self._kinds = kinds
        self._most = runtime.settings.reads.feeds_of_user

    def page(self, question: FeedQuestion) -> FeedPage:
        """Return a page of live feeds; InvalidInput."""
        return self._feeds.page(question, now=self._clock.now())

    def one(self, feed_id: str, owner: FeedOwner | None) -> Feed:
        """Return a live feed, of the owner if one is given; NotFound."""
        return self._feeds.one(feed_id, owner, now=self._clock.now())

    def create(self, request: FeedRequest, secret_hash: str) -> Feed:
        """Make a feed whose link has the secret with this hash; InvalidInput."""
        now = to_second(self._clock.now())
        feed = Feed(
            id=str(uuid.uuid4()),
            kind=request.kind,
            name=request.name,
            user_id=request.owner.user_id,
            project_id=request.owner.project_id,
            created_at=now,
            expires_at=now + LIFE,
        )
        if request.kind is FeedKind.RESOURCE:
            feed = self._of_resource(feed, request.resource or "")
        elif request.kind is FeedKind.FREE_BUSY:
            feed = self._of_requirement(feed, request)
        self._feeds.add(feed, secret_hash, now=now, most=self._most)
        return feed

    def delete(self, feed_id: str, owner: FeedOwner | None) -> None:
        """Revoke a feed, of the owner if one is given; NotFound. Its link stops working at once."""
        self._feeds.remove(feed_id, owner, now=self._clock.now())

    def content(self, secret_hash: str) -> FeedContent:
        """Return what the feed shows whose link has the secret with this hash; NotFound."""
        now = self._clock.now()
        feed = self._feeds.by_secret(secret_hash, now=now)
        # Cut to the hour: what a program has read stays as it is until something changes.
        hour = now.replace(minute=0, second=0, microsecond=0)
        window = Window(hour - BACK, hour + AHEAD)
        if feed.kind is FeedKind.FREE_BUSY:
            content = FeedContent(feed, window, busy=self._busy(feed, window, now))
        else:
            content = FeedContent(feed, window, self._feeds.items(feed, window, now=now, cancelled_since=now - BACK))
        self._feeds.note_use(feed, now=now)
        return content

    def _of_resource(self, feed: Feed, name: str) -> Feed:
        found = self._feeds.find_resource(name)
        if found is None:
            raise InvalidInput(
                f"resource {name[:80]!r} is not registered; give the label or the id of one that is",
                code="unknown_reference",
                at="/resource",
            )
        resource_id, label = found
        return replace(feed, resource_id=resource_id, resource=label)

    def _of_requirement(self, feed: Feed, request: FeedRequest) -> Feed:
        resource_type = request.resource_type or HOST_TYPE
        try:
            kind = find_kind(resource_type, self._types, self._kinds)
            with self._calendar.view_uses(kind) as view:
                visible = Visible(view.catalog, self._kinds[kind].shape, Viewer(feed.project_id))
                visible.matching(request.requirement)
        except InvalidInput as error:
            field = error.parameter or "requirement"
            code = "invalid_value" if error.code == "invalid_query" else error.code
            raise InvalidInput(error.message, code=code, at=f"/{field}") from error
        return replace(feed, resource_type=resource_type, requirement=request.requirement)

    def _busy(self, feed: Feed, window: Window, now: datetime) -> tuple[Window, ...]:
        """Return when none of the resources that a feed is about is free; nothing tells who uses them."""
        kind = find_kind(feed.resource_type or HOST_TYPE, self._types, self._kinds)
        wanted = parse_requirement(feed.requirement, field="requirement")
        with self._calendar.view_uses(kind) as view:
            found = [resource for resource in view.catalog.matching(wanted) if resource.is_open_to(feed.project_id)]
            ids = [resource.id for resource in found]
            uses = view.read_uses(window, as_of=now, leases_read=LeasesRead.NONE, resource_ids=ids).by_resource
            closed = view.read_closed(window)
        taken = [_find_busy(r, uses.get(r.id, ()), closed.get(r.id, ()), window) for r in found]
        return tuple(Window(start, end) for start, end in _find_common(taken, window))


def _find_busy(
    resource: Resource, uses: Iterable[Use], closed: Sequence[MaintenanceBlock], window: Window
) -> list[Span]:
    """Return when a resource is not free: used, also in part, being cleaned, or out of use."""
    spans = [(max(use.start, window.start), min(max(use.end, use.clean_at), window.end)) for use in uses]
    out = list_out_of_use(resource, window, closed, reasons=False)
    spans += ((block.start, block.end or window.end) for block in out)
    return join_spans([(start, end) for start, end in spans if start < end])


def _find_common(taken: Sequence[Sequence[Span]], window: Window) -> list[Span]:
    """Return when all of them are taken, in the fewest spans; always, if there are none."""
    if not taken:
        return [(window.start, window.end)]
    changes: dict[datetime, int] = {}
    for spans in taken:
        for start, end in spans:
            changes[start] = changes.get(start, 0) + 1
            changes[end] = changes.get(end, 0) - 1
    found: list[Span] = []
    count, since = 0, None
    for instant in sorted(changes):
        count += changes[instant]
        if count == len(taken) and since is None:
            since = instant
        elif count < len(taken) and since is not None:
            found.append((since, instant))
            since = None
    return [(start, end) for start, end in found if end - start >= timedelta(seconds=1)]
