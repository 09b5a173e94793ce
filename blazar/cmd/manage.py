# SPDX-License-Identifier: Apache-2.0
"""blazar-manage: see what is in trouble, and act on it, also while the API and the message bus are down.

It is a manager whose only thread renews its claims: it uses the database and the cloud of blazar.conf as every manager
does.
"""

from __future__ import annotations

import argparse
import getpass
import os
import sys
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from oslo_config import cfg
from sqlalchemy.exc import SQLAlchemyError

from blazar import RELEASE
from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.openstack import Access, open_cloud
from blazar.clouds.openstack.options import credentials
from blazar.clouds.power import open_power
from blazar.cmd import assemble, config, doctor
from blazar.cmd.config import ConfigurationError
from blazar.context import scope
from blazar.manager.repair.explanations import describe_event
from blazar.manager.service import ManagerService
from blazar.model.base.clock import SystemClock, spell
from blazar.model.base.errors import BlazarError, InvalidInput
from blazar.model.base.log_lines import escape
from blazar.model.base.paging import Page
from blazar.model.leases.requests import Actor
from blazar.model.problems.problems import (
    LONGEST_REASON,
    MOST_AT_ONCE,
    ProblemAction,
    ProblemKind,
    ProblemQuestion,
    RepairRequest,
)
from blazar.store.sql import revisions
from blazar.store.sql.clock import DatabaseClock
from blazar.store.sql.engine import explain_failure

DONE, FAILED, FOUND, REFUSED = 0, 1, 3, 4
"""Exit codes; 2 is that of a wrong usage, by argparse."""

EPILOG = "Exit codes: 0 nothing found or all done, 1 could not run, 2 usage, 3 found something, 4 some was refused."

MOST_LISTED = 1000
"""Messages of a subscription that are listed."""

FIRST_YEAR, LAST_YEAR = 1971, 8999
"""Years of the days of reports, as of the API."""

Command = Callable[[ManagerService, argparse.Namespace], int]


