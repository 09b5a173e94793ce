# SPDX-License-Identifier: Apache-2.0
"""What the calendar promises of a type, and what users see of it: openings, pages, feeds, limits."""

from __future__ import annotations

import hashlib
import random
from collections import Counter
from datetime import timedelta
from typing import Any, ClassVar

from oslo_config import cfg

from blazar.enforcement import Question
from blazar.enforcement.limits import LimitFilter
from blazar.model.base.errors import BlazarError, NotEnoughResources
from blazar.model.base.moments import Duration
from blazar.model.base.paging import Page
from blazar.model.calendar.allocations import Allocation
from blazar.model.calendar.views import BlockKind, CalendarQuestion, CapacityQuestion, Range, Viewer
from blazar.model.feeds import FeedKind, FeedOwner, FeedRequest
from blazar.model.leases.lease import Lease
from blazar.model.leases.requests import Actor, LeaseChange, ReservationRequest
from blazar.model.search.availability import AvailabilityQuestion
from blazarconformance.catalogue import MEASURES, check, require
from blazarconformance.ensures import same
from blazarconformance.scene import LATER, OTHERS, SECRET, Scene
from blazarconformance.trial import HOUR, PROJECT, Trial

DAY = timedelta(days=1)


def _full(scene: Scene, *, start: timedelta = LATER, project: str = PROJECT) -> list[Lease]:
    """Create leases until all resources are promised."""
    number = scene.trial.harness.fits
    return [scene.lease(start=start, project=project, name=SECRET) for _ in range(number)]


def _refused(scene: Scene, start: timedelta = LATER, hours: float = 2) -> BlazarError | None:
    try:
        scene.lease(start=start, hours=hours)
    except NotEnoughResources as error:
        return error
    return None


def _check_promises(scene: Scene) -> None:
    allocations = scene.store.calendar.load_live(scene.trial.kind.kind)
    resources = {each.id: each for each in scene.manager.resources.all(scene.trial.kind.kind)}
    by_resource: dict[int, list[Allocation]] = {}
    for each in allocations:
        by_resource.setdefault(each.resource_id, []).append(each)
    for key, held in by_resource.items():
        # What is promised grows only where a window starts.
        for instant in {each.window.start for each in held}:
            here = [each for each in held if each.window.contains(instant)]
            whole = any(each.per_instance is None for each in here)
            name = resources[key].name
            require(not whole or len(here) == 1, f"at {instant} {name} is promised whole, and to others.")
            total: Counter[str] = Counter()
            for each in here:
                total.update(dict(each.amounts or ()))
            over = {n: amount for n, amount in total.items() if amount > resources[key].capacity.get(n)}
            require(not over, f"at {instant} {over} of {name} is promised, beyond its capacity.")


@check()
def no_more_is_promised_than_there_is(trial: Trial) -> None:
    """As many leases as there is room for are made, and one more is refused and leaves nothing."""
    scene = Scene(trial)
    _full(scene)
    before = trial.site.snapshot()
    error = _refused(scene)
    require(error is not None, f"one lease more than {trial.harness.fits} was made at the same time.")
    _check_promises(scene)
    same(trial, before, "after a lease that was refused")
    require(len(scene.manager.leases.all(None)) == trial.harness.fits, "the lease that was refused is there.")


@check()
def touching_leases_share_resources(trial: Trial) -> None:
    """A lease can start in the second in which another ends."""
    scene = Scene(trial)
    _full(scene)
    error = _refused(scene, start=LATER + 2 * HOUR)
    require(error is None, f"a lease that starts at the end of others is refused: {error and error.message}.")
    error = _refused(scene, start=LATER - HOUR, hours=1)
    require(error is None, f"a lease that ends at the start of others is refused: {error and error.message}.")


@check()
def the_next_user_starts_when_the_first_has_left(trial: Trial) -> None:
    """Two leases one after the other on all resources both start and end on time."""
    scene = Scene(trial)
    empty = trial.site.snapshot()
    first = _full(scene)
    second = _full(scene, start=LATER + 2 * HOUR, project=OTHERS)
    scene.run_to(second[0].window.start)
    scene.run()
    for lease in second:
        can, should = scene.usable(lease), scene.promised(lease)
        require(can == should, f"the second lease can use {sorted(can)}, and {sorted(should)} is promised.")
    for lease in first:
        require(not scene.usable(lease), "the first lease can still use something.")
    scene.run_to(second[0].window.end)
    same(trial, empty, "after the end of both")


@check()
def cleaning_time_lies_between_two_users(trial: Trial) -> None:
    """With a cleaning time, a resource is free again only after it."""
    scene = Scene(trial, cleaning_time=HOUR)
    _full(scene)
    require(_refused(scene, start=LATER + 2 * HOUR), "a lease was made within the cleaning time.")
    error = _refused(scene, start=LATER + 3 * HOUR)
    require(error is None, f"a lease after the cleaning time is refused: {error and error.message}.")


