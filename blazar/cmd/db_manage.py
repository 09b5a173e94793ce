# SPDX-License-Identifier: Apache-2.0
"""blazar-db-manage: manage the tables of the database and the record of past leases."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from oslo_config import cfg
from sqlalchemy.engine import Engine
from sqlalchemy.exc import SQLAlchemyError

from blazar import RELEASE
from blazar.clouds.hooks import signing
from blazar.cmd import config, unused_report
from blazar.model.clock import Clock, SystemClock
from blazar.model.errors import BlazarError, InvalidInput, NotFound
from blazar.model.lease import Lease
from blazar.model.log_text import escaped
from blazar.model.resource import DEVICE, GENERIC
from blazar.store import migrate, revisions
from blazar.store.engine import connect, explain_failure
from blazar.store.store import Store


def main(arguments: list[str] | None = None, *, clock: Clock | None = None) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    options.clock = clock or SystemClock()
    try:
        command: Callable[[Engine, argparse.Namespace], int] = options.command
        return command(connect(_url(options)), options)
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
    unused = add("unused", _unused, "Print the leases that are or were looked at because nobody may use them.")
    unused.add_argument("--json", action="store_true", help="print JSON, with the history of the looks")
    hooks = add(
        "hook-secrets", _hook_secrets, "Print the secrets with which calls to the hook of a resource are signed."
    )
    hooks.add_argument("resource", help="name or id of a generic resource or a device")
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
    revision = migrate.current(engine)
    newest = " (the newest)" if revision == migrate.head() else ""
    if revisions.is_newer(revision):
        newest = f" (from a newer version; this one knows up to {migrate.head()})"
    print(f"{revision or 'no tables yet'}{newest}")
    return 0


def _history(engine: Engine, options: argparse.Namespace) -> int:
    for revision, text in migrate.history():
        print(f"{revision}  {text}")
    return 0


def _stamp(engine: Engine, options: argparse.Namespace) -> int:
    migrate.stamp(engine, options.revision)
    return _current(engine, options)


def _check(engine: Engine, options: argparse.Namespace) -> int:
    if (text := revisions.wrong(migrate.current(engine), program="blazar-db-manage")) is not None:
        print(text)
        return 1
    differences = migrate.differences(engine)
    for difference in differences:
        print(difference)
    print("the tables do not match this version" if differences else "the tables match this version")
    return 1 if differences else 0


def _revision(engine: Engine, options: argparse.Namespace) -> int:
    migrate.new_revision(engine, options.message)
    return 0


def _past_leases(engine: Engine, options: argparse.Namespace) -> int:
    _check_newest(engine)
    leases = Store(engine).leases.past(options.project, since=options.since, until=options.until)
    if options.json:
        print(json.dumps([_record(lease) for lease in leases], indent=2))
        return 0
    row = "{:36}  {:20}  {:16}  {:16}  {:10}  {}"
    print(row.format("id", "project", "start", "end", "status", "name"))
    for lease in leases:
        record = _record(lease)
        line = row.format(*(record[k] for k in ("id", "project_id", "start_date", "end_date", "status", "name")))
        # Names are of users, and may have commands to a terminal in them.
        print(escaped(line))
    return 0


def _purge(engine: Engine, options: argparse.Namespace) -> int:
    if options.before > options.clock.now():
        raise InvalidInput(f"--before: {options.before:%Y-%m-%d} is not in the past; give a past date")
    _check_newest(engine)
    store = Store(engine)
    if options.dry_run:
        counts = {**store.leases.purgeable(options.before), **store.series.purgeable(options.before)}
        print(f"{_told(counts)} would be deleted")
        return 0
    total: Counter[str] = Counter(leases=0)
    # Short transactions, so that other users of the database do not wait.
    while done := store.leases.purge(options.before, options.batch):
        total.update(done)
    # Series after their leases.
    while done := store.series.purge(options.before, options.batch):
        total.update(done)
    print(f"{_told(total)} deleted")
    return 0


def _unused(engine: Engine, options: argparse.Namespace) -> int:
    _check_newest(engine)
    for line in unused_report.lines(Store(engine).unused, as_json=options.json):
        print(line)
    return 0


def _hook_secrets(engine: Engine, options: argparse.Namespace) -> int:
    masters = _conf(options).generic.master_secrets
    if not masters:
        raise InvalidInput(
            "[generic] master_secrets is not set in blazar.conf; secrets of resources are derived from it"
        )
    signing.check_masters(masters)
    _check_newest(engine)
    resources = Store(engine).resources
    for resource in (*resources.of_kind(GENERIC), *resources.of_kind(DEVICE)):
        if options.resource in (resource.external_id, resource.name):
            for secret in signing.secrets_of(masters, resource.external_id):
                print(secret)
            return 0
    raise NotFound(f"no generic resource or device {options.resource} is registered")


def _told(counts: Mapping[str, int]) -> str:
    others = ", ".join(f"{number} {name}" for name, number in sorted(counts.items()) if name != "leases" and number)
    return f"{counts['leases']} leases{f' (with {others})' if others else ''}"


def _check_newest(engine: Engine) -> None:
    if (text := revisions.wrong(migrate.current(engine), program="blazar-db-manage")) is not None:
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
