# SPDX-License-Identifier: Apache-2.0
"""``blazar-status leftovers``: reservations that are not on record and are in the cloud, as after a restored backup."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence

from oslo_config import cfg
from sqlalchemy.exc import SQLAlchemyError

from blazar.clouds.hooks.http import HttpHooks
from blazar.clouds.openstack import Access, open_cloud
from blazar.clouds.openstack.options import credentials
from blazar.cmd import assemble, config
from blazar.cmd.config import ConfigurationError
from blazar.manager.events.sweep import Leftovers
from blazar.model.base.clock import SystemClock
from blazar.model.base.errors import BlazarError
from blazar.store.sql import revisions
from blazar.store.sql.clock import DatabaseClock
from blazar.store.sql.engine import explain_failure


def run(given: list[str], usage: str) -> int:
    """List or end reservations that are not on record; return 0, or 255 if it could not be done."""
    parser = argparse.ArgumentParser(prog="blazar-status", usage=usage.removeprefix("usage: "), add_help=False)
    parser.add_argument("command", choices=["leftovers"])
    parser.add_argument("--end", action="append", default=[])
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument("--config-file", action="append")
    parser.add_argument("--config-dir", action="append", default=[])
    options = parser.parse_args(given)
    folders = [word for folder in options.config_dir for word in ("--config-dir", folder)]
    try:
        conf = config.load(folders, program="blazar-status", files=options.config_file)
        for line in lines(conf, options.end, dry_run=options.dry_run):
            print(line)
    except SQLAlchemyError as error:
        print(f"blazar-status: {explain_failure(error)}", file=sys.stderr)
        return 255
    except (BlazarError, cfg.Error) as error:
        print(f"blazar-status: {error}", file=sys.stderr)
        return 255
    return 0


def lines(conf: cfg.ConfigOpts, ends: Sequence[str], *, dry_run: bool) -> Iterator[str]:
    """Return what to print: the list, or what is done about these reservations. BlazarError."""
    yield from report(_leftovers(conf), ends, dry_run=dry_run)


def report(leftovers: Leftovers, ends: Sequence[str], *, dry_run: bool) -> Iterator[str]:
    """List what is not on record, or end some of it."""
    if not ends:
        found = leftovers.all()
        for one in found:
            yield f"{one.reservation_id}  {one.resource_type}{f'  {one.region}' if one.region else ''}"
        counted = (
            "1 reservation is not on record, and has"
            if len(found) == 1
            else f"{len(found)} reservations are not on record, and have"
        )
        yield f"{counted} something in the cloud"
        return
    for id_ in ends:
        if dry_run:
            known = any(leftover.reservation_id == id_ for leftover in leftovers.all())
            yield f"{id_} {'would be ended' if known else 'is not among them'}"
        else:
            yield f"{leftovers.end(id_).reservation_id} is ended; managers remove now what it has in the cloud"


def _leftovers(conf: cfg.ConfigOpts) -> Leftovers:
    engine = assemble.database_engine(conf)
    if (text := revisions.explain_revision(revisions.read_revision(engine))) is not None:
        raise ConfigurationError(text)
    names = config.regions(conf).names
    accesses = {name: Access(credentials(conf, region=name)) for name in names} or {"": Access(credentials(conf))}
    hooks = HttpHooks.configured(conf)
    clouds = {name: open_cloud(access, az_aware=conf.nova.az_aware, hooks=hooks) for name, access in accesses.items()}
    clock = DatabaseClock(engine, SystemClock())
    clock.synchronize()
    return assemble.manager(conf, engine=engine, clouds=clouds, clock=clock).leftovers