@check()
def random_leases_never_take_more_than_there_is(trial: Trial) -> None:
    """Under random leases, changes of dates and deletions no resource is ever promised beyond its capacity."""
    scene = Scene(trial)
    dice = random.Random(5)
    leases: list[Lease] = []
    for _ in range(4 * trial.harness.fits):
        try:
            if leases and dice.random() < 0.2:
                scene.manager.leases.delete(leases.pop(dice.randrange(len(leases))).id)
            elif leases and dice.random() < 0.3:
                lease = dice.choice(leases)
                longer = lease.window.end + timedelta(hours=dice.randint(1, 4))
                scene.manager.leases.update(lease.id, LeaseChange(end=longer))
            else:
                values = dice.choice((trial.harness.request, *trial.harness.others))
                start = timedelta(hours=dice.randint(1, 8))
                leases.append(scene.lease(values, start=start, hours=dice.randint(1, 6)))
        except NotEnoughResources:
            continue
    require(leases, "no lease was made.")
    _check_promises(scene)


@check()
def what_is_deleted_is_free_again(trial: Trial) -> None:
    """When a lease is deleted, its resources can be promised again."""
    scene = Scene(trial)
    first = _full(scene)[0]
    scene.manager.leases.delete(first.id)
    scene.run_to(scene.clock.now())
    error = _refused(scene)
    require(error is None, f"nothing is free after a deletion: {error and error.message}.")


@check()
def openings_are_found_and_can_be_booked(trial: Trial) -> None:
    """The search for free time knows the type: while all is promised it finds the end of that, and it can be booked."""
    scene = Scene(trial)
    full = _full(scene, start=timedelta(0))
    scene.run_to(scene.clock.now())
    request = ReservationRequest(trial.type.resource_type, trial.harness.request)
    question = AvailabilityQuestion(
        Actor("curie", PROJECT), (request,), duration=Duration(seconds=7200), latest=Duration(seconds=2 * 86400)
    )
    found = scene.manager.availability.find(question).openings
    require(found, "no opening is found.")
    first = found[0].window
    require(first.start >= full[0].window.end, f"an opening from {first.start} on is found while all is promised.")
    lease = scene.lease(start=first.start - scene.clock.now().replace(second=0))
    require(lease.window.start == first.start, "the opening could not be booked.")


@check()
def what_does_not_fit_says_why(trial: Trial) -> None:
    """A window that does not fit is answered with the steps that have taken the resources away."""
    scene = Scene(trial)
    full = _full(scene)
    request = ReservationRequest(trial.type.resource_type, trial.harness.request)
    window = full[0].window
    question = AvailabilityQuestion(Actor("curie", PROJECT), (request,), start=window.start, end=window.end)
    answer = scene.manager.availability.find(question)
    require(not answer.openings, "a window is said to fit that does not.")
    require(answer.reasons and answer.reasons[0].steps, "there are no reasons why a window does not fit.")
    require(answer.reasons[0].message, "the reason has no sentence.")


@check()
def the_calendar_shows_it(trial: Trial) -> None:
    """The calendar has a row for each resource, with the lease of the project in it."""
    scene = Scene(trial)
    lease = scene.lease(start=LATER)
    rows = _rows(scene, Viewer(PROJECT))
    require(len(rows) == len(trial.harness.registrations), f"the calendar has {len(rows)} rows.")
    mine = [block for row in rows for block in row[1] if block[0] is BlockKind.MINE]
    held = len(scene.promised(lease))
    require(len(mine) == held, f"{held} resources are promised, and the calendar shows {len(mine)} blocks.")


@check()
def the_calendar_shows_nothing_of_others(trial: Trial) -> None:
    """A member sees of others only when something is not free: no name, no project, no id of a lease."""
    scene = Scene(trial)
    lease = scene.lease(start=LATER, project=OTHERS, name=SECRET)
    question = CalendarQuestion(
        Viewer(PROJECT), Page(100, "name"), Range(None, lease.window.end + HOUR), trial.type.resource_type
    )
    page = scene.manager.calendar.page(question)
    text = repr(page)
    for foreign in (SECRET, OTHERS, lease.id, lease.reservations[0].id):
        require(foreign not in text, f"the calendar of a member has {foreign!r}.")
    require(any(b.kind is BlockKind.OTHER for row in page.rows for b in row.blocks), "others are not shown at all.")