def main(arguments: list[str] | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    folders = [word for folder in options.config_dir or () for word in ("--config-dir", folder)]
    try:
        conf = config.load(folders, program="blazar-manage", files=options.config_file)
        if options.command is doctor.write_report:
            report: int = doctor.write_report(conf, lambda: open_manager(conf), options.output, options.lease)
            return report
        manager = open_manager(conf)
        # What takes longer than a claim lasts keeps it, as in a manager; the others see none.
        manager.claims.start()
        try:
            return run(manager, options)
        finally:
            manager.claims.stop()
    except SQLAlchemyError as error:
        print(f"blazar-manage: {explain_failure(error)}", file=sys.stderr)
    except OSError as error:
        print(
            f"blazar-manage: {error.strerror or error}{f': {error.filename}' if error.filename else ''}",
            file=sys.stderr,
        )
    except (BlazarError, cfg.Error) as error:
        print(f"blazar-manage: {error}", file=sys.stderr)
    return FAILED


def _name_caller() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A user of a container may have no name.
        return f"uid {os.getuid()}"


def run(manager: ManagerService, options: argparse.Namespace) -> int:
    """Run a command that was read, as the operator who has called it."""
    actor = Actor(_name_caller(), "blazar-manage", operator=True)
    command: Command = options.command
    with scope(actor=actor):
        return command(manager, options)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of a command line. SystemExit with code 2 for a wrong one."""
    return _parser().parse_args(arguments)


def open_manager(conf: cfg.ConfigOpts) -> ManagerService:
    """Return a manager on the configured database and cloud that is not started. ConfigurationError, BlazarError."""
    engine = assemble.database_engine(conf)
    if (text := revisions.explain_revision(revisions.read_revision(engine))) is not None:
        raise ConfigurationError(text)
    names = config.regions(conf).names
    accesses = {name: Access(credentials(conf, region=name)) for name in names} or {"": Access(credentials(conf))}
    clock = DatabaseClock(engine, SystemClock())
    hooks = HttpHooks.configured(conf, clock)
    clouds = {
        name: open_cloud(access, az_aware=conf.nova.az_aware, hooks=hooks, power=open_power(conf, access, hooks, clock))
        for name, access in accesses.items()
    }
    clock.synchronize()
    return assemble.manager(conf, engine=engine, clouds=clouds, clock=clock)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="blazar-manage", description=__doc__, epilog=EPILOG)
    parser.add_argument("--version", action="version", version=f"blazar-manage {RELEASE}")
    parser.add_argument("--config-file", action="append", help="blazar.conf")
    parser.add_argument("--config-dir", action="append", help="folder of further files, read after --config-file")
    nouns = parser.add_subparsers(required=True, metavar="command")
    problems = nouns.add_parser("problems", help="what is in trouble").add_subparsers(required=True, metavar="verb")
    listed = _add(problems, "list", list_problems, "List what is in trouble, the oldest first.")
    listed.add_argument("--kind", choices=[str(kind) for kind in ProblemKind], help="only those of this kind")
    listed.add_argument("--lease", help="only those of this lease, by its id")
    listed.add_argument("--region", help="only those of this region")
    listed.add_argument("--look", action="store_true", help="look at the cloud for what is left there, before")
    _add(problems, "why", explain_problem, "Say why something is a problem.").add_argument("problem")
    for action in ProblemAction:
        verb = _add(problems, action.replace("_", "-"), act_on_problems, f"{_SAYS[action]}; by default a dry run.")
        verb.set_defaults(action=action)
        verb.add_argument("problem", nargs="+", help=f"id of a problem; {MOST_AT_ONCE} at most")
        _add_deed(verb)
    leases = nouns.add_parser("leases", help="one lease").add_subparsers(required=True, metavar="verb")
    _add(leases, "why", explain_lease, "Say what a lease waits for.").add_argument("lease")
    end = _add(leases, "end", end_lease, "Delete a lease without what is done before its end; by default a dry run.")
    end.add_argument("lease")
    _add_deed(end)
    managers = nouns.add_parser("managers", help="running managers").add_subparsers(required=True, metavar="verb")
    _add(managers, "list", list_managers, "List the managers that run, or were seen within a day.")
    _add_deliveries(nouns)
    data = nouns.add_parser("data", help="the database").add_subparsers(required=True, metavar="verb")
    _add(data, "check", check_data, "Check the books by themselves, as after a backup was restored.")
    _add_reports(nouns)
    told = nouns.add_parser("doctor", help="a report for those who help", description=doctor.__doc__)
    told.set_defaults(command=doctor.write_report)
    told.add_argument("--output", required=True, help="file to write; it must not exist")
    told.add_argument("--lease", help="id of a lease whose history is told, too")
    return parser


def _add_deliveries(nouns: Any) -> None:
    deliveries = nouns.add_parser("deliveries", help="messages that receivers of subscriptions have refused for good")
    verbs = deliveries.add_subparsers(required=True, metavar="verb")
    listed = _add(verbs, "list", list_deliveries, "List receivers that have refused messages, or the messages of one.")
    listed.add_argument("--subscription", help="only the messages of this subscription, by its id")
    for action in (ProblemAction.RETRY, ProblemAction.DROP):
        verb = _add(verbs, str(action), act_on_deliveries, f"{_OF_DELIVERIES[action]}; by default a dry run.")
        verb.set_defaults(action=action)
        verb.add_argument("subscription", nargs="+", help=f"id of a subscription; {MOST_AT_ONCE} at most")
        _add_deed(verb)


_OF_DELIVERIES = {
    ProblemAction.RETRY: "Tell receivers once more what they have refused, and what has happened since",
    ProblemAction.DROP: "Forget messages that receivers have refused for good",
}
_SAYS = {
    ProblemAction.RETRY: "Try events again at once, or tell receivers of subscriptions once more",
    ProblemAction.RELEASE: "Let claims end that last too long",
    ProblemAction.GIVE_UP: "Go on without events",
    ProblemAction.END: "End leases, leftovers, or what is not on record",
    ProblemAction.MEND: "Bring the cloud to what the books say",
    ProblemAction.RECHECK: "Ask the cloud now how resources are",
    ProblemAction.DROP: "Forget messages that receivers have refused for good",
}


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser], name: str, command: Command, text: str
) -> argparse.ArgumentParser:
    sub = commands.add_parser(name, help=text, description=text, epilog=EPILOG)
    sub.set_defaults(command=command)
    return sub


def _read_reason(text: str) -> str:
    if text.isspace() or not 0 < len(text) <= LONGEST_REASON:
        raise argparse.ArgumentTypeError(f"give why, in 1 to {LONGEST_REASON} characters, not all of them spaces")
    return text


def _add_reports(nouns: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    reports = nouns.add_parser("reports", help="sums of what was").add_subparsers(required=True, metavar="verb")
    again = _add(reports, "recompute", recompute_reports, "Put days of usage on record again, as far as they are over.")
    for name, what in (("--from", "first"), ("--to", "last")):
        again.add_argument(name, dest=what, required=True, type=_read_day, help=f"the {what} day, 2030-04-01")


def _read_day(text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        day = date.min
    if not FIRST_YEAR <= day.year <= LAST_YEAR:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no day of the years {FIRST_YEAR} to {LAST_YEAR}; write it as 2030-04-01"
        )
    return day


def _add_deed(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--reason", required=True, type=_read_reason, help="why; it goes into the history of the lease")
    parser.add_argument("--yes", action="store_true", help="do it; without this, only say what would be done")
    parser.add_argument("--confirm", help="the id of a reservation that is not on record, once more, to end it")


def list_problems(manager: ManagerService, options: argparse.Namespace) -> int:
    """Print a line for each problem."""
    silent = [found for sweep in manager.sweeps for found in sweep.look()] if options.look else []
    kinds = (ProblemKind(options.kind),) if options.kind else ()
    page = Page(limit=sys.maxsize, sort_key="since")
    found = manager.problems.page(ProblemQuestion(page, kinds, options.lease, options.region))
    for problem in found.items:
        print(f"{problem.id}  {spell(problem.since)}  {escape(problem.summary)}")
    if found.more:
        print("There are more: these are the oldest", file=sys.stderr)
    for resource_type in silent:
        print(f"blazar-manage: reservations of {resource_type} cannot be listed in the cloud now", file=sys.stderr)
    if silent:
        return FAILED
    return FOUND if found.items else DONE


def explain_problem(manager: ManagerService, options: argparse.Namespace) -> int:
    """Print a problem with its explanation."""
    problem = manager.problems.one(options.problem)
    print(f"{problem.id}  {spell(problem.since)}  {escape(problem.summary)}")
    for sentence in problem.explanation:
        print(f"  {escape(sentence)}")
    if problem.actions:
        print(f"  To act: {', '.join(action.replace('_', '-') for action in problem.actions)}.")
    return FOUND


def act_on_problems(manager: ManagerService, options: argparse.Namespace) -> int:
    """Act on each problem, and say what was done, or would be, or why not."""
    if len(options.problem) > MOST_AT_ONCE:
        print(f"blazar-manage: {MOST_AT_ONCE} problems at most at once", file=sys.stderr)
        return 2
    request = RepairRequest(options.reason, not options.yes, getattr(options, "confirm", None))
    code, refused = DONE, 0
    for problem_id in options.problem:
        try:
            said = manager.problems.act(problem_id, options.action, request).said
        except BlazarError as error:
            print(f"{problem_id}: {error.message}", file=sys.stderr)
            code, refused = REFUSED, refused + 1
        else:
            print(f"{problem_id}: {escape(' '.join(said))}")
    return _finish(options, code, possible=refused < len(options.problem))


def _finish(options: argparse.Namespace, code: int, *, possible: bool) -> int:
    if not options.yes and possible:
        print("Nothing was done; repeat it with --yes", file=sys.stderr)
    return code


def explain_lease(manager: ManagerService, options: argparse.Namespace) -> int:
    """Print the events of a lease, with what each waits for, and its problems."""
    lease = manager.leases.details(options.lease).lease
    now, ttl = manager.clock.now(), manager.claims.ttl
    print(f"Lease {escape(lease.name)} of project {lease.project_id} is {lease.status}")
    print(f"  from {spell(lease.window.start)} to {spell(lease.window.end)}")
    for event in manager.problems.events.list_events(lease.id):
        print(f"{event.event_type} {event.id} is {event.status}")
        for sentence in describe_event(event, now, ttl):
            print(f"  {escape(sentence)}")
    return list_problems(manager, argparse.Namespace(kind=None, lease=lease.id, region=None, look=False))


def end_lease(manager: ManagerService, options: argparse.Namespace) -> int:
    """Delete a lease, or say what would go."""
    try:
        said = manager.problems.ends.end_lease(options.lease, RepairRequest(options.reason, not options.yes))
    except BlazarError as error:
        print(f"{options.lease}: {error.message}", file=sys.stderr)
        return _finish(options, REFUSED, possible=False)
    print(escape(" ".join(said)))
    return _finish(options, DONE, possible=True)


def list_deliveries(manager: ManagerService, options: argparse.Namespace) -> int:
    """Print a line for each receiver that has refused messages, or for each message of one."""
    if options.subscription is None:
        return list_problems(
            manager, argparse.Namespace(kind=ProblemKind.DELIVERY, lease=None, region=None, look=False)
        )
    found = manager.subscriptions.failures(options.subscription, Page(MOST_LISTED, "at"))
    for one in found.items:
        print(f"{one.position}  {spell(one.at)}  {escape(one.type)}  {escape(one.subject)}  {escape(one.reason)}")
    if found.following is not None:
        print("There are more: these are the oldest", file=sys.stderr)
    return FOUND if found.items else DONE


def act_on_deliveries(manager: ManagerService, options: argparse.Namespace) -> int:
    """Act on what each receiver has refused: the problem of its subscription, whatever position that begins at."""
    page = Page(limit=sys.maxsize, sort_key="since")
    refused = manager.problems.page(ProblemQuestion(page, (ProblemKind.DELIVERY,))).items
    by_subscription = {problem.id.split(":")[1]: problem.id for problem in refused}
    options.problem = [by_subscription.get(id_, f"{ProblemKind.DELIVERY}:{id_}") for id_ in options.subscription]
    return act_on_problems(manager, options)


def list_managers(manager: ManagerService, options: argparse.Namespace) -> int:
    """Print a line for each manager; what is found is one that is not up."""
    known = manager.service.managers()
    for one in known:
        state = str(one.facts.state) if one.up else "not up"
        print(f"{one.id}  {one.facts.version}  {state}  seen {spell(one.seen_at)}  {len(one.work)} events")
    return DONE if all(one.up for one in known) else FOUND


def check_data(manager: ManagerService, options: argparse.Namespace) -> int:
    """Print what is wrong in the books."""
    found = manager.problems.check_books()
    for sentence in found:
        print(sentence)
    if not found:
        print("Nothing is wrong in the books")
    return FOUND if found else DONE


def recompute_reports(manager: ManagerService, options: argparse.Namespace) -> int:
    """Put days on record again, and say how many. InvalidInput."""
    if options.last < options.first:
        raise InvalidInput(f"--to is {options.last}, which is before --from, {options.first}; give a later one")
    print(f"{manager.usage_days.recompute(options.first, options.last)} days were put on record")
    return DONE


if __name__ == "__main__":
    sys.exit(main())
