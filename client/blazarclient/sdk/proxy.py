# SPDX-License-Identifier: Apache-2.0
"""The methods of ``connection.reservation``: those of the library, named as openstacksdk names such methods.

Values are those of the library, frozen and typed. Wherever an id is asked for, the value serves as well. Lists are
generators that read page by page.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Concatenate, ParamSpec, TypeVar

from openstack import exceptions, proxy

from blazarclient.exception import Failed, NotFound
from blazarclient.library import Reservations
from blazarclient.library.budgets import Budgets
from blazarclient.library.history import History
from blazarclient.library.leases import Leases
from blazarclient.library.maintenances import Maintenances
from blazarclient.library.managers import Managers
from blazarclient.library.power import Power
from blazarclient.library.price_lists import PriceLists
from blazarclient.library.problems import Problem, Problems
from blazarclient.library.reports import Reports
from blazarclient.library.resources import Feeds, Hosts
from blazarclient.library.rules import Rules
from blazarclient.library.series import SeriesOfLeases
from blazarclient.library.statements import Charges, Statements
from blazarclient.library.subscriptions import Subscriptions
from blazarclient.library.supply import FloatingIp, FloatingIps
from blazarclient.library.surgery import Surgery
from blazarclient.library.transfers import Transfers
from blazarclient.library.values import Feed, Host, Lease, Maintenance, Series, Subscription, Transfer
from blazarclient.library.written import in_capitals
from blazarclient.sdk.errors import told

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")

Value = Lease | Transfer | Series | Maintenance | Problem | Host | FloatingIp | Feed | Subscription | str
"""What a method is about: a value that the service told, or its id."""

Part = Callable[[Reservations], S]
"""Takes from the library the part that has a method."""


def _leases(library: Reservations) -> Leases:
    return library.leases


def _hosts(library: Reservations) -> Hosts:
    return library.hosts


def _floating_ips(library: Reservations) -> FloatingIps:
    return library.floating_ips


def _feeds(library: Reservations) -> Feeds:
    return library.feeds


def _subscriptions(library: Reservations) -> Subscriptions:
    return library.subscriptions


def _series(library: Reservations) -> SeriesOfLeases:
    return library.series


def _managers(library: Reservations) -> Managers:
    return library.managers


def _power(library: Reservations) -> Power:
    return library.power


def _rules(library: Reservations) -> Rules:
    return library.rules


def _price_lists(library: Reservations) -> PriceLists:
    return library.price_lists


def _maintenances(library: Reservations) -> Maintenances:
    return library.maintenances


def _problems(library: Reservations) -> Problems:
    return library.problems


def _budgets(library: Reservations) -> Budgets:
    return library.budgets


def _statements(library: Reservations) -> Statements:
    return library.statements


def _charges(library: Reservations) -> Charges:
    return library.charges


def _reports(library: Reservations) -> Reports:
    return library.reports


def _history(library: Reservations) -> History:
    return library.history


def _surgery(library: Reservations) -> Surgery:
    return library.surgery


def _transfers(library: Reservations) -> Transfers:
    return library.transfers


def _whole(library: Reservations) -> Reservations:
    return library


def _same(part: Part[S], method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[Proxy, P], R]:
    """Return a method of the proxy that does what one of the library does."""

    @functools.wraps(method)
    def same(self: Proxy, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with told():
            return method(part(self.library), *args, **kwargs)

    return same


def _of_one(part: Part[S], method: Callable[Concatenate[S, str, P], R]) -> Callable[Concatenate[Proxy, Value, P], R]:
    """Return a method of the proxy for a value, or its id."""

    @functools.wraps(method)
    def of_one(self: Proxy, one: Value, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with told():
            return method(part(self.library), _id(one), *args, **kwargs)

    return of_one


def _each(
    part: Part[S], method: Callable[Concatenate[S, P], Iterator[R]]
) -> Callable[Concatenate[Proxy, P], Iterator[R]]:
    """Return a generator of the proxy; a request is made only when something is asked of it."""

    @functools.wraps(method)
    def each(self: Proxy, /, *args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        with told():
            yield from method(part(self.library), *args, **kwargs)

    return each


def _unless_missing(
    part: Part[S], method: Callable[[S, str], R], asked: Callable[P, tuple[str, bool]]
) -> Callable[Concatenate[Proxy, P], R | None]:
    """Return a method of the proxy that returns None where the library raises NotFound.

    ``asked``: its arguments; what it is about, and whether that may be missing.
    """

    def unless_missing(self: Proxy, /, *args: P.args, **kwargs: P.kwargs) -> R | None:
        one, ignore_missing = asked(*args, **kwargs)
        with told():
            try:
                return method(part(self.library), one)
            except NotFound:
                if not ignore_missing:
                    raise
                return None

    unless_missing.__doc__ = method.__doc__
    own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    arguments = inspect.signature(asked).parameters.values()
    unless_missing.__signature__ = inspect.Signature([own, *arguments])  # type: ignore[attr-defined]
    return unless_missing


def _named(name_or_id: str, ignore_missing: bool = True) -> tuple[str, bool]:
    return name_or_id, ignore_missing


def _given(one: Value, /, ignore_missing: bool = True) -> tuple[str, bool]:
    return _id(one), ignore_missing


class Proxy(proxy.Proxy):
    """The reservation service of a connection.

    Errors are those of ``blazarclient.exception`` and of ``openstack.exceptions`` at once. ``library`` has all of it
    without openstacksdk's names.
    """

    api_version = "1"

    @functools.cached_property
    def library(self) -> Reservations:
        """The library, with the session, region, interface and endpoint of the connection."""
        return Reservations(self)

    create_lease = _same(_leases, Leases.create)
    get_lease = _of_one(_leases, Leases.get)
    leases = _each(_leases, Leases.list)
    update_lease = _of_one(_leases, Leases.change)
    extend_lease = _of_one(_leases, Leases.extend)
    end_lease = _of_one(_leases, Leases.end)
    confirm_lease = _of_one(_leases, Leases.confirm)
    keep_lease = _of_one(_leases, Leases.keep)
    hold_lease = _of_one(_leases, Leases.hold)
    let_go_lease = _of_one(_leases, Leases.let_go)
    swap_host = _of_one(_surgery, Surgery.swap)
    split_lease = _of_one(_surgery, Surgery.split)
    merge_leases = _of_one(_surgery, Surgery.merge)
    lease_history = _each(_history, History.of)
    history = _each(_history, History.list)
    find_lease = _unless_missing(_leases, Leases.find, _named)

    def delete_lease(self, lease: Lease | str, ignore_missing: bool = True, *, if_match: str | None = None) -> None:
        """Delete a lease; what it holds is given back."""
        delete = functools.partial(Leases.delete, if_match=if_match)
        _unless_missing(_leases, delete, _given)(self, lease, ignore_missing)

    def wait_for_lease(
        self,
        lease: Lease | str,
        status: str | Iterable[str] = "ACTIVE",
        failures: str | Iterable[str] = ("ERROR",),
        interval: float = 2,
        wait: float | None = 120,
        callback: Callable[[Lease], None] = lambda lease: None,
    ) -> Lease:
        """Return the lease once it has the status, or one of them.

        ResourceTimeout after ``wait`` seconds; ResourceFailure with the reason if it fails, or is over before.
        ``callback`` is called with each state that is seen.
        """
        wanted = {*in_capitals(status)}
        with told():
            seen = self.library.leases.wait(
                _id(lease), wanted, failures=failures, timeout=wait, every=interval, progress=callback
            )
        # One that was deleted keeps the status that it had.
        if seen.status in wanted and (seen.deleted_at is None or "TERMINATED" in wanted):
            return seen
        what = "deleted" if seen.deleted_at else seen.status
        why = f": {seen.reason.message}" if seen.reason else ""
        with told():
            raise Failed(f"Lease {seen.name} is {what}, not {' or '.join(sorted(wanted))}{why}")

    create_transfer = _of_one(_transfers, Transfers.offer)
    get_transfer = _of_one(_transfers, Transfers.get)
    transfers = _each(_transfers, Transfers.list)
    accept_transfer = _of_one(_transfers, Transfers.accept)
    decline_transfer = _of_one(_transfers, Transfers.decline)
    find_transfer = _unless_missing(_transfers, Transfers.find, _named)
    delete_transfer = _unless_missing(_transfers, Transfers.withdraw, _given)

    create_host = _same(_hosts, Hosts.register)
    get_host = _of_one(_hosts, Hosts.get)
    hosts = _each(_hosts, Hosts.list)
    update_host = _of_one(_hosts, Hosts.change)
    disable_host = _of_one(_hosts, Hosts.disable)
    enable_host = _of_one(_hosts, Hosts.enable)
    hypervisors = _each(_hosts, Hosts.hypervisors)
    allocations = _each(_hosts, Hosts.promised)
    set_property_private = _same(_hosts, Hosts.set_private)
    find_host = _unless_missing(_hosts, Hosts.find, _named)
    delete_host = _unless_missing(_hosts, Hosts.delete, _given)

    create_floating_ip = _same(_floating_ips, FloatingIps.register)
    get_floating_ip = _of_one(_floating_ips, FloatingIps.get)
    floating_ips = _each(_floating_ips, FloatingIps.list)
    find_floating_ip = _unless_missing(_floating_ips, FloatingIps.find, _named)
    delete_floating_ip = _unless_missing(_floating_ips, FloatingIps.delete, _given)

    create_series = _same(_series, SeriesOfLeases.create)
    get_series = _of_one(_series, SeriesOfLeases.get)
    series = _each(_series, SeriesOfLeases.list)
    update_series = _of_one(_series, SeriesOfLeases.change)
    find_series = _unless_missing(_series, SeriesOfLeases.find, _named)
    delete_series = _unless_missing(_series, SeriesOfLeases.delete, _given)

    maintenance_impact = _same(_maintenances, Maintenances.impact)
    create_maintenance = _same(_maintenances, Maintenances.create)
    get_maintenance = _of_one(_maintenances, Maintenances.get)
    maintenances = _each(_maintenances, Maintenances.list)
    update_maintenance = _of_one(_maintenances, Maintenances.change)
    end_maintenance = _of_one(_maintenances, Maintenances.end)
    find_maintenance = _unless_missing(_maintenances, Maintenances.find, _named)
    delete_maintenance = _unless_missing(_maintenances, Maintenances.delete, _given)

    managers = _each(_managers, Managers.list)
    find_manager = _unless_missing(_managers, Managers.find, _named)
    power_report = _same(_power, Power.report)
    power_of_hosts = _each(_power, Power.list)
    get_power_of_host = _of_one(_power, Power.get)
    find_power_of_host = _unless_missing(_power, Power.find, _named)
    update_power_of_host = _of_one(_power, Power.change)
    wake_host = _of_one(_power, Power.wake)
    power_log = _each(_power, Power.log)
    price_lists = _each(_price_lists, PriceLists.list)
    get_price_list = _same(_price_lists, PriceLists.get)
    newest_price_list = _same(_price_lists, PriceLists.newest)
    publish_price_list = _same(_price_lists, PriceLists.publish)
    rules = _each(_rules, Rules.list)
    get_rule = _same(_rules, Rules.get)
    write_rule = _same(_rules, Rules.write)
    delete_rule = _same(_rules, Rules.delete)
    problems = _each(_problems, Problems.list)
    get_problem = _of_one(_problems, Problems.get)
    act_on_problem = _of_one(_problems, Problems.act)
    budgets = _each(_budgets, Budgets.list)
    statements = _each(_statements, Statements.list)
    get_statement = _same(_statements, Statements.get)
    export_statement = _same(_statements, Statements.export)
    charges = _each(_charges, Charges.list)
    correct_charge = _same(_charges, Charges.correct)
    report_usage = _same(_reports, Reports.usage)
    report_capacity = _same(_reports, Reports.capacity)
    report_demand = _same(_reports, Reports.demand)
    forecast = _same(_reports, Reports.forecast)
    lease_energy = _of_one(_reports, Reports.energy)

    create_feed = _same(_feeds, Feeds.create)
    feeds = _each(_feeds, Feeds.list)
    delete_feed = _unless_missing(_feeds, Feeds.delete, _given)

    create_subscription = _same(_subscriptions, Subscriptions.create)
    get_subscription = _of_one(_subscriptions, Subscriptions.get)
    subscriptions = _each(_subscriptions, Subscriptions.list)
    update_subscription = _of_one(_subscriptions, Subscriptions.change)
    test_subscription = _of_one(_subscriptions, Subscriptions.test)
    replay_subscription = _of_one(_subscriptions, Subscriptions.replay)
    subscription_failures = _each(_subscriptions, Subscriptions.failures)
    delete_subscription = _unless_missing(_subscriptions, Subscriptions.delete, _given)

    availability = _same(_whole, Reservations.availability)
    calendar = _each(_whole, Reservations.calendar)
    capacity = _same(_whole, Reservations.capacity)
    properties = _same(_whole, Reservations.properties)
    info = _same(_whole, Reservations.info)


def _id(one: Value) -> str:
    """Return the id of a value, or of what is one already."""
    if not isinstance(one, Value):
        raise exceptions.InvalidRequest(f"{one!r} is neither an id, which is a text, nor something that has one")
    found = one if isinstance(one, str) else one.id
    if found is None:
        raise exceptions.InvalidRequest(
            "This offer does not tell which lease it is of; give the lease"
            if isinstance(one, Transfer)
            else "A lease that was only tried has no id"
        )
    return found