@check()
def the_capacity_shows_it(trial: Trial) -> None:
    """The series of what is free goes down while something is promised."""
    scene = Scene(trial)
    lease = _full(scene)[0]
    question = CapacityQuestion(
        Viewer(PROJECT), Range(None, lease.window.end + HOUR), resource_type=trial.type.resource_type
    )
    series = scene.manager.calendar.capacity(question).series
    require(series, "there is no series.")
    free = series[0].free
    require(min(free) < max(free), f"what is free is {free} although all is promised for some time.")


@check()
def a_feed_shows_it(trial: Trial) -> None:
    """A feed of a user has the lease with the type and the amount."""
    scene = Scene(trial)
    lease = scene.lease(start=LATER)
    secret = hashlib.sha256(b"secret").hexdigest()
    scene.manager.feeds.create(FeedRequest(FeedKind.USER, "mine", FeedOwner("curie", PROJECT)), secret)
    items = scene.manager.feeds.content(secret).items
    require([item.lease_id for item in items] == [lease.id], f"the feed has {[item.lease_id for item in items]}.")
    names = [name for name, _ in items[0].reserves]
    require(names == [trial.type.resource_type], f"the feed says that the lease reserves {items[0].reserves}.")


@check()
def a_feed_of_free_time_knows_it(trial: Trial) -> None:
    """A feed of free time of the type has the time in which all is promised, and no other."""
    scene = Scene(trial)
    lease = _full(scene)[0]
    secret = hashlib.sha256(b"secret").hexdigest()
    owner, name = FeedOwner("curie", PROJECT), trial.type.resource_type
    scene.manager.feeds.create(FeedRequest(FeedKind.FREE_BUSY, "free", owner, resource_type=name), secret)
    busy = scene.manager.feeds.content(secret).busy
    require(busy == (lease.window,), f"{lease.window} is promised, and the feed says {busy}.")


class Seen(LimitFilter):
    """A filter that grants everything and keeps what it was asked."""

    options: ClassVar[list[cfg.Opt]] = []

    def __init__(self) -> None:
        self.questions: list[Question] = []

    @classmethod
    def configured(cls, section: Any, identity: Any) -> Seen:
        """Return the filter; it has no options."""
        return cls()

    def check(self, question: Question) -> None:
        """Keep a question."""
        self.questions.append(question)


@check(MEASURES)
def usage_enforcement_sees_the_right_amounts(trial: Trial) -> None:
    """Usage enforcement counts a lease of the type by the right measures, with the right amounts."""
    seen = Seen()
    scene = Scene(trial, filters=[seen])
    scene.lease(start=LATER)
    require(seen.questions, "usage enforcement was not asked.")
    counted = {name: amount for name, amount in seen.questions[-1].wanted.measures.items() if amount}
    wanted = dict(trial.harness.per_lease)
    require(counted == wanted, f"a lease of the plain request counts as {counted}, not as {wanted}.")


@check()
def a_refusal_has_no_names_of_others(trial: Trial) -> None:
    """A refusal for lack of resources names neither projects nor leases of others, nor resources."""
    scene = Scene(trial)
    full = _full(scene, project=OTHERS)
    error = _refused(scene)
    require(error is not None, "the lease was made.")
    if error is None:
        return
    details = [fault.detail for fault in error.faults(operator=False)]
    text = " ".join((error.message, *details))
    for foreign in (SECRET, OTHERS, *(lease.id for lease in full), *(lease.reservations[0].id for lease in full)):
        require(foreign not in text, f"the refusal has {foreign!r}: {text!r}.")


@check()
def a_reason_for_everybody_has_no_names(trial: Trial) -> None:
    """Of why a start failed everybody may know a code and numbers, and only of resources of the lease."""
    scene = Scene(trial)
    lease = scene.lease(start=LATER)

    def fail(name: str, at: str) -> None:
        raise BlazarFailure

    trial.faults.on_call = fail
    scene.run_to(lease.window.start)
    trial.faults.on_call = None
    own = {each.resource_id for each in scene.store.calendar.of_lease(lease.id)}
    for event in scene.now(lease).events:
        if event.reason is not None:
            require(event.cause is not None, f"the reason {event.reason!r} has no code for users.")
        if event.cause is not None:
            foreign = event.cause.resources - own
            require(not foreign, f"the cause names resources {sorted(foreign)} of others.")


class BlazarFailure(RuntimeError):
    """An error that no port says it raises."""


def _rows(scene: Scene, viewer: Viewer) -> list[tuple[str, list[tuple[BlockKind, str | None]]]]:
    question = CalendarQuestion(
        viewer, Page(100, "name"), Range(None, scene.clock.now() + DAY), scene.trial.type.resource_type
    )
    rows = scene.manager.calendar.page(question).rows
    return [(row.id, [(block.kind, block.lease_id) for block in row.blocks]) for row in rows]
