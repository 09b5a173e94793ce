# SPDX-License-Identifier: Apache-2.0
"""What leases cost, by the rules of ``docs/prices.md`` and a log of what was seen of them: exact, in fractions.

The log is a list of sights: what the API said of a lease at an instant. Between two sights a lease does not change.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NamedTuple

from tests.slow.money.lists import ONE, QUARTER, PriceList, list_at, month_of
from tests.slow.money.pieces import FOR_EVER, Piece, Place, Sight, Unit, cut, cut_out, drop


class Line(NamedTuple):
    """What lines of a statement are summed by: two that differ in nothing of it have one price."""

    project: str
    month: str
    lease: str
    category: str
    sku: str | None
    unit: Fraction
    factor: Fraction


@dataclass
class Account:
    """A lease with what it was promised, and the first instant at which any of it was booked."""

    project: str
    start: int
    end: int
    pieces: list[Piece] = field(default_factory=list)
    booked: int = FOR_EVER
    pays_fee: bool = True
    fee_paid: bool = False
    fee: Line | None = None
    is_closed: bool = False
    returned: int | None = None


@dataclass
class Bill:
    """Adds up what projects owe. ``skus`` are by measure and resource.

    ``handed_over`` and ``outages`` are of reservations, the latter with a resource each; ``unused`` is of leases.
    """

    lists: Sequence[PriceList]
    skus: Mapping[tuple[str, str], str]
    handed_over: dict[str, int] = field(default_factory=dict)
    outages: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    unused: dict[str, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))
    accounts: dict[str, Account] = field(default_factory=dict)
    seconds: Counter[Line] = field(default_factory=Counter)
    watts: Callable[[Unit, int], Fraction] = lambda unit, instant: Fraction(0)
    """What a unit draws at an instant."""
    watt_hours: dict[Line, Fraction] = field(default_factory=lambda: defaultdict(Fraction))
    last: int = 0

    def look(self, sights: Sequence[Sight]) -> None:
        """Take what is seen at one instant of some leases; of an operation on several, all of them are seen."""
        new = {sight.lease for sight in sights if not sight.origins} - self.accounts.keys()
        for sight in sights:
            self._pay_fees(sight.at)
            if sight.lease not in self.accounts:
                self.accounts[sight.lease] = Account(
                    sight.project, sight.start, sight.end, booked=sight.at, pays_fee=not sight.origins
                )
        if sights[0].origins:
            self._operate(sights)
        for sight in sights:
            account = self.accounts[sight.lease]
            if account.project != sight.project:
                self._transfer(account, sight)
            self._change(account, sight, is_new=sight.lease in new)
            self._note_use(sight)

    def _note_use(self, sight: Sight) -> None:
        spans = self.unused[sight.lease]
        is_open = bool(spans) and spans[-1][1] == FOR_EVER
        if sight.is_unused and not is_open:
            spans.append((sight.at, FOR_EVER))
        elif sight.is_unused is False and is_open:
            spans[-1] = (spans[-1][0], sight.at)

    def _operate(self, sights: Sequence[Sight]) -> None:
        """Deal the time to come of some leases out to what became of them; the time that was stays where it was."""
        now, coming = sights[0].at, list[Piece]()
        origins = [self.accounts[name] for name in sights[0].origins]
        for origin in origins:
            coming += [part for piece in origin.pieces for part in piece.within(now, FOR_EVER)]
            origin.pieces = [part for piece in origin.pieces for part in piece.within(0, now)]
        for sight in sights:
            places = {unit: reservation for reservation, unit in sight.places}
            self.accounts[sight.lease].pieces += [
                replace(part, reservation=places[piece.unit])
                for piece in coming
                if piece.unit in places
                for part in piece.within(sight.start, sight.end)
            ]
            if sight.holds and len(origins) > 1:
                self._share_fee(self.accounts[sight.lease], origins, now)
            elif len(origins) == 1 and sight.lease not in sight.origins:
                origins[0].is_closed = self.accounts[sight.lease].is_closed = origins[0].start <= now

    def _share_fee(self, account: Account, origins: Sequence[Account], now: int) -> None:
        """Leave one fee of two leases that become one: the one that is charged, or that of the one booked first."""
        if all(origin.start == account.start for origin in origins) and account.start <= now:
            charged = [one for one in origins if one.fee and (one.is_closed or month_of(now) != one.fee.month)]
            kept = charged or [min(origins, key=lambda one: (one.booked, one is not account))]
            for origin in origins:
                if origin.fee and not any(origin is one for one in kept):
                    self.seconds[origin.fee] -= 1
                    origin.fee = None
        account.pays_fee = any(origin.pays_fee for origin in origins)
        account.fee_paid = any(origin.fee_paid for origin in origins)
        account.booked = min(origin.booked for origin in origins)
        for origin in origins:
            if origin is not account:
                origin.pays_fee = False

    def _transfer(self, account: Account, sight: Sight) -> None:
        """The giver pays until now, the taker from now on, by the prices of today."""
        account.is_closed, new = account.start <= sight.at, []
        for piece in account.pieces:
            new += piece.within(0, sight.at)
            for rest in piece.within(sight.at, FOR_EVER):
                new.append(replace(rest, project=sight.project, booked=sight.at))
        account.pieces, account.project = new, sight.project
        if not account.fee_paid:
            account.booked = sight.at

    def _change(self, account: Account, sight: Sight, *, is_new: bool) -> None:
        """Give back what is not held any more, and book what was not held."""
        now, name = sight.at, sight.lease
        wanted = set(sight.places)
        had = {p.place for p in account.pieces if p.end > now}
        gone, come = had - wanted, wanted - had
        for reservation, unit in set(gone):
            self._replace(account, (reservation, unit.measure), gone, come, now)
        left = account.start - (now if sight.asked is None else sight.asked)
        tags = {piece.place: (piece.count, piece.sku) for piece in account.pieces}
        if had and not wanted and account.pays_fee and not account.fee_paid:
            self._charge_fee(name, account, "cancellation", left)
        if wanted:
            _exchange(account, gone, wanted - come)
        for place in sorted(gone):
            if left > 0:
                self._give_back_rounding(name, account, place, left)
            # Before the start there is no time to round up; after it what is rounded is not given back, which nothing
            # is while its reservation has something else.
            goes_on = any(reservation == place[0] for reservation, _ in wanted)
            start = account.start if left >= 0 else now if goes_on else self._round(account, place, now)
            self._give_back(name, account, place, start, FOR_EVER, left)
            account.pieces = drop(account.pieces, place, now)
        for place in sorted(wanted - come):
            end = max(sight.end, now)
            self._give_back(name, account, place, self._round(account, place, end), FOR_EVER, left)
            account.pieces = drop(account.pieces, place, end)
            self._give_back(name, account, place, 0, sight.start, left)
        for reservation, unit in sorted(wanted):
            count = sum(other.measure == unit.measure for other in sight.holds[reservation])
            # What is past was promised before, or nobody had it.
            spans = [(sight.start if is_new else max(sight.start, now), sight.end)]
            for piece in account.pieces:
                if piece.place == (reservation, unit):
                    spans = [rest for span in spans for rest in cut(span, (piece.start, piece.end))]
            for start, end in spans:
                account.pieces.append(
                    Piece(
                        reservation,
                        unit,
                        sight.project,
                        start,
                        end,
                        now,
                        max(start - now, 0),
                        # What a host has, or has taken the place of, says what more of its time costs, too.
                        *tags.get((reservation, unit), (count, self.skus[unit.measure, unit.resource])),
                    )
                )
        account.start, account.end = sight.start, sight.end

    def _replace(self, account: Account, of: tuple[str, str], gone: set[Place], come: set[Place], now: int) -> None:
        """Let a unit that comes as another one of its reservation and measure goes have what that had."""
        pairs = zip(*(sorted(p for p in places if (p[0], p[1].measure) == of) for places in (gone, come)), strict=False)
        for old, new in list(pairs):
            gone.discard(old)
            come.discard(new)
            pieces = []
            for piece in account.pieces:
                if piece.place == old:
                    pieces += piece.within(0, now)
                    # The price is that of the host which was booked.
                    pieces += [replace(rest, unit=new[1]) for rest in piece.within(now, FOR_EVER)]
                else:
                    pieces.append(piece)
            account.pieces = pieces

    def _give_back_rounding(self, name: str, account: Account, place: Place, left: int) -> None:
        """Charge the share of the time by which what is given back before the start was rounded up."""
        last = max((p for p in account.pieces if p.place == place), key=lambda piece: piece.end)
        terms = list_at(self.lists, last.end - 1, booked=last.booked)
        share = ONE if terms is None else terms.cancellation_share(left)
        if terms is not None and share and (price := self._price(last, terms, last.end - 1)) is not None:
            month, (unit, factor) = month_of(last.end - 1), price
            line = Line(last.project, month, name, "cancellation", last.sku, unit, factor * share)
            self.seconds[line] += self._round(account, place, last.end) - last.end

    def _give_back(self, name: str, account: Account, place: Place, start: int, end: int, left: int) -> None:
        """Charge the share of what is given back of a host between two instants."""
        kept: list[Piece] = []
        for piece in account.pieces:
            if piece.place != place:
                kept.append(piece)
                continue
            for part in piece.within(start, end):
                self._add(name, part, "cancellation" if left > 0 else "early_return", left)
            kept += piece.without(start, end)
        account.pieces = kept

    def _round(self, account: Account, place: Place, end: int) -> int:
        """Return until when a host is charged that goes at an instant: its reservation's time is rounded up."""
        last = [piece for piece in account.pieces if piece.place == place and piece.start < end]
        if not last:
            return end
        terms = list_at(self.lists, end - 1, booked=max(last, key=lambda piece: piece.end).booked)
        return end if terms is None else account.start + terms.rounded(end - account.start)

    def _round_up(self, name: str, account: Account, ends: Mapping[str, int]) -> None:
        """Charge the time by which reservations are rounded up, at the last price of each host that was there."""
        for last in account.pieces:
            place, end = last.place, last.end
            terms = list_at(self.lists, end - 1, booked=last.booked)
            if end < ends[last.reservation] or terms is None:
                continue
            free = any(start < end <= until for start, until in self._list_free(place))
            if not free and (price := self._price(last, terms, end - 1)) is not None:
                unit, factor = price
                if any(start < end <= until for start, until in self.unused[name]):
                    factor *= terms.unused
                line = Line(last.project, month_of(end - 1), name, "rounding_up", last.sku, unit, factor)
                self.seconds[line] += self._round(account, place, end) - end

    def _add(self, name: str, piece: Piece, category: str, left: int | None = None) -> None:
        """Add the seconds of a piece, quarter by quarter; of what is given back the share of each."""
        instant = piece.start
        while instant < piece.end:
            until = min(instant - instant % QUARTER + QUARTER, piece.end)
            terms = list_at(self.lists, instant, booked=piece.booked)
            if terms is not None and (price := self._price(piece, terms, instant)) is not None:
                unit, factor = price
                if category == "cancellation":
                    factor *= terms.cancellation_share(left or 0)
                elif category == "early_return":
                    factor *= terms.early_return
                elif category == "unused":
                    factor *= terms.unused
                if factor:
                    shown = "usage" if category == "unused" else category
                    line = Line(piece.project, month_of(instant), name, shown, piece.sku, unit, factor)
                    self.seconds[line] += until - instant
            instant = until

    def _draw(self, name: str, piece: Piece) -> None:
        """Add what a piece drew from its hand-over on; while its host is missing that is told, and costs nothing."""
        begin = self.handed_over.get(piece.reservation, FOR_EVER)
        missing = self.outages[piece.reservation, piece.unit.resource]
        had, lost = cut_out(piece.within(begin, FOR_EVER), missing)
        for part, is_lost in (*((one, False) for one in had), *((one, True) for one in lost)):
            instant = part.start
            while instant < part.end:
                until = min(instant - instant % QUARTER + QUARTER, part.end)
                if drawn := self.watts(part.unit, instant) * (until - instant) / 3600:
                    terms = list_at(self.lists, instant, booked=part.booked)
                    price = None if terms is None or is_lost else terms.energy_price(part.project)
                    sku, unit, factor = price or (None, Fraction(0), ONE)
                    line = Line(part.project, month_of(instant), name, "energy", sku, unit, factor)
                    self.watt_hours[line] += drawn
                instant = until

    def _price(self, piece: Piece, terms: PriceList, instant: int) -> tuple[Fraction, Fraction] | None:
        """Return what an hour costs, and its factor; None if it is free."""
        if (unit := terms.price(piece.sku)) is None:
            return None
        fixed = terms.lead_factor(piece.lead) * terms.amount_factor(piece.count) * terms.project_factor(piece.project)
        return unit, terms.factor_at(instant - instant % QUARTER) * fixed

    def _pay_fees(self, now: int) -> None:
        for name, account in self.accounts.items():
            if account.pays_fee and not account.fee_paid and account.start <= now and account.pieces:
                self._charge_fee(name, account, "fee")

    def _charge_fee(self, name: str, account: Account, category: str, left: int | None = None) -> None:
        """Charge the fee, or with the time that is left until the start the share of one that is given back."""
        account.fee_paid = True
        booked = min((piece.start, piece.booked) for piece in account.pieces)[1] if account.pieces else account.booked
        terms = list_at(self.lists, account.start, booked=booked)
        if terms is None or "fee" not in terms.content:
            return
        share = ONE if left is None else terms.cancellation_share(left)
        if share:
            fee = Fraction(terms.content["fee"])
            account.fee = Line(account.project, month_of(account.start), name, category, None, fee, share)
            self.seconds[account.fee] += 1

    def finish(self, now: int) -> Mapping[Line, int]:
        """Return what was charged until now, when all leases are over."""
        self._pay_fees(now)
        for name, account in self.accounts.items():
            for piece in account.pieces:
                for part, category in self._split(name, piece):
                    self._add(name, part, category)
                self._draw(name, piece)
        ends = Counter[str]()
        for account in self.accounts.values():
            for piece in account.pieces:
                ends[piece.reservation] = max(piece.end, ends[piece.reservation])
        for name, account in self.accounts.items():
            self._round_up(name, account, ends)
        self.seconds = +self.seconds
        return self.seconds

    def _list_free(self, place: Place) -> list[tuple[int, int]]:
        """Return when a reservation did not have a unit: before it was handed over, and without the resource."""
        return [(0, self.handed_over.get(place[0], FOR_EVER)), *self.outages[place[0], place[1].resource]]

    def _split(self, name: str, piece: Piece) -> Iterable[tuple[Piece, str]]:
        """Return the parts of a piece that were used, those that nobody used, and those that were late or lost."""
        had, free = cut_out([piece], self._list_free(piece.place))
        used, unused = cut_out(had, self.unused[name])
        return [*((p, "usage") for p in used), *((p, "unused") for p in unused), *((p, "free") for p in free)]


def _exchange(account: Account, gone: Iterable[Place], kept: Iterable[Place]) -> None:
    """Have that go which was booked last, of what has the same price."""
    for place in sorted(gone):
        of_place = {
            other: [piece for piece in account.pieces if piece.place == other]
            for other in [place, *sorted(kept)]
            if other[0] == place[0]
        }
        booked = {other: min(piece.booked for piece in pieces) for other, pieces in of_place.items() if pieces}
        same = [other for other in booked if of_place[other][0].sku == of_place[place][0].sku]
        latest = max(same, key=lambda other: booked[other])
        if booked[latest] > booked[place]:
            units = {place: latest[1], latest: place[1]}
            account.pieces = [replace(piece, unit=units.get(piece.place, piece.unit)) for piece in account.pieces]
