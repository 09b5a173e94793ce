# SPDX-License-Identifier: Apache-2.0
"""blazar-db-manage: manage the tables of the database and the record of past leases."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from oslo_config import cfg
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from blazar import RELEASE
from blazar.clouds.outgoing import signing
from blazar.cmd import config
from blazar.model.base.clock import Clock, SystemClock, zulu
from blazar.model.base.errors import BlazarError, InvalidInput, NotFound
from blazar.model.base.log_lines import escape
from blazar.model.leases.lease import Lease
from blazar.model.power.classes import POWERED
from blazar.model.resources.resource import DEVICE, GENERIC
from blazar.model.use.policy import UseReport
from blazar.store.sql import migrate, revisions
from blazar.store.sql.engine import explain_failure, make_engine
from blazar.store.store import Store
from blazar.store.use.unused import UnusedStore

PAGE = 1000
_ROW = "{:36}  {:20}  {:7}  {:7}  {:20}  {:20}  {:20}  {}"
_HEAD = ("id", "project", "mode", "usage", "used at", "release at", "would release at", "what")


def main(arguments: list[str] | None = None, *, clock: Clock | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    options.clock = clock or SystemClock()
    try:
        command: Callable[[Engine, argparse.Namespace], int] = options.command
        return command(make_engine(_url(options)), options)
    except SQLAlchemyError as error:
        print(f"blazar-db-manage: {explain_failure(error)}", file=sys.stderr)
    except BrokenPipeError:
        # The reader of our output, for example `head`, has exited; the rest of the buffer goes to /dev/null.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (BlazarError, cfg.Error) as error:
        print(f"blazar-db-manage: {error}", file=sys.stderr)
    except migrate.MigrationError as error:
        print(f"blazar-db-manage: {error}; 'history' lists the revisions", file=sys.stderr)
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="blazar-db-manage", description=__doc__)
    parser.add_argument("--version", action="version", version=f"blazar-db-manage {RELEASE}")
    parser.add_argument("--config-file", action="append", help="blazar.conf, read for [database] connection")
    parser.add_argument("--config-dir", action="append", help="folder of further files, read after --config-file")
    parser.add_argument("--database-url", help="SQLAlchemy URL of the database, instead of the configured one")
    commands = parser.add_subparsers(required=True, metavar="command")

    def add(name: str, command: Callable[[Engine, argparse.Namespace], int], text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(command=command)
        return sub

    add("upgrade", _upgrade, "Upgrade the tables to a revision.").add_argument("revision", nargs="?", default="head")
    add("downgrade", _downgrade, "Downgrade the tables to a revision.").add_argument("revision")
    add("current", _current, "Print the revision of the tables.")
    add("history", _history, "List all revisions, the newest first.")
    add("stamp", _stamp, "Set the recorded revision of the tables without changing them.").add_argument("revision")
    add("check", _check, "Check that the tables match this version.")
    add("revision", _revision, "Write a new migration (for developers).").add_argument("-m", "--message", required=True)
    past = add("past-leases", _past_leases, "Print leases that have ended or were deleted.")
    past.add_argument("--project", help="only leases of this project")
    past.add_argument("--since", type=_date, help="only leases that ended on or after this date (YYYY-MM-DD)")
    past.add_argument("--until", type=_date, help="only leases that started before this date (YYYY-MM-DD)")
    past.add_argument("--json", action="store_true", help="print JSON")
    purge = add("purge", _purge, "Delete leases that have ended or were deleted from the record, for good.")
    purge.add_argument("--before", type=_date, required=True, help="ended or deleted before this date (YYYY-MM-DD)")
    purge.add_argument("--dry-run", action="store_true", help="only print the number of leases")
    purge.add_argument("--batch", type=_count, default=500, help="leases per transaction, 1 to 10000 (default 500)")
    unused = add("unused", _print_unused, "Print the leases that are or were looked at because nobody may use them.")
    unused.add_argument("--json", action="store_true", help="print JSON, with the history of the looks")
    hooks = add(
        "hook-secrets", _hook_secrets, "Print the secrets with which calls to the hook of a resource are signed."
    )
    hooks.add_argument("resource", help="name or id of a generic resource, a device, or a host that a hook switches")
    return parser


def _conf(options: argparse.Namespace) -> cfg.ConfigOpts:
    folders = [word for folder in options.config_dir or () for word in ("--config-dir", folder)]
    return config.load(folders, program="blazar-db-manage", files=options.config_file)


def _url(options: argparse.Namespace) -> str:
    if options.database_url:
        return str(options.database_url)
    conf = _conf(options)
    if not conf.database.connection:
        raise InvalidInput(
            "no database is configured; set connection in [database] of blazar.conf, or pass --database-url"
        )
    return str(conf.database.connection)


def _upgrade(engine: Engine, options: argparse.Namespace) -> int:
    migrate.upgrade(engine, options.revision)
    return _current(engine, options)


def _downgrade(engine: Engine, options: argparse.Namespace) -> int:
    migrate.downgrade(engine, options.revision)
    return _current(engine, options)


def _current(engine: Engine, options: argparse.Namespace) -> int:
    revision = migrate.read_revision(engine)
    about = " (the newest)" if revision == migrate.newest_revision() else ""
    if revision is not None and not revisions.is_known(revision):
        about = f" (from {revisions.describe_origin(revision)}; this one knows up to {migrate.newest_revision()})"
    print(f"{revision or 'no tables yet'}{about}")
    return 0


def _history(engine: Engine, options: argparse.Namespace) -> int:
    for revision, text in migrate.list_revisions():
        print(f"{revision}  {text}")
    return 0


def _stamp(engine: Engine, options: argparse.Namespace) -> int:
    migrate.stamp(engine, options.revision)
    return _current(engine, options)


def _check(engine: Engine, options: argparse.Namespace) -> int:
    if (text := revisions.explain_revision(migrate.read_revision(engine), program="blazar-db-manage")) is not None:
        print(text)
        return 1
    differences = migrate.find_differences(engine)
    for difference in differences:
        print(difference)
    print("the tables do not match this version" if differences else "the tables match this version")
    return 1 if differences else 0


def _revision(engine: Engine, options: argparse.Namespace) -> int:
    migrate.new_revision(engine, options.message)
    return 0


def _past_leases(engine: Engine, options: argparse.Namespace) -> int:
    _check_newest(engine)
    leases = Store(engine).leases.load_past(options.project, since=options.since, until=options.until)
    if options.json:
        print(json.dumps([_record(lease) for lease in leases], indent=2))
        return 0
    row = "{:36}  {:20}  {:16}  {:16}  {:10}  {}"
    print(row.format("id", "project", "start", "end", "status", "name"))
    for lease in leases:
        record = _record(lease)
        line = row.format(*(record[k] for k in ("id", "project_id", "start_date", "end_date", "status", "name")))
        # Names are of users, and may have commands to a terminal in them.
        print(escape(line))
    return 0


def _purge(engine: Engine, options: argparse.Namespace) -> int:
    if options.before > options.clock.now():
        raise InvalidInput(f"--before: {options.before:%Y-%m-%d} is not in the past; give a past date")
    _check_newest(engine)
    store = Store(engine)
    if options.dry_run:
        counts = {**store.leases.count_purgeable(options.before), **store.series.count_purgeable(options.before)}
        print(f"{_describe_counts(counts)} would be deleted")
        return 0
    total: Counter[str] = Counter(leases=0)
    # Short transactions, so that other users of the database do not wait.
    while done := store.leases.purge(options.before, options.batch):
        total.update(done)
    # Series after their leases.
    while done := store.series.purge(options.before, options.batch):
        total.update(done)
    print(f"{_describe_counts(total)} deleted")
    return 0


def _print_unused(engine: Engine, options: argparse.Namespace) -> int:
    _check_newest(engine)
    for line in unused_lines(Store(engine).unused, as_json=options.json):
        print(line)
    return 0


def _hook_secrets(engine: Engine, options: argparse.Namespace) -> int:
    masters = _conf(options).generic.master_secrets
    if not masters:
        raise InvalidInput(
            "[generic] master_secrets is not set in blazar.conf; secrets of resources are derived from it"
        )
    signing.check_master_lengths(masters)
    _check_newest(engine)
    resources = Store(engine).resources
    # Hosts and pools that a hook switches have one, too.
    registered = [resource for kind in (GENERIC, DEVICE, *POWERED) for resource in resources.of_kind(kind)]
    names = {r.external_id: r.name for r in registered}
    # An id says which one it is, whatever others are called.
    found = [options.resource] if options.resource in names else [i for i, n in names.items() if n == options.resource]
    if not found:
        raise NotFound(f"no generic resource, device, host or volume pool {options.resource} is registered")
    if len(found) > 1:
        raise InvalidInput(f"several are called {options.resource}; give the id of one: {', '.join(found)}")
    for secret in signing.secrets_of(masters, found[0]):
        print(secret)
    return 0


def _describe_counts(counts: Mapping[str, int]) -> str:
    others = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()) if name != "leases" and number)
    return f"{counts['leases']} leases{f' (with {others})' if others else ''}"


def _check_newest(engine: Engine) -> None:
    if (text := revisions.explain_revision(migrate.read_revision(engine), program="blazar-db-manage")) is not None:
        raise InvalidInput(text)


def _record(lease: Lease) -> dict[str, str]:
    return {
        "id": lease.id,
        "name": lease.name,
        "project_id": lease.project_id,
        "user_id": lease.user_id,
        "start_date": f"{lease.window.start:%Y-%m-%d %H:%M}",
        "end_date": f"{lease.window.end:%Y-%m-%d %H:%M}",
        "status": "deleted" if lease.deleted_at else "ended",
        "deleted_at": f"{lease.deleted_at:%Y-%m-%d %H:%M}" if lease.deleted_at else "",
    }


def _date(text: str) -> datetime:
    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text} is not a date; write it as 2030-04-01") from None


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= 10000):
        raise argparse.ArgumentTypeError(f"{text} is not a number from 1 to 10000")
    return int(text)


if __name__ == "__main__":
    sys.exit(main())


def unused_lines(store: UnusedStore, *, as_json: bool) -> Iterator[str]:
    """Yield the lines of the report; as JSON one object a line, so that a long one can be read as it comes."""
    if not as_json:
        yield _ROW.format(*_HEAD)
    after = ""
    while page := store.load_report(after=after, limit=PAGE):
        for report in page:
            yield json.dumps(_unused_json(report)) if as_json else _ROW.format(*_unused_cells(report)).rstrip()
        after = page[-1].id


def _unused_cells(report: UseReport) -> tuple[str, ...]:
    would = report.would_have_released_at or report.would_release_at
    times = (_time(report.used_at), _time(report.release_at), _time(would))
    return (report.id, report.project_id, str(report.mode), str(report.usage), *times, _outcome(report))


def _outcome(report: UseReport) -> str:
    """Return in words what operators have to know most."""
    if report.used_later:
        return "would have been released, and was used later"
    if report.would_have_released_at is not None:
        return "would have been released"
    if report.held:
        return "held"
    return report.looks[-1].detail if report.looks else "not looked at yet"


def _unused_json(report: UseReport) -> dict[str, Any]:
    return {
        "id": report.id,
        "name": report.name,
        "project_id": report.project_id,
        "user_id": report.user_id,
        "mode": str(report.mode),
        "usage": str(report.usage),
        "since": _time(report.since),
        "used_at": _time(report.used_at) or None,
        "release_at": _time(report.release_at) or None,
        "would_release_at": _time(report.would_release_at) or None,
        "would_have_released_at": _time(report.would_have_released_at) or None,
        "used_later": report.used_later,
        "kept_at": _time(report.kept_at) or None,
        "held": report.held,
        "looks": [
            {"at": zulu(look.at), "usage": str(look.usage), "detail": look.detail, "step": str(look.step)}
            for look in report.looks
        ],
    }


def _time(instant: datetime | None) -> str:
    return "" if instant is None else zulu(instant)
