# SPDX-License-Identifier: Apache-2.0
"""The options about leases in ``[api]`` and ``[manager]``, and of what is told of them later."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import available_timezones

from oslo_config import cfg, types

from blazar.calendar.repack.values import RepackMode
from blazar.manager.common.settings import RepackSettings
from blazar.model.leases.requests import LeaseDefaults
from blazar.model.leases.states import LeaseKind
from blazar.model.reports.periods import ReportSettings

_KINDS = [str(kind) for kind in LeaseKind]

OPTIONS: tuple[cfg.Opt, ...] = (
    cfg.BoolOpt(
        "explain_refusals",
        default=True,
        help="Say why there are not enough resources for a new or changed lease, and when there are. It costs a "
        "tenth of a search for free time. blazar-manager reads it.",
    ),
    cfg.StrOpt(
        "default_kind",
        default="scheduled",
        choices=[
            ("scheduled", "handed over at its start"),
            ("immediate", "handed over now, with the answer to the request, or refused"),
        ],
        help="The kind of a lease if a request of microversion 1.1 names none.",
    ),
    cfg.BoolOpt(
        "repack_named",
        default=False,
        help="Whether leases of users who see names of hosts (policy blazar:calendar:get_names) and are no operators "
        "may get other hosts before their start, too, if their requests do not say so; see [manager] repack.",
    ),
    cfg.ListOpt(
        "allowed_kinds",
        item_type=types.String(choices=_KINDS),
        default=_KINDS,
        help="The kinds of lease that may be booked. Without scheduled, requests of microversion 1.0 are "
        "refused. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "immediate_timeout",
        default=45,
        min=5,
        max=600,
        help="Seconds in which an immediate lease is handed over; else it is refused and deleted. Proxies and clients "
        "have to wait at least ten seconds longer for an answer. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "waiting_per_project",
        default=20,
        min=0,
        max=1000,
        help="The maximum of leases of a project that wait for their turn; with 0 nobody waits, and what does not fit "
        "is refused. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "series_per_project",
        default=20,
        min=0,
        max=1000,
        help="The maximum of series of leases of a project that have not ended; with 0 there are none. blazar-manager "
        "reads it.",
    ),
    cfg.IntOpt(
        "series_occurrences",
        default=1000,
        min=1,
        max=1000,
        help="The maximum of occurrences of a series, and of a series without an end within series_horizon. "
        "blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "series_horizon",
        default=180,
        min=1,
        max=1096,
        help="Days ahead for which the leases of a series without an end are booked, and within which a series starts "
        "that is booked as a whole. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "default_tries",
        default=3,
        min=1,
        max=100,
        help="How many tries of a lease of the kind retries may fail if its request does not say; at most most_tries. "
        "blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "most_tries",
        default=10,
        min=1,
        max=100,
        help="How many tries a request for a lease of the kind retries may ask for. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "promises",
        default=100,
        min=0,
        max=1000,
        help="How many leases on the waiting list are promised a start later than they asked for; beside them those "
        "that have waited for a day. With 0 nothing is promised. blazar-manager reads it.",
    ),
    cfg.Opt(
        "project_weights",
        type=types.Dict(value_type=types.Float(min=0.01, max=1000)),
        default={},
        help="The weights of projects on the waiting list by their ids, such as 5d1c:2,9a0e:0.5; all others weigh 1. "
        "With twice the weight a project may use twice as much before its turn is later. Leases that waited for a day "
        "go by age all the same. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "promise_notice",
        default=0,
        min=0,
        max=7 * 24 * 60,
        help="Minutes of notice: the start that was promised to a lease on the waiting list is moved to an earlier one "
        "only if that is at least so far ahead. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "transfer_expiry",
        default=24,
        min=1,
        max=24 * 366,
        help="Hours after which the offer of a lease to another project expires. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "ended_leases",
        default=10000,
        min=100,
        max=1000000,
        help="How many leases that are over a list of leases has at most in microversion 1.0 and version 2, which have "
        "no pages: those that ended last, of the project or of all. Leases that are not over are always listed, and "
        "later microversions list all, in pages. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "history_entries",
        default=900,
        min=10,
        max=10000,
        help="How many of the last entries of the history of a lease, or of another object, are kept, besides its "
        "first 100; one entry says how many were left out between them. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "past_history_entries",
        default=50000,
        min=-1,
        max=10000000,
        help="How many entries the histories of the leases of a project that are past their end, or deleted, have "
        "together; of more, those of the leases that ended or were deleted first are forgotten, with their whole "
        "history, every ten minutes. -1 for any number. blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "idempotency_retention",
        default=24,
        min=1,
        max=24 * 366,
        help="Hours for which the Idempotency-Key of a request for a lease is remembered: sent again within this time, "
        "the request gets the lease that it made, and not another one. blazar-manager forgets older keys.",
    ),
)

HISTORY_OPTIONS: tuple[cfg.Opt, ...] = (
    cfg.IntOpt(
        "keep_days",
        default=400,
        min=0,
        max=36600,
        help="Days for which it is kept what was done to resources, their properties, maintenance windows, series and "
        "feeds; 0 for ever. What was done to leases goes with them. blazar-manager forgets the rest every ten minutes.",
    ),
)


BILLING_SECTION = "billing"
BILLING_OPTIONS: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "provider",
        default="OpenStack",
        help="Who is to be paid, as statements and the rows of FOCUS name it: the cloud or its operators. "
        "blazar-manager reads it.",
    ),
    cfg.IntOpt(
        "quote_holds",
        default=10,
        min=0,
        max=60,
        help="Minutes for which a price that was quoted holds for a lease that is booked with its quoted_at, whatever "
        "list is published meanwhile. 0: a lease has the price of its booking. blazar-manager reads it.",
    ),
)


class TimeZone(types.String):
    """The type of options that name a time zone of the IANA database."""

    def __call__(self, value: object) -> str:
        """Return the name; ValueError if there is no such zone."""
        name = str(super().__call__(value))
        if name not in available_timezones():
            raise ValueError("there is no such time zone, as Europe/Paris or UTC")
        return name


REPORT_OPTIONS: tuple[cfg.Opt, ...] = (
    cfg.Opt(
        "time_zone",
        type=TimeZone(),
        default="UTC",
        help="The time zone, as Europe/Paris, by which reports have days, weeks and months. blazar-manager reads it.",
    ),
    cfg.ListOpt(
        "properties",
        default=[],
        help="Properties of resources by which days are kept on record, so that forecasts tell their values apart: a "
        "few with few values, such as gpu. Days that are on record stay as they are. blazar-manager reads it.",
    ),
)


REPACK: tuple[cfg.Opt, ...] = (
    cfg.StrOpt(
        "repack",
        default="equal",
        choices=[
            ("off", "a lease keeps the hosts that it was booked with, until they fail or are in maintenance"),
            ("equal", "it may get others that are equal in all that users can see"),
            ("any", "it may get any others that meet what it asks for"),
        ],
        help="Whether whole-host leases that have not started get other hosts, for the same time, so that "
        "others can be booked, or prolonged on theirs.",
    ),
    cfg.IntOpt(
        "repack_notice",
        default=120,
        min=0,
        help="Minutes before its start from which on a lease keeps its hosts.",
    ),
    cfg.IntOpt(
        "preemption_notice",
        default=0,
        min=0,
        max=1440,
        help="Minutes before a start at which the owners of preemptible servers in its way are told, and its hosts are "
        "closed to others; 0: they are not told.",
    ),
    cfg.IntOpt(
        "confirm_within",
        default=15,
        min=0,
        max=1440,
        help="The longest confirm_within of a request, in minutes: a lease that nobody confirms by then is deleted. "
        "0: each lease is firm at once.",
    ),
    cfg.IntOpt(
        "lend_after",
        default=30,
        min=1,
        max=1440,
        help="Minutes for which a lease that lends idle hosts has not used one when preemptible servers may run there; "
        "none are lent while preemption_notice is 0.",
    ),
    cfg.IntOpt(
        "repack_most_moves",
        default=10,
        min=0,
        help="How often a lease gets other hosts at most before its start; then it keeps those that it has.",
    ),
    cfg.IntOpt(
        "repack_most_leases",
        default=20,
        min=0,
        help="How many leases get other hosts at most for one that is booked, changed, or loses a host.",
    ),
    cfg.IntOpt(
        "repack_exact",
        default=2,
        min=0,
        max=30,
        help="Seconds for which a solver goes on where the search for such hosts gives up; then it is known whether "
        "any arrangement of all leases has room. It needs the extra exact (pip install 'blazar[exact]'). 0: never.",
    ),
)
"""Options of ``[manager]``."""

MINUTES = ("preemption_notice", "lend_after", "confirm_within")
"""Those that are settings by the same names, in minutes."""


def read_defaults(conf: cfg.ConfigOpts) -> LeaseDefaults:
    """Return what requests for leases mean that leave it out."""
    return LeaseDefaults(LeaseKind(conf.api.default_kind), conf.api.repack_named)


def read_repack(conf: cfg.ConfigOpts) -> RepackSettings:
    """Return which leases may get other hosts before their start."""
    manager = conf.manager
    notice = timedelta(minutes=manager.repack_notice)
    exact = timedelta(seconds=manager.repack_exact)
    most = manager.repack_most_moves, manager.repack_most_leases
    return RepackSettings(RepackMode(manager.repack), notice, *most, exact)


def read_reports(conf: cfg.ConfigOpts) -> ReportSettings:
    """Return the settings of reports."""
    return ReportSettings(conf.reports.time_zone, tuple(sorted(set(conf.reports.properties))))
